//! Schedules that many look at in one moment, and some that nobody can understand.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use domain::schedule::{OnOverlap, Policy};
use store::sqlite::SqliteStore;
use store::{JobFilter, NewSchedule, Page, Schedules, Store};

use super::Home;
use crate::store::fixture::{Fixture, ACTOR, TestClock};
use crate::store::schedules::{minutely, name};

const SCHEDULES: usize = 30;
const LOOKERS: usize = 8;
const ROUNDS: usize = 5;

/// Each has a store of its own, as a process has, and all look when the clock has moved.
#[test]
fn fault_31_of_many_who_fire_at_one_moment_one_does() {
    let home = Home::with_queue();
    let clock = Arc::new(TestClock::default());
    let open = || SqliteStore::open(&home.database(), clock.clone()).expect("a store");
    let store = open();
    // So that a second run would not be left out because of the first.
    let policy = Policy::new(None, None, Some(OnOverlap::Queue)).expect("a policy");
    for at in 0..SCHEDULES {
        let schedule = NewSchedule { policy, ..minutely(&format!("s{at}")) };
        store.add_schedule(&schedule, ACTOR).expect("add_schedule").expect("it is taken");
    }
    for round in 1..=ROUNDS {
        clock.advance(Duration::from_secs(60));
        assert_eq!(fire_at_once(&open), SCHEDULES, "round {round}: each is fired by one");
    }
    let everything = Page { limit: usize::MAX, after: None };
    let jobs = store.list(&JobFilter::default(), &everything).expect("the jobs");
    assert_eq!(jobs.len(), SCHEDULES * ROUNDS);
}

/// How many jobs all of them enqueue together.
fn fire_at_once(open: &(impl Fn() -> SqliteStore + Sync)) -> usize {
    let start = Barrier::new(LOOKERS);
    std::thread::scope(|scope| {
        let looker = || {
            let store = open();
            start.wait();
            store.fire_due().expect("nobody is refused").jobs.len()
        };
        let lookers: Vec<_> = (0..LOOKERS).map(|_| scope.spawn(looker)).collect();
        lookers.into_iter().map(|looker| looker.join().expect("it ends")).sum()
    })
}

/// Somebody wrote it by other means, or a newer program did: it is held back and says why, and the others go on.
#[test]
fn a_schedule_that_cannot_be_understood_is_held_back() {
    let home = Home::new();
    let bad = [
        ("job", r#"job = '{"command":"true","novelty":1}'"#),
        ("line", "kind = 'cron', expression = 'whenever', time_zone = 'UTC'"),
        ("zone", "kind = 'cron', expression = '* * * * *', time_zone = 'Mars/Phobos'"),
        ("cwd", r#"job = '{"command":"true"}'"#),
    ];
    let fixture = home.fixture();
    for (name, _) in bad.into_iter().chain([("good", "")]) {
        fixture.store.add_schedule(&minutely(name), ACTOR).expect("add_schedule").expect("it is taken");
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
    let good = fixture.store.schedule(&name("good")).expect("schedule").expect("it is there");
    assert_eq!((good.0.pause, good.1.len()), (None, 1));
    let left = "select count(*) from schedules where paused_by = 'queuectl' and last_at is null and next_at is not null";
    drop(fixture);
    assert_eq!(super::value(&home.connect(), left), "4", "they are left as they were");
}
