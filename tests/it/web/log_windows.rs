//! Windows on an output that grows and whose middle is cut out: a server that has read it from its beginning shows the same
//! as one that reads it for the first time.

use super::client::Server;
use crate::cli::harness::Home;
use crate::cli::harness::background::{Background, STEP_TIMEOUT};
use crate::store::fixture::schema::Schema;
use std::time::{Duration, Instant};

const ROUNDS: usize = 4;
const LINES: usize = 30_000;

#[test]
fn an_index_grows_with_its_log_file() {
    windows_stay_the_same(Home::with_queue(), &[]);
}

#[test]
fn an_index_grows_with_parts_in_a_database() {
    let schema = Schema::new();
    windows_stay_the_same(Home::new(), &["--store", &schema.address.to_string()]);
}

fn windows_stay_the_same(home: Home, args: &[&str]) {
    let run = |home: &Home, words: &[&str]| home.call(args.iter().chain(words)).run().ok();
    // Each round prints about 600 KB, so that the first cut is in the second one.
    let command = format!(
        "for n in $(seq {ROUNDS}); do while [ ! -e go$n ]; do sleep 0.02; done; \
         seq -f \"round $n line %.0f\" {LINES}; echo \"err $n\" >&2; done; sleep 600"
    );
    run(&home, &["enqueue", "-q", "--id", "long", "--", "sh", "-c", &command]);
    run(&home, &["config", "set", "log_max_bytes", "1M"]);
    let server = Server::start(home, args);
    let token = server.token("read");
    let worker = Background::start(server.home.call(args.iter().chain(&["worker", "start"])));
    for round in 1..=ROUNDS {
        server.home.file(&format!("go{round}"), "");
        wait_for(&server, "stream=stdout", &format!("round {round} line {LINES}<"));
        wait_for(&server, "stream=stderr", &format!("err {round}<"));
        // What the worker cuts out between the two readings shows in a third one.
        let end = Instant::now() + STEP_TIMEOUT;
        let (known, fresh) = loop {
            assert!(Instant::now() < end, "the output does not come to rest");
            let known = windows(&server);
            let words = ["dashboard", "--listen", "127.0.0.1:0", "--json"];
            let fresh = Background::start(server.home.call(args.iter().chain(&words)));
            let fresh = windows(&Server::of_process(Home::new(), fresh, &token));
            if windows(&server) == known {
                break (known, fresh);
            }
        };
        for (known, fresh) in known.iter().zip(fresh) {
            assert!(*known == fresh, "round {round}:\n{known}\n{fresh}");
        }
    }
    worker.signal(rustix::process::Signal::TERM);
}

fn rows(server: &Server, query: &str) -> String {
    server.call("GET", &format!("/live/rows?job=long&attempt=1&{query}")).send().body
}

#[track_caller]
fn wait_for(server: &Server, query: &str, text: &str) {
    let end = Instant::now() + STEP_TIMEOUT;
    while !rows(server, query).contains(text) {
        assert!(Instant::now() < end, "{text} is not shown");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The beginning, the end, and places between them, of both streams and of each.
fn windows(server: &Server) -> Vec<String> {
    let places = ["", "row=1", "row=2", "row=15000", "row=45000", "line=29990", "line=31000", "row=1000000"];
    let streams = ["", "stream=stdout&", "stream=stderr&"];
    let queries = streams.iter().flat_map(|stream| places.map(|place| format!("{stream}{place}")));
    let read = |query: String| {
        server.call("GET", &format!("/live/rows?job=long&attempt=1&{query}")).send().expects(200).body
    };
    queries.map(read).collect()
}
