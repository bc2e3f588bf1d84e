//! The sockets on which the server listens: its own, or those that systemd has opened for it.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, sockopt};
use tokio::net::{TcpListener, UnixListener};

use super::address::ListenAddress;
use super::connection::Io;
use crate::doors::peer::PeerKind;
use sys::fs::owner_only;

/// Only the owner may connect.
const SOCKET_MODE: u32 = 0o600;

/// A socket that is being listened on.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp { listener: TcpListener, address: SocketAddr },
    Socket { listener: UnixListener, _file: Option<SocketFile> },
}

/// A socket file that we made; it is deleted with this value.
#[derive(Debug)]
pub(crate) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Listener {
    pub(crate) fn bind(address: &ListenAddress) -> io::Result<Self> {
        match address {
            ListenAddress::Tcp(address) => Self::from_tcp(std::net::TcpListener::bind(address)?),
            ListenAddress::Socket(path) => {
                remove_unused(path)?;
                let listener = bind_private(path)?;
                listener.set_nonblocking(true)?;
                let listener = UnixListener::from_std(listener)?;
                Ok(Self::Socket { listener, _file: Some(SocketFile(path.clone())) })
            }
        }
    }

    /// A socket that another process has bound.
    pub(crate) fn inherited(descriptor: OwnedFd) -> io::Result<Self> {
        if sockopt::socket_domain(&descriptor)? == AddressFamily::UNIX {
            let listener = StdUnixListener::from(descriptor);
            listener.set_nonblocking(true)?;
            return Ok(Self::Socket { listener: UnixListener::from_std(listener)?, _file: None });
        }
        Self::from_tcp(descriptor.into())
    }

    fn from_tcp(listener: std::net::TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Self::Tcp { listener: TcpListener::from_std(listener)?, address })
    }

    pub(crate) fn tcp_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp { address, .. } => Some(*address),
            Self::Socket { .. } => None,
        }
    }

    pub(crate) async fn accept(&self) -> io::Result<(Io, PeerKind)> {
        match self {
            Self::Tcp { listener, .. } => {
                let (stream, client) = listener.accept().await?;
                let server = stream.local_addr()?;
                // An answer is written at once, and a part of a stream must not wait for the next.
                let _ = stream.set_nodelay(true);
                Ok((Io::Tcp(stream), PeerKind::Tcp { client, server }))
            }
            Self::Socket { listener, .. } => {
                let (stream, _) = listener.accept().await?;
                let user = stream.peer_cred().ok().map(|peer| peer.uid());
                Ok((Io::Socket(stream), PeerKind::Socket { user }))
            }
        }
    }
}

/// Removes a socket file that no process listens on any more.
fn remove_unused(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(meta) if meta.file_type().is_socket() => match std::os::unix::net::UnixStream::connect(path) {
            Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
            Err(_) => fs::remove_file(path),
        },
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => Ok(()),
    }
}

/// The file gets its name only when it has its mode, so that no other user can connect before.
fn bind_private(path: &Path) -> io::Result<StdUnixListener> {
    let name = format!(".queuectl-{}.sock", std::process::id());
    let hidden = owner_only::folder_of(path).join(name);
    let _ = fs::remove_file(&hidden);
    let listener = StdUnixListener::bind(&hidden)?;
    let moved = fs::set_permissions(&hidden, fs::Permissions::from_mode(SOCKET_MODE))
        .and_then(|()| owner_only::rename_to_free(&hidden, path));
    if moved.is_err() {
        let _ = fs::remove_file(&hidden);
    }
    moved.map(|()| listener)
}
