use std::io::Read;

use serde_json::json;

use crate::cli::harness::pseudo_terminal::on_terminal;
use crate::cli::harness::test_worker::TestWorker;
use crate::cli::harness::{Home, ids};

fn listed(home: &Home, args: &[&str]) -> Vec<String> {
    let jobs = home.run(["list", "--json"].iter().chain(args)).ok().json();
    ids(&jobs).into_iter().map(str::to_owned).collect()
}

/// One job in every state, and one for each of the finer filters.
fn menagerie() -> Home {
    let home = Home::new();
    home.completed_job("completed");
    home.dead_job("dead", "exit code 1: boom");
    home.failed_job("failed");
    home.run(["enqueue", "--id", "processing", "--", "true"]).ok();
    let worker = TestWorker::new(&home, "w1");
    worker.claim_job("processing");
    for (id, flags) in [
        ("cancelled", ["--priority", "0"]),
        ("ready", ["--tag", "nice"]),
        ("scheduled", ["--delay", "1h"]),
        ("blocked", ["--depends-on", "scheduled"]),
        ("mail", ["--queue", "mail"]),
    ] {
        home.run(["enqueue", "--id", id].into_iter().chain(flags).chain(["--", "true"])).ok();
    }
    home.run(["cancel", "cancelled"]).ok();
    home
}

#[test]
fn filters_choose_by_state_queue_and_tag() {
    let home = menagerie();
    for (args, expected) in [
        (["--state", "pending"].as_slice(), ["mail", "blocked", "scheduled", "ready"].as_slice()),
        (&["--state", "processing"], &["processing"]),
        (&["--state", "completed"], &["completed"]),
        (&["--state", "failed"], &["failed"]),
        (&["--state", "dead"], &["dead"]),
        (&["--state", "cancelled"], &["cancelled"]),
        (&["--state", "ready"], &["ready", "mail"]),
        (&["--state", "scheduled"], &["scheduled"]),
        (&["--state", "blocked"], &["blocked"]),
        (&["--queue", "mail"], &["mail"]),
        (&["--tag", "nice"], &["ready"]),
        (&["--tag", "nice", "--queue", "mail"], &[]),
        (&["--queue", "mail", "--state", "ready"], &["mail"]),
        (&["--state", "dead", "--queue", "mail"], &[]),
    ] {
        assert_eq!(listed(&home, args), expected, "{args:?}");
    }
    assert_eq!(listed(&home, &[]).len(), 9);
}

#[test]
fn an_empty_list_is_an_empty_array_or_a_hint() {
    let home = Home::with_queue();
    home.run(["list", "--json"]).ok().prints("[]\n").says_nothing();
    home.run(["list"]).ok().prints("").says("hint: ");
    home.run(["list", "-q"]).ok().prints("").says_nothing();
}

#[test]
fn the_table_lists_the_newest_first() {
    let home = Home::new();
    home.run(["enqueue", "--id", "first", "--", "echo", "hello world"]).ok();
    home.run(["enqueue", "--id", "b", "--queue", "mail", "--priority", "10", "--delay", "3h", "--", "true"])
        .ok();
    let ran = home.run(["list"]).ok();
    let lines = ran.lines();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    assert_eq!(words(lines[0]), "# ID STATE QUEUE PRIO TRIES EXIT TOOK WHEN COMMAND");
    assert_eq!(words(lines[1]), "2 b pending mail 10 0/4 in 3h true");
    assert!(lines[2].starts_with("1  first  pending  default     0    0/4              "), "{}", lines[2]);
    assert!(lines[2].ends_with("  echo 'hello world'"), "{}", lines[2]);
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    home.run(["list"]).ok().shows("1  first  completed  default     0    1/4     0  ");
}

#[test]
fn a_terminal_shows_numbers_and_no_column_that_is_the_same_for_all() {
    let home = Home::new();
    home.run(["enqueue", "-q", "echo", "plain"]).ok();
    let heading = |home: &Home| {
        let seen = on_terminal(home.call(["--color", "never", "list"]).into_command(), 100, "");
        seen.screen.lines().next().expect("a heading").trim_end().to_owned()
    };
    let columns: Vec<String> = heading(&home).split_whitespace().map(str::to_owned).collect();
    assert_eq!(columns, ["#", "STATE", "TRIES", "EXIT", "TOOK", "WHEN", "COMMAND"]);
    home.run(["enqueue", "-q", "--id", "chosen", "-p", "3", "-Q", "mail", "true"]).ok();
    assert!(heading(&home).starts_with("#  ID    "), "{}", heading(&home));
    assert!(heading(&home).contains("  QUEUE    PRIO  TRIES  EXIT  TOOK  "), "{}", heading(&home));
}

