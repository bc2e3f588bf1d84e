//! A TCP proxy between a host and a PostgreSQL server, which breaks in the ways of a network.
//!
//! It copies bytes between each client and the server. While a fault is set, all its connections are affected. A stall keeps
//! bytes back and delivers them later, as TCP does when packets are lost for a while: a commit may arrive after its sender
//! has given up. A black hole keeps them back and ends the connections afterwards, as a firewall does that was restarted.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, Scope};
use std::time::Duration;

use store::postgres::Address;
use store::postgres::address::{Host as ServerHost, TlsMode};

/// How the network breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Existing connections are closed, and new ones at once.
    Refuse,
    /// Every packet takes this long, in both directions.
    Delay(Duration),
    /// Nothing arrives until the fault ends, and then everything does.
    Stall,
    /// Nothing arrives, and when the fault ends, the connections that lost something are closed.
    BlackHole,
    /// The same from the moment at which a transaction has entered the gate.
    BlackHoleInGate,
    /// The answers to one transaction that has entered the gate arrive when the server has ended its session, with that
    /// news: so a process reads them that was stopped meanwhile.
    LateAnswersInGate,
    /// The connection ends after this many bytes of the message with a commit.
    CutCommit {
        bytes: usize,
    },
    /// The commit arrives, and the connection ends instead of passing on the answer.
    DropAnswer,
    /// The answer to a commit is passed on, and from then on connections are refused.
    RefuseAfterCommit,
}

/// The text of a commit in a message to the server, and in its answer.
const COMMIT: &[u8] = b"commit\0";
const COMMITTED: &[u8] = b"COMMIT\0";
/// The type and the length before the text of a message.
const MESSAGE_HEADER: usize = 5;
/// The length of the message with a commit.
pub const COMMIT_BYTES: usize = MESSAGE_HEADER + COMMIT.len();
const GATE: &[u8] = b"lock table gate_";
const CHUNK: usize = 65_536;

#[derive(Debug)]
pub struct Proxy {
    /// The address of the server through this proxy.
    pub address: Address,
    listens_on: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    server: Upstream,
    fault: Mutex<Fault>,
    changed: Condvar,
    /// How often a fault has affected a connection.
    hits: AtomicU64,
    is_closing: AtomicBool,
    connections: Mutex<Vec<Arc<Connection>>>,
}

/// Where the server listens.
#[derive(Clone, Debug)]
enum Upstream {
    Tcp(String, u16),
    Unix(PathBuf),
}

#[derive(Debug)]
struct Connection {
    client: TcpStream,
    server: ServerStream,
    /// A commit was passed on, whose answer must not be.
    drops_answer: AtomicBool,
    /// Answers arrive when the server has ended the session.
    is_late: AtomicBool,
}

#[derive(Debug)]
enum ServerStream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    ToServer,
    ToClient,
}

/// What to do with bytes that have arrived.
enum Passage {
    Pass,
    /// Pass on as many bytes, then end the connection.
    CutAfter(usize),
    /// Pass them on when this side has ended.
    Keep,
}

impl Proxy {
    /// A proxy to the first server of this address. `None` if the sessions are encrypted: the name in the certificate would
    /// not match, and a commit could not be recognised.
    pub fn to(server: &Address) -> io::Result<Option<Self>> {
        let Some(host) = server.hosts.first().filter(|host| server.tls(host) == TlsMode::Disable) else {
            return Ok(None);
        };
        let upstream = match host {
            ServerHost::Tcp { name, port } => Upstream::Tcp(name.clone(), *port),
            ServerHost::Unix { folder, port } => Upstream::Unix(ServerHost::socket_path(folder, *port)),
        };
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let listens_on = listener.local_addr()?;
        let mut address = server.clone();
        address.hosts = vec![ServerHost::Tcp { name: "127.0.0.1".to_owned(), port: listens_on.port() }];
        let shared = Arc::new(Shared {
            server: upstream,
            fault: Mutex::new(Fault::None),
            changed: Condvar::new(),
            hits: AtomicU64::new(0),
            is_closing: AtomicBool::new(false),
            connections: Mutex::default(),
        });
        let accepting = Arc::clone(&shared);
        let thread = thread::spawn(move || accepting.accept(&listener));
        Ok(Some(Self { address, listens_on, shared, thread: Some(thread) }))
    }

