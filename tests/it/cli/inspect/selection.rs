//! The selection of jobs, which is the same for every verb.

use rustix::process::Signal;
use serde_json::json;

use crate::cli::harness::pseudo_terminal::{Terminal, on_terminal};
use crate::cli::harness::test_worker::TestWorker;
use crate::cli::harness::{Home, ids};

/// Jobs of two queues in many states.
fn mixed() -> Home {
    let home = Home::new();
    home.completed_job("completed");
    home.dead_job("dead", "exit code 1");
    home.failed_job("failed");
    for (id, flags) in [
        ("plain", ["--priority", "0"]),
        ("mail1", ["--queue", "mail"]),
        ("mail2", ["--queue", "mail"]),
        ("later", ["--delay", "1h"]),
        ("nice", ["--tag", "nice"]),
    ] {
        home.run(["enqueue", "-q", "--id", id].into_iter().chain(flags).chain(["--", "echo", id])).ok();
    }
    home
}

fn listed(home: &Home, args: &[&str]) -> Vec<String> {
    let jobs = home.run(["list", "--json"].iter().chain(args)).ok().json();
    ids(&jobs).into_iter().map(str::to_owned).collect()
}

#[test]
fn list_accepts_every_filter() {
    let home = mixed();
    for (args, expected) in [
        (["--state", "failed,dead"].as_slice(), ["failed", "dead"].as_slice()),
        (&["--state", "ready,failed", "--queue", "default"], &["nice", "plain", "failed"]),
        (&["--command-like", "mail"], &["mail2", "mail1"]),
        (&["--command-like", "echo mail?"], &["mail2", "mail1"]),
        (&["--command-like", "echo"], &["nice", "later", "mail2", "mail1", "plain"]),
        (&["--command-like", "echo", "--state", "scheduled"], &["later"]),
        (&["--older-than", "1h"], &[]),
        (&["--batch", "absent"], &[]),
    ] {
        assert_eq!(listed(&home, args), expected, "{args:?}");
    }
    assert_eq!(listed(&home, &["--older-than", "0"]).len(), 8);
}

#[test]
fn states_have_synonyms_and_any_case() {
    let home = mixed();
    for (typed, expected) in [
        ("Failed,DEAD", &["failed", "dead"][..]),
        ("done", &["completed"]),
        ("Completed", &["completed"]),
        ("queued", &["nice", "later", "mail2", "mail1", "plain"]),
        ("running", &[]),
    ] {
        assert_eq!(listed(&home, &["--state", typed]), expected, "{typed}");
        assert_eq!(listed(&home, &["-s", typed]), expected, "{typed}");
    }
    let worker = TestWorker::new(&home, "w1");
    worker.claim_job("plain");
    assert_eq!(listed(&home, &["--state", "RUNNING"]), ["plain"]);
    home.run(["list", "--state", "runing"]).fails(2).says("unknown state `runing`");
    home.run(["cancel", "--state", "queued", "--dry-run"]).ok().shows("4 pending");
}

#[test]
fn dead_jobs_are_mentioned_where_no_job_is_failed() {
    let home = Home::new();
    home.dead_job("a", "exit code 1");
    let hint =
        "hint: no failed jobs, but 1 dead job: use --state dead (\"failed\" means waiting for a retry)\n";
    let ran = home.run(["list", "--state", "failed"]).ok().prints("");
    assert_eq!(ran.stderr, hint);
    home.run(["retry", "--state", "failed", "--yes"]).ok().prints("0\n").says(hint);
    home.run(["list", "--state", "failed", "--json"]).ok().prints("[]\n").says_nothing();
    home.run(["list", "--state", "failed", "--tag", "x"]).ok().says("no jobs matched\n");
    home.run(["list", "--state", "cancelled"]).ok().says("no jobs matched\n");
    home.failed_job("b");
    home.run(["list", "--state", "failed"]).ok().says_nothing();
}

