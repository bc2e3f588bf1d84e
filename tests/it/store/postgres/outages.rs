//! A network that breaks between a store and its server: each failure says whether the change may have happened, and the
//! store works again by itself.

use std::time::{Duration, Instant};

use domain::job::outcome::Outcome;
use domain::settings::SettingKey;
use store::postgres::{Address, PostgresStore};
use store::{EnqueueError, Exchange, Pace, Settlement, Store, StoreError};

use super::proxy::{CUT_BEFORE_COMMIT, Fault, proxy_to};
use crate::engine::harness::wait_until;
use crate::store::fixture::new_job::job;
use crate::store::fixture::schema::Schema;
use crate::store::fixture::{new_worker, settlement};

fn open(address: &Address) -> Box<dyn Store> {
    Box::new(PostgresStore::open(address, None).expect("the store opens"))
}

fn enqueue(store: &dyn Store, id: &str) -> Result<(), StoreError> {
    match store.enqueue(&[job(id).into()]) {
        Ok(_) => Ok(()),
        Err(EnqueueError::Store(error)) => Err(error),
        Err(EnqueueError::Refused(refused)) => panic!("{refused:?}"),
    }
}

fn is_there(store: &dyn Store, id: &str) -> bool {
    store.find(&id.parse().expect("an id")).expect("a look").is_some()
}

#[test]
fn a_commit_that_did_not_arrive_and_one_whose_answer_was_lost_are_unknown() {
    let schema = Schema::new();
    let (direct, proxy) = (open(&schema.address), proxy_to(&schema.address));
    let store = open(&proxy.address);
    for (fault, id, arrives) in [(CUT_BEFORE_COMMIT, "cut", false), (Fault::DropAnswer, "lost", true)] {
        proxy.set(fault);
        let failed = enqueue(store.as_ref(), id);
        assert!(matches!(failed, Err(StoreError::OutcomeUnknown { .. })), "{fault:?}: {failed:?}");
        assert_eq!(is_there(direct.as_ref(), id), arrives, "{fault:?}");
        proxy.set(Fault::None);
        enqueue(store.as_ref(), &format!("after-{id}")).expect("it works again");
    }
}

/// Otherwise the second half of the turn would run in a session of its own, each statement for itself.
#[test]
fn a_turn_whose_session_ended_in_the_middle_changes_nothing() {
    let schema = Schema::new();
    let proxy = proxy_to(&schema.address);
    let (store, worker) = (open(&proxy.address), new_worker("w-1"));
    store.register(&worker).expect("register");
    enqueue(store.as_ref(), "first").expect("stored");
    enqueue(store.as_ref(), "second").expect("stored");
    let turn = |settlements: &[Settlement]| {
        store.exchange(&Exchange { worker: &worker.id, settlements, want: 1, want_limited: 0 })
    };
    let claimed = turn(&[]).expect("a turn").claimed;
    let settlements = [settlement(&claimed[0].lease, Outcome::Success)];
    proxy.set(Fault::LateAnswersInGate);
    let failed = turn(&settlements);
    assert!(matches!(failed, Err(StoreError::OutcomeUnknown { .. })), "{failed:?}");
    let session = schema.session();
    assert_eq!(session.run("select 1 from attempts"), [""; 0], "nothing is recorded");
    assert_eq!(session.run("select state from jobs order by seq"), ["processing", "pending"]);
    let again = turn(&settlements).expect("it works again");
    assert_eq!((again.settled.len(), again.claimed.len()), (1, 1));
    assert_eq!(store.recount().expect("a recount"), []);
}

#[test]
fn a_server_that_refuses_changes_nothing_and_is_used_when_it_is_back() {
    let schema = Schema::new();
    let (direct, proxy) = (open(&schema.address), proxy_to(&schema.address));
    let store = open(&proxy.address);
    proxy.set(Fault::Refuse);
    for _ in 0..2 {
        let failed = enqueue(store.as_ref(), "a");
        assert!(
            matches!(failed, Err(StoreError::Unreachable(_) | StoreError::Unavailable { .. })),
            "{failed:?}"
        );
    }
    assert!(!is_there(direct.as_ref(), "a"));
    proxy.set(Fault::None);
    enqueue(store.as_ref(), "a").expect("it works again");
}

#[test]
fn a_network_that_swallows_everything_is_noticed_within_the_deadline() {
    let schema = Schema::new();
    let proxy = proxy_to(&schema.address);
    let store = open(&proxy.address);
    enqueue(store.as_ref(), "a").expect("it works");
    proxy.set(Fault::BlackHole);
    let began = Instant::now();
    let failed = enqueue(store.as_ref(), "b");
    assert!(matches!(failed, Err(StoreError::Unreachable(_) | StoreError::Unavailable { .. })), "{failed:?}");
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    proxy.set(Fault::None);
    enqueue(store.as_ref(), "b").expect("it works again");
}

/// A worker that waits can renew no lease. It has time for other tries, and ends its commands in time if all fail.
#[test]
fn a_write_of_a_worker_waits_for_a_silent_server_for_a_quarter_of_its_lease() {
    let schema = Schema::new();
    let proxy = proxy_to(&schema.address);
    let (store, worker) = (open(&proxy.address), new_worker("w-1"));
    for (key, value) in [(SettingKey::HeartbeatInterval, "1s"), (SettingKey::Lease, "8s")] {
        store.set(key, Some(value), "me").expect("it is set");
    }
    store.register(&worker).expect("register");
    store.orders(&worker.id).expect("orders");
    store.extend(&worker.id, &[]).expect("a heartbeat");
    proxy.set(Fault::BlackHole);
    for what in ["its session is silent", "no session can be opened"] {
        let began = Instant::now();
        let failed = store.extend(&worker.id, &[]);
        assert!(
            matches!(failed, Err(StoreError::Unreachable(_) | StoreError::Unavailable { .. })),
            "{failed:?}"
        );
        let took = began.elapsed();
        let (least, most) = (Duration::from_millis(1_900), Duration::from_secs(3));
        assert!(least < took && took < most, "{what}: {took:?}");
    }
    proxy.set(Fault::None);
    store.extend(&worker.id, &[]).expect("it works again");
}

#[test]
fn a_worker_listens_again_when_the_server_is_back() {
    let schema = Schema::new();
    let proxy = proxy_to(&schema.address);
    let (store, worker) = (open(&proxy.address), new_worker("w-1"));
    let wake = store.listen(&worker).expect("it listens");
    store.register(&worker).expect("register");
    assert_eq!(store.pace(), Pace::Listening);
    proxy.set(Fault::Refuse);
    schema.session().end_sessions_of(&schema);
    wait_until("it polls", || {
        wake.take_orders();
        store.pace() == Pace::Polling
    });
    proxy.set(Fault::None);
    wait_until("it listens again", || {
        wake.take_orders();
        store.pace() == Pace::Listening
    });
}
