//! FAULTS 26: a crash at each seam of a firing. Each occurrence has one job, and that runs once.

use queuectl::domain::life::StateName;
use queuectl::domain::timestamp::Timestamp;
use queuectl::store::Store;

use super::harness::Ground;
use super::processes::wait;

#[test]
fn fault_26_a_worker_that_dies_as_it_fires_fires_once() {
    for place in ["fire.before_commit", "fire.after_commit"] {
        let ground = Ground::new();
        let now = ground.store.now().expect("the time");
        let at = Timestamp::from_millis(now.as_millis() + 300).to_string();
        ground
            .run(&["schedule", "add", "once", "--at", &at, "--command", ". ./job.sh; say START; say END"])
            .ok();
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
