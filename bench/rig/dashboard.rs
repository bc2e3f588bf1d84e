//! A running dashboard, and clients that measure how long its answers take.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use domain::values::timestamp::Timestamp;
use rustix::process::Pid;
use serde_json::Value;
use sys::clock::{Clock, SystemClock};
use web::Scope;
use web::tokens::{NewToken, add};

use crate::rig::running::{RunningProcess, wait_for};
use crate::rig::workspace::Home;

const START_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Longer than any answer takes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Dashboard {
    process: RunningProcess,
    address: SocketAddr,
    token: String,
}

impl Dashboard {
    /// Starts the dashboard of a home, and returns when it listens.
    pub(crate) fn start(home: &Home, arguments: &[&str]) -> Result<Self> {
        let now = Timestamp::from_millis(SystemClock.wall_millis());
        let name = format!("bench-{:x}", fastrand::u64(..));
        let new = NewToken { name, scope: Scope::Admin, expires_in: None, by: "bench".to_owned() };
        let (_, token) = add(home.path(), new, now)?;
        let words = ["dashboard", "--listen", "127.0.0.1:0"];
        let words: Vec<&str> = words.iter().chain(arguments).copied().collect();
        let process = RunningProcess::start(&home.queuectl(&words)?)?;
        let address = wait_for("the dashboard to listen", START_POLL_INTERVAL, || {
            let running = web::running(home.path())?;
            Ok(running.and_then(|running| running.url.strip_prefix("http://")?.parse().ok()))
        })?;
        Ok(Self { process, address, token })
    }

    pub(crate) fn pid(&self) -> Pid {
        self.process.pid()
    }

    /// A client with a connection of its own, which stays open.
    pub(crate) fn client(&self) -> Result<Client<'_>> {
        Ok(Client { dashboard: self, connection: BufReader::new(self.connect()?) })
    }

    /// Asks for a stream of events. The caller reads the answer.
    pub(crate) fn open_stream(&self, path: &str) -> Result<TcpStream> {
        let mut connection = self.connect()?;
        connection.write_all(self.request("GET", path, "").as_bytes())?;
        Ok(connection)
    }

    pub(crate) fn stop(self) -> Result<()> {
        self.process.stop().context("failed to stop the dashboard")
    }

    fn connect(&self) -> Result<TcpStream> {
        let connection = TcpStream::connect(self.address)?;
        connection.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        connection.set_nodelay(true)?;
        Ok(connection)
    }

    fn request(&self, method: &str, path: &str, body: &str) -> String {
        let Self { address, token, .. } = self;
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n");
        if body.is_empty() {
            return head + "\r\n";
        }
        format!("{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    }
}

pub(crate) struct Client<'a> {
    dashboard: &'a Dashboard,
    connection: BufReader<TcpStream>,
}

/// An answer with a status of success.
pub(crate) struct Answer {
    head: String,
    pub(crate) body: Vec<u8>,
    /// From sending the request until the whole answer was read.
    pub(crate) wall: Duration,
}

impl Client<'_> {
    pub(crate) fn get(&mut self, path: &str) -> Result<Answer> {
        self.send("GET", path, "")
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Result<Answer> {
        self.send("POST", path, &body.to_string())
    }

    fn send(&mut self, method: &str, path: &str, body: &str) -> Result<Answer> {
        let request = self.dashboard.request(method, path, body);
        let began = Instant::now();
        self.connection.get_mut().write_all(request.as_bytes())?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            ensure!(self.connection.read_line(&mut head)? > 0, "the connection ended: {head}");
        }
        let mut answer = Answer { head, body: Vec::new(), wall: Duration::ZERO };
        let length = answer.header("content-length").context("the answer has no length")?.parse()?;
        answer.body.resize(length, 0);
        self.connection.read_exact(&mut answer.body)?;
        answer.wall = began.elapsed();
        if !answer.head.starts_with("HTTP/1.1 2") {
            bail!("{method} {path}: {}{}", answer.head, String::from_utf8_lossy(&answer.body));
        }
        Ok(answer)
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn milliseconds(&self) -> f64 {
        self.wall.as_secs_f64() * 1000.0
    }

    /// The path of the next page, if there is one.
    pub(crate) fn next_page(&self) -> Option<String> {
        let link = self.header("link")?.strip_prefix('<')?;
        Some(link.split_once('>')?.0.to_owned())
    }
}
