//! Who gets in: hosts, origins, users, tokens, login links, sessions.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::{Value, json};

use super::client::Server;
use crate::cli::harness::background::Background;
use crate::cli::harness::{Home, UNPRIVILEGED, is_root};

#[test]
fn a_foreign_host_is_refused_before_everything_else() {
    let server = Server::new();
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"] {
        for path in ["/", "/healthz", "/nope", "/api/v1/jobs", "/api/v1/stream", "/login"] {
            let foreign = server.call(method, path).with("Host", "evil.example").send();
            assert_eq!(foreign.status, 421, "{method} {path}");
        }
    }
    let port = server.address.port();
    for host in ["127.0.0.1", "localhost", "0.0.0.0", "127.0.0.1.evil.example", "evil.example@127.0.0.1"] {
        server.call("GET", "/healthz").with("Host", host).send().expects(421);
        let with_port = format!("{host}:{port}");
        let is_ours = ["127.0.0.1", "localhost"].contains(&host);
        let answer = server.call("GET", "/healthz").with("Host", &with_port).send();
        assert_eq!(answer.status, if is_ours { 200 } else { 421 }, "{with_port}");
    }
    let own = format!("Host: {}\r\n", server.address);
    for head in [
        "GET /healthz HTTP/1.1\r\n".to_owned(),
        format!("GET /healthz HTTP/1.1\r\n{own}Host: evil.example\r\n"),
        format!("GET /healthz HTTP/1.1\r\n{own}{own}"),
        format!("GET http://evil.example/healthz HTTP/1.1\r\n{own}"),
        "GET /healthz HTTP/1.0\r\n".to_owned(),
    ] {
        let answer = server.raw(format!("{head}Connection: close\r\n\r\n").as_bytes());
        assert!(answer.starts_with("HTTP/1.1 421") || answer.starts_with("HTTP/1.0 421"), "{head}: {answer}");
    }
    let named = Server::start(Home::with_queue(), &["--host", "queue.example.org"]);
    named.call("GET", "/healthz").with("Host", "queue.example.org").send().expects(200);
}

#[test]
fn a_page_of_another_site_is_refused() {
    let server = Server::new();
    let own = format!("http://{}", server.address);
    for (name, value, status) in [
        ("Origin", "http://evil.example", 403),
        ("Origin", "null", 403),
        ("Origin", own.as_str(), 200),
        ("Sec-Fetch-Site", "cross-site", 403),
        ("Sec-Fetch-Site", "same-site", 403),
        ("Sec-Fetch-Site", "none", 200),
    ] {
        server.call("GET", "/api/v1/jobs").with(name, value).send().expects(status);
    }
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let answer = server.call(method, "/api/v1/jobs/x").with("Origin", "https://evil.example").send();
        assert_eq!(answer.status, 403, "{method}");
    }
    let answer = server.call("OPTIONS", "/api/v1/jobs").with("Origin", &own).send();
    assert_eq!(answer.header("Access-Control-Allow-Origin"), None);
}

#[test]
fn every_answer_has_the_headers_that_protect_a_browser() {
    let server = Server::new();
    for path in ["/", "/login", "/api/v1/status", "/nope", "/metrics"] {
        let answer = server.call("GET", path).send();
        for (name, part) in [
            ("Content-Security-Policy", "default-src 'none'"),
            ("Content-Security-Policy", "frame-ancestors 'none'"),
            ("Content-Security-Policy", "require-trusted-types-for 'script'"),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Cache-Control", "no-store"),
        ] {
            assert!(
                answer.header(name).is_some_and(|value| value.contains(part)),
                "{path} {name}: {}",
                answer.head
            );
        }
    }
}

