//! The values of variables and the secrets of hooks leave the store only for the command that they are for.

use std::collections::BTreeSet;
use std::io::Read;
use std::time::Duration;

use serde_json::json;
use web::listed_routes;

use super::client::Server;
use super::rich::{self, Rich};

const CANARY: &str = "canary-7f3a";

#[test]
fn the_values_of_variables_are_in_no_answer() {
    let home = rich::home();
    let words =
        ["enqueue", "-q", "--id", "a", "--env", "SECRET=canary-7f3a", "--max-retries", "0", "--", "false"];
    home.call(words).env("CAPTURED", CANARY).run().ok();
    let schedule = ["schedule", "add", "s", "--every", "1h", "--env", "SECRET=canary-7f3a", "--", "true"];
    home.call(schedule).env("CAPTURED", CANARY).run().ok();
    home.run(["hook", "add", "h", "--on", "dead", "--url", "http://127.0.0.1:9", "--secret", CANARY]).ok();
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    let server = Server::start(home, &[]);
    let rich = Rich::of_running(&server);
    let clone = server.post("/api/v1/jobs/a/clone", &json!({})).expects(201);
    assert!(!clone.body.contains(CANARY));
    let mut paths = BTreeSet::new();
    for route in listed_routes().filter(|route| route.method == "GET") {
        for (name, secret) in [("bad", "a"), ("nightly", "s"), ("notify", "h")] {
            let path = rich.filled(route.path);
            paths.insert((path.replace(&format!("/{name}"), &format!("/{secret}")), route.is_stream));
        }
    }
    assert!(paths.len() > 60, "{paths:?}");
    for (path, is_stream) in &paths {
        let text = if *is_stream { beginning(&server, path) } else { whole(&server, path) };
        assert!(!text.contains(CANARY), "{path}: {text}");
    }
    let record = server.get("/api/v1/jobs/a");
    assert_eq!(record["env"], json!(["SECRET"]), "the names are shown");
}

fn whole(server: &Server, path: &str) -> String {
    let answer = server.call("GET", path).send();
    answer.head + &answer.body
}

/// The first state that a stream sends.
fn beginning(server: &Server, path: &str) -> String {
    let topics = "status,events,job:a,list:state%253Ddead";
    let path =
        if path.ends_with("/api/v1/stream") { format!("{path}?topics={topics}") } else { path.to_owned() };
    let mut stream = server.call("GET", &path).open();
    let (mut text, mut piece) = (Vec::new(), [0; 1 << 14]);
    while let Ok(read @ 1..) = stream.read(&mut piece) {
        text.extend_from_slice(&piece[..read]);
        if text.windows(6).any(|part| part == b"\ndata:") {
            // The other topics come with it.
            stream.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
        }
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(text.starts_with("HTTP/1.1 200"), "{path}: {text}");
    text
}
