//! A receiver of events: a small HTTP server that answers as the test says, and remembers what came.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use serde_json::Value;

/// What to do with a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    /// With this status.
    With(u16),
    /// Never; the connection stays open.
    Hang,
    /// Not at all: the connection is closed.
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

pub(super) struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// What to do with the next requests; with all others it is 204.
    answers: Mutex<VecDeque<Answer>>,
    requests: Mutex<Vec<Request>>,
    is_over: AtomicBool,
}

impl Receiver {
    pub(super) fn new(answers: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it has an address");
        let shared =
            Arc::new(Shared { answers: Mutex::new(answers.iter().copied().collect()), ..Shared::default() });
        let for_thread = Arc::clone(&shared);
        let thread = std::thread::spawn(move || serve(&listener, &for_thread));
        Self { address, shared, thread: Some(thread) }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/events?from=test", self.address)
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Wakes it up.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, shared: &Shared) {
    let mut hanging = Vec::new();
    for stream in listener.incoming() {
        if shared.is_over.load(Ordering::SeqCst) {
            return;
        }
        let Ok(mut stream) = stream else {
            continue;
        };
        let Some(request) = read(&stream) else {
            continue;
        };
        let answer = shared.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        shared.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        match answer.unwrap_or(Answer::With(204)) {
            Answer::With(status) => {
                let body = if status == 204 { "" } else { "not today" };
                let head = format!("HTTP/1.1 {status} Whatever\r\nLocation: http://127.0.0.1:1/\r\n");
                let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
            }
            Answer::Hang => hanging.push(stream),
            Answer::Close => drop(stream),
        }
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
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
    let length = headers.get("content-length").and_then(|length| length.parse().ok())?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { line: line.trim_end().to_owned(), headers, body: String::from_utf8(body).ok()? })
}