#[test]
fn wrong_tokens_are_refused_and_then_not_even_looked_at() {
    let server = Server::new();
    let good = server.token("read");
    for value in ["", "Bearer", "Bearer ", "Basic abc", "bearer qctl_x", "Token x"] {
        server.request("GET", "/api/v1/jobs").with("Authorization", value).send().expects(401);
    }
    for _ in 0..4 {
        server.request("GET", "/api/v1/jobs").bearer(&good[1..]).send().expects(401);
    }
    let refused = server.request("GET", "/api/v1/jobs").bearer(&good).send().expects(429);
    assert!(refused.header("Retry-After").is_some(), "{}", refused.head);
    server.request("GET", "/healthz").send().expects(200);
}

#[test]
fn a_removed_an_expired_and_an_exposed_token_is_refused() {
    let server = Server::new();
    let token = server.token("read");
    server.request("GET", "/api/v1/jobs").bearer(&token).send().expects(200);
    let names: Vec<Value> = server
        .home
        .run(["dashboard", "token", "list", "--json"])
        .ok()
        .json()
        .as_array()
        .cloned()
        .expect("a list");
    let name = names[1]["name"].as_str().expect("a name");
    server.home.run(["dashboard", "token", "remove", name]).ok();
    server.request("GET", "/api/v1/jobs").bearer(&token).send().expects(401);
    server.home.run(["dashboard", "token", "add", "ci", "--scope", "none"]).fails(2);
    server.home.run(["dashboard", "token", "add", "test", "--scope", "read"]).fails(4);
    server.home.run(["dashboard", "token", "remove", "nope"]).fails(3);
    let short =
        server.home.run(["dashboard", "token", "add", "short", "--scope", "read", "--expires", "1ms"]).ok();
    server.request("GET", "/api/v1/jobs").bearer(short.stdout.trim()).send().expects(401);
    let file = server.home.path().join("tokens.json");
    assert_eq!(file.metadata().expect("a file").permissions().mode() & 0o777, 0o600);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("the mode is set");
    let refused = server.call("GET", "/api/v1/jobs").send().expects(503);
    assert!(refused.body.contains("can be read by others"), "{}", refused.body);
    server.home.run(["dashboard", "token", "list"]).fails(5);
}

/// Logs in with the link of the server; the cookie and the session's token.
pub(super) fn log_in(server: &Server, link: &str) -> (String, String) {
    let (_, code) = link.split_once("/login#").expect("a code");
    let answer = server.request("POST", "/api/v1/session").json(&json!({ "code": code })).send().expects(201);
    let cookie = answer.header("Set-Cookie").expect("a cookie");
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let port = server.address.port().to_string();
    assert!(cookie.starts_with(&format!("queuectl-{port}=")), "{cookie}");
    let token = answer.json()["token"].as_str().expect("a token").to_owned();
    (cookie.split(';').next().expect("a pair").to_owned(), token)
}

#[test]
fn a_login_link_works_once_and_a_session_needs_its_token_for_every_change() {
    let server = Server::new();
    let (cookie, token) = log_in(&server, &server.link);
    let (_, code) = server.link.split_once('#').expect("a code");
    server.request("POST", "/api/v1/session").json(&json!({ "code": code })).send().expects(401);
    let browser = |method: &str, path: &str| {
        server.request(method, path).with("Cookie", &cookie).with("Sec-Fetch-Site", "same-origin")
    };
    browser("GET", "/api/v1/jobs").send().expects(200);
    server.request("GET", "/api/v1/jobs").with("Cookie", &cookie).send().expects(403);
    let job = json!({ "command": "true", "id": "a" });
    browser("POST", "/api/v1/jobs").json(&job).send().expects(403);
    browser("POST", "/api/v1/jobs").json(&job).with("Queuectl-Session-Token", "x").send().expects(403);
    server
        .request("POST", "/api/v1/jobs")
        .json(&job)
        .with("Queuectl-Session-Token", &token)
        .send()
        .expects(401);
    assert_eq!(server.home.count(), 0, "nothing was enqueued");
    let change = |method: &str, path: &str| browser(method, path).with("Queuectl-Session-Token", &token);
    change("POST", "/api/v1/jobs").json(&job).send().expects(201);
    change("POST", "/api/v1/jobs/a/cancel").send().expects(200);
    let by = server.get("/api/v1/events?event=cancel")[0]["by"].clone();
    assert!(by.as_str().is_some_and(|by| by.ends_with(" via dashboard")), "{by}");
    let link = server.home.run(["dashboard", "link"]).ok().stdout;
    let (other, _) = log_in(&server, link.trim());
    change("DELETE", "/api/v1/session").send().expects(204);
    browser("GET", "/api/v1/jobs").send().expects(401);
    server
        .request("GET", "/api/v1/jobs")
        .with("Cookie", &other)
        .with("Sec-Fetch-Site", "none")
        .send()
        .expects(200);
    let guesses = (0..12)
        .map(|_| server.request("POST", "/api/v1/session").json(&json!({ "code": "x" })).send().status);
    assert_eq!(guesses.collect::<Vec<_>>().last(), Some(&429));
}

