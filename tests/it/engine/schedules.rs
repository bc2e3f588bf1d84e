//! Workers fire schedules: on time, once, and whatever queues they serve.

use std::collections::BTreeSet;

use domain::schedule::{Policy, When};
use domain::values::timestamp::Timestamp;
use ops::jobs::enqueue::Caller;
use ops::schedule;
use ops::schedule::Wanted;
use serde_json::Value;
use store::Store;

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

    /// A schedule that fires once, so many milliseconds from now. Added without a process, which may take longer to start.
    fn schedule_in(&self, name: &str, millis: i64) {
        let store = self.store();
        let now = store.now().expect("the time");
        let wanted = Wanted {
            name: name.parse().expect("a name"),
            when: When::At(Timestamp::from_millis(now.as_millis() + millis)),
            policy: Policy::new(None, None, None).expect("the defaults"),
            job: serde_json::from_str(r#"{"command":"true","cwd":"/"}"#).expect("a job"),
        };
        let caller = Caller { cwd: None, environment: None, if_absent: false, batch: None };
        schedule::add(&store, wanted, caller, "tester").expect("it is added");
    }
}

#[test]
fn an_idle_worker_fires_when_the_time_has_come() {
    let home = Home::new();
    let _pool = Pool::run_by_ear(&home, "");
    for round in 0..4 {
        let name = format!("s{round}");
        home.schedule_in(&name, 60);
        wait_until("it fires", || !home.runs(&name).is_empty());
        let run = home.runs(&name).remove(0);
        assert!(millis_between(&run["scheduled_for"], &run["created_at"]) >= 0, "{run}");
    }
}

#[test]
fn fault_31_of_many_workers_one_fires_each_occurrence() {
    let home = Home::new();
    // They serve nothing that there is.
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
fn what_is_due_is_done_before_a_worker_finds_nothing_to_do() {
    let home = Home::new();
    home.schedule("often", "--every 1s", "echo hello > greeting");
    wait_until("its time has come", || home.run(["schedule", "list"]).ok().stdout.contains("due"));
    Pool::drain(&home, "");
    assert_eq!(home.read("greeting"), "hello\n");
    assert!(home.journal().contains("schedule fired: often:"), "{}", home.journal());
}

#[test]
fn a_schedule_is_not_waited_for() {
    let home = Home::new();
    home.schedule("later", "--every 1h", "true");
    Pool::drain(&home, "");
    assert_eq!(home.count(), 0);
}

#[test]
fn a_run_that_is_replaced_is_killed_before_the_next_begins() {
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
fn a_run_has_the_folder_and_the_environment_of_whoever_added_it() {
    let home = Home::new();
    let folder = home.folder().join("there");
    std::fs::create_dir(&folder).expect("a folder");
    let add =
        ["schedule", "add", "-q", "s", "--every", "1s", "--env", "B=b", "--command", "echo $A $B > told"];
    home.call(add).at(&folder).env("A", "a").run().ok();
    let _pool = Pool::run(&home, "");
    wait_until("it is told", || home.read("there/told") == "a b\n");
}
