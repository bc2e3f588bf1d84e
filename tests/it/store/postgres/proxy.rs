//! A TCP proxy in front of the server of a test, which can break in the ways of a network.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use store::postgres::Address;
use store::postgres::address::Host;

/// How the network breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Fault {
    None,
    /// New connections are closed at once, and so are the others at their next byte.
    Refuse,
    /// The connection ends instead of passing on a commit.
    CutBeforeCommit,
    /// The commit arrives, and the connection ends instead of passing on the answer.
    DropAnswer,
    /// Nothing arrives any more, and nothing is closed.
    BlackHole,
    /// The same from the moment at which a transaction has entered the gate.
    BlackHoleInGate,
}

pub(crate) struct Proxy {
    pub(crate) address: Address,
    fault: Arc<AtomicU8>,
}

impl Proxy {
    /// A proxy for the server of this address, which must name a socket.
    pub(crate) fn to(server: &Address) -> Self {
        let Some(Host::Unix { folder, port }) = server.hosts.first() else { panic!("{server} is no socket") };
        let socket = Host::socket_path(folder, *port);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let mut address = server.clone();
        address.hosts = vec![Host::Tcp { name: "127.0.0.1".to_owned(), port }];
        let fault = Arc::new(AtomicU8::new(Fault::None as u8));
        let shared = Arc::clone(&fault);
        // The threads end with the process of the test.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (fault, socket) = (Arc::clone(&shared), socket.clone());
                thread::spawn(move || carry(&client, &socket, &fault));
            }
        });
        Self { address, fault }
    }

    pub(crate) fn set(&self, fault: Fault) {
        self.fault.store(fault as u8, Ordering::SeqCst);
    }

    pub(crate) fn is(&self, fault: Fault) -> bool {
        is(&self.fault, fault)
    }
}

fn is(fault: &AtomicU8, expected: Fault) -> bool {
    fault.load(Ordering::SeqCst) == expected as u8
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn carry(client: &TcpStream, socket: &PathBuf, fault: &Arc<AtomicU8>) {
    if is(fault, Fault::Refuse) {
        return;
    }
    let Ok(server) = UnixStream::connect(socket) else { return };
    let ends = Arc::new(Mutex::new(false));
    let close = |client: &TcpStream, server: &UnixStream| {
        let _ = client.shutdown(Shutdown::Both);
        let _ = server.shutdown(Shutdown::Both);
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut from, mut to, mut bytes) = (client, &server, vec![0; 65_536]);
            while let Ok(read @ 1..) = from.read(&mut bytes) {
                let has_commit = contains(&bytes[..read], b"commit\0");
                if is(fault, Fault::Refuse) || is(fault, Fault::CutBeforeCommit) && has_commit {
                    break;
                }
                if is(fault, Fault::BlackHole) {
                    continue;
                }
                if is(fault, Fault::DropAnswer) && has_commit {
                    *ends.lock().expect("no panic") = true;
                }
                if to.write_all(&bytes[..read]).is_err() {
                    break;
                }
                if is(fault, Fault::BlackHoleInGate) && contains(&bytes[..read], b"lock table gate_") {
                    fault.store(Fault::BlackHole as u8, Ordering::SeqCst);
                }
            }
            close(client, &server);
        });
        let (mut from, mut to, mut bytes) = (&server, client, vec![0; 65_536]);
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            // Answers to what came before the commit may still be on their way.
            let is_answer = *ends.lock().expect("no panic") && contains(&bytes[..read], b"COMMIT\0");
            if is_answer || is(fault, Fault::Refuse) {
                break;
            }
            if !is(fault, Fault::BlackHole) && to.write_all(&bytes[..read]).is_err() {
                break;
            }
        }
        close(client, &server);
    });
}
