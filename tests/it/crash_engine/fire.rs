//! FAULTS 26: a crash at each seam of a firing. Each occurrence has one job, and that runs once.

use domain::job::life::StateName;
use domain::job::request::JobRequest;
use domain::schedule::When;
use domain::values::timestamp::Timestamp;
use store::{NewSchedule, Schedules, Store};

use super::harness::Ground;
use super::processes::wait;
use crate::store::schedules::minutely;

#[test]
fn fault_26_a_worker_that_dies_as_it_fires_fires_once() {
    for place in ["fire.before_commit", "fire.after_commit"] {
        let ground = Ground::new();
        let now = ground.store.now().expect("the time");
        let command = format!("cd '{}'; . ./job.sh; say START; say END", ground.home.folder().display());
        let schedule = NewSchedule {
            when: When::At(Timestamp::from_millis(now.as_millis() + 1_000)),
            job: JobRequest { command: Some(command), cwd: Some("/".to_owned()), ..JobRequest::default() },
            ..minutely("once")
        };
        ground.store.add_schedule(&schedule, "tester").expect("add_schedule").expect("it is taken");
        ground.pool_dying_at(place, &[]);
        wait(&format!("it is done, although somebody died at {place}"), || {
            ground.ids().iter().any(|id| ground.state(id) == StateName::Completed)
        });
        assert!(ground.has_died(), "nobody came by {place}");
        assert_eq!(ground.ids().len(), 1, "{place}: {:?}", ground.ids());
        let shown = ground.run(&["schedule", "show", "once", "--json"]).ok().json();
        assert_eq!(
            (&shown["next_at"], &shown["missed_at"]),
            (&serde_json::Value::Null, &serde_json::Value::Null)
        );
        ground.stop_pools();
        ground.check();
    }
}
