use domain::job::outcome::Outcome;
use serde_json::json;

use crate::cli::harness::Home;
use crate::cli::harness::pseudo_terminal::Terminal;
use crate::cli::harness::test_worker::TestWorker;

/// Two jobs in a batch, one outside.
fn with_batch() -> Home {
    let home = Home::with_jobs(&["outside"]);
    for id in ["a", "b"] {
        home.run(["enqueue", "-q", "--id", id, "--batch", "nightly", "--max-retries", "0", "--", "true"])
            .ok();
    }
    home
}

#[test]
fn every_form_of_enqueue_accepts_a_batch() {
    let home = Home::new();
    let lines = "{\"command\":\"true\"}\n".repeat(3);
    let file = home.file("jobs.jsonl", &lines);
    home.run(["enqueue", "-q", "--batch", "x", "--file", file.to_str().expect("a path")]).ok();
    home.call(["enqueue", "-q", "--batch", "x", "-"]).with_stdin(lines).run().ok();
    home.run(["enqueue", "-q", "--batch", "x", "[{\"command\":\"true\"},{\"command\":\"true\"}]"]).ok();
    home.run(["enqueue", "-q", "--batch", "x", "{\"command\":\"true\"}"]).ok();
    home.run(["enqueue", "-q", "--batch", "x", "--", "true"]).ok();
    let batch = home.run(["batch", "show", "x", "--json"]).ok().json();
    assert_eq!((&batch["total"], &batch["jobs"]["pending"]), (&json!(10), &json!(10)));
    assert_eq!(batch["finished_at"], json!(null));
    home.run(["enqueue", "--batch", "a b", "--", "true"]).fails(2);
    home.run(["enqueue", "{\"command\":\"true\",\"batch\":\"x\"}"]).fails(2).says("unknown field `batch`");
}

#[test]
fn list_and_show_report_progress() {
    let home = with_batch();
    home.run(["cancel", "-q", "outside"]).ok();
    home.kill_next("a", "exit code 1");
    let listed = home.run(["batch", "list", "--json"]).ok().json();
    assert_eq!(
        (&listed[0]["name"], &listed[0]["total"], &listed[1]),
        (&json!("nightly"), &json!(2), &json!(null))
    );
    let ran = home.run(["batch", "list"]).ok();
    // The width of a relative time depends on its age.
    let heading = "NAME     JOBS  DONE  DEAD  CANCELLED  FAILED  RUNNING  PENDING  CREATED ";
    let counts = "nightly     2     1     1          0       0        0        1  ";
    assert!(ran.lines()[0].starts_with(heading) && ran.lines()[1].starts_with(counts), "{ran}");
    for verb in ["show", "status"] {
        home.run(["batch", verb, "nightly"])
            .ok()
            .shows("1 of 2")
            .shows("dead          1")
            .says("--state dead");
    }
    assert_eq!(home.show("a")["batch"], "nightly");
    home.run(["show", "a"]).ok().shows("batch         nightly");
    assert_eq!(home.show("outside")["batch"], json!(null));
    home.run(["list", "--batch", "nightly", "--format", "ids"]).ok().prints("b\na\n");
}

#[test]
fn an_empty_list_prints_a_hint() {
    let home = with_batch();
    for args in [["show", "nightli"], ["wait", "nightli"], ["cancel", "nightli"]] {
        home.run(["batch"].iter().chain(&args)).fails(3).prints("").says("did you mean `nightly`?");
    }
    home.run(["batch", "show", "x"]).fails(3).says("there is no batch `x`").says("queuectl batch list");
    home.run(["list", "--batch", "nightli"]).ok().prints("").says("did you mean `nightly`?");
    home.run(["cancel", "--batch", "x", "--yes"]).ok().prints("0\n").says("there is no batch `x`");
    let empty = Home::with_queue();
    empty.run(["batch", "list", "--json"]).ok().prints("[]\n").says_nothing();
    empty.run(["batch", "list"]).ok().prints("").says("enqueue --batch");
}

#[test]
fn wait_exits_with_the_result_of_the_batch() {
    let home = with_batch();
    home.run(["cancel", "-q", "outside"]).ok();
    let ran = home.run(["batch", "wait", "nightly", "--timeout", "50ms", "--json"]);
    assert_eq!(ran.status.code(), Some(124), "{ran}");
    assert_eq!(ran.json()["jobs"]["pending"], 2);
    assert!(ran.stderr.contains("2 of 2 jobs in batch `nightly` are still unfinished after 50ms"), "{ran}");
    let worker = TestWorker::new(&home, "w1");
    for id in ["a", "b"] {
        worker.settle(worker.claim_job(id), Outcome::Success, None);
    }
    let done = home.run(["batch", "wait", "nightly", "--json"]).ok().says_nothing().json();
    assert_eq!((&done["jobs"]["completed"], &done["total"]), (&json!(2), &json!(2)));
    assert!(done["finished_at"].is_string());
    home.run(["retry", "a"]).ok();
    worker.settle(worker.claim_job("a"), Outcome::Failure { exit_code: 1 }, None);
    home.run(["batch", "wait", "nightly"]).fails(1).says("1 of 2 jobs in batch `nightly` did not succeed");
    home.run(["batch", "wait", "nightly", "-q"]).fails(1).prints("");
}

#[test]
fn a_progress_bar_is_shown_on_a_terminal() {
    let home = with_batch();
    home.run(["cancel", "-q", "outside"]).ok();
    let command = home.call(["batch", "wait", "nightly"]).into_command();
    let mut terminal = Terminal::start(command, 100, 30);
    terminal.wait_until(|screen| screen.contains("0 of 2"));
    home.kill_next("a", "exit code 1");
    terminal.wait_until(|screen| screen.contains("1 of 2, 1 dead"));
    home.run(["cancel", "-q", "b"]).ok();
    let seen = terminal.end();
    assert_eq!(seen.code, Some(1), "{}", seen.screen);
    assert!(seen.screen.contains("did not succeed"), "{}", seen.screen);
}

#[test]
fn cancel_asks_and_then_cancels_the_unfinished_jobs() {
    let home = with_batch();
    home.run(["batch", "cancel", "nightly"]).fails(2).says("this would cancel 2 jobs");
    home.run(["batch", "cancel", "nightly", "--dry-run"]).ok().shows("Would cancel 2 jobs: 2 pending");
    let worker = TestWorker::new(&home, "w1");
    worker.claim_job("outside");
    home.run(["batch", "cancel", "nightly", "--signal", "nope"]).fails(2).says("nope");
    home.run(["batch", "cancel", "nightly", "--signal", "int", "--yes"]).ok().prints("2\n");
    home.run(["batch", "cancel", "nightly", "--yes"]).ok().prints("0\n").says("no jobs matched");
    assert_eq!(home.state_of("outside"), "processing");
    home.run(["batch", "wait", "nightly"]).fails(1);
}
