//! Workers fire schedules: on time, once, and no matter which queues they serve.

use std::collections::BTreeSet;

use domain::schedule::{Policy, When};
use domain::values::timestamp::Timestamp;
use ops::jobs::enqueue::Caller;
use ops::schedule;
use ops::schedule::ScheduleRequest;
use serde_json::Value;

use super::harness::{Home, Pool, UNTIL_GO, millis_between, wait_until};

impl Home {
    #[track_caller]
    fn schedule(&self, name: &str, when: &str, command: &str) {
        let call = ["schedule", "add", "-q", name, "--command", command];
        self.run(call.into_iter().chain(when.split_whitespace())).ok();
    }

    /// The runs of a schedule, the newest first.
    fn runs(&self, name: &str) -> Vec<Value> {
        let shown = self.run(["schedule", "show", name, "--json"]).ok().json();
        shown["runs"].as_array().expect("a list").clone()
    }

    /// A schedule that fires once, `millis` from now. Added without a process, whose start may take longer than that.
    fn schedule_in(&self, name: &str, millis: i64) {
        let store = self.store();
        let now = store.now().expect("the time");
        let wanted = ScheduleRequest {
            name: name.parse().expect("a name"),
            when: When::At(Timestamp::from_millis(now.as_millis() + millis)),
            policy: Policy::new(None, None, None).expect("the defaults"),
            job: serde_json::from_str(r#"{"command":"true","cwd":"/"}"#).expect("a job"),
        };
        let caller = Caller { cwd: None, ..Caller::default() };
        schedule::add(store.as_ref(), wanted, caller, "tester").expect("it is added");
    }
}

#[test]
fn an_idle_worker_fires_a_schedule_when_it_is_due() {
    let home = Home::new();
    let _pool = Pool::run_without_polling(&home, "");
    for round in 0..4 {
        let name = format!("s{round}");
        home.schedule_in(&name, 60);
        wait_until("it fires", || !home.runs(&name).is_empty());
        let run = home.runs(&name).remove(0);
        assert!(millis_between(&run["scheduled_for"], &run["created_at"]) >= 0, "{run}");
    }
}

#[test]
fn fault_31_each_occurrence_is_fired_by_one_of_many_workers() {
    let home = Home::new();
    // They serve a queue without jobs.
    let _pools = [Pool::run(&home, "--count 3 --queue x"), Pool::run(&home, "--count 3 --queue x")];
    home.schedule("often", "--every 1s --on-overlap queue", "true");
    wait_until("it has fired a few times", || home.runs("often").len() >= 4);
    home.run(["schedule", "remove", "often"]).ok();
    let jobs = home.jobs();
    let moments: BTreeSet<&str> = jobs.iter().map(|job| &job.id.as_str()[..22]).collect();
    assert_eq!(moments.len(), jobs.len(), "one job for each second: {jobs:?}");
    assert!(jobs.iter().all(|job| job.id.as_str().len() == 22), "no second has a second id: {moments:?}");
}

#[test]
fn a_due_schedule_fires_before_a_worker_ends_for_lack_of_jobs() {
    let home = Home::new();
    home.schedule("often", "--every 1s", "echo hello > greeting");
    wait_until("the schedule is due", || home.run(["schedule", "list"]).ok().stdout.contains("due"));
    Pool::drain(&home, "");
    assert_eq!(home.read("greeting"), "hello\n");
    assert!(home.journal().contains("schedule fired: often:"), "{}", home.journal());
}

#[test]
fn until_empty_does_not_wait_for_a_schedule() {
    let home = Home::new();
    home.schedule("later", "--every 1h", "true");
    Pool::drain(&home, "");
    assert_eq!(home.count(), 0);
}

#[test]
fn a_replaced_run_is_killed_before_the_next_starts() {
    let home = Home::new();
    home.set("kill_grace", "100ms");
    let _pool = Pool::run(&home, "--concurrency 2");
    home.schedule("often", "--every 1s --on-overlap replace", &format!("echo $$ >> pids; {UNTIL_GO}"));
    wait_until("a second run has begun", || home.read("pids").lines().count() >= 2);
    let runs = home.runs("often");
    let first = runs.last().expect("the first run");
    let first = home.show(first["id"].as_str().expect("an id"));
    assert_eq!((&first["state"], &first["reason"]), (&"cancelled".into(), &"replaced".into()));
    let pid: u32 = home.read("pids").lines().next().expect("a line").parse().expect("a pid");
    assert!(!super::harness::is_alive(pid), "the first command is dead");
}

#[test]
fn a_run_has_the_folder_and_the_environment_in_which_its_schedule_was_added() {
    let home = Home::new();
    let folder = home.folder().join("there");
    std::fs::create_dir(&folder).expect("a folder");
    let add =
        ["schedule", "add", "-q", "s", "--every", "1s", "--env", "B=b", "--command", "echo $A $B > seen"];
    home.call(add).at(&folder).env("A", "a").run().ok();
    let _pool = Pool::run(&home, "");
    wait_until("the job has run", || home.read("there/seen") == "a b\n");
}
