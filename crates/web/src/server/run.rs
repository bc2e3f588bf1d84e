//! Starting the server, and ending it: on SIGTERM, streams end with `bye` and requests get some seconds to finish.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::Signal;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{Server, ServerOptions, Surface, wall_now};
use crate::doors::host::AllowedHosts;
use crate::doors::login::{Announcement, new_link};
use crate::listen::address::{DEFAULT_PORT, ListenAddress};
use crate::listen::connection::{Entrance, serve};
use crate::listen::crowd::{Crowd, MAX_CONNECTIONS};
use crate::listen::sockets::Listener;
use crate::listen::tls::TlsFiles;
use crate::parts::cli;
use ops::OpError;
use sys::service_manager::inherited_sockets::inherited_sockets;
use sys::signal::interrupts::Interrupts;

/// How long requests get to finish after a signal.
const GRACE: Duration = Duration::from_secs(5);
/// How often a second signal is looked for meanwhile.
const GRACE_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Threads beside those of streams: requests, and a few for actions.
const BLOCKING_THREADS: usize = 48;
/// After a failure to accept, most likely for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("failed to listen on {address}")]
    Listen {
        address: String,
        #[source]
        source: io::Error,
    },
    #[error("{address} can be reached from other machines")]
    Remote { address: String },
    #[error("failed to use the certificate or the key in `{}`", path.display())]
    Tls {
        path: PathBuf,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("failed to start the server")]
    System(#[source] io::Error),
    #[error(transparent)]
    Op(#[from] OpError),
}

/// A server that is listening.
#[derive(Debug)]
pub struct Ready {
    /// Where it answers: a URL, or `unix:PATH`.
    pub url: String,
    /// A link that logs a browser in; `None` where browsers cannot connect.
    pub link: Option<String>,
    /// What a caller should know about the listeners.
    pub warnings: Vec<String>,
}

/// Serves until one of the signals arrives, and returns it. The caller has opened the store before.
pub fn run(
    options: ServerOptions,
    interrupts: &Interrupts,
    on_ready: impl FnOnce(&Ready),
) -> Result<Signal, ServeError> {
    check_remote(&options)?;
    let tls = options.tls.as_ref().map(TlsFiles::acceptor).transpose()?;
    let sockets = SocketThread::start(BLOCKING_THREADS + options.max_streams).map_err(ServeError::System)?;
    let inside = sockets.handle.enter();
    let listeners = bind(&options)?;
    let port =
        listeners.iter().find_map(Listener::tcp_address).map_or(DEFAULT_PORT, |address| address.port());
    cli::name_queue(&options.location, &options.location_args);
    let server = Arc::new(Server::new(options, port).map_err(ServeError::System)?);
    let (ready, announcement) = announce(&server, &listeners)?;
    let crowd = Crowd::new(MAX_CONNECTIONS + server.options.max_streams);
    for listener in listeners {
        let hosts = AllowedHosts::new(listener.tcp_address(), &server.options.hosts, tls.is_some());
        let entrance = Entrance { hosts: Arc::new(hosts), tls: tls.clone() };
        tokio::spawn(accept(Arc::clone(&server), listener, entrance, Arc::clone(&crowd)));
    }
    drop(inside);
    on_ready(&ready);
    let signal = wait(interrupts);
    end(&sockets.handle, &server, &crowd, interrupts);
    drop(announcement);
    sockets.end();
    Ok(signal)
}

/// The thread that serves all sockets. Handlers run on threads of their own, so one is enough, and tokio's scheduler for
/// several threads would make every command of the program load the mathematical library at its start.
struct SocketThread {
    handle: Handle,
    /// The thread ends when this is dropped.
    running: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl SocketThread {
    fn start(blocking_threads: usize) -> io::Result<SocketThread> {
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(blocking_threads)
            .thread_name("web")
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        let (running, ended) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name("web".to_owned()).spawn(move || {
            // The sender sends nothing: it is dropped.
            let _ = runtime.block_on(ended);
            // A handler that still runs is left to end with the process; nothing of it is half written.
            runtime.shutdown_background();
        })?;
        Ok(SocketThread { handle, running, thread })
    }

    fn end(self) {
        drop(self.running);
        // It can only have panicked, and the panic has been printed.
        let _ = self.thread.join();
    }
}

/// Other machines may connect only if the user says so, and then not in clear text.
fn check_remote(options: &ServerOptions) -> Result<(), ServeError> {
    let is_protected = options.tls.is_some() || options.behind_proxy;
    let remote = options.listen.iter().find(|address| address.is_remote());
    match remote {
        Some(address) if !options.allow_remote || !is_protected => {
            Err(ServeError::Remote { address: address.to_string() })
        }
        Some(_) | None => Ok(()),
    }
}

/// The sockets of systemd, or our own. Of the two loopback addresses, IPv6 may be missing on a machine.
fn bind(options: &ServerOptions) -> Result<Vec<Listener>, ServeError> {
    let inherited = inherited_sockets();
    if !inherited.is_empty() {
        let adopt = |socket| Listener::inherited(socket).map_err(ServeError::System);
        return inherited.into_iter().map(adopt).collect();
    }
    let mut listeners: Vec<Listener> = Vec::new();
    for address in &options.listen {
        // With port 0, both loopback addresses share the port that the first one got.
        let address = match (address, listeners.first().and_then(Listener::tcp_address)) {
            (ListenAddress::Tcp(next), Some(first)) if next.port() == 0 => {
                ListenAddress::Tcp(SocketAddr::new(next.ip(), first.port()))
            }
            (address, _) => address.clone(),
        };
        let is_spare = !listeners.is_empty() && is_loopback_v6(&address);
        match Listener::bind(&address) {
            Ok(listener) => listeners.push(listener),
            Err(_) if is_spare => {}
            Err(source) => return Err(ServeError::Listen { address: address.to_string(), source }),
        }
    }
    Ok(listeners)
}

fn is_loopback_v6(address: &ListenAddress) -> bool {
    matches!(address, ListenAddress::Tcp(SocketAddr::V6(address)) if address.ip().is_loopback())
}

fn announce(
    server: &Arc<Server>,
    listeners: &[Listener],
) -> Result<(Ready, Option<Announcement>), ServeError> {
    let options = &server.options;
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let named = options.hosts.first().map(ToString::to_string);
    let address = listeners.iter().find_map(Listener::tcp_address);
    let host = match (address, named) {
        (Some(address), Some(named)) if !address.ip().to_canonical().is_loopback() => Some(named),
        (Some(address), _) if address.ip().is_unspecified() => Some(format!("localhost:{}", address.port())),
        (Some(address), _) => Some(address.to_string()),
        (None, named) => named,
    };
    let socket = options.listen.first().map(ToString::to_string).unwrap_or_default();
    let url =
        host.as_ref().map_or(socket, |host| options.base_path.join_after(&format!("{scheme}://{host}")));
    let announcement = match options.surface {
        Surface::Whole => Some(server.codes.announce(&options.location.home, &url)?),
        Surface::Metrics => None,
    };
    let link = host.zip(announcement.as_ref());
    let link = link.map(|(_, announced)| new_link(&announced.server, wall_now())).transpose();
    let is_remote = |address: SocketAddr| !address.ip().to_canonical().is_loopback();
    let warning = match options.surface {
        Surface::Whole => {
            "other machines can connect; a token with the scope admin lets them run commands as this user"
        }
        Surface::Metrics => "other machines can connect",
    };
    let warnings =
        listeners.iter().filter_map(Listener::tcp_address).any(is_remote).then(|| warning.to_owned());
    let link = link.map_err(ServeError::System)?;
    Ok((Ready { url, link, warnings: warnings.into_iter().collect() }, announcement))
}

async fn accept(server: Arc<Server>, listener: Listener, entrance: Entrance, crowd: Arc<Crowd>) {
    let mut stopping = server.stopping();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopping.wait() => return,
        };
        match accepted {
            // Without a seat the connection is closed: all others have requests.
            Ok((io, peer)) => {
                if let Some(seat) = crowd.admit() {
                    tokio::spawn(serve(Arc::clone(&server), entrance.clone(), io, peer, seat));
                }
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

fn wait(interrupts: &Interrupts) -> Signal {
    loop {
        if let Some(signal) = interrupts.sleep(Duration::MAX) {
            return signal;
        }
    }
}

/// Ends the streams, and waits until the requests have finished; a second signal ends the wait.
fn end(runtime: &Handle, server: &Arc<Server>, crowd: &Arc<Crowd>, interrupts: &Interrupts) {
    server.stop.send_replace(true);
    let crowd = Arc::clone(crowd);
    let done = runtime.spawn(async move { timeout(GRACE, crowd.empty()).await });
    while !done.is_finished() {
        if interrupts.sleep(GRACE_POLL_INTERVAL).is_some() {
            return;
        }
    }
}