    pub fn set(&self, fault: Fault) {
        *self.shared.fault() = fault;
        self.shared.changed.notify_all();
        if fault == Fault::Refuse {
            self.shared.close_all();
        }
    }

    pub fn is(&self, fault: Fault) -> bool {
        *self.shared.fault() == fault
    }

    /// How often a fault has affected a connection.
    pub fn hits(&self) -> u64 {
        self.shared.hits.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_closing.store(true, Ordering::SeqCst);
        self.set(Fault::Refuse);
        // The thread that accepts connections wakes up for this one, and ends.
        let _ = TcpStream::connect(self.listens_on);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn fault(&self) -> MutexGuard<'_, Fault> {
        lock(&self.fault)
    }

    fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }

    fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    fn close_all(&self) {
        for connection in lock(&self.connections).iter() {
            self.hit();
            connection.close();
        }
    }

    fn accept(&self, listener: &TcpListener) {
        thread::scope(|scope| {
            for client in listener.incoming().flatten() {
                if self.is_closing() {
                    return;
                }
                if *self.fault() == Fault::Refuse {
                    self.hit();
                    continue;
                }
                scope.spawn(move || self.carry(scope, client));
            }
        });
    }

    fn carry<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, client: TcpStream) {
        self.wait_for_light();
        let Ok(server) = self.server.connect() else { return };
        let _ = client.set_nodelay(true);
        let connection = Arc::new(Connection {
            client,
            server,
            drops_answer: AtomicBool::default(),
            is_late: AtomicBool::default(),
        });
        {
            // Together, so that a proxy that closes misses no connection.
            let mut connections = lock(&self.connections);
            if self.is_closing() {
                return;
            }
            connections.push(Arc::clone(&connection));
        }
        let to_server = Arc::clone(&connection);
        let upward = scope.spawn(move || self.copy(&to_server, Direction::ToServer));
        self.copy(&connection, Direction::ToClient);
        let _ = upward.join();
        lock(&self.connections).retain(|one| !Arc::ptr_eq(one, &connection));
    }

    /// Copies until either side ends or a fault ends the connection.
    fn copy(&self, connection: &Connection, direction: Direction) {
        let (mut bytes, mut kept) = (vec![0; CHUNK], Vec::new());
        while let Ok(read @ 1..) = connection.read(direction, &mut bytes) {
            match self.passage(connection, direction, &bytes[..read]) {
                Passage::Keep => kept.extend_from_slice(&bytes[..read]),
                Passage::Pass if connection.write(direction, &bytes[..read]).is_ok() => {}
                Passage::Pass => break,
                Passage::CutAfter(count) => {
                    let _ = connection.write(direction, &bytes[..count]);
                    break;
                }
            }
        }
        let _ = connection.write(direction, &kept);
        // In the dark, the other side does not learn that this one has ended.
        self.wait_for_light();
        connection.close();
    }

    fn passage(&self, connection: &Connection, direction: Direction, bytes: &[u8]) -> Passage {
        if direction == Direction::ToClient && connection.is_late.load(Ordering::SeqCst) {
            return Passage::Keep;
        }
        let fault = *self.fault();
        match fault {
            Fault::None => Passage::Pass,
            Fault::Refuse => Passage::CutAfter(0),
            Fault::Delay(delay) => {
                self.hit();
                // This sleep is the simulated distance, not synchronisation.
                thread::sleep(delay);
                Passage::Pass
            }
            Fault::Stall => {
                self.hit();
                self.wait_for_light();
                Passage::Pass
            }
            Fault::BlackHole => {
                self.hit();
                self.wait_for_light();
                Passage::CutAfter(0)
            }
            Fault::BlackHoleInGate => {
                if direction == Direction::ToServer && find(bytes, GATE).is_some() {
                    *self.fault() = Fault::BlackHole;
                    self.changed.notify_all();
                }
                Passage::Pass
            }
            Fault::LateAnswersInGate => {
                if direction == Direction::ToServer && find(bytes, GATE).is_some() {
                    connection.is_late.store(true, Ordering::SeqCst);
                    *self.fault() = Fault::None;
                }
                Passage::Pass
            }
            Fault::CutCommit { bytes: count } => match (direction, find(bytes, COMMIT)) {
                (Direction::ToServer, Some(at)) => {
                    self.hit();
                    let message = at.saturating_sub(MESSAGE_HEADER);
                    Passage::CutAfter((message + count).min(bytes.len()))
                }
                (Direction::ToServer, None) | (Direction::ToClient, _) => Passage::Pass,
            },
            Fault::DropAnswer => self.drop_answer(connection, direction, bytes),
            Fault::RefuseAfterCommit => {
                if direction == Direction::ToClient && find(bytes, COMMITTED).is_some() {
                    *self.fault() = Fault::Refuse;
                    return Passage::CutAfter(bytes.len());
                }
                Passage::Pass
            }
        }
    }

    fn drop_answer(&self, connection: &Connection, direction: Direction, bytes: &[u8]) -> Passage {
        match direction {
            Direction::ToServer => {
                if find(bytes, COMMIT).is_some() {
                    connection.drops_answer.store(true, Ordering::SeqCst);
                }
                Passage::Pass
            }
            // Answers to what came before the commit may still be on their way.
            Direction::ToClient
                if connection.drops_answer.load(Ordering::SeqCst) && find(bytes, COMMITTED).is_some() =>
            {
                self.hit();
                Passage::CutAfter(0)
            }
            Direction::ToClient => Passage::Pass,
        }
    }

    /// Waits while nothing arrives.
    fn wait_for_light(&self) {
        let is_dark =
            |fault: &mut Fault| matches!(fault, Fault::Stall | Fault::BlackHole) && !self.is_closing();
        let lit = self.changed.wait_while(self.fault(), is_dark);
        drop(lit.unwrap_or_else(PoisonError::into_inner));
    }
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

