//! Orders to running workers: cancelled jobs and changed settings.

use serde_json::json;

use crate::engine::harness::{Home, Pool, UNTIL_GO, history, is_alive, millis_between, wait_until};

#[test]
fn a_cancelled_running_job_is_killed_at_once() {
    let home = Home::new();
    let tree = "sleep 600 & setsid sh -c 'echo $$ > daemon; exec sleep 600' & echo $$ > shell; wait";
    home.enqueue("long", tree);
    let _pool = Pool::run_without_polling(&home, "");
    let pids = ["shell", "daemon"].map(|name| home.wait_for_pid(name));
    home.run(["cancel", "long"]).ok();
    home.wait_for("long", "cancelled");
    assert!(!pids.into_iter().any(is_alive));
    let job = home.show("long");
    assert_eq!((&job["reason"], &job["attempts"]), (&json!("user"), &json!(1)));
    assert_eq!(history(&job)[0]["outcome"], "cancelled");
}

#[test]
fn a_cancel_with_a_signal_sends_it_to_the_whole_tree() {
    let home = Home::new();
    home.set("kill_grace", "1h");
    let daemon = "trap 'echo daemon >> got; exit' USR1; echo $$ > daemon; while :; do sleep 0.05; done";
    let shell = format!(
        "trap '' TERM; setsid sh -c \"{daemon}\" & trap 'echo shell >> got; exit' USR1; \
         while ! test -s daemon; do sleep 0.05; done; echo $$ > shell; while :; do sleep 0.05; done"
    );
    home.enqueue("a", &shell.replace("$$ > daemon", "\\$\\$ > daemon"));
    let _pool = Pool::run_without_polling(&home, "");
    let pids = ["shell", "daemon"].map(|name| home.wait_for_pid(name));
    home.run(["cancel", "a", "--signal", "usr1"]).ok();
    home.wait_for("a", "cancelled");
    assert!(!pids.into_iter().any(is_alive));
    assert_eq!(home.read("got"), "shell\ndaemon\n", "a daemon gets the signal when its shell has ended");
    assert_eq!(history(&home.show("a"))[0]["outcome"], "cancelled");
}

#[test]
fn a_second_cancel_can_kill_a_job_that_ignores_the_first() {
    let home = Home::new();
    home.set("kill_grace", "1h");
    home.enqueue("deaf", "trap '' INT TERM; echo $$ > deaf; while :; do sleep 0.05; done");
    let _pool = Pool::run_without_polling(&home, "");
    let pid = home.wait_for_pid("deaf");
    home.run(["cancel", "--state", "processing", "--signal", "SIGINT", "--yes"]).ok();
    assert_eq!(home.state_of("deaf"), "processing");
    home.run(["cancel", "deaf", "--signal", "9"]).ok();
    home.wait_for("deaf", "cancelled");
    assert!(!is_alive(pid));
}

#[test]
fn a_prefetched_job_is_cancelled_too() {
    let home = Home::new();
    let _pool = Pool::run_without_polling(&home, "--concurrency 1");
    for round in 0..5 {
        // After very short jobs a worker prefetches.
        let (long, waiting) = (format!("long-{round}"), format!("waiting-{round}"));
        let short = (0..10).map(|_| json!({"command": "true"}));
        let both = [(&long, "sleep 600"), (&waiting, "echo started >> waiting")];
        let both = both.map(|(id, command)| json!({"id": id, "command": command}));
        let jobs: Vec<_> = short.chain(both).collect();
        home.run(["enqueue", "-q", &json!(jobs).to_string()]).ok();
        home.wait_for(&long, "processing");
        home.run(["cancel", &waiting, &long]).ok();
        home.wait_for(&waiting, "cancelled");
        home.wait_for(&long, "cancelled");
    }
    assert_eq!(home.read("waiting"), "", "none of them was started");
}

#[test]
fn a_changed_grace_and_log_size_apply_to_the_next_attempt() {
    let home = Home::new();
    home.set("kill_grace", "1h");
    let _pool = Pool::run(&home, "");
    home.set("kill_grace", "100ms");
    home.set("log_max_bytes", "64K");
    home.enqueue("loud", "head -c 1000000 /dev/zero");
    let loud = home.wait_for("loud", "completed");
    assert!(history(&loud)[0]["log_bytes"].as_u64() <= Some(64 << 10), "{loud}");
    home.enqueue("deaf", "trap '' TERM; echo $$ > deaf; while :; do sleep 0.05; done");
    let pid = home.wait_for_pid("deaf");
    home.run(["cancel", "deaf"]).ok();
    home.wait_for("deaf", "cancelled");
    assert!(!is_alive(pid));
}

#[test]
fn an_increased_concurrency_is_used_at_once() {
    let home = Home::new();
    home.enqueue("first", UNTIL_GO);
    home.enqueue("second", UNTIL_GO);
    let _pool = Pool::run_without_polling(&home, "");
    home.wait_for("first", "processing");
    assert_eq!(home.state_of("second"), "pending");
    home.set("concurrency", "2");
    home.wait_for("second", "processing");
    // A lower concurrency lets running jobs finish.
    home.set("concurrency", "1");
    home.enqueue("third", "true");
    home.file("go", "");
    for id in ["first", "second", "third"] {
        home.wait_for(id, "completed");
    }
}

#[test]
fn a_lowered_concurrency_is_shown_with_the_jobs_that_still_run() {
    let home = Home::new();
    let shown = || home.run(["worker", "list", "--json"]).ok().json()[0].clone();
    let wait_until_shown = |running: u64, concurrency: u64| {
        wait_until(&format!("{running}/{concurrency} is shown"), || {
            let shown = shown();
            shown["running"] == running && shown["concurrency"] == concurrency
        });
    };
    for id in ["first", "second", "third"] {
        home.enqueue(id, UNTIL_GO);
    }
    let _pool = Pool::run(&home, "");
    wait_until_shown(1, 1);
    home.set("concurrency", "3");
    wait_until_shown(3, 3);
    home.set("concurrency", "1");
    wait_until_shown(3, 1);
    home.file("go", "");
    wait_until_shown(0, 1);
}

#[test]
fn a_lowered_concurrency_applies_to_prefetched_claims_too() {
    let home = Home::new();
    home.set("concurrency", "4");
    let _pool = Pool::run(&home, "");
    home.enqueue("up", "true");
    home.wait_for("up", "completed");
    home.set("concurrency", "1");
    wait_until("the worker has one slot", || {
        home.run(["worker", "list", "--json"]).ok().json()[0]["concurrency"] == 1
    });
    // Very short jobs, which a worker prefetches. Each would notice the folder of one that runs concurrently.
    let alone = "mkdir alone || echo two at once >> wrong; rmdir alone";
    let jobs: Vec<_> = (0..200).map(|_| json!({"command": alone})).collect();
    home.run(["enqueue", "-q", &json!(jobs).to_string()]).ok();
    home.enqueue("last", "true");
    home.wait_for("last", "completed");
    assert_eq!(home.read("wrong"), "");
}

#[test]
fn an_explicit_concurrency_does_not_follow_the_setting() {
    let home = Home::new();
    home.enqueue("first", UNTIL_GO);
    home.enqueue("second", "true");
    let _pool = Pool::run(&home, "--concurrency 1");
    home.wait_for("first", "processing");
    home.set("concurrency", "2");
    home.enqueue_with("urgent", "true", "--priority 1");
    home.file("go", "");
    home.wait_for("urgent", "completed");
    let [first, urgent] = ["first", "urgent"].map(|id| home.show(id));
    assert!(millis_between(&first["finished_at"], &urgent["started_at"]) >= 0);
}
