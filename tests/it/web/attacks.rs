//! Hostile requests and hostile data.

use std::io::{Read, Write};
use std::os::unix::fs::symlink;

use serde_json::json;

use super::client::Server;

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
    "POST /api/v1/jobs HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "POST /api/v1/jobs HTTP/1.1\r\n{host}Transfer-Encoding: \u{b}chunked\r\n\r\n0\r\n\r\n",
    "POST /api/v1/jobs HTTP/1.0\r\n{host}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST /api/v1/jobs HTTP/1.1\r\n{host}Content-Length: 5 5\r\n\r\n12345",
    "POST /api/v1/jobs HTTP/1.1\r\n{host}Content-Length: 99999999999999999999\r\n\r\n12345",
    "POST /api/v1/jobs HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n5;\nX\r\n12345\r\n0\r\n\r\n",
    "POST /api/v1/jobs HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n5\r\n123456\r\n0\r\n\r\n",
    "GET /api/v1/jobs HTTP/1.1\r\n{host} Content-Length: 5\r\n\r\n12345",
    "GET /api/v1/jobs HTTP/1.1\r\n{host}X: a\rContent-Length: 5\r\n\r\n12345",
    "GET /api/v1/jobs HTTP/1.1\r\n{host}: a\r\n\r\n",
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
    // A line feed alone ends a line: so says RFC 9112, and nothing that follows is another request by that.
    let bare = format!("GET /healthz HTTP/1.1\n{}X: a\nContent-Length: 1000\n\n", host.replace("\r\n", "\n"));
    let answer = server.raw(format!("{bare}GET /smuggled HTTP/1.1\r\n{host}\r\n").as_bytes());
    assert!(!answer.contains("404"), "{answer}");
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
fn a_head_that_is_too_long_or_has_too_many_headers_is_refused() {
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
fn a_body_without_an_end_is_refused_when_it_is_too_long() {
    let server = Server::new();
    let head = String::from_utf8(server.call("POST", "/api/v1/queues/q/pause").bytes()).expect("text");
    let chunked = "Content-Type: application/json\r\nTransfer-Encoding: chunked";
    let mut stream = server.connect();
    stream.write_all(head.replace("Content-Length: 0", chunked).as_bytes()).expect("sent");
    let chunk = [b"10000\r\n".as_slice(), &vec![b' '; 1 << 16], b"\r\n"].concat();
    let written = (0..1_600).take_while(|_| stream.write_all(&chunk).is_ok()).count();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    assert!(written < 1_600 || answer.starts_with("HTTP/1.1 413"), "{written} chunks were taken: {answer}");
    server.request("GET", "/healthz").send().expects(200);
    assert_eq!(server.get("/api/v1/queues"), json!([]));
}

/// What the owner of a home puts there cannot make the server read other files.
#[test]
fn a_log_that_is_a_link_is_not_followed() {
    let server = Server::new();
    let job = json!({ "command": "head -c 300000 /dev/zero | tr '\\0' x", "id": "a" });
    server.post("/api/v1/jobs", &job).expects(201);
    server.home.run(["worker", "run", "-q", "--until-empty"]).ok();
    let log = server.home.path().join("logs/1-1.log");
    let secret = server.home.file("secret", std::fs::read(&log).expect("a long output has a file"));
    server.call("GET", "/api/v1/jobs/a/attempts/1/log").send().expects(200);
    std::fs::remove_file(&log).expect("removed");
    symlink(&secret, &log).expect("linked");
    for path in
        ["/jobs/a/attempts/1/log", "/jobs/a/attempts/1/log?as=text", "/jobs/a/attempts/1/find?text=xxx"]
    {
        let answer = server.call("GET", &format!("/api/v1{path}")).send();
        assert!([410, 500, 503].contains(&answer.status), "{path}: {}", answer.head);
        assert!(!answer.body.contains("xxxx"), "{path}");
    }
    for attempt in ["..%2f..%2fsecret", "1%2f..%2f..", "%00", "-1", "1.log"] {
        server.call("GET", &format!("/api/v1/jobs/a/attempts/{attempt}/log")).send().expects(404);
    }
    server.request("GET", "/healthz").send().expects(200);
}

#[test]
fn hostile_cron_lines_are_refused_at_once() {
    let server = Server::new();
    let began = std::time::Instant::now();
    for cron in [
        "* * * * * ; rm -rf /".to_owned(),
        "* * * * *\n* * * * *".to_owned(),
        "\u{202e}* * * * *".to_owned(),
        "0 0 30 2 *".repeat(30),
        "99999999999999999999 * * * *".to_owned(),
        "*/0 * * * *".to_owned(),
        "0-4294967295 * * * *".to_owned(),
        format!("{} * * * *", "1,".repeat(100_000)),
        "(((((((((((((((((((( * * * *".to_owned(),
        "%s%n%x * * * *".to_owned(),
        "@reboot".to_owned(),
        String::new(),
    ] {
        let schedule = json!({ "name": "s", "cron": cron, "job": { "command": "true" } });
        let refused = server.post("/api/v1/schedules", &schedule).expects(422);
        assert!(!refused.body.contains('\u{202e}'), "{}", refused.body);
    }
    assert!(began.elapsed() < std::time::Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(server.get("/api/v1/schedules"), json!([]));
}
