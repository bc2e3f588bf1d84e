//! People see the numbers of jobs whose ids were generated; programs see the ids.

use rustix::process::Signal;

use crate::cli::harness::Home;
use crate::cli::harness::pseudo_terminal::{Terminal, on_terminal};
use crate::cli::harness::test_worker::TestWorker;

fn see(home: &Home, args: &[&str]) -> String {
    on_terminal(home.call([&["--color", "never"], args].concat()).into_command(), 120, "").screen
}

/// Three jobs without chosen ids: 2 depends on 1, and 3 is dead.
fn without_ids() -> (Home, Vec<String>) {
    let home = Home::new();
    home.run(["enqueue", "-q", "sleep 1"]).ok();
    home.run(["enqueue", "-q", "--depends-on", "1", "echo 2"]).ok();
    home.run(["enqueue", "-q", "--max-retries", "0", "--priority", "9", "echo 3"]).ok();
    let mut ids: Vec<String> = home.jobs().iter().map(|job| job.id.to_string()).collect();
    ids.sort_unstable();
    home.kill_next(&ids[2], "exit code 1: no");
    (home, ids)
}

#[test]
fn a_graph_on_a_terminal_has_numbers() {
    let (home, ids) = without_ids();
    assert_eq!(see(&home, &["graph", "1"]), "1  pending  sleep 1\nneeded by\n└── 2  pending  echo 2\n");
    let [first, second] = [&ids[0], &ids[1]];
    home.run(["graph", "1"]).ok().prints(&format!("{first}  pending\nneeded by\n└── {second}  pending\n"));
    let nodes = home.run(["graph", "1", "--json"]).ok().json()["nodes"].clone();
    assert_eq!(nodes[1], serde_json::json!({"id": second, "number": 2, "state": "pending"}));
}

#[test]
fn an_error_names_the_number_and_the_id() {
    let (home, ids) = without_ids();
    for (args, code, message) in [
        (&["retry", "1"][..], 4, format!("job `1` ({}) cannot be retried (it is pending)", ids[0])),
        (&["retry", "1"], 4, "hint: it is already waiting to run; `queuectl explain 1` shows".to_owned()),
        (&["cancel", "3"], 4, "hint: it has finished; `queuectl retry 3` runs it again".to_owned()),
        (&["enqueue", "-a", "99", "true"], 3, "hint: `queuectl list` shows all jobs".to_owned()),
        (&["dlq", "show", "2"], 4, format!("job `2` ({}) is not dead (it is pending)", ids[1])),
        (&["dlq", "show", "2"], 4, "`queuectl show 2` shows it".to_owned()),
        (&["remove", "1"], 4, "`queuectl graph 1` shows them".to_owned()),
        (&["wait", "3"], 1, format!("job `3` ({}) is dead (retries exhausted: exit code 1: no)", ids[2])),
        (&["wait", "1", "--timeout", "0"], 124, format!("job `1` ({}) is still pending", ids[0])),
        (&["wait", "1", "2", "--timeout", "0"], 124, "(1 is pending, 2 is pending)".to_owned()),
    ] {
        home.run(args).fails(code).says(&message);
    }
}

#[test]
fn events_on_a_terminal_have_numbers() {
    let (home, ids) = without_ids();
    home.run(["cancel", "-q", "2"]).ok();
    let seen = see(&home, &["events", "--jobs"]);
    assert!(seen.contains("  job 2\n") && seen.contains("  job 1  sleep 1\n"), "{seen}");
    assert!(!ids.iter().any(|id| seen.contains(&format!("job {id}"))), "{seen}");
    home.run(["events", "--jobs"]).ok().shows(&format!("  job {}\n", ids[1]));
    home.run(["remove", "-q", "2"]).ok();
    assert!(see(&home, &["events"]).contains(&ids[1]), "a removed job keeps its id");
}

#[test]
fn the_watched_status_has_numbers() {
    let (home, ids) = without_ids();
    TestWorker::new(&home, "w1").claim_job(&ids[0]);
    let mut terminal = Terminal::start(home.call(["status", "--watch"]).into_command(), 100, 40);
    terminal.wait_until(|screen| screen.contains("RUNNING  WORKER") || screen.contains("sleep 1"));
    let seen = terminal.screen();
    terminal.type_in("q");
    terminal.end();
    assert!(!seen.contains(&ids[0]), "{seen}");
}

#[test]
fn the_times_of_lines_are_local_and_short_on_a_terminal() {
    let home = Home::with_jobs(&["a"]);
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    home.run(["enqueue", "-q", "--id", "b", "--", "echo", "hello"]).ok();
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    let on_screen = |args: &[&str]| {
        let call = home.call([&["--color", "never", "logs", "b", "--timestamps"], args].concat());
        on_terminal(call.env("TZ", "Asia/Kolkata").into_command(), 100, "").screen
    };
    let shown = on_screen(&[]);
    let (time, text) = shown.trim_end().rsplit_once(' ').expect("a time and a text");
    let clock = time.rsplit(' ').next().expect("a time");
    assert!(text == "hello" && clock.len() == "15:24:09.250".len() && !time.contains('Z'), "{shown}");
    assert!(on_screen(&["--utc"]).contains("Z hello"));
    home.run(["logs", "b", "--timestamps"]).ok().shows("Z hello");
}

#[test]
fn worker_stop_names_the_jobs_that_it_waits_for_by_number() {
    let (home, ids) = without_ids();
    let worker = TestWorker::new(&home, "w1");
    worker.claim_job(&ids[0]);
    let mut terminal = Terminal::start(home.call(["worker", "stop"]).into_command(), 100, 40);
    terminal.wait_until(|screen| screen.contains("waiting for 1 for "));
    terminal.signal(Signal::INT);
    let seen = terminal.end().screen;
    assert!(!seen.contains(&ids[0]), "{seen}");
}
