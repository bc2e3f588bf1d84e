//! Which user is at the other end of a loopback connection.
//!
//! Cookies are not bound to a port: a browser sends ours to the server of another user of this machine, if the user can
//! be brought to visit it. That server could use the cookie, so connections over loopback must come from our own user,
//! or from root.

use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;

use super::socket_owner::owner;
use crate::problem::Problem;
use sys::process::user;

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