#[test]
fn pages_have_no_gaps() {
    let names: Vec<String> = (0..7).map(|at| format!("j{at}")).collect();
    let home = Home::new();
    let batch: Vec<_> = names.iter().map(|id| json!({"id": id, "command": "true"})).collect();
    home.run(["enqueue", "-q", &json!(batch).to_string()]).ok();

    let mut seen = Vec::new();
    let mut args = vec!["--limit".to_owned(), "3".to_owned()];
    loop {
        let ran = home.run(["list".to_owned(), "--json".to_owned()].iter().chain(&args)).ok();
        let page = ran.json();
        seen.extend(ids(&page).into_iter().map(str::to_owned));
        let Some(last) = seen.last().filter(|_| !ran.stderr.is_empty()).cloned() else {
            break;
        };
        assert_eq!(
            ran.stderr,
            format!("hint: there are more; continue with --after {last}, or raise --limit\n")
        );
        args = ["--limit", "3", "--after", &last].map(str::to_owned).to_vec();
    }
    let newest_first: Vec<String> = names.into_iter().rev().collect();
    assert_eq!(seen, newest_first);
}

#[test]
fn the_last_page_prints_no_hint() {
    let home = Home::with_jobs(&["a", "b"]);
    home.run(["list", "--limit", "2"]).ok().says_nothing();
    home.run(["list", "--limit", "1"]).ok().says("--after b");
    home.run(["list", "--limit", "18446744073709551615", "--json"]).ok().says_nothing();
}

#[test]
fn the_default_limit_is_100() {
    let home = Home::new();
    let lines = "{\"command\":\"true\"}\n".repeat(150);
    home.call(["enqueue", "-q", "-"]).with_stdin(lines).run().ok();
    assert_eq!(listed(&home, &[]).len(), 100);
    assert_eq!(listed(&home, &["--limit", "1000"]).len(), 150);
}

#[test]
fn ready_is_the_order_of_claiming() {
    let home = Home::new();
    for (id, priority) in [("low", "-1"), ("first", "0"), ("second", "0"), ("high", "9")] {
        home.run(["enqueue", "--id", id, "--priority", priority, "--", "true"]).ok();
    }
    assert_eq!(listed(&home, &["--state", "ready"]), ["high", "first", "second", "low"]);
    assert_eq!(listed(&home, &["--state", "ready", "--after", "first"]), ["second", "low"]);
}

#[test]
fn an_unknown_queue_is_empty_and_the_nearest_is_offered() {
    let home = Home::with_jobs(&["a"]);
    home.run(["list", "--queue", "defalt", "--json"]).ok().prints("[]\n").says("did you mean `default`?");
    home.run(["list", "--queue", "mail"]).ok().prints("").says("there is no queue `mail`");
    home.run(["list", "--queue", "default"]).ok().says_nothing();
}

#[test]
fn wrong_filters_are_refused() {
    let home = Home::with_jobs(&["a"]);
    for (args, code, message) in [
        (["--state", "daed"], 2, "did you mean `dead`?"),
        (["--state", "colour"], 2, "the states are pending, processing"),
        (["--queue", "a b"], 2, "invalid queue `a b`"),
        (["--limit", "-1"], 2, "-1"),
        (["--limit", "many"], 2, "invalid value 'many'"),
        (["--after", "nope"], 3, "there is no job `nope`"),
        (["--after", "../x"], 2, "invalid id `../x`"),
    ] {
        home.run(["list"].into_iter().chain(args)).fails(code).prints("").says(message);
    }
}

