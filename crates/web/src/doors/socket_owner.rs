//! Which user owns the socket at the other end of a connection from this machine.
//!
//! The kernel answers that for one socket (`NETLINK_SOCK_DIAG`). Where it does not, its list in `/proc/net/tcp` says the
//! same; but to write it, the kernel looks at its whole table of sockets, which takes milliseconds.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// An established connection. In other states a socket may have no owner any more, and is listed as root's.
const ESTABLISHED: u8 = 1;

/// The user who owns the client's socket.
pub(super) fn owner(client: SocketAddr, server: SocketAddr) -> Option<u32> {
    let (client, server) = (canonical(client), canonical(server));
    ask(client, server).ok().flatten().or_else(|| listed(client, server))
}

/// An IPv4 client of an IPv6 socket has an address of both kinds.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Asks the kernel for this socket alone. The answer is there when the question was sent.
fn ask(client: SocketAddr, server: SocketAddr) -> io::Result<Option<u32>> {
    let kernel =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
    send(&kernel, &question(client, server), SendFlags::empty())?;
    let mut answer = [0; 1_024];
    let (length, _) = recv(&kernel, &mut answer[..], RecvFlags::DONTWAIT)?;
    Ok(owner_in_answer(&answer[..length], client, server))
}

const QUESTION_BYTES: u32 = 72;
/// `SOCK_DIAG_BY_FAMILY`, `NLM_F_REQUEST` and `IPPROTO_TCP`.
const BY_FAMILY: u16 = 20;
const REQUEST: u16 = 1;
const TCP: u8 = 6;

/// A `nlmsghdr` and an `inet_diag_req_v2`.
fn question(client: SocketAddr, server: SocketAddr) -> Vec<u8> {
    let family = if client.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let family = u8::try_from(family.as_raw()).unwrap_or_default();
    let mut bytes = Vec::new();
    bytes.extend(QUESTION_BYTES.to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(REQUEST.to_ne_bytes());
    // Neither a sequence number nor a port of the sender.
    bytes.extend([0; 8]);
    bytes.extend([family, TCP, 0, 0]);
    bytes.extend((1_u32 << ESTABLISHED).to_ne_bytes());
    bytes.extend(ends(client, server));
    // On any interface, and without a cookie.
    bytes.extend([0; 4]);
    bytes.extend([u8::MAX; 8]);
    bytes
}

/// Ports and addresses as the kernel has them: those of the socket, then those of its other end.
fn ends(client: SocketAddr, server: SocketAddr) -> Vec<u8> {
    let mut bytes = [client.port().to_be_bytes(), server.port().to_be_bytes()].concat();
    for address in [client.ip(), server.ip()] {
        let mut octets = match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        octets.resize(16, 0);
        bytes.extend(octets);
    }
    bytes
}

/// The owner in a `nlmsghdr` and an `inet_diag_msg` about an established connection between these ends.
fn owner_in_answer(answer: &[u8], client: SocketAddr, server: SocketAddr) -> Option<u32> {
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let is_it = kind == BY_FAMILY
        && *answer.get(17)? == ESTABLISHED
        && answer.get(20..56)? == ends(client, server).as_slice();
    let user = u32::from_ne_bytes(answer.get(80..84)?.try_into().ok()?);
    is_it.then_some(user)
}

/// The same from the list of all sockets.
fn listed(client: SocketAddr, server: SocketAddr) -> Option<u32> {
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .find_map(|list| owner_in(&list, client, server))
}

/// The same state in that list.
const LISTED_ESTABLISHED: &str = "01";

/// Finds the socket in the format of `/proc/net/tcp`: number, local address, remote address, state, queues, timers,
/// retransmissions, user.
fn owner_in(list: &str, client: SocketAddr, server: SocketAddr) -> Option<u32> {
    list.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (local, remote, state) = (fields.next()?, fields.next()?, fields.next()?);
        let is_it = state == LISTED_ESTABLISHED
            && parse_address(local).is_some_and(|address| canonical(address) == client)
            && parse_address(remote).is_some_and(|address| canonical(address) == server);
        is_it.then(|| fields.nth(3)?.parse().ok()).flatten()
    })
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
    use sys::process::user;

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
        assert_eq!(owner_in(LIST, canonical(mapped), server), Some(1_000));
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
            assert_eq!(listed(client, server), Some(user::number()), "{address}");
            // A kernel without this answers nothing.
            if let Ok(Some(asked)) = ask(client, server) {
                assert_eq!(asked, user::number(), "{address}");
            }
            // Not the listener, nor the other end of a connection that does not exist.
            let missing = SocketAddr::new(client.ip(), 1);
            assert_eq!(
                (ask(missing, server).ok().flatten(), owner(missing, server)),
                (None, None),
                "{address}"
            );
        }
    }
}
