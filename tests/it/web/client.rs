//! A server of its own for each test, and a client that sends exactly the bytes it is given.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use super::schemas;
use crate::cli::harness::Home;
use crate::cli::harness::background::{Background, STEP_TIMEOUT};

/// More than the slowest answer takes on a busy machine.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) struct Server {
    pub(super) home: Home,
    pub(super) process: Option<Background>,
    pub(super) address: SocketAddr,
    pub(super) link: String,
    token: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(process) = &self.process {
            process.signal(Signal::TERM);
        }
    }
}

impl Server {
    /// A server with an empty queue, and a token of the scope admin.
    pub(super) fn new() -> Self {
        Self::start(Home::with_queue(), &[])
    }

    pub(super) fn start(home: Home, args: &[&str]) -> Self {
        let token = home.run(["dashboard", "token", "add", "test", "--scope", "admin"]).ok().stdout;
        Self::with_verb("dashboard", home, token.trim(), args)
    }

    /// The server of `metrics --listen`.
    pub(super) fn of_metrics(home: Home, args: &[&str]) -> Self {
        let token = home.run(["dashboard", "token", "add", "test", "--scope", "metrics"]).ok().stdout;
        Self::with_verb("metrics", home, token.trim(), args)
    }

    fn with_verb(verb: &str, home: Home, token: &str, args: &[&str]) -> Self {
        let words = [verb, "--listen", "127.0.0.1:0", "--json"];
        let words = words.iter().chain(args);
        let process = Background::start(home.call(words));
        Self::of_process(home, process, token)
    }

    /// A server that was started in another way, with `--json`.
    pub(super) fn of_process(home: Home, process: Background, token: &str) -> Self {
        let ready: Value = serde_json::from_str(&process.prints()).expect("one line of JSON");
        let url = ready["url"].as_str().expect("a URL");
        let host = url.split_once("://").expect("a scheme").1.split('/').next().expect("a host");
        let link = ready["link"].as_str().unwrap_or_default().to_owned();
        let address = host.parse().expect("an address");
        Self { home, process: Some(process), address, link, token: token.to_owned() }
    }

    /// Ends the server and starts another one on the same home.
    pub(super) fn restarted(mut self) -> Self {
        let process = self.process.take().expect("it runs");
        process.signal(Signal::TERM);
        assert!(process.end().0.success());
        let home = std::mem::replace(&mut self.home, Home::new());
        let token = std::mem::take(&mut self.token);
        Self::with_verb("dashboard", home, &token, &[])
    }

    /// A token of this scope.
    pub(super) fn token(&self, scope: &str) -> String {
        let name = format!("t-{scope}-{}", self.home.path().read_dir().map_or(0, Iterator::count));
        let added = self.home.run(["dashboard", "token", "add", &name, "--scope", scope]).ok();
        added.stdout.trim().to_owned()
    }

    pub(super) fn request(&self, method: &str, path: &str) -> Request<'_> {
        Request {
            server: self,
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: None,
        }
        .with("Host", &self.address.to_string())
    }

    /// A request with the token of the scope admin.
    pub(super) fn call(&self, method: &str, path: &str) -> Request<'_> {
        self.request(method, path).bearer(&self.token)
    }

    #[track_caller]
    pub(super) fn get(&self, path: &str) -> Value {
        self.call("GET", path).send().expects(200).json()
    }

    #[track_caller]
    pub(super) fn post(&self, path: &str, body: &Value) -> Response {
        self.call("POST", path).json(body).send()
    }

    pub(super) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("connected");
        stream.set_read_timeout(Some(ANSWER_TIMEOUT)).expect("a timeout");
        stream
    }

    /// Sends these bytes and reads until the server closes.
    pub(super) fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // The server may close before it has read everything.
        let _ = stream.write_all(bytes);
        let mut read = Vec::new();
        let _ = stream.read_to_end(&mut read);
        String::from_utf8_lossy(&read).into_owned()
    }

    /// Waits until the answer to a request passes a test.
    #[track_caller]
    pub(super) fn until(&self, path: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + STEP_TIMEOUT;
        loop {
            let value = self.get(path);
            if is_it(&value) {
                return value;
            }
            assert!(Instant::now() < end, "{path} stays {value}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

pub(super) struct Request<'a> {
    server: &'a Server,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl<'a> Request<'a> {
    pub(super) fn server(&self) -> &'a Server {
        self.server
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn bearer(self, token: &str) -> Self {
        self.with("Authorization", &format!("Bearer {token}"))
    }

    pub(super) fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string().into_bytes())
    }

    pub(super) fn body(mut self, kind: &str, body: Vec<u8>) -> Self {
        self.body = Some(body);
        self.with("Content-Type", kind)
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            head.extend([name.as_str(), ": ", value, "\r\n"]);
        }
        let body = self.body.as_deref().unwrap_or_default();
        if self.body.is_some() || self.method != "GET" {
            head.extend(["Content-Length: ", &body.len().to_string(), "\r\n"]);
        }
        [head.as_bytes(), b"\r\n", body].concat()
    }

    /// Sends the request. The answer has to be as the OpenAPI document says.
    #[track_caller]
    pub(super) fn send(self) -> Response {
        let what = format!("{} {}", self.method, self.path);
        let closing = self.with("Connection", "close");
        let answer = Response::parse(what, &closing.server.raw(&closing.bytes()));
        schemas::check(&closing.method, &closing.path, &answer);
        answer
    }

    /// Sends the request and leaves the connection open.
    pub(super) fn open(self) -> TcpStream {
        let mut stream = self.server.connect();
        stream.write_all(&self.bytes()).expect("sent");
        stream
    }
}

#[derive(Debug)]
pub(super) struct Response {
    what: String,
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Response {
    pub(super) fn parse(what: String, text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let is_chunked = head.to_lowercase().contains("transfer-encoding: chunked");
        let body = if is_chunked { dechunked(body) } else { body.to_owned() };
        Self { what, status, head: head.to_owned(), body }
    }

    #[track_caller]
    pub(super) fn expects(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}: {}\n{}", self.what, self.head, self.body);
        self
    }

    #[track_caller]
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("{}: {error}: {}", self.what, self.body))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }
}

fn dechunked(mut rest: &str) -> String {
    let mut whole = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        let Some(chunk) = after.get(..size).filter(|_| size > 0) else {
            break;
        };
        whole.push_str(chunk);
        rest = after.get(size + 2..).unwrap_or_default();
    }
    whole
}
