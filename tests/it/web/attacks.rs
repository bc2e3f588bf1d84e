//! Hostile requests and hostile data.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use serde_json::json;

use super::client::Server;
use crate::cli::harness::Home;

/// Requests that two parsers could understand differently. `{host}` is replaced.
const SMUGGLING: &[&str] = &[
    "POST /api/v1/jobs HTTP/1.1\r\n{host}Content-Length: 5\r\nContent-Length: 6\r\n\r\nGET / ",
    "POST /api/v1/jobs HTTP/1.1\r\n{host}Content-Length: +5\r\n\r\n12345",
    "POST /api/v1/jobs HTTP/1.1\r\n{host}Content-Length: 0x5\r\n\r\n12345",
    "POST /api/v1/jobs HTTP/1.1\r\n{host}Content-Length: -1\r\n\r\n",
    "POST /api/v1/jobs HTTP/1.1\r\n{host}Content-Length: 5, 5x\r\n\r\n12345",
    "POST /api/v1/jobs HTTP/1.1\r\n{host}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "POST /api/v1/jobs HTTP/1.1\r\n{host}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "POST /api/v1/jobs HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
    "POST /api/v1/jobs HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
    "POST /api/v1/jobs HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n\r\n",
    "POST /api/v1/jobs HTTP/1.1\r\n{host}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "GET /api/v1/jobs HTTP/1.1\r\n{host}X: a\r\n b: folded\r\n\r\n",
    "GET /api/v1/jobs HTTP/1.1\r\n{host}X\0: a\r\n\r\n",
    "GET /api/v1/jobs HTTP/1.1\r\n{host}X: a\0b\r\n\r\n",
    "GET /api/v1/jobs HTTP/9.9\r\n{host}\r\n",
    "GET  /api/v1/jobs HTTP/1.1\r\n{host}\r\n",
    "\u{1}\u{2}\u{3}\r\n\r\n",
];

#[test]
fn ambiguous_requests_end_the_connection_and_run_nothing() {
    let server = Server::new();
    let host = format!("Host: {}\r\n", server.address);
    for request in SMUGGLING {
        // A second request that must not be taken for a part of the first, nor be answered after it.
        let smuggled = format!("{}GET /smuggled HTTP/1.1\r\n{host}\r\n", request.replace("{host}", &host));
        let answer = server.raw(smuggled.as_bytes());
        let statuses: Vec<&str> = answer.split("HTTP/1.").skip(1).filter_map(|part| part.get(2..5)).collect();
        assert!(statuses.len() <= 1, "{request:?}: {answer}");
        assert!(
            statuses.iter().all(|status| ["400", "401", "413", "501", "505"].contains(status)),
            "{request:?}: {answer}"
        );
    }
    // Both lengths: the chunks decide, and the rest is the next request.
    let both = format!(
        "POST /api/v1/jobs HTTP/1.1\r\n{host}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n{host}\r\n"
    );
    let answer = server.raw(both.as_bytes());
    assert!(!answer.contains("smuggled") || answer.contains("404"), "{answer}");
    assert!(server.home.is_empty());
    server.request("GET", "/healthz").send().expects(200);
}

