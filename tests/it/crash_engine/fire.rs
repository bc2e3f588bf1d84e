//! FAULTS 26: a crash at each fail-point of firing a schedule. Each occurrence has one job, which runs once.

use domain::job::life::StateName;
use domain::job::spec::JobSpec;
use domain::schedule::When;
use domain::values::timestamp::Timestamp;
use store::NewSchedule;

use super::harness::CrashHome;
use super::processes::wait;
use crate::store::schedules::minutely;

#[test]
fn fault_26_a_schedule_fires_once_although_its_worker_dies() {
    for point in ["fire.before_commit", "fire.after_commit"] {
        let crash_home = CrashHome::new();
        let now = crash_home.store.now().expect("the time");
        let command = format!("cd '{}'; . ./job.sh; say START; say END", crash_home.home.folder().display());
        let schedule = NewSchedule {
            when: When::At(Timestamp::from_millis(now.as_millis() + 1_000)),
            job: JobSpec { command: Some(command), cwd: Some("/".to_owned()), ..JobSpec::default() },
            ..minutely("once")
        };
        crash_home.store.add_schedule(&schedule, "tester").expect("it is added");
        crash_home.pool_dying_at(point, &[]);
        wait(&format!("the job is completed although a worker died at {point}"), || {
            crash_home.ids().iter().any(|id| crash_home.state(id) == StateName::Completed)
        });
        assert!(crash_home.has_died(), "{point} was never reached");
        assert_eq!(crash_home.ids().len(), 1, "{point}: {:?}", crash_home.ids());
        let shown = crash_home.run(&["schedule", "show", "once", "--json"]).ok().json();
        assert_eq!(
            (&shown["next_at"], &shown["missed_at"]),
            (&serde_json::Value::Null, &serde_json::Value::Null)
        );
        crash_home.stop_pools();
        crash_home.check();
    }
}
