//! The setting `autostart`: `enqueue` starts a worker pool if none serves the queue.

use crate::cli::harness::working_home::{WorkingHome, wait_until};

fn autostarting(idle: &str) -> WorkingHome {
    let home = WorkingHome::new();
    home.run(["config", "set", "autostart", "on", "-q"]).ok();
    home.run(["config", "set", "autostart-idle", idle, "-q"]).ok();
    home
}

#[test]
fn enqueue_starts_a_pool_that_ends_when_it_has_been_idle() {
    let home = autostarting("0s");
    home.run(["enqueue", "--id", "a", "--", "true"]).ok().prints("a\n").says_nothing();
    home.wait_for_state("a", "completed");
    home.wait_until_deserted();
    home.run(["enqueue", "-q", "--id", "b", "--", "true"]).ok().says_nothing();
    home.wait_for_state("b", "completed");
    home.wait_until_deserted();
}

#[test]
fn a_pool_that_is_there_is_used() {
    let home = autostarting("1h");
    for id in ["a", "b", "c"] {
        home.run(["enqueue", "-q", "--id", id, "--", "true"]).ok();
        home.wait_for_state(id, "completed");
    }
    assert_eq!(home.workers().len(), 1);
    home.run(["enqueue", "-q", "--queue", "mail", "--id", "d", "--", "true"]).ok();
    home.wait_for_state("d", "completed");
    assert_eq!(home.workers().len(), 1);
}

#[test]
fn concurrent_calls_start_one_pool() {
    let home = autostarting("1h");
    let calls: Vec<_> = (0..6).map(|_| home.call(["enqueue", "-q", "--", "true"]).spawn()).collect();
    for call in calls {
        let ended = call.wait_with_output().expect("it ends");
        assert!(ended.status.success(), "{ended:?}");
    }
    assert_eq!(home.workers().len(), 1);
    wait_until("all jobs are completed", || {
        home.jobs().iter().all(|job| job.life.state.name().is_finished()) && home.count() == 6
    });
}

#[test]
fn a_pool_that_was_killed_is_replaced_by_the_next_call() {
    let home = autostarting("1h");
    home.run(["enqueue", "-q", "--id", "a", "--", "true"]).ok();
    home.wait_for_state("a", "completed");
    let worker = home.workers().pop().expect("a worker");
    for pid in [worker.supervisor_pid.expect("a supervisor"), worker.pid] {
        let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).expect("a pid");
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    wait_until("the worker is dead", || home.workers().iter().all(|other| other.id != worker.id));
    home.run(["enqueue", "-q", "--id", "b", "--", "true"]).ok().says_nothing();
    home.wait_for_state("b", "completed");
    assert_eq!(home.workers().len(), 1);
}

#[test]
fn retry_starts_a_pool_too() {
    let home = WorkingHome::new();
    let _ = home.run(["run", "--id", "a", "test -e go"]);
    assert_eq!(home.show("a")["state"], "dead");
    home.wait_until_deserted();
    home.run(["config", "set", "autostart", "true", "-q"]).ok();
    home.run(["config", "set", "autostart-idle", "0s", "-q"]).ok();
    home.run(["retry", "nosuch"]).fails(3);
    home.run(["retry", "a", "--dry-run"]).ok();
    assert!(home.workers().is_empty());
    home.go();
    home.run(["dlq", "retry", "a", "-q"]).ok().says_nothing();
    home.wait_for_state("a", "completed");
    home.wait_until_deserted();
    home.run(["retry", "a", "-q"]).ok().says_nothing();
    home.wait_for_state("a", "completed");
    home.wait_until_deserted();
}

#[test]
fn a_resumed_queue_and_a_schedule_start_a_pool_too() {
    let home = autostarting("0s");
    home.run(["queue", "pause", "mail", "-q"]).ok();
    home.run(["enqueue", "-q", "--queue", "mail", "--id", "a", "--", "true"]).ok();
    home.wait_until_deserted();
    home.run(["queue", "resume", "mail", "-q"]).ok();
    home.wait_for_state("a", "completed");
    home.wait_until_deserted();
    home.run(["schedule", "add", "often", "--every", "1h", "-q", "--", "true"]).ok().says_nothing();
    wait_until("a worker is there", || home.workers().len() == 1);
    home.run(["worker", "stop", "-q"]).ok();
    let id = home.run(["schedule", "run", "often"]).ok().stdout;
    home.wait_for_state(id.trim(), "completed");
    assert_eq!(home.workers().len(), 1, "the schedule is active");
}

#[test]
fn a_pool_waits_for_a_job_whose_time_has_not_come() {
    let home = autostarting("0s");
    home.run(["enqueue", "-q", "--id", "later", "--delay", "3s", "--", "true"]).ok();
    home.wait_for_state("later", "completed");
    home.wait_until_deserted();
}

#[test]
fn it_is_off_by_default_and_the_hint_names_both_ways() {
    let home = WorkingHome::new();
    let hint = "no worker is running; start one with `queuectl worker start`, or let every enqueue do it with \
                `queuectl config set autostart on`";
    home.run(["enqueue", "--id", "a", "--", "true"]).ok().prints("a\n").says(hint);
    assert!(home.workers().is_empty());
    home.run(["config", "get", "autostart"]).ok().prints("off\n");
    home.run(["config", "set", "autostart", "maybe"]).fails(2).says("on or off");
}

#[test]
fn a_start_that_fails_does_not_fail_the_enqueue() {
    let home = autostarting("0s");
    std::fs::create_dir_all(home.path().join("autostart.lock")).expect("a folder in its place");
    let ran = home.run(["enqueue", "--id", "a", "--", "true"]).ok().prints("a\n");
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    ran.says("no worker could be started");
}

#[test]
fn concurrency_can_be_the_number_of_cores() {
    let home = WorkingHome::new();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    home.run(["config", "set", "concurrency", "auto", "-q"]).ok();
    home.run(["config", "get", "concurrency"]).ok().prints("auto\n");
    home.run(["worker", "start", "-q"]).ok();
    let slots = || home.run(["worker", "list", "--json"]).ok().json()[0]["concurrency"].as_u64();
    assert_eq!(slots(), Some(cores));
    home.run(["config", "set", "concurrency", "7", "-q"]).ok();
    wait_until("the worker follows the setting", || slots() == Some(7));
    home.run(["worker", "stop", "-q"]).ok();
    home.run(["worker", "start", "--concurrency", "auto", "-q"]).ok();
    assert_eq!(slots(), Some(cores));
    home.run(["worker", "start", "--concurrency", "many"]).fails(2).says("or auto");
    home.run(["config", "set", "concurrency", "0"]).fails(2).says("or auto");
}
