//! The allowed values of `Host`. A page of another site whose name resolves to this machine (DNS rebinding) sends its own
//! name, and is refused before anything is routed.

use std::net::SocketAddr;
use std::str::FromStr;

use axum::http::header::HOST;
use axum::http::{Request, StatusCode};

use crate::problem::Problem;

/// A host name that the user allows, perhaps with a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName {
    name: String,
    port: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a host is a name or an address, perhaps with a port: queue.example.org, 10.0.0.7:7878")]
pub struct HostNameError;

impl FromStr for HostName {
    type Err = HostNameError;

    fn from_str(text: &str) -> Result<Self, HostNameError> {
        let (name, port) = split(text).ok_or(HostNameError)?;
        Ok(Self { name, port })
    }
}

impl std::fmt::Display for HostName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Splits `name`, `name:port`, `[::1]` and `[::1]:port`; the name becomes lower case.
fn split(text: &str) -> Option<(String, Option<u16>)> {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !text.ends_with(']') => {
            let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
            (name, Some(port.parse().ok().filter(|_| is_number)?))
        }
        Some(_) | None => (text, None),
    };
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_fine = match address {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
        }
    };
    is_fine.then(|| (name.to_ascii_lowercase(), port))
}

/// The hosts under which one listener answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllowedHosts {
    /// The port of the listener; `None` for a socket file.
    port: Option<u16>,
    named: Vec<HostName>,
    /// The port that a URL without one has: 80, or 443 with TLS.
    default_port: u16,
}

/// Names of this machine that no other site can have.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

impl AllowedHosts {
    pub(crate) fn new(address: Option<SocketAddr>, named: &[HostName], has_tls: bool) -> Self {
        let default_port = if has_tls { 443 } else { 80 };
        Self { port: address.map(|address| address.port()), named: named.to_vec(), default_port }
    }

    /// Requires exactly one allowed `Host`. A request that names its target in full must name an allowed one, too.
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<(), Problem> {
        let mut sent = request.headers().get_all(HOST).iter();
        let host = sent.next().and_then(|host| host.to_str().ok());
        let target = request.uri().authority().map(axum::http::uri::Authority::as_str);
        let is_allowed = host.is_some_and(|host| self.allows(host))
            && sent.next().is_none()
            && target.is_none_or(|target| self.allows(target));
        if is_allowed {
            return Ok(());
        }
        let detail = "this server does not answer for that host";
        Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "foreign_host", detail)
            .with_hint("`queuectl dashboard --host NAME` allows a name"))
    }

    pub(crate) fn allows(&self, host: &str) -> bool {
        let Some((name, port)) = split(host) else {
            return false;
        };
        let asked = port.unwrap_or(self.default_port);
        let is_local = LOCAL.contains(&name.as_str()) && self.port.is_none_or(|own| own == asked);
        // A proxy in front has a port of its own, so a name without a port allows every port.
        let is_named = |known: &HostName| known.name == name && known.port.is_none_or(|known| known == asked);
        is_local || self.named.iter().any(is_named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(named: &[&str]) -> AllowedHosts {
        let named: Vec<HostName> = named.iter().map(|name| name.parse().expect("a host")).collect();
        AllowedHosts::new(Some("127.0.0.1:7878".parse().expect("an address")), &named, false)
    }

    #[test]
    fn only_this_machine_with_the_right_port_is_allowed() {
        let own = hosts(&[]);
        for host in ["localhost:7878", "LocalHost:7878", "127.0.0.1:7878", "[::1]:7878"] {
            assert!(own.allows(host), "{host}");
        }
        let foreign = "|localhost|localhost:80|localhost:|localhost:+7878|localhost:7878:7878|evil.example|\
                       evil.example:7878|127.0.0.1.evil.example:7878|127.1:7878|0.0.0.0:7878|[::]:7878|\
                       localhost.:7878|localhost:7878@evil.example|user@localhost:7878|[::1]7878|::1:7878|\
                       localhost:99999|localhost :7878|localh\u{f6}st:7878";
        for host in foreign.split('|') {
            assert!(!own.allows(host), "{host}");
        }
    }

    #[test]
    fn a_named_host_is_allowed_with_any_port_or_its_own() {
        let own = hosts(&["queue.example.org", "10.0.0.7:9000"]);
        for host in ["queue.example.org", "QUEUE.example.org:443", "10.0.0.7:9000"] {
            assert!(own.allows(host), "{host}");
        }
        for host in ["10.0.0.7", "10.0.0.7:9001", "x.queue.example.org", "queue.example.org.evil"] {
            assert!(!own.allows(host), "{host}");
        }
    }
}
