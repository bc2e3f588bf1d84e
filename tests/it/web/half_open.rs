//! Connections that send too little, and as many of them as an attacker likes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::client::Server;

const HALF_OPEN: u64 = 10_000;
/// Descriptors for everything else in this process.
const SPARE: u64 = 500;
/// More than the server keeps open.
const SLOW_BODIES: usize = 400;

/// Lets this process have as many connections as the machine permits, and returns how many those are.
fn allow_connections() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX).min(HALF_OPEN + SPARE);
    if limit.current.is_some_and(|current| current < most) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: limit.maximum })
            .expect("a higher limit");
    }
    usize::try_from((most - SPARE).min(HALF_OPEN)).expect("a number of connections")
}

#[test]
fn ten_thousand_half_open_connections_lock_out_no_client() {
    let server = Server::new();
    let count = allow_connections();
    let mut open = Vec::new();
    for at in 0..count {
        // One that does not fit is refused.
        if let Ok(mut stream) = TcpStream::connect(server.address) {
            let _ = stream.write_all(b"GET / HT");
            open.push(stream);
        }
        if at % 2_000 == 1_999 {
            server.request("GET", "/healthz").send().expects(200);
        }
    }
    assert!(open.len() > count / 2, "{} of {count} were accepted", open.len());
    let began = Instant::now();
    server.call("GET", "/api/v1/jobs").send().expects(200);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    // The server has closed all but those that it has room for.
    let text = server.call("GET", "/metrics").send().expects(200).body;
    let open_files = text.lines().find_map(|line| line.strip_prefix("process_open_fds ")).expect("a number");
    assert!(open_files.parse::<u32>().expect("a number") < 500, "{open_files}");
}

/// A body that never arrives holds a connection, and needs no token where one logs in.
#[test]
fn bodies_that_never_arrive_lock_out_no_client() {
    let server = Server::new();
    let head = format!(
        "POST /api/v1/session HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{{",
        server.address
    );
    let mut open = Vec::new();
    for _ in 0..SLOW_BODIES {
        let mut stream = server.connect();
        let _ = stream.write_all(head.as_bytes());
        open.push(stream);
    }
    server.call("GET", "/api/v1/jobs").send().expects(200);
}

/// One byte at a time, for as long as the server lets it: slowloris.
#[test]
fn a_head_that_arrives_too_slowly_is_cut_off() {
    let server = Server::new();
    let (mut slow, began) = (server.connect(), Instant::now());
    slow.set_nonblocking(true).expect("nonblocking");
    let mut read = [0; 1_024];
    let ended = loop {
        let _ = slow.write(b"X");
        match slow.read(&mut read) {
            Ok(0) => break true,
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => break true,
            Ok(_) | Err(_) if began.elapsed() > Duration::from_secs(20) => break false,
            Ok(_) | Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    assert!(ended, "the server still waits for the head");
    server.request("GET", "/healthz").send().expects(200);
}
