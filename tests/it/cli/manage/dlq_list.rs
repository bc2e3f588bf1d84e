//! What `dlq list` shows.

use crate::cli::harness::Home;
use crate::cli::harness::pseudo_terminal::on_terminal;

fn seen(home: &Home, columns: u16) -> Vec<String> {
    let call = home.call(["--color", "never", "dlq", "list"]);
    let screen = on_terminal(call.into_command(), columns, "").screen;
    screen.lines().map(|line| line.trim_end().to_owned()).collect()
}

fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_terminal_shows_the_error_instead_of_what_is_always_the_same() {
    let home = Home::new();
    home.run(["enqueue", "-q", "--max-retries", "0", "--command", "./import --all --from last week"]).ok();
    let id = home.jobs()[0].id.to_string();
    home.kill_next(&id, "exit code 1: no such file: weeks/46.csv");
    let lines = seen(&home, 80);
    assert_eq!(words(&lines[0]), "# EXIT WHEN COMMAND ERROR");
    assert!(lines[1].starts_with("1     1  "), "{lines:?}");
    assert!(lines[1].ends_with("  ./import --all --from last week  no such file: weeks/46.csv"), "{lines:?}");
    home.dead_job("chosen", "exit code 1");
    let lines = seen(&home, 80);
    assert!(lines[0].starts_with("#  ID      EXIT  WHEN  "), "{lines:?}");
    assert!(lines[2].starts_with("1             1  "), "a generated id takes no room: {lines:?}");
    assert!(lines[1].ends_with("  exit code 1"), "an error without a message stays: {lines:?}");
    assert!(seen(&home, 60).iter().all(|line| line.chars().count() <= 60));
}

#[test]
fn a_pipe_gets_every_column_and_the_whole_error() {
    let home = Home::new();
    home.dead_job("a", "exit code 1: no luck");
    let ran = home.run(["dlq", "list"]).ok();
    assert_eq!(words(ran.lines()[0]), "# ID STATE QUEUE PRIO TRIES EXIT TOOK WHEN COMMAND ERROR");
    assert!(ran.lines()[1].ends_with("  false    exit code 1: no luck"), "{}", ran.lines()[1]);
}

#[test]
fn every_selection_of_retry_and_purge_is_accepted() {
    let home = Home::new();
    for (id, flags) in [
        ("a", ["--queue", "mail"]),
        ("b", ["--tag", "weekly"]),
        ("c", ["--batch", "nightly"]),
        ("d", ["--name", "plain"]),
    ] {
        let words = ["enqueue", "-q", "--id", id, "--max-retries", "0"].into_iter().chain(flags);
        home.run(words.chain(["--", "test", id])).ok();
        home.kill_next(id, "exit code 1");
    }
    home.run(["enqueue", "-q", "--id", "alive", "--queue", "mail", "--", "true"]).ok();
    for (flags, expected) in [
        (&["--queue", "mail"][..], "a\n"),
        (&["--tag", "weekly"], "b\n"),
        (&["--batch", "nightly"], "c\n"),
        (&["--command-like", "test d"], "d\n"),
        (&["--older-than", "1h"], ""),
        (&["--all"], "d\nc\nb\na\n"),
    ] {
        home.run(["dlq", "list", "--format", "ids"].iter().chain(flags)).ok().prints(expected);
    }
    home.run(["dlq", "list", "--queue", "default", "--older-than", "1h"]).ok().says("no dead jobs matched");
    home.run(["dlq", "list", "--queue", "mial"]).ok().says("did you mean `mail`?");
}