#[test]
fn another_user_of_the_machine_is_refused() {
    if !is_root() {
        return;
    }
    let server = Server::new();
    let bytes = String::from_utf8(server.call("GET", "/api/v1/jobs").with("Connection", "close").bytes())
        .expect("text");
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{}; printf '%s' \"$REQUEST\" >&3; head -1 <&3",
        server.address.port()
    );
    let mut command = Command::new("bash");
    command.args(["-c", &script]).env("REQUEST", &bytes);
    let ours = command.output().expect("bash runs");
    assert!(ours.stdout.starts_with(b"HTTP/1.1 200"), "{ours:?}");
    let theirs = command.uid(UNPRIVILEGED).gid(UNPRIVILEGED).output().expect("bash runs");
    assert!(theirs.stdout.starts_with(b"HTTP/1.1 403"), "{theirs:?}");
}

#[test]
fn a_socket_file_is_private_and_a_remote_address_needs_protection() {
    let home = Home::with_queue();
    let path = home.folder().join("q.sock");
    let address = format!("unix:{}", path.display());
    let process = Background::start(home.call(["dashboard", "--listen", &address]));
    assert_eq!(process.prints(), format!("Dashboard at {address}"));
    assert_eq!(path.metadata().expect("a socket").permissions().mode() & 0o777, 0o600);
    let mut stream = UnixStream::connect(&path).expect("connected");
    let answer = {
        use std::io::{Read, Write};
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("text");
        text
    };
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    process.signal(rustix::process::Signal::TERM);
    home.run(["dashboard", "--listen", "0.0.0.0:0"]).fails(2).says("can be reached from other machines");
    home.run(["dashboard", "--listen", "0.0.0.0:0", "--allow-remote"]).fails(2);
    let missing =
        ["dashboard", "--listen", "0.0.0.0:0", "--allow-remote", "--tls-cert", "x", "--tls-key", "y"];
    home.run(missing).fails(2);
}

#[test]
fn a_proxy_names_its_user_and_a_base_path_is_part_of_every_url() {
    let args = ["--behind-proxy", "--user-header", "X-Forwarded-User", "--base-path", "/q"];
    let server = Server::start(Home::with_jobs(&["a"]), &args);
    server.request("GET", "/q/api/v1/jobs").send().expects(401);
    server.request("GET", "/api/v1/jobs").send().expects(404);
    let alice = server.request("POST", "/q/api/v1/jobs/a/cancel").with("X-Forwarded-User", "alice").send();
    alice.expects(200);
    let events = server.call("GET", "/q/api/v1/events?event=cancel").send().expects(200).json();
    assert_eq!(events[0]["by"], "alice via proxy");
    let page = server.call("GET", "/q/api/v1/jobs?limit=1").send().expects(200);
    assert!(page.header("Link").is_none_or(|link| link.starts_with("</q/api/v1/jobs?")), "{}", page.head);
    assert!(server.link.contains("/q/login#"), "{}", server.link);
    let plain = Server::new();
    plain.request("GET", "/api/v1/jobs").with("X-Forwarded-User", "alice").send().expects(401);
}
