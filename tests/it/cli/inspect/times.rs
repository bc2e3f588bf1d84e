//! Times on a screen: local and short; elsewhere: RFC 3339 in UTC.

use domain::job::outcome::Outcome;

use crate::cli::harness::Home;
use crate::cli::harness::pseudo_terminal::on_terminal;
use crate::cli::harness::test_worker::TestWorker;

fn see(home: &Home, args: &[&str]) -> String {
    let call = home.call([&["--color", "never"], args].concat()).env("TZ", "Asia/Kolkata");
    on_terminal(call.into_command(), 160, "").screen
}

#[test]
fn a_screen_shows_local_and_short_times() {
    let home = Home::new();
    home.run(["enqueue", "-q", "--id", "a", "--run-at", "2099-01-01T00:00:00Z", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "b", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--batch", "photos", "--", "true"]).ok();
    home.run(["schedule", "add", "-q", "s", "--at", "2099-01-01T00:00:00Z", "--", "true"]).ok();
    home.run(["hook", "add", "-q", "h", "--on", "dead", "--command", "true"]).ok();
    let worker = TestWorker::new(&home, "w1");
    worker.settle(worker.claim_job("b"), Outcome::Success, None);
    let local = "2099-01-01 05:30";
    for (args, expected) in [
        (&["show", "a"][..], local),
        (&["explain", "a"], local),
        (&["list", "--columns", "id,run_at"], local),
        (&["schedule", "list"], local),
        (&["schedule", "show", "s"], local),
        (&["upcoming"], local),
        (&["show", "b"], "finished"),
        (&["explain", "b"], "it completed at "),
        (&["events"], "schedule add"),
        (&["batch", "show", "photos"], "created"),
        (&["hook", "show", "h"], "added"),
        (&["worker", "list"], "w1"),
        (&["status"], "w1"),
    ] {
        let screen = see(&home, args);
        assert!(screen.contains(expected), "{args:?}: {screen}");
        let is_utc = |word: &str| word.starts_with("20") && word.ends_with('Z');
        assert!(!screen.split_whitespace().any(is_utc), "{args:?}: {screen}");
    }
    let utc = "2099-01-01T00:00:00.000Z";
    for args in [
        &["show", "a"][..],
        &["explain", "a"],
        &["list", "--columns", "id,run_at"],
        &["schedule", "list"],
        &["schedule", "show", "s"],
        &["upcoming"],
    ] {
        home.call(args).env("TZ", "Asia/Kolkata").run().ok().shows(utc);
        let screen = see(&home, &[&["--utc"], args].concat());
        assert!(screen.contains(utc), "{args:?}: {screen}");
        let json = see(&home, &[&["--json"], args].concat());
        assert!(json.contains(utc) && !json.contains(local), "{args:?}: {json}");
    }
}

#[test]
fn spans_are_rounded() {
    let home = Home::new();
    home.run(["enqueue", "-q", "--id", "a", "--delay", "1h", "--", "true"]).ok();
    home.run(["schedule", "add", "-q", "s", "--every", "15m", "--", "true"]).ok();
    home.run(["list"]).ok().shows("in 1h");
    home.run(["schedule", "list"]).ok().shows("(in 15m)");
}
