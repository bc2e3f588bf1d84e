//! The hints of `enqueue` and `logs -f` about jobs that do not start.

use crate::cli::harness::Home;
use crate::cli::harness::background::Background;
use crate::cli::harness::test_worker::TestWorker;

const NO_WORKER: &str = "hint: no worker is running; ";
const PAUSED: &str = "hint: queue `mail` is paused (no server); `queuectl queue resume mail` resumes it";

fn home_with_a_paused_queue() -> Home {
    let home = Home::new();
    home.run(["queue", "pause", "-q", "mail", "--reason", "no server"]).ok();
    home
}

#[test]
fn a_job_for_a_paused_queue_is_accepted_with_a_hint() {
    let home = home_with_a_paused_queue();
    let _worker = TestWorker::new(&home, "w1");
    home.run(["enqueue", "--queue", "mail", "--", "true"]).ok().says(PAUSED);
    home.run(["enqueue", r#"[{"command":"true"},{"command":"true","queue":"mail"}]"#]).ok().says(PAUSED);
    home.call(["enqueue", "-"]).with_stdin(r#"{"command":"true","queue":"mail"}"#).run().ok().says(PAUSED);
    home.call(["enqueue", "--queue", "mail", "--each", "-", "--", "echo", "{}"])
        .with_stdin("a\n")
        .run()
        .ok()
        .says(PAUSED);
    home.run(["enqueue", "-q", "--queue", "mail", "--", "true"]).ok().says_nothing();
    home.run(["enqueue", "--", "true"]).ok().says_nothing();
    home.run(["queue", "resume", "-q", "mail"]).ok();
    home.run(["enqueue", "--queue", "mail", "--", "true"]).ok().says_nothing();
}

#[test]
fn no_hint_without_a_job_that_is_to_run() {
    let home = Home::with_jobs(&["a"]);
    home.run(["enqueue", "[]"]).ok().prints("").says_nothing();
    let again = ["enqueue", "--id", "a", "--if-absent", "--", "true"];
    home.run(again).ok().prints("a\n").says(NO_WORKER);
    home.run(["cancel", "-q", "a"]).ok();
    home.run(again).ok().prints("a\n").says_nothing();
    let array = r#"[{"id":"a","command":"true"}]"#;
    home.run(["enqueue", "--if-absent", array]).ok().prints("a\n").says_nothing();
    home.call(["enqueue", "--if-absent", "-"])
        .with_stdin(r#"{"id":"a","command":"true"}"#)
        .run()
        .ok()
        .prints("a\n")
        .says_nothing();
}

#[test]
fn following_a_job_that_does_not_start_says_why() {
    let home = home_with_a_paused_queue();
    home.run(["enqueue", "-q", "--id", "a", "--queue", "mail", "--", "true"]).ok();
    let follow = Background::start(home.call(["logs", "a", "-f"]));
    assert!(follow.says().contains("job a has not run yet"));
    let said = follow.says();
    assert!(said.starts_with(NO_WORKER), "{said}");
    assert_eq!(follow.says(), PAUSED);
    home.run(["cancel", "-q", "a"]).ok();
    follow.end();
    let ran = home.run(["logs", "a", "-f"]).ok();
    assert!(!ran.stderr.contains("no worker"), "a finished job needs none: {ran}");
}
