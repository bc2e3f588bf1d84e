//! The socket of a session: TCP or the server's own, with timeouts that notice a dead network.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream, lookup_host};

use crate::postgres::address::Host;
use crate::postgres::connect_error::ConnectProblem;

/// An idle connection is examined after this time, and again after each further interval.
const KEEPALIVE: Duration = Duration::from_secs(5);
const KEEPALIVE_TRIES: u32 = 3;
/// Data that the server does not acknowledge for this long ends the connection.
const USER_TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub(super) async fn connect(host: &Host) -> Result<Self, ConnectProblem> {
        match host {
            Host::Tcp { name, port } => Ok(Self::Tcp(connect_tcp(name, *port).await?)),
            Host::Unix { folder, port } => connect_unix(&Host::socket_path(folder, *port)).await,
        }
    }

    /// A copy of the descriptor.
    pub(super) fn descriptor(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Tcp(stream) => stream.as_fd().try_clone_to_owned(),
            Self::Unix(stream) => stream.as_fd().try_clone_to_owned(),
        }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the enum is the standard library's, and grows")]
async fn connect_unix(path: &Path) -> Result<Socket, ConnectProblem> {
    UnixStream::connect(path).await.map(Socket::Unix).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ConnectProblem::NoSocket,
        io::ErrorKind::PermissionDenied => ConnectProblem::ForbiddenSocket,
        _ => network_problem(error),
    })
}

/// Connects to the first address of the name that answers.
async fn connect_tcp(name: &str, port: u16) -> Result<TcpStream, ConnectProblem> {
    let addresses: Vec<SocketAddr> = match name.parse::<IpAddr>() {
        Ok(address) => vec![SocketAddr::new(address, port)],
        // The look-up takes a thread, which an address does without.
        Err(_) => lookup_host((name, port)).await.map_err(ConnectProblem::UnknownName)?.collect(),
    };
    let mut problem = ConnectProblem::UnknownName(io::ErrorKind::NotFound.into());
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                set_timeouts(&stream).map_err(ConnectProblem::Network)?;
                return Ok(stream);
            }
            Err(error) => problem = network_problem(error),
        }
    }
    Err(problem)
}

fn set_timeouts(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE)?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_TRIES)?;
    let millis = u32::try_from(USER_TIMEOUT.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(stream, millis)?;
    Ok(())
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the enum is the standard library's, and grows")]
pub(super) fn network_problem(error: io::Error) -> ConnectProblem {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => ConnectProblem::Refused,
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => ConnectProblem::Closed,
        _ => ConnectProblem::Network(error),
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Self::Unix(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
