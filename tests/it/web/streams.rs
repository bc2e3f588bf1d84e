//! Streams of server-sent events.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::client::Server;
use crate::cli::harness::Home;
use crate::cli::harness::background::Background;

/// The events of a stream, one at a time.
struct Events(BufReader<TcpStream>);

impl Events {
    fn open(server: &Server, path: &str) -> Self {
        let mut events = Self(BufReader::new(server.call("GET", path).open()));
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            events.0.read_line(&mut line).expect("a line of the head");
            assert!(!line.starts_with("HTTP/1.1 4"), "{line}");
        }
        events
    }

    /// The next event and its data; the lengths of chunks and comments are left out.
    fn next(&mut self) -> (String, Value) {
        let mut name = String::new();
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).expect("a line of an event") > 0, "the stream ended");
            let line = line.trim_end();
            if let Some(event) = line.strip_prefix("event: ") {
                event.clone_into(&mut name);
            } else if let Some(data) = line.strip_prefix("data: ") {
                return (name, serde_json::from_str(data).expect("JSON"));
            }
        }
    }

    fn until(&mut self, name: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let (event, data) = self.next();
            if event == name && is_it(&data) {
                return data;
            }
        }
    }
}

#[test]
fn a_stream_sends_the_whole_state_and_then_what_differs() {
    let server = Server::start(Home::with_jobs(&["a"]), &[]);
    let topics = "status,events,job:a,list:state%253Dpending";
    let mut events = Events::open(&server, &format!("/api/v1/stream?topics={topics}"));
    let status = events.until("status", |_| true);
    assert_eq!(status["jobs"]["pending"], 1);
    events.until("event", Value::is_array);
    assert_eq!(events.until("job", |_| true)["state"], "pending");
    let list = events.until("jobs", |_| true);
    assert_eq!((list["order"].clone(), list["gone"].clone()), (json!(["a"]), json!([])));
    server.post("/api/v1/jobs", &json!({ "command": "true", "id": "b" })).expects(201);
    let list = events.until("jobs", |list| list["order"] == json!(["b", "a"]));
    assert_eq!(list["upsert"].as_array().map(Vec::len), Some(1), "only the new job is sent: {list}");
    server.call("POST", "/api/v1/jobs/a/cancel").send().expects(200);
    let list = events.until("jobs", |list| list["order"] == json!(["b"]));
    assert_eq!(list["gone"], json!(["a"]));
    let mut second = Events::open(&server, "/api/v1/stream?topics=job:a");
    assert_eq!(second.until("job", |_| true)["state"], "cancelled", "a new listener gets the present state");
}

#[test]
fn the_output_of_a_job_is_followed_from_the_beginning_or_from_an_offset() {
    let server = Server::new();
    let command = "echo one; read line < fifo; echo two";
    rustix::fs::mkfifoat(rustix::fs::CWD, server.home.folder().join("fifo"), 0o600.into()).expect("a FIFO");
    let folder = server.home.folder().display().to_string();
    server.post("/api/v1/jobs", &json!({ "command": command, "id": "a", "cwd": folder })).expects(201);
    let worker = Background::start(server.home.call(["worker", "run", "-q", "--until-empty"]));
    let mut events = Events::open(&server, "/api/v1/jobs/a/log/stream");
    events.until("began", |attempt| attempt["attempt"] == 1);
    assert_eq!(events.until("output", |_| true)["text"], "one\n");
    std::fs::write(server.home.folder().join("fifo"), "go\n").expect("written");
    let two = events.until("output", |_| true);
    assert_eq!(
        (two["text"].clone(), two["from"].clone(), two["stream"].clone()),
        (json!("two\n"), json!(4), json!("stdout"))
    );
    assert_eq!(events.until("ended", |_| true)["outcome"], "success");
    assert_eq!(events.until("finished", |_| true)["state"], "completed");
    let mut rest = Events::open(&server, "/api/v1/jobs/a/log/stream?from=4");
    assert_eq!(rest.until("output", |_| true)["text"], "two\n");
    let mut missing = Events::open(&server, "/api/v1/jobs/nope/log/stream");
    assert_eq!(missing.until("error", |_| true)["status"], 404);
    drop(worker);
}

#[test]
fn the_number_of_streams_is_limited_and_a_closed_one_makes_room() {
    let server = Server::start(Home::with_queue(), &["--max-streams", "2"]);
    let first = Events::open(&server, "/api/v1/stream");
    let second = Events::open(&server, "/api/v1/stream");
    server.call("GET", "/api/v1/stream").send().expects(429);
    drop((first, second));
    let text = |server: &Server| server.call("GET", "/metrics").send().expects(200).body;
    while !text(&server).contains("queuectl_http_streams 0\n") {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    Events::open(&server, "/api/v1/stream").until("status", |_| true);
    let reader = server.token("read");
    server.request("GET", "/api/v1/stream?topics=action:a-1").bearer(&reader).send().expects(403);
}