#[test]
fn columns_are_chosen_by_their_names_in_json() {
    let home = menagerie();
    let ran = home.run(["list", "--columns", "id,exit_code,state,tags", "--state", "dead,ready"]).ok();
    assert_eq!(
        ran.lines(),
        [
            "ID     EXIT CODE  STATE    TAGS",
            "mail           -  pending  -",
            "ready          -  pending  nice",
            "dead           1  dead     -"
        ]
    );
    home.run(["list", "--columns", "state,id", "--state", "dead", "--json"])
        .ok()
        .prints("[{\"state\":\"dead\",\"id\":\"dead\"}]\n");
    home.run(["enqueue", "-q", "--id", "z", "--batch", "nightly", "--", "true"]).ok();
    home.run(["list", "--columns", "id,batch", "--batch", "nightly", "--json"])
        .ok()
        .prints("[{\"id\":\"z\",\"batch\":\"nightly\"}]\n");
    home.run(["list", "--columns", "exitcode"]).fails(2).prints("").says("did you mean `exit_code`?");
    home.run(["list", "--columns", "colour"])
        .fails(2)
        .says("the columns are number, id, name, queue, command");
    home.run(["list", "--format", "ids", "--columns", "id"]).fails(2);
}

#[test]
fn every_field_of_a_job_is_a_column() {
    let home = Home::with_jobs(&["a"]);
    let head = home.run(["list", "--format", "csv"]).ok().lines()[0].to_owned();
    let mut columns: Vec<&str> = head.split(',').collect();
    columns.sort_unstable();
    let listed = home.run(["list", "--json"]).ok().json();
    let fields: Vec<&String> = listed[0].as_object().expect("a job").keys().collect();
    assert_eq!(columns, fields);
}

#[test]
fn every_format_has_the_same_content() {
    let home = Home::with_jobs(&["a"]);
    home.run(["enqueue", "-q", "--id", "b", "--tags", "x,y", "--", "echo", "a, \"b\"\nc"]).ok();
    home.run(["list", "--format", "ids"]).ok().prints("b\na\n");
    let columns = ["--columns", "id,command,tags"];
    home.run(["list", "--format", "csv"].iter().chain(&columns))
        .ok()
        .prints("id,command,tags\nb,\"echo 'a, \"\"b\"\"\nc'\",\"x,y\"\na,true,\n");
    let ran = home.run(["list", "--format", "jsonl"].iter().chain(&columns)).ok();
    assert_eq!(ran.lines()[1], "{\"id\":\"a\",\"command\":\"true\",\"tags\":[]}");
    let array = home.run(["list", "--format", "json"]).ok();
    assert_eq!(array.stdout, home.run(["list", "--json"]).ok().stdout);
    let lines = home.run(["list", "--format", "jsonl"]).ok();
    let lines: Vec<serde_json::Value> =
        lines.lines().iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(json!(lines), array.json());
    home.run(["list", "--json", "--format", "csv"]).fails(2).prints("");
    home.run(["list", "--format", "xml"]).fails(2);
    home.run(["list", "--format", "ids", "-q"]).ok().prints("");
}

#[test]
fn an_empty_list_is_valid_in_every_format() {
    let home = Home::with_queue();
    home.run(["list", "--format", "csv", "--columns", "id,state"]).ok().prints("id,state\n").says_nothing();
    home.run(["list", "--format", "jsonl"]).ok().prints("").says_nothing();
    home.run(["list", "--format", "ids"]).ok().prints("").says_nothing();
}

#[test]
fn a_list_has_the_orders_that_an_index_has() {
    let home = Home::new();
    for (id, priority) in [("a", "2"), ("c", "-1"), ("b", "2"), ("d", "7")] {
        home.run(["enqueue", "-q", "--id", id, "--priority", priority, "--", "true"]).ok();
    }
    for (id, delay) in [("e", "2h"), ("f", "1h")] {
        home.run(["enqueue", "-q", "--id", id, "--delay", delay, "--", "true"]).ok();
    }
    home.run(["cancel", "-q", "c"]).ok();
    for (sort, expected) in [
        ("newest", &["f", "e", "d", "b", "c", "a"][..]),
        ("oldest", &["a", "c", "b", "d", "e", "f"]),
        ("claim", &["d", "a", "b"]),
        ("soonest", &["f", "e"]),
        ("longest-running", &[]),
        ("last_failed", &[]),
    ] {
        assert_eq!(listed(&home, &["--sort", sort]), expected, "{sort}");
        let ran = home.run(["list", "--sort", sort, "--limit", "1", "--json"]).ok();
        assert_eq!(ids(&ran.json()), expected[..expected.len().min(1)], "{sort}");
        if expected.len() > 1 {
            ran.says("use a larger --limit");
        }
    }
    home.run(["list", "--sort", "newset"]).fails(2).says("did you mean `newest`?");
    home.run(["list", "--sort", "-updated"]).fails(2).says("newest, oldest, claim, soonest");
    home.run(["list", "--sort", "newest", "--after", "a"]).fails(2).prints("").says("--after");
    home.run(["list", "--sort", "claim", "--state", "dead"]).fails(2).says("only ready jobs are listed");
    assert_eq!(listed(&home, &["--state", "ready", "--sort", "claim"]), ["d", "a", "b"]);
}