#[test]
fn a_head_that_is_too_long_has_too_many_headers_or_is_too_slow_is_refused() {
    let server = Server::new();
    let long = server.call("GET", "/api/v1/jobs").with("X", &"a".repeat(20_000)).send();
    assert!([400, 431].contains(&long.status), "{}", long.head);
    let many: Vec<String> = (0..70).map(|at| format!("X-{at}: 1\r\n")).collect();
    let many = many.concat();
    let host = format!("Host: {}\r\n", server.address);
    let answer = server.raw(format!("GET /healthz HTTP/1.1\r\n{host}{many}\r\n").as_bytes());
    assert!(answer.starts_with("HTTP/1.1 431") || answer.starts_with("HTTP/1.1 400"), "{answer}");
    let query = server.call("GET", &format!("/api/v1/jobs?queue={}", "a".repeat(9_000))).send();
    query.expects(414);
    // One byte at a time, for as long as the server lets it: slowloris.
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

#[test]
fn ten_thousand_half_open_connections_lock_out_no_client() {
    let server = Server::new();
    let mut open = Vec::new();
    for at in 0..10_000 {
        if let Ok(mut stream) = std::net::TcpStream::connect(server.address) {
            let _ = stream.write_all(b"GET / HT");
            open.push(stream);
        }
        // As many as this process may have open; the oldest were closed by the server.
        if open.len() > 500 {
            open.drain(..100);
        }
        if at % 1_000 == 999 {
            server.request("GET", "/healthz").send().expects(200);
        }
    }
    server.call("GET", "/api/v1/jobs").send().expects(200);
}

#[test]
fn large_and_deep_bodies_are_refused_and_never_held_in_memory() {
    let server = Server::new();
    let before = resident(&server);
    let head = String::from_utf8(server.call("POST", "/api/v1/queues/q/pause").bytes()).expect("text");
    let head =
        head.replace("Content-Length: 0", "Content-Type: application/json\r\nContent-Length: 104857600");
    let mut stream = server.connect();
    stream.write_all(head.as_bytes()).expect("sent");
    let piece = vec![b' '; 1 << 20];
    for _ in 0..100 {
        if stream.write_all(&piece).is_err() {
            break;
        }
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(resident(&server) < before + (64 << 20), "the body was not kept");
    for depth in [65, 1_000, 100_000] {
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        server.call("POST", "/api/v1/jobs").body("application/json", deep.into_bytes()).send().expects(400);
    }
    let jobs: Vec<_> = (0..10_001).map(|_| json!({ "command": "true" })).collect();
    server.post("/api/v1/jobs", &json!(jobs)).expects(413);
    server
        .call("POST", "/api/v1/jobs")
        .body("text/plain", b"{\"command\":\"true\"}".to_vec())
        .send()
        .expects(415);
    server.call("POST", "/api/v1/jobs").body("application/json", b"{".to_vec()).send().expects(400);
    server
        .call("POST", "/api/v1/jobs")
        .body("application/json", b"{\"comand\":\"x\"}".to_vec())
        .send()
        .expects(422);
    assert!(server.home.is_empty());
}

/// The resident memory of the server, as it says itself.
fn resident(server: &Server) -> u64 {
    let text = server.call("GET", "/metrics").send().expects(200).body;
    let line = text.lines().find_map(|line| line.strip_prefix("process_resident_memory_bytes "));
    line.and_then(|number| number.parse().ok()).expect("a number")
}

/// Text that tries to be something else: markup, control sequences, directions, line ends of scripts.
const HOSTILE: &str =
    "<script>alert(1)</script>\u{1b}]8;;http://evil\u{7}\u{202e}\u{2028}\u{2066}'\"`${7*7}{{7*7}}";

#[test]
fn hostile_data_is_escaped_in_every_answer() {
    let server = Server::new();
    let job = json!({ "command": format!("printf '%s' '{}' >&2; exit 1 # {HOSTILE}", HOSTILE.replace('\'', "")),
        "id": "h", "name": HOSTILE.replace('\u{2028}', ""), "tags": ["t"], "max_retries": 0, "unique_key": HOSTILE });
    server.post("/api/v1/jobs", &job).expects(201);
    server.home.run(["worker", "run", "-q", "--until-empty"]).ok();
    server.post("/api/v1/queues/default/pause", &json!({ "reason": HOSTILE })).expects(200);
    for path in [
        "/jobs",
        "/jobs/h",
        "/jobs/h/explain",
        "/jobs/h/attempts/1/log",
        "/jobs/h/attempts/1/find?text=script",
        "/causes",
        "/failures",
        "/status",
        "/queues",
        "/events",
        "/jobs/%1b%5d8",
        "/jobs/%3Cscript%3E",
        "/jobs/..%2f..%2fetc",
        "/queues/%E2%80%AE",
        "/suggest?field=id&prefix=%3Cscript",
        "/jobs?state=%1b%5b2J",
    ] {
        let answer = server.call("GET", &format!("/api/v1{path}")).send();
        let is_json = answer.header("Content-Type").is_some_and(|kind| kind.ends_with("json"));
        assert!(is_json && [200, 400, 404, 422].contains(&answer.status), "{path}: {}", answer.head);
        let raw = answer.body.chars().find(|c| "\u{1b}\u{7}\u{202e}\u{2028}\u{2066}".contains(*c));
        assert_eq!(raw, None, "{path}: {}", answer.body);
    }
    let text = server.call("GET", "/api/v1/jobs/h/attempts/1/log?as=text").send().expects(200);
    assert!(
        text.header("Content-Disposition").is_some_and(|value| value == "attachment; filename=\"1-1.log\"")
    );
    assert!(text.header("Content-Type").is_some_and(|kind| kind.starts_with("text/plain")), "{}", text.head);
    for path in
        ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/api/v1/../../tokens.json", "/tokens.json"]
    {
        server.call("GET", path).send().expects(404);
    }
}

#[test]
fn the_values_of_variables_are_in_no_answer() {
    const CANARY: &str = "canary-7f3a";
    let home = Home::new();
    let words =
        ["enqueue", "-q", "--id", "a", "--env", "SECRET=canary-7f3a", "--max-retries", "0", "--", "false"];
    home.call(words).env("CAPTURED", CANARY).run().ok();
    let schedule = ["schedule", "add", "s", "--every", "1h", "--env", "SECRET=canary-7f3a", "--", "true"];
    home.call(schedule).env("CAPTURED", CANARY).run().ok();
    home.call(["hook", "add", "h", "--on", "dead", "--url", "http://127.0.0.1:9", "--secret", CANARY])
        .run()
        .ok();
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    let server = Server::start(home, &[]);
    let clone = server.post("/api/v1/jobs/a/clone", &json!({})).expects(201);
    assert!(!clone.body.contains(CANARY));
    let document = serde_json::from_str::<serde_json::Value>(&web::document()).expect("JSON");
    for path in document["paths"].as_object().expect("paths").keys() {
        if document["paths"][path]["get"].is_null() || path.ends_with("stream") {
            continue;
        }
        let filled = path.replace("{id}", "a").replace("{attempt}", "1").replace("{queue}", "default");
        let filled = filled.replace("{schedule}", "s").replace("{hook}", "h").replace("{key}", "lease");
        let answer = server.call("GET", &filled).send();
        assert!(!answer.body.contains(CANARY) && !answer.head.contains(CANARY), "{path}: {}", answer.body);
    }
    let record = server.get("/api/v1/jobs/a");
    assert_eq!(record["env"], json!(["SECRET"]), "the names are shown");
}
