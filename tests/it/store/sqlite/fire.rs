//! Schedules that several processes fire at the same time, and schedules that cannot be parsed.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use domain::schedule::{OnOverlap, Policy};
use store::sqlite::SqliteStore;
use store::{JobFilter, NewSchedule, Page, Store};

use super::Home;
use crate::store::fixture::{ACTOR, Fixture, TestClock};
use crate::store::schedules::{minutely, name};

const SCHEDULES: usize = 30;
const FIRING_STORES: usize = 8;
const ROUNDS: usize = 5;

/// Each thread has its own store, as a process has, and all fire when the clock has advanced.
#[test]
fn fault_31_a_schedule_fired_by_many_at_once_is_fired_once() {
    let home = Home::with_queue();
    let clock = Arc::new(TestClock::default());
    let open = || -> Box<dyn Store> {
        Box::new(SqliteStore::open(&home.database(), clock.clone()).expect("a store"))
    };
    let store = open();
    // With this policy a second run would not be skipped because of the first.
    let policy = Policy::new(None, None, Some(OnOverlap::Queue)).expect("a policy");
    for at in 0..SCHEDULES {
        let schedule = NewSchedule { policy, ..minutely(&format!("s{at}")) };
        store.add_schedule(&schedule, ACTOR).expect("the schedule is valid");
    }
    for round in 1..=ROUNDS {
        clock.advance(Duration::from_secs(60));
        assert_eq!(fire_at_once(&open), SCHEDULES, "round {round}: each schedule is fired once");
    }
    let everything = Page { limit: usize::MAX, after: None };
    let jobs = store.list(&JobFilter::default(), &everything).expect("the jobs");
    assert_eq!(jobs.len(), SCHEDULES * ROUNDS);
}

/// The number of jobs that all stores enqueue together.
fn fire_at_once(open: &(impl Fn() -> Box<dyn Store> + Sync)) -> usize {
    let start = Barrier::new(FIRING_STORES);
    std::thread::scope(|scope| {
        let fire = || {
            let store = open();
            start.wait();
            store.fire_due().expect("fire_due").jobs.len()
        };
        let threads: Vec<_> = (0..FIRING_STORES).map(|_| scope.spawn(fire)).collect();
        threads.into_iter().map(|thread| thread.join().expect("the thread does not panic")).sum()
    })
}

/// A row that was changed by hand or by a newer program: the schedule is paused with a reason, and the others still
/// fire.
#[test]
fn a_schedule_that_cannot_be_parsed_is_paused() {
    let home = Home::new();
    let bad = [
        ("job", r#"job = '{"command":"true","novelty":1}'"#),
        ("line", "kind = 'cron', expression = 'sometimes', time_zone = 'UTC'"),
        ("zone", "kind = 'cron', expression = '* * * * *', time_zone = 'Mars/Phobos'"),
        ("cwd", r#"job = '{"command":"true"}'"#),
    ];
    let fixture = home.fixture();
    for (name, _) in bad.into_iter().chain([("good", "")]) {
        fixture.store.add_schedule(&minutely(name), ACTOR).expect("the schedule is valid");
    }
    drop(fixture);
    let connection = home.connect();
    for (name, change) in bad {
        let sql = format!("update schedules set {change} where name = '{name}'");
        assert_eq!(connection.execute(&sql, []), Ok(1), "{sql}");
    }
    drop(connection);
    let fixture: Fixture = home.fixture();
    fixture.pass_secs(60);
    let fired = fixture.store.fire_due().expect("fire_due");
    let held: Vec<&str> = fired.held.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((held, fired.jobs.len()), (vec!["job", "line", "zone", "cwd"], 1));
    drop(fixture);
    let reason = "select pause_reason from schedules where name = 'zone'";
    let reason = super::value(&home.connect(), reason);
    assert_eq!(reason, "its definition is invalid: there is no time zone `Mars/Phobos`");
    let fixture: Fixture = home.fixture();
    let good = fixture.store.schedule(&name("good")).expect("schedule").expect("the schedule exists");
    assert_eq!((good.0.paused, good.1.len()), (None, 1));
    let left = "select count(*) from schedules where paused_by = 'queuectl' and last_at is null and next_at is not null";
    drop(fixture);
    assert_eq!(super::value(&home.connect(), left), "4", "the paused schedules are otherwise unchanged");
}
