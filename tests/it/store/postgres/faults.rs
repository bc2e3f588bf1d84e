//! Lost sessions, waits for the gate, and transactions that others make fail.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use domain::settings::SettingKey;
use store::{EnqueueError, JobFilter, Store, StoreError, Verdict};

use crate::store::fixture::new_job::job;
use crate::store::fixture::schema::Schema;
use crate::store::fixture::{ACTOR, Fixture, TestClock};

fn fixture(schema: &Schema) -> Fixture {
    Fixture::postgres_in(schema, Arc::new(TestClock::default()))
}

#[test]
fn a_session_that_was_lost_while_it_was_idle_is_opened_again() {
    let schema = Schema::new();
    let (fixture, session) = (fixture(&schema), schema.session());
    fixture.enqueue("a");
    for id in ["b", "c"] {
        assert_eq!(session.end_sessions_of(&schema), 1);
        fixture.enqueue(id);
        assert_eq!(session.end_sessions_of(&schema), 1);
        fixture.job(id);
    }
    fixture.recount();
}

#[test]
fn a_session_that_is_lost_in_the_middle_of_a_verb_changes_nothing() {
    let schema = Schema::new();
    let (fixture, session) = (fixture(&schema), schema.session());
    fixture.enqueue("a");
    let lost = fixture.store.write("test", &mut |_| {
        session.end_sessions_of(&schema);
        Ok(Verdict::Commit)
    });
    // The commit was sent into a closed connection, and only the server knows that it came too late.
    assert!(matches!(lost, Err(StoreError::OutcomeUnknown { .. })), "{lost:?}");
    fixture.enqueue("b");
    let mut ends = 1;
    let mut reads = 0;
    let read = fixture.store.read(&mut |_| {
        reads += 1;
        if std::mem::take(&mut ends) > 0 {
            session.end_sessions_of(&schema);
            return Err(StoreError::Unavailable { source: "lost".into() });
        }
        Ok(())
    });
    assert!(read.is_ok() && reads == 2, "a read is repeated: {read:?}, {reads}");
}

#[test]
fn a_writer_waits_for_the_gate_and_gives_up_after_its_patience() {
    let schema = Schema::new();
    let (fixture, session) = (fixture(&schema), schema.session());
    let worker = fixture.worker("w");
    fixture.set(SettingKey::HeartbeatInterval, "500ms");
    fixture.set(SettingKey::Lease, "2s");
    // A worker waits for a quarter of its lease at most.
    fixture.orders(&worker);
    session.run("begin; lock table gate_1 in row exclusive mode");
    let refused = fixture.store.note("x", ACTOR, "x").expect_err("the gate is held");
    assert!(
        matches!(refused, StoreError::Busy { waited, .. } if waited == Duration::from_millis(500)),
        "{refused:?}"
    );
    fixture.job_count(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            session.wait_for_waiter(&schema);
            session.run("commit");
        });
        fixture.store.note("x", ACTOR, "x").expect("it passes when the gate is free");
    });
}

#[test]
fn a_verb_that_a_deadlock_ends_is_repeated() {
    let schema = Schema::new();
    let (fixture, session) = (fixture(&schema), schema.session());
    fixture.set(SettingKey::MaxRetries, "1");
    session.run("begin; update settings set value = '5'");
    thread::scope(|scope| {
        scope.spawn(|| {
            session.wait_for_waiter(&schema);
            session.run("lock table gate_1 in row exclusive mode; commit");
        });
        fixture.set(SettingKey::MaxRetries, "2");
    });
    assert_eq!(session.run("select value from settings"), ["2"]);
    let deadlocks = "select deadlocks > 0 from pg_stat_database where datname = current_database()";
    crate::engine::harness::wait_until("the deadlock is counted", || session.run(deadlocks) == ["t"]);
}

#[test]
fn text_that_the_server_cannot_store_is_refused_and_changes_nothing() {
    let schema = Schema::new();
    let fixture = fixture(&schema);
    let refused = fixture.try_enqueue([job("a"), job("b").command("echo \0")]);
    assert!(matches!(refused, Err(EnqueueError::Store(StoreError::Malformed { .. }))), "{refused:?}");
    fixture.job_count(0);
    fixture.enqueue("a");
}

impl Fixture {
    fn job_count(&self, expected: usize) {
        let store: &dyn Store = self.store.as_ref();
        assert_eq!(store.select(&JobFilter::default(), None, 99).expect("read").len(), expected);
    }
}
