//! Which user is at the other end of a loopback connection.
//!
//! Cookies are not bound to a port: a browser sends ours to the server of another user of this machine, if the user can
//! be brought to visit it. That server could use the cookie, so connections over loopback must come from our own user,
//! or from root. The kernel lists the owner of each socket in `/proc/net/tcp`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::sync::OnceLock;

use crate::problem::Problem;
use sys::process::user;

/// An established connection. In other states a socket may have no owner any more, and is listed as root's.
const ESTABLISHED: &str = "01";

/// The client of one connection.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) kind: PeerKind,
    verdict: OnceLock<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerKind {
    /// Both ends of a TCP connection.
    Tcp { client: SocketAddr, server: SocketAddr },
    /// The user of a connection to a socket file.
    Socket { user: Option<u32> },
}

impl Peer {
    pub(crate) fn new(kind: PeerKind) -> Self {
        Self { kind, verdict: OnceLock::new() }
    }

    /// The address that failed attempts are counted for.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        match self.kind {
            PeerKind::Tcp { client, .. } => Some(client.ip().to_canonical()),
            PeerKind::Socket { .. } => None,
        }
    }

    pub(crate) fn is_local(&self) -> bool {
        self.address().is_none_or(|address| address.is_loopback())
    }

    /// Refuses another user of this machine. The first request of a connection pays for the check.
    pub(crate) fn check_user(&self) -> Result<(), Problem> {
        let is_allowed = *self.verdict.get_or_init(|| match self.kind {
            PeerKind::Tcp { client, .. } if !client.ip().to_canonical().is_loopback() => true,
            PeerKind::Tcp { client, server } => owner(client, server).is_some_and(may_connect),
            PeerKind::Socket { user } => user.is_some_and(may_connect),
        });
        if is_allowed {
            return Ok(());
        }
        let name = user::name_of(user::number());
        Err(Problem::forbidden(format!("the connection comes from another user than {name}")))
    }
}

fn may_connect(number: u32) -> bool {
    number == user::number() || number == user::ROOT
}

/// The owner of the client's socket.
fn owner(client: SocketAddr, server: SocketAddr) -> Option<u32> {
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .find_map(|list| owner_in(&list, client, server))
}

/// Finds the socket in the format of `/proc/net/tcp`: number, local address, remote address, state, queues, timers,
/// retransmissions, user.
fn owner_in(list: &str, client: SocketAddr, server: SocketAddr) -> Option<u32> {
    let (client, server) = (canonical(client), canonical(server));
    list.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (local, remote, state) = (fields.next()?, fields.next()?, fields.next()?);
        let is_it = state == ESTABLISHED
            && parse_address(local).is_some_and(|address| canonical(address) == client)
            && parse_address(remote).is_some_and(|address| canonical(address) == server);
        is_it.then(|| fields.nth(3)?.parse().ok()).flatten()
    })
}

/// An IPv4 client of an IPv6 socket has an address of both kinds.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// `0100007F:1EC6`: words of 32 bits in the order of the machine, then the port.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(address.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    match address.len() {
        8 => Some(SocketAddrV4::new(Ipv4Addr::from(word(0)?), port).into()),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            Some(SocketAddrV6::new(bytes.into(), port, 0, 0).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[cfg(target_endian = "little")]
    const LIST: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1EC6 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
   1: 0100007F:9C40 0100007F:1EC6 01 00000000:00000000 00:00000000 00000000  1000        0 2 1
   2: 0100007F:9C41 0100007F:1EC6 04 00000000:00000000 00:00000000 00000000     0        0 0 1
   3: 0100007F:1EC6 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     7        0 3 1
";

    #[cfg(target_endian = "little")]
    #[test]
    fn the_owner_of_an_established_socket_is_found() {
        let server: SocketAddr = "127.0.0.1:7878".parse().expect("an address");
        let client = |port: u16| SocketAddr::new(server.ip(), port);
        assert_eq!(owner_in(LIST, client(40_000), server), Some(1_000));
        assert_eq!(owner_in(LIST, client(40_001), server), None, "closed by its owner");
        assert_eq!(owner_in(LIST, client(40_002), server), None);
        let mapped: SocketAddr = "[::ffff:127.0.0.1]:40000".parse().expect("an address");
        assert_eq!(owner_in(LIST, mapped, server), Some(1_000));
    }

    #[test]
    fn the_owner_of_a_real_connection_is_this_user() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                continue;
            };
            let server = listener.local_addr().expect("an address");
            let stream = TcpStream::connect(server).expect("connected");
            let client = stream.local_addr().expect("an address");
            assert_eq!(owner(client, server), Some(user::number()), "{address}");
        }
    }
}