#[test]
fn a_unique_prefix_of_an_id_is_enough() {
    let home = Home::new();
    home.dead_job("doomed", "x");
    for id in ["alpha", "beta-1", "beta-2", "beta-2x"] {
        home.run(["enqueue", "-q", "--id", id, "--", "true"]).ok();
    }
    assert_eq!(
        home.run(["show", "al", "--json"]).ok().says("using alpha (the only id starting with \"al\")").json()
            ["id"],
        "alpha"
    );
    home.run(["show", "beta-2", "-q"]).ok().says_nothing();
    for verb in ["show", "logs", "cancel", "retry", "remove", "wait"] {
        home.run([verb, "beta"])
            .fails(4)
            .says("several jobs match \"beta\"")
            .says("hint: 3 beta-1 (pending, true), 4 beta-2 (pending, true), 5 beta-2x (pending, true)");
        home.run([verb, "gamma"]).fails(3);
    }
    home.run(["list", "--after", "beta-2x", "--limit", "1", "--json"]).ok().shows("\"beta-2\"");
    home.run(["dlq", "show", "doom"]).ok().shows("doomed");
}

#[test]
fn a_deleted_chosen_id_does_not_match_a_longer_one() {
    let home = Home::new();
    home.dead_job("doomed", "x");
    for id in ["build-1", "build-10"] {
        home.run(["enqueue", "-q", "--id", id, "--", "true"]).ok();
    }
    home.run(["remove", "build-1"]).ok();
    for verb in ["remove", "cancel", "retry", "wait", "prune"] {
        let refused = home.run([verb, "build-1"]).fails(3);
        refused.says("there is no job `build-1`").says("hint: \"build-1\" is a part of build-10");
    }
    home.run(["edit", "build-1", "--priority", "1"]).fails(3).says("\"build-1\" is a part of build-10");
    home.run(["dlq", "retry", "doom"]).fails(3).says("\"doom\" is a part of doomed");
    assert_eq!(home.state_of("build-10"), "pending");
    let seen = on_terminal(home.call(["cancel", "build-1"]).into_command(), 100, "");
    assert!(
        seen.screen.contains("using build-10 (the only id starting with \"build-1\")"),
        "{}",
        seen.screen
    );
    assert_eq!(home.state_of("build-10"), "cancelled", "the user reads which job was used");
    home.run(["retry", "-q", "build-10"]).ok();
    let id = home.run(["enqueue", "--", "true"]).ok().lines().remove(0).to_owned();
    home.run(["cancel", &id[..8], "build-10"])
        .ok()
        .prints(&format!("{id}\nbuild-10\n"))
        .says("the only id starting with");
}

#[test]
fn an_ambiguous_prefix_does_not_stop_the_other_ids() {
    let home = Home::new();
    home.completed_job("done");
    home.dead_job("dead", "x");
    home.dead_job("dead2", "x");
    for id in ["a", "b", "c", "j10", "j11"] {
        home.run(["enqueue", "-q", "--id", id, "--", "true"]).ok();
    }
    let tried = |args: &[&str], done: &str| {
        let ran = home.run(args).fails(4).prints(done);
        ran.says("several jobs match \"j1\"").says("hint: 7 j10 (pending, true), 8 j11 (pending, true)");
    };
    tried(&["cancel", "j1", "a", "b"], "a\nb\n");
    tried(&["retry", "a", "j1", "b"], "a\nb\n");
    home.run(["cancel", "c"]).ok();
    tried(&["retry", "j1", "c", "--edit", "--priority", "1"], "c\n");
    home.run(["cancel", "a", "j1", "--dry-run"]).fails(4).shows("Would cancel 1 job: 1 pending\n");
    tried(&["remove", "a", "j1", "--yes"], "a\n");
    tried(&["wait", "done", "j1"], "done\n");
    tried(&["dlq", "retry", "j1", "dead"], "dead\n");
    tried(&["dlq", "purge", "j1", "dead2", "--yes"], "dead2\n");
    assert_eq!(home.state_of("j10"), "pending");
    assert_eq!(home.state_of("j11"), "pending");
}