impl Upstream {
    fn connect(&self) -> io::Result<ServerStream> {
        Ok(match self {
            Self::Tcp(name, port) => {
                let stream = TcpStream::connect((name.as_str(), *port))?;
                stream.set_nodelay(true)?;
                ServerStream::Tcp(stream)
            }
            Self::Unix(path) => ServerStream::Unix(UnixStream::connect(path)?),
        })
    }
}

impl Connection {
    fn read(&self, direction: Direction, bytes: &mut [u8]) -> io::Result<usize> {
        match (direction, &self.server) {
            (Direction::ToServer, _) => (&self.client).read(bytes),
            (Direction::ToClient, ServerStream::Tcp(server)) => (&*server).read(bytes),
            (Direction::ToClient, ServerStream::Unix(server)) => (&*server).read(bytes),
        }
    }

    fn write(&self, direction: Direction, bytes: &[u8]) -> io::Result<()> {
        match (direction, &self.server) {
            (Direction::ToClient, _) => (&self.client).write_all(bytes),
            (Direction::ToServer, ServerStream::Tcp(server)) => (&*server).write_all(bytes),
            (Direction::ToServer, ServerStream::Unix(server)) => (&*server).write_all(bytes),
        }
    }

    fn close(&self) {
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = match &self.server {
            ServerStream::Tcp(server) => server.shutdown(Shutdown::Both),
            ServerStream::Unix(server) => server.shutdown(Shutdown::Both),
        };
    }
}