#[test]
fn dlq_list_supports_every_format() {
    let home = Home::new();
    home.dead_job("b", "exit code 1");
    home.dead_job("a", "exit code 1");
    home.run(["dlq", "list", "--format", "ids", "--sort", "oldest"]).ok().prints("b\na\n");
    home.run(["dlq", "list", "--format", "ids", "--sort", "last-failed"]).ok().prints("a\nb\n");
    home.run(["dlq", "list", "--group", "--sort", "oldest"]).fails(2);
}

/// Home with more jobs than one page of a list: `j0` is the oldest.
fn long_list() -> (Home, usize) {
    const JOBS: usize = 2_500;
    let home = Home::new();
    let line = |at: usize| format!("{{\"id\":\"j{at}\",\"command\":\"true {at}\"}}");
    let jobs: Vec<String> = (0..JOBS).map(line).collect();
    home.call(["enqueue", "-q", "-"]).with_stdin(jobs.join("\n")).run().ok();
    (home, JOBS)
}

#[test]
fn a_long_list_is_complete_in_every_format() {
    let (home, count) = long_list();
    let newest_first: Vec<String> = (0..count).rev().map(|at| format!("j{at}")).collect();
    let list = |args: &[&str]| home.run(["list", "--limit", "1000000"].iter().chain(args)).ok();
    assert_eq!(list(&["--format", "ids"]).lines(), newest_first);
    assert_eq!(ids(&list(&["--json"]).json()), newest_first);
    assert_eq!(list(&["--format", "jsonl"]).lines().len(), count);
    assert_eq!(list(&["--format", "csv"]).lines().len(), count + 1);
    let table = list(&[]);
    assert_eq!(table.lines().len(), count + 1);
    assert!(table.lines()[count].contains("   1  j0 "), "{}", table.lines()[count]);
    let oldest_first: Vec<String> = (0..count).map(|at| format!("j{at}")).collect();
    assert_eq!(list(&["--sort", "oldest", "--format", "ids"]).lines(), oldest_first);
    let page = home.run(["list", "--limit", "2000", "--format", "ids"]).ok();
    assert_eq!(page.lines(), newest_first[..2_000]);
    page.says("there are more; continue with --after j500");
    let rest =
        home.run(["list", "--limit", "2000", "--after", "j500", "--format", "ids"]).ok().says_nothing();
    assert_eq!(rest.lines(), newest_first[2_000..]);
}

#[test]
fn a_long_list_is_streamed() {
    let (home, count) = long_list();
    for format in ["json", "jsonl", "csv"] {
        let mut list = home.call(["list", "--limit", "1000000", "--format", format]).spawn();
        let mut printed = vec![0];
        let mut stdout = list.stdout.take().expect("a pipe");
        stdout.read_exact(&mut printed).expect("it begins");
        // The pipe is full long before the last page, so the list cannot have been read to its end.
        let oldest = home.run(["list", "--sort", "oldest", "--limit", "1", "--format", "ids"]).ok().stdout;
        home.run(["remove", "-q", oldest.trim_end()]).ok();
        stdout.read_to_end(&mut printed).expect("it ends");
        assert!(list.wait().expect("it ends").success());
        let printed = String::from_utf8(printed).expect("text");
        let marks = [format!("\"{}\"", oldest.trim_end()), format!("\n{},", oldest.trim_end())];
        assert!(printed.contains(&format!("j{}", count - 1)), "{format}");
        assert!(!marks.iter().any(|mark| printed.contains(mark)), "{format} has {oldest}");
    }
}