#[test]
fn at_most_ten_ids_of_an_ambiguous_prefix_are_listed() {
    let names: Vec<String> = (10..30).map(|at| format!("j{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let home = Home::with_jobs(&names);
    home.run(["show", "j"]).fails(4).says("j19 (pending, true), and more");
}

#[test]
fn a_job_is_named_by_its_number() {
    let home = Home::with_jobs(&["first", "second"]);
    let third = home.run(["enqueue", "--", "true"]).ok().lines().remove(0).to_owned();
    assert_eq!(home.show("3")["id"], json!(third));
    assert_eq!(home.show("%2")["id"], "second");
    home.run(["cancel", "1", "%2", "first"]).ok().prints("first\nsecond\n").says_nothing();
    home.run(["enqueue", "-q", "--id", "last", "--depends-on", "3", "true"]).ok();
    assert_eq!(home.show("last")["depends_on"], json!([third]));
    home.run(["show", "99"]).fails(3).says("there is no job `99`");
    home.run(["show", "%99"]).fails(3).says("there is no job %99\n");
    home.run(["show", "%x"]).fails(2);
}

#[test]
fn a_percent_sign_alone_is_the_latest_job() {
    let home = Home::new();
    home.run(["enqueue", "-a%", "true"]).fails(3).says("there are no jobs");
    home.run(["enqueue", "-q", "--id", "first", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "second", "-a%", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "third", "--after", "1,%", "true"]).ok();
    assert_eq!(home.show("second")["depends_on"], json!(["first"]));
    assert_eq!(home.show("%")["depends_on"], json!(["first", "second"]));
    home.run(["cancel", "%"]).ok().prints("third\n");
}

#[test]
fn an_id_made_of_digits_comes_before_a_number_and_digits_are_no_part_of_an_id() {
    let home = Home::with_jobs(&["2", "10", "2000"]);
    assert_eq!(home.show("2")["id"], "2");
    assert_eq!(home.show("%2")["id"], "10");
    home.run(["remove", "2"]).ok();
    assert_eq!(home.show("2")["id"], "10", "now it is the number");
    home.run(["remove", "10"]).ok();
    home.run(["show", "2"]).fails(3).says("there is no job `2`");
    home.run(["show", "200"]).fails(3).says("there is no job `200`");
}

#[test]
fn a_number_that_no_job_has_never_means_an_id() {
    let home = Home::with_jobs(&["a", "b", "2", "7"]);
    home.run(["remove", "-y", "b"]).ok();
    let missing = |args: &[&str], number: &str| {
        home.run(args).fails(3).says(&format!("there is no job %{number}\n"));
        assert_eq!(home.run(["list", "--format", "ids"]).ok().lines().len(), 3, "{args:?}");
        assert_eq!((home.state_of("2"), home.state_of("7")), ("pending".to_owned(), "pending".to_owned()));
    };
    for verb in
        [vec!["remove", "-y"], vec!["cancel"], vec!["retry"], vec!["show"], vec!["logs"], vec!["wait"]]
    {
        for number in ["2", "7"] {
            let handle = format!("%{number}");
            missing(&[verb.as_slice(), &[handle.as_str()]].concat(), number);
        }
    }
    missing(&["edit", "%2", "--priority", "1"], "2");
    missing(&["enqueue", "--depends-on", "%7", "--", "true"], "7");
    home.run(["show", "%+1"]).fails(2);
    home.run(["cancel", "%7", "a"]).fails(3).prints("a\n").says("there is no job %7\n");
}

#[test]
fn the_end_of_a_generated_id_is_enough_to_show_a_job() {
    let home = Home::with_jobs(&["backup-monday"]);
    let id = home.run(["enqueue", "--", "true"]).ok().lines().remove(0).to_owned();
    let end = &id[12..];
    if end.bytes().any(|byte| !byte.is_ascii_digit()) {
        home.run(["show", end]).ok().says(&format!("using {id} (the only id ending with \"{end}\")"));
        home.run(["cancel", end]).fails(3).says("scripts must give the whole id");
    }
    home.run(["show", "monday"]).fails(3);
    assert_eq!(home.state_of(&id), "pending");
}

#[test]
fn without_a_job_verbs_take_the_latest() {
    let home = Home::with_jobs(&["older"]);
    home.run(["enqueue", "-q", "--id", "latest", "--", "true"]).ok();
    assert_eq!(home.run(["show", "--json"]).ok().json()["id"], "latest");
    home.run(["explain"]).ok().shows("Job latest is pending");
    home.run(["logs"]).ok().says("job latest has not run yet");
    TestWorker::new(&home, "w").claim_job("older");
    let mut following = Terminal::start(home.call(["logs", "-f"]).into_command(), 100, 24);
    following.wait_until(|screen| screen.contains("job older: true"));
    following.signal(Signal::INT);
    following.end();
}

#[test]
fn a_verb_that_changes_takes_the_latest_job_only_on_a_terminal() {
    let home = Home::with_jobs(&["older", "latest"]);
    for verb in ["cancel", "retry", "remove"] {
        home.run([verb]).fails(2).says("no jobs given");
    }
    home.run(["edit", "--priority", "3"]).fails(2).says("no jobs given");
    let answer = |args: &[&str], typed| on_terminal(home.call(args).into_command(), 100, typed);
    assert!(answer(&["edit", "--priority", "3"], "").screen.contains("Job latest changed"));
    let seen = answer(&["cancel"], "n\n");
    assert!(seen.screen.contains("Cancel job latest (true)? [y/N]"), "{}", seen.screen);
    assert_eq!(home.state_of("latest"), "pending");
    answer(&["cancel"], "y\n");
    assert_eq!(home.state_of("latest"), "cancelled");
    assert!(answer(&["retry"], "").screen.contains("Job latest is pending again"));
    let empty = Home::with_queue();
    empty.run(["show"]).fails(3).says("there are no jobs").says("queuectl enqueue echo hi");
}

#[test]
fn wait_without_jobs_waits_for_all_that_are_unfinished() {
    let home = Home::with_jobs(&["one", "two"]);
    home.run(["wait", "--timeout", "0"]).fails(124).says("one").says("two");
    home.run(["cancel", "-q", "one", "two"]).ok();
    home.run(["wait"]).ok().prints("");
}

#[test]
fn a_selection_is_cancelled_after_confirmation() {
    let home = mixed();
    home.run(["cancel", "--queue", "mail"]).fails(2).says("this would cancel 2 jobs").says("--yes");
    assert_eq!(home.state_of("mail1"), "pending");
    home.run(["cancel", "--queue", "mail", "--yes"]).ok().prints("2\n").says_nothing();
    assert_eq!(home.state_of("mail1"), "cancelled");
    home.run(["cancel", "--queue", "mail", "--yes"]).ok().prints("0\n").says("no jobs matched");
    home.run(["cancel", "--tag", "nice", "--json"]).ok().prints("{\"count\":1}\n");
    home.run(["cancel", "--queue", "maill", "--yes"]).ok().prints("0\n").says("did you mean `mail`?");
}

#[test]
fn a_terminal_asks_for_confirmation() {
    let home = mixed();
    let call = |answer: &str| {
        let command = home.call(["cancel", "--queue", "mail"]).into_command();
        on_terminal(command, 80, answer)
    };
    let seen = call("n\n");
    assert!(seen.screen.contains("Cancel 2 jobs? [y/N]"), "{}", seen.screen);
    assert_eq!((seen.code, home.state_of("mail1")), (Some(1), "pending".to_owned()));
    let seen = call("y\n");
    assert!(seen.screen.contains("2 jobs cancelled"), "{}", seen.screen);
    assert_eq!((seen.code, home.state_of("mail1")), (Some(0), "cancelled".to_owned()));
}

#[test]
fn a_dry_run_changes_nothing() {
    let home = mixed();
    let args = ["--state", "failed,pending", "--dry-run"];
    let ran = home.run(["cancel"].iter().chain(&args)).ok();
    assert_eq!(ran.lines()[0], "Would cancel 6 jobs: 5 pending, 1 failed");
    assert_eq!(ran.lines().len(), 1 + 1 + 6, "a head and a line for each: {ran}");
    let output = home.run(["remove", "--json"].iter().chain(&args)).ok().json();
    assert_eq!((&output["count"], &output["jobs"]), (&json!(6), &json!({"failed": 1, "pending": 5})));
    assert_eq!(output["examples"].as_array().expect("a list").len(), 6);
    home.run(["remove", "plain", "dead", "nope", "--dry-run"])
        .fails(3)
        .shows("Would remove 2 jobs: 1 pending, 1 dead");
    home.run(["retry", "plain", "dead", "--dry-run"]).ok().shows("Would retry 1 job: 1 dead");
    home.run(["dlq", "purge", "--all", "--dry-run"]).ok().shows("Would purge 1 job: 1 dead");
    home.run(["dlq", "purge", "dead", "--dry-run"]).ok().shows("Would purge 1 job: 1 dead");
    assert_eq!(home.count(), 8);
    assert_eq!(home.state_of("failed"), "failed");
}

#[test]
fn a_dry_run_shows_at_most_ten_jobs() {
    let home = Home::new();
    home.call(["enqueue", "-q", "-"]).with_stdin("{\"command\":\"true\"}\n".repeat(15)).run().ok();
    let ran = home.run(["remove", "--state", "pending", "--dry-run"]).ok();
    assert_eq!(ran.lines().len(), 1 + 1 + 10, "{ran}");
    assert_eq!(home.count(), 15);
}

#[test]
fn retry_excludes_completed_jobs_by_default() {
    let home = mixed();
    home.run(["retry", "--older-than", "0", "--yes"]).ok().prints("2\n");
    assert_eq!(home.state_of("completed"), "completed");
    home.run(["retry", "--state", "completed"]).ok().prints("1\n");
    assert_eq!(home.state_of("completed"), "pending");
}

#[test]
fn dependent_jobs_are_retried_in_their_order() {
    let home = Home::with_jobs(&["parent"]);
    home.run(["enqueue", "-q", "--id", "child", "--depends-on", "parent", "--", "true"]).ok();
    home.run(["cancel", "--state", "pending", "--yes"]).ok();
    home.run(["retry", "--state", "cancelled", "--yes"]).ok().prints("2\n");
    assert_eq!(listed(&home, &["--state", "blocked"]), ["child"]);
}

#[test]
fn a_state_that_the_verb_cannot_change_is_refused() {
    let home = mixed();
    for (verb, state) in [
        ("cancel", "completed"),
        ("cancel", "dead"),
        ("retry", "pending"),
        ("retry", "ready"),
        ("remove", "processing"),
    ] {
        home.run([verb, "--state", state, "--yes"]).fails(2).prints("").says(state).says("the states are");
    }
}

#[test]
fn running_jobs_can_be_cancelled_by_selection() {
    let home = Home::with_jobs(&["a", "b"]);
    let worker = TestWorker::new(&home, "w1");
    worker.claim_job("a");
    home.run(["cancel", "--state", "pending,processing", "--yes"])
        .ok()
        .prints("2\n")
        .says("1 job is still running");
    assert_eq!((home.state_of("a"), home.state_of("b")), ("processing".to_owned(), "cancelled".to_owned()));
}

#[test]
fn jobs_with_waiting_dependents_are_skipped_and_counted() {
    let home = Home::with_jobs(&["parent"]);
    home.run(["enqueue", "-q", "--id", "child", "--queue", "q", "--depends-on", "parent", "--", "true"]).ok();
    let ran = home.run(["remove", "--queue", "default", "--json"]).ok();
    assert_eq!(ran.json(), json!({"count": 0, "skipped": 1}));
    home.run(["remove", "--state", "pending", "--yes"]).ok().prints("2\n");
}

#[test]
fn jobs_are_given_either_by_id_or_by_selection() {
    let home = mixed();
    for verb in ["cancel", "retry", "remove", "wait"] {
        home.run([verb, "plain", "--queue", "mail"]).fails(2).says("ids cannot be combined with a selection");
        home.run([verb, "--state", "daed"]).fails(2).says("did you mean `dead`?");
        home.run([verb, "--batch", "a b"]).fails(2).says("invalid batch `a b`");
        home.run([verb, "--older-than", "soon"]).fails(2);
        home.run([verb, "--command-like", ""]).fails(2);
    }
    home.run(["dlq", "purge", "dead", "--queue", "mail"])
        .fails(2)
        .says("ids cannot be combined with a selection");
}

#[test]
fn dlq_verbs_accept_the_same_filters() {
    let home = Home::new();
    for (id, queue) in [("a", "mail"), ("b", "mail"), ("c", "web")] {
        home.run(["enqueue", "-q", "--id", id, "--queue", queue, "--max-retries", "0", "--", "false"]).ok();
        home.kill_next(id, "exit code 1");
    }
    home.run(["dlq", "retry", "--queue", "mail"]).fails(2).says("this would retry 2 jobs");
    home.run(["dlq", "retry", "--queue", "mail", "--yes"]).ok().prints("2\n");
    home.run(["dlq", "purge", "--queue", "web"]).ok().prints("1\n");
    assert_eq!((home.state_of("a"), home.count()), ("pending".to_owned(), 2));
}

#[test]
fn wait_accepts_a_selection() {
    let home = mixed();
    home.run(["wait", "--state", "completed", "--timeout", "5"]).ok().prints("completed\n");
    home.run(["wait", "--state", "dead", "--timeout", "5"]).fails(1).says("job `dead` is dead");
    home.run(["wait", "--queue", "nowhere"]).ok().prints("").says("there is no queue `nowhere`");
}
