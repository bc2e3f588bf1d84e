//! Output that only a terminal gets.

use super::harness::Home;
use super::harness::pseudo_terminal::{TerminalRun, on_terminal};
use super::harness::test_worker::TestWorker;

const ESC: char = '\u{1b}';

fn see(home: &Home, args: &[&str]) -> TerminalRun {
    on_terminal(home.call(args).into_command(), 100, "")
}

#[test]
fn enqueue_prints_sentences_on_a_terminal() {
    let home = Home::new();
    let seen = see(&home, &["enqueue", "--color", "never", "--id", "job1", "--", "true"]);
    assert!(seen.screen.starts_with("Job job1 enqueued\nhint: no worker is running"), "{}", seen.screen);
    assert_eq!(seen.code, Some(0));
    let seen = see(&home, &["enqueue", "--if-absent", "--id", "job1", "--", "true"]);
    assert!(seen.screen.starts_with("Job job1 already exists\n"), "{}", seen.screen);
}

#[test]
fn other_verbs_print_sentences_on_a_terminal() {
    let home = Home::new();
    home.dead_job("dead", "exit code 1");
    home.run(["enqueue", "-q", "--id", "a", "--", "true"]).ok();
    for (args, expected) in [
        (["cancel", "a"].as_slice(), "Job a cancelled\n"),
        (&["retry", "a"], "Job a is pending again\n"),
        (&["remove", "a"], "Job a removed\n"),
        (&["dlq", "retry", "dead"], "Job dead is pending again\n"),
        (&["dlq", "purge", "--all"], "0 jobs purged\n"),
        (&["config", "set", "lease", "1m"], "lease is now 1m\n"),
    ] {
        assert_eq!(see(&home, args).screen, expected, "{args:?}");
    }
}

#[test]
fn enqueuing_lines_prints_the_count_and_no_rate_of_an_instant() {
    let home = Home::new();
    home.file("jobs.jsonl", "{\"command\":\"1\"}\n{\"command\":\"2\"}\n");
    let seen = see(&home, &["enqueue", "--color", "never", "--file", "jobs.jsonl"]);
    assert!(seen.screen.contains("2 jobs enqueued"), "{}", seen.screen);
    assert!(!seen.screen.contains(",000/s"), "{}", seen.screen);
    assert_eq!(home.count(), 2);
}

#[test]
fn colours_are_used_on_terminals_only() {
    let home = Home::with_jobs(&["a"]);
    home.run(["cancel", "a"]).ok();
    for args in [["list"].as_slice(), &["status"], &["show", "a"], &["config", "list"]] {
        assert!(see(&home, args).screen.contains(ESC), "{args:?} on a terminal");
        home.run(args).ok().shows_no("\u{1b}");
        let never: Vec<&str> = args.iter().copied().chain(["--color", "never"]).collect();
        assert!(!see(&home, &never).screen.contains(ESC), "{args:?} with --color never");
        let plain = on_terminal(home.call(args).env("NO_COLOR", "1").into_command(), 100, "");
        assert!(!plain.screen.contains(ESC), "{args:?} with NO_COLOR");
        home.run(args.iter().copied().chain(["--color", "always"])).ok().shows("\u{1b}");
    }
}

#[test]
fn errors_and_help_are_coloured() {
    let home = Home::new();
    for args in [["show", "nope"].as_slice(), &["bogus"], &["list", "--help"]] {
        assert!(see(&home, args).screen.contains(ESC), "{args:?} on a terminal");
        let never: Vec<&str> = ["--color", "never"].into_iter().chain(args.iter().copied()).collect();
        assert!(!see(&home, &never).screen.contains(ESC), "{args:?} with --color never");
    }
}

#[test]
fn a_long_command_is_truncated_to_the_width_of_the_terminal() {
    let home = Home::new();
    home.run(["enqueue", "-q", "--id", "a", "--", "echo", &"x".repeat(300)]).ok();
    let seen = see(&home, &["list", "--color", "never"]);
    for line in seen.screen.lines() {
        assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
    }
    assert!(seen.screen.contains('…'), "{}", seen.screen);
    home.run(["list"]).ok().shows(&"x".repeat(300));
}

#[test]
fn json_is_indented_on_a_terminal() {
    let home = Home::with_jobs(&["a"]);
    assert!(
        see(&home, &["show", "a", "--json"]).screen.starts_with("{\n  \"number\": 1,\n  \"id\": \"a\",\n")
    );
    assert_eq!(home.run(["show", "a", "--json"]).ok().lines().len(), 1);
}

#[test]
fn removing_several_jobs_asks_for_confirmation() {
    for (answer, code, left) in [("y\n", 0, 0), ("yes\n", 0, 0), ("n\n", 1, 2), ("\n", 1, 2), ("\u{4}", 1, 2)]
    {
        let home = Home::with_jobs(&["a", "b"]);
        let seen = on_terminal(home.call(["remove", "a", "b"]).into_command(), 100, answer);
        assert!(seen.screen.contains("Remove 2 jobs? [y/N]"), "{}", seen.screen);
        assert_eq!((seen.code, home.count()), (Some(code), left), "{answer:?}: {}", seen.screen);
    }
}

#[test]
fn every_table_fits_a_narrow_terminal() {
    let home = Home::new();
    home.dead_job("dead", "cannot open a connection to the database: it does not answer");
    let long = "a-very-long-identifier-of-a-job-that-a-person-has-chosen-2026-11-16";
    home.run(["enqueue", "-q", "--id", long, "--batch", "photos", "--queue", "pictures", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--delay", "1h", "--", "make", "-C", "/srv/projects/site", "test"]).ok();
    home.run(["queue", "pause", "-q", "pictures", "--reason", "the disk is full, and no operator is here"])
        .ok();
    home.run(["schedule", "add", "-q", "nightly", "--cron", "0 3 * * *", "--tz", "UTC", "--", "true"]).ok();
    home.run(["hook", "add", "-q", "site", "--on", "success", "--url", "http://127.0.0.1:9/a/long/path"])
        .ok();
    let _worker = TestWorker::new(&home, "w-1m7j61mek6k5esdnsr");
    for args in [
        &["list"][..],
        &["list", "--columns", "command,id,created_at,state"],
        &["dlq", "list"],
        &["dlq", "list", "--group"],
        &["status"],
        &["worker", "list"],
        &["batch", "list"],
        &["queue", "list"],
        &["schedule", "list"],
        &["hook", "list"],
        &["events"],
        &["upcoming"],
        &["config"],
        &["explain", long],
    ] {
        let seen = on_terminal(home.call([&["--color", "never"], args].concat()).into_command(), 60, "");
        // Names are never wrapped.
        let wide = seen.screen.lines().find(|line| line.chars().count() > 60 && !line.contains(long));
        assert_eq!((seen.code, wide), (Some(0), None), "{args:?}\n{}", seen.screen);
        let whole = home.run(args).ok().stdout;
        assert!(!whole.contains('…'), "{args:?} in a pipe: {whole}");
    }
}
