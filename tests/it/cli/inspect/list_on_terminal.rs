//! What `list` shows to a person.

use crate::cli::harness::Home;
use crate::cli::harness::pseudo_terminal::on_terminal;
use crate::cli::harness::test_worker::TestWorker;

fn seen(home: &Home, args: &[&str], columns: u16) -> Vec<String> {
    let call = home.call(["--color", "never", "list"].iter().chain(args));
    let screen = on_terminal(call.into_command(), columns, "").screen;
    screen.lines().map(|line| line.trim_end().to_owned()).collect()
}

/// The second column of each row: ids that were chosen.
fn ids_seen(home: &Home, args: &[&str]) -> Vec<String> {
    let lines = seen(home, args, 100);
    let rows =
        lines.iter().filter(|line| line.trim_start().starts_with(|first: char| first.is_ascii_digit()));
    rows.filter_map(|row| row.split_whitespace().nth(1)).map(str::to_owned).collect()
}

/// Jobs in every state; the unfinished ones are older than the finished ones.
fn mixed() -> Home {
    let home = Home::new();
    home.dead_job("dead", "exit code 1: boom");
    home.failed_job("failed");
    home.run(["enqueue", "-q", "--id", "running", "--", "true"]).ok();
    TestWorker::new(&home, "w1").claim_job("running");
    for id in ["pending", "cancelled"] {
        home.run(["enqueue", "-q", "--id", id, "--priority", "-5", "--", "true"]).ok();
    }
    home.run(["cancel", "-q", "cancelled"]).ok();
    home.completed_job("completed");
    home
}

#[test]
fn running_jobs_come_first_and_finished_ones_last() {
    let home = mixed();
    let expected = ["running", "failed", "dead", "pending", "completed", "cancelled"];
    for args in [&[][..], &["--limit", "6"], &["--all"], &["--queue", "default"], &["--columns", "number,id"]]
    {
        assert_eq!(ids_seen(&home, args), expected, "{args:?}");
    }
    assert_eq!(ids_seen(&home, &["--limit", "3"]), expected[..3]);
    assert_eq!(seen(&home, &["--limit", "3"], 100).last().map(String::as_str), Some(MORE));
    assert_eq!(
        seen(&home, &["--limit", "4", "--queue", "default"], 100).last().map(String::as_str),
        Some(MORE)
    );
}

const MORE: &str = "hint: there are more; use a larger --limit, --state or --all";

#[test]
fn other_requests_and_readers_get_the_newest_first() {
    let home = mixed();
    let newest = ["completed", "cancelled", "pending", "running", "failed", "dead"];
    assert_eq!(ids_seen(&home, &["--older-than", "0"]).len(), 6);
    assert_eq!(ids_seen(&home, &["--command-like", "*"]), newest);
    assert_eq!(ids_seen(&home, &["--state", "dead,running"]), ["running", "dead"]);
    assert_eq!(ids_seen(&home, &["--after", "running"]), ["failed", "dead"]);
    assert_eq!(ids_seen(&home, &["--sort", "oldest"])[0], "dead");
    home.run(["list", "--format", "ids"]).ok().prints(&(newest.join("\n") + "\n"));
    home.run(["list", "--all", "--format", "ids"]).ok().prints(&(newest.join("\n") + "\n"));
    home.run(["list", "--all", "--limit", "3"]).fails(2);
}

#[test]
fn ten_finished_jobs_are_shown_unless_more_are_asked_for() {
    let home = mixed();
    for at in 0..12 {
        home.completed_job(&format!("done-{at}"));
    }
    let first = ids_seen(&home, &[]);
    assert_eq!(first.len(), 14, "{first:?}");
    assert_eq!((first[3].as_str(), first[4].as_str()), ("pending", "done-11"));
    let lines = seen(&home, &[], 100);
    let hint = "hint: not shown: 3 completed, 1 cancelled; use --state or --all";
    assert_eq!(lines.last().map(String::as_str), Some(hint));
    assert_eq!(ids_seen(&home, &["--all"]).len(), 18);
    assert_eq!(ids_seen(&home, &["--limit", "15"]).len(), 15);
    assert_eq!(ids_seen(&home, &["--queue", "default"]).len(), 18);
}

#[test]
fn the_job_that_finished_last_comes_before_newer_ones() {
    let home = Home::new();
    home.run(["enqueue", "-q", "--id", "long", "--", "true"]).ok();
    let worker = TestWorker::new(&home, "w1");
    let lease = worker.claim_job("long");
    home.completed_job("short");
    let (store, finished) = (home.store(), home.store().now().expect("the time"));
    while store.now().expect("the time") <= finished {
        std::thread::yield_now();
    }
    worker.settle(lease, domain::job::outcome::Outcome::Success, None);
    assert_eq!(ids_seen(&home, &[]), ["long", "short"]);
}

#[test]
fn a_long_command_loses_its_middle_and_an_id_nothing() {
    let home = Home::new();
    let id = "import-of-the-second-week";
    let command = format!("sh -c 'echo {} --into last.txt'", "word ".repeat(40));
    home.run(["enqueue", "-q", "--id", id, "--command", &command]).ok();
    for columns in [60, 80, 120] {
        let lines = seen(&home, &[], columns);
        assert!(lines.iter().all(|line| line.chars().count() <= columns.into()), "{columns}: {lines:?}");
        let has_id = lines[1].contains(&format!("  {id}  "));
        assert_eq!((has_id, lines[0].contains("  ID  ")), (columns == 120, columns == 120), "{lines:?}");
        assert!(lines[1].contains("  sh -") && lines[1].contains('…'), "{columns}: {}", lines[1]);
        assert!(lines[1].ends_with("txt'"), "{columns}: {}", lines[1]);
    }
}

#[test]
fn a_long_id_drives_out_no_other_column() {
    let home = Home::new();
    home.dead_job("nightly:20261119T215407Z", "exit code 1: boom");
    home.failed_job("failed");
    home.run(["enqueue", "-q", "--queue", "emails", "--id", "short", "--", "true"]).ok();
    let lines = seen(&home, &[], 80);
    let heads: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(heads, ["#", "STATE", "QUEUE", "TRIES", "EXIT", "TOOK", "WHEN", "COMMAND"]);
    let failed = lines.iter().find(|line| line.contains("  failed  ")).expect("a row");
    let took = failed.split_whitespace().nth(5).expect("a column");
    assert!(took.ends_with('s'), "how long the attempt took that failed: {failed}");
    let dead = home.call(["--color", "never", "dlq", "list"]);
    let screen = on_terminal(dead.into_command(), 80, "").screen;
    let heads: Vec<&str> = screen.lines().next().expect("a heading").split_whitespace().collect();
    assert_eq!(heads[heads.len() - 3..], ["WHEN", "COMMAND", "ERROR"], "{screen}");
    assert!(screen.contains("boom"), "{screen}");
}

#[test]
fn an_empty_queue_gets_a_hint() {
    let home = Home::with_queue();
    assert_eq!(seen(&home, &[], 100), ["hint: the queue is empty; try `queuectl enqueue -- echo hi`"]);
}
