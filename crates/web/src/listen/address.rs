//! Where the server listens.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// The port unless another is given.
pub(crate) const DEFAULT_PORT: u16 = 7878;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    Tcp(SocketAddr),
    /// A socket file that only its owner can use.
    Socket(PathBuf),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an address is IP:PORT, a port, or unix:PATH: 127.0.0.1:7878, [::1]:7878, 7878, unix:/run/queuectl.sock"
)]
pub struct ListenAddressError;

impl ListenAddress {
    /// Both loopback addresses, with this port or the usual one.
    pub fn loopback(port: Option<u16>) -> [Self; 2] {
        let port = port.unwrap_or(DEFAULT_PORT);
        [Self::Tcp(([127, 0, 0, 1], port).into()), Self::Tcp(([0, 0, 0, 0, 0, 0, 0, 1], port).into())]
    }

    /// Whether other machines can connect.
    pub fn is_remote(&self) -> bool {
        match self {
            Self::Tcp(address) => !address.ip().to_canonical().is_loopback(),
            Self::Socket(_) => false,
        }
    }
}

impl FromStr for ListenAddress {
    type Err = ListenAddressError;

    fn from_str(text: &str) -> Result<Self, ListenAddressError> {
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(ListenAddressError) } else { Ok(Self::Socket(path.into())) };
        }
        let port = text.strip_prefix("localhost:").or(text.strip_prefix(':')).unwrap_or(text);
        if let Ok(port) = port.parse::<u16>() {
            return Ok(Self::Tcp(([127, 0, 0, 1], port).into()));
        }
        text.parse().map(Self::Tcp).map_err(|_| ListenAddressError)
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Socket(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_and_remote_ones_are_known() {
        for (typed, shown, is_remote) in [
            ("127.0.0.1:80", "127.0.0.1:80", false),
            ("9000", "127.0.0.1:9000", false),
            ("localhost:9000", "127.0.0.1:9000", false),
            ("[::1]:0", "[::1]:0", false),
            ("[::ffff:127.0.0.1]:1", "[::ffff:127.0.0.1]:1", false),
            ("0.0.0.0:1", "0.0.0.0:1", true),
            ("[::]:1", "[::]:1", true),
            ("10.0.0.7:1", "10.0.0.7:1", true),
            ("unix:/run/q.sock", "unix:/run/q.sock", false),
        ] {
            let address: ListenAddress = typed.parse().expect(typed);
            assert_eq!((address.to_string().as_str(), address.is_remote()), (shown, is_remote));
        }
        for bad in ["", "unix:", "example.org:80", "127.0.0.1", "127.0.0.1:99999"] {
            assert!(bad.parse::<ListenAddress>().is_err(), "{bad}");
        }
    }
}
