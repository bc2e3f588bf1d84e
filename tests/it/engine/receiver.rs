//! A receiver of events: a small HTTP server that responds as the test says, and records the requests. With https it has
//! a certificate of an authority that only these tests know; openssl made both, and they are valid from 2020 to 2120.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

/// How to respond to a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Response {
    /// With this status.
    With(u16),
    /// Never responds; the connection stays open.
    Hang,
    /// Closes the connection without a response.
    Close,
}

#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) line: String,
    /// By name, in lower case.
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: String,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("the body is JSON")
    }
}

/// The certificate of the authority, in PEM format.
pub(super) const AUTHORITY: &str = include_str!("receiver/authority.pem");

pub(super) struct Receiver {
    scheme: &'static str,
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// The responses to the next requests; all others get 204.
    responses: Mutex<VecDeque<Response>>,
    requests: Mutex<Vec<Request>>,
    is_over: AtomicBool,
}

impl Receiver {
    pub(super) fn new(responses: &[Response]) -> Self {
        Self::start("http", responses, None)
    }

    pub(super) fn by_https(responses: &[Response]) -> Self {
        let certificates = CertificateDer::pem_slice_iter(include_bytes!("receiver/receiver.pem"));
        let certificates = certificates.collect::<Result<_, _>>().expect("certificates");
        let key = PrivateKeyDer::from_pem_slice(include_bytes!("receiver/receiver.key")).expect("a key");
        let config = ServerConfig::builder().with_no_client_auth().with_single_cert(certificates, key);
        Self::start("https", responses, Some(Arc::new(config.expect("the key matches the certificate"))))
    }

    fn start(scheme: &'static str, responses: &[Response], tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it has an address");
        let shared = Arc::new(Shared {
            responses: Mutex::new(responses.iter().copied().collect()),
            ..Shared::default()
        });
        let for_thread = Arc::clone(&shared);
        let thread = std::thread::spawn(move || serve(&listener, tls.as_ref(), &for_thread));
        Self { scheme, address, shared, thread: Some(thread) }
    }

    pub(super) fn url(&self) -> String {
        format!("{}://{}/events?from=test", self.scheme, self.address)
    }

    /// The URL of the receiver as a proxy.
    pub(super) fn as_proxy(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

trait Connection: Read + Write {}

impl<C: Read + Write> Connection for C {}

fn serve(listener: &TcpListener, tls: Option<&Arc<ServerConfig>>, shared: &Shared) {
    let mut hanging = Vec::new();
    for stream in listener.incoming() {
        if shared.is_over.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else {
            continue;
        };
        let mut stream: Box<dyn Connection> = match tls {
            None => Box::new(stream),
            Some(tls) => {
                let connection = ServerConnection::new(Arc::clone(tls)).expect("a connection");
                Box::new(StreamOwned::new(connection, stream))
            }
        };
        let Some(request) = read(&mut stream) else {
            continue;
        };
        let response = shared.responses.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        shared.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        match response.unwrap_or(Response::With(204)) {
            Response::With(status) => {
                let body = if status == 204 { "" } else { "not today" };
                let head = format!("HTTP/1.1 {status} Status\r\nLocation: http://127.0.0.1:1/\r\n");
                let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
                let _ = stream.flush();
            }
            Response::Hang => hanging.push(stream),
            Response::Close => drop(stream),
        }
    }
}

fn read(stream: &mut dyn Connection) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    // A CONNECT request to a proxy has no body.
    let length = headers.get("content-length").map_or(Some(0), |length| length.parse().ok())?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { line: line.trim_end().to_owned(), headers, body: String::from_utf8(body).ok()? })
}
