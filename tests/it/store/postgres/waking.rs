//! Notifications: who is named for work, what a worker hears, and the loss of the session that listens.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use store::{NewWorker, Notice, OrderHints, Pace, ServedJobs, Wake};

use crate::engine::harness::wait_until;
use crate::store::fixture::new_job::{job, queue_name};
use crate::store::fixture::schema::{PlainSession, Schema};
use crate::store::fixture::{Fixture, TestClock, new_worker};

fn fixture(schema: &Schema) -> Fixture {
    Fixture::postgres_in(schema, Arc::new(TestClock::default()))
}

/// A worker that listens, with the store that it uses.
struct Sleeper {
    fixture: Fixture,
    wake: Box<dyn Wake>,
    id: domain::values::name::WorkerId,
}

impl Sleeper {
    fn new(schema: &Schema, id: &str, served: ServedJobs) -> Self {
        let (fixture, worker) = (fixture(schema), NewWorker { served, ..new_worker(id) });
        let wake = fixture.store.listen(&worker).expect("it listens");
        let id = fixture.register(worker);
        // A session that was opened has the worker look.
        assert!(wake.take_orders().has_orders && wake.take_work() == Some(1), "{id}");
        Self { fixture, wake, id }
    }

    fn all(schema: &Schema, id: &str) -> Self {
        Self::new(schema, id, ServedJobs::All)
    }

    /// Claims up to one job; a worker that finds none is ready to sleep.
    fn claim(&self) -> Vec<String> {
        self.fixture.claim(&self.id, 1)
    }

    /// Reads what has arrived until there is a hint of work.
    #[track_caller]
    fn hears_work(&self) -> u8 {
        let mut hops = None;
        wait_until("a hint of work", || {
            if is_readable(self.wake.orders(), Duration::from_millis(20)) {
                self.wake.take_orders();
            }
            hops = self.wake.take_work();
            hops.is_some()
        });
        hops.expect("a hint")
    }
}

fn is_readable(descriptor: BorrowedFd<'_>, within: Duration) -> bool {
    let within = Timespec::try_from(within).expect("a short time");
    let mut watched = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    poll(&mut watched, Some(&within)).expect("poll") > 0
}

fn marked(session: &PlainSession) -> Vec<String> {
    session.run("select id from workers where listens = 1 order by id")
}

#[test]
fn a_worker_that_found_nothing_is_named_once_for_new_work() {
    let schema = Schema::new();
    let (caller, sleeper) = (fixture(&schema), Sleeper::all(&schema, "w-1"));
    let session = schema.session();
    assert_eq!(sleeper.fixture.store.pace(), Pace::Listening);
    assert!(sleeper.claim().is_empty() && marked(&session) == ["w-1"]);
    assert!(!is_readable(sleeper.wake.orders(), Duration::ZERO), "nothing has happened");
    caller.enqueue("a");
    assert_eq!(sleeper.hears_work(), sys::bell::MAX_HOPS);
    assert!(marked(&session).is_empty(), "it is awake");
    assert_eq!(
        sleeper.fixture.store.pace(),
        Pace::Polling,
        "it looks for jobs of notifications that were left out"
    );
    assert_eq!(sleeper.claim(), ["a"]);
    caller.enqueue("b");
    assert_eq!(sleeper.claim(), ["b"]);
    assert!(marked(&session).is_empty(), "it has no room");
    assert!(sleeper.claim().is_empty() && marked(&session) == ["w-1"]);
}

#[test]
fn a_worker_whose_row_is_locked_is_named_all_the_same() {
    let schema = Schema::new();
    let (caller, sleeper) = (fixture(&schema), Sleeper::all(&schema, "w-1"));
    let (session, other) = (schema.session(), schema.session());
    assert!(sleeper.claim().is_empty() && marked(&session) == ["w-1"]);
    other.run("begin; select 1 from workers for update");
    caller.enqueue("a");
    assert_eq!(sleeper.hears_work(), sys::bell::MAX_HOPS);
    other.run("rollback");
    assert_eq!(sleeper.claim(), ["a"]);
}

/// The first to look makes both due jobs ready, and has room for one.
#[test]
fn a_worker_that_makes_more_jobs_ready_than_it_takes_names_another() {
    let schema = Schema::new();
    let caller = fixture(&schema);
    let (first, second) = (Sleeper::all(&schema, "w-1"), Sleeper::all(&schema, "w-2"));
    // Nothing wakes a worker for jobs that are due later than it looks again.
    caller.enqueue_all([job("a").delay_secs(3_600), job("b").delay_secs(3_600)]);
    assert!(second.claim().is_empty() && first.claim().is_empty());
    assert_eq!(marked(&schema.session()), ["w-1", "w-2"]);
    first.fixture.pass_secs(3_600);
    assert_eq!(first.claim(), ["a"]);
    second.hears_work();
    second.fixture.pass_secs(3_600);
    assert_eq!(second.claim(), ["b"]);
}

/// Its claims start before it prepares to sleep.
#[test]
fn a_worker_that_claimed_less_than_it_could_marks_itself_at_the_start_of_its_next_turn() {
    let schema = Schema::new();
    let (caller, sleeper, session) = (fixture(&schema), Sleeper::all(&schema, "w-1"), schema.session());
    assert!(sleeper.claim().is_empty() && marked(&session) == ["w-1"]);
    caller.enqueue("a");
    sleeper.hears_work();
    let first = sleeper.fixture.exchange(&sleeper.id, &[], 4);
    assert_eq!((first.claimed.len(), first.next_due), (1, Some(sleeper.fixture.now())), "it is due at once");
    assert!(marked(&session).is_empty());
    // No worker is named for this job: the next turn finds it.
    caller.enqueue("b");
    // Its session looks for a sleeper after the commit, and answers this after that.
    caller.store.workers().expect("the workers");
    assert_eq!(sleeper.fixture.exchange(&sleeper.id, &[], 3).claimed.len(), 1);
    assert_eq!(marked(&session), ["w-1"]);
    let last = sleeper.fixture.exchange(&sleeper.id, &[], 2);
    assert_eq!((last.claimed.len(), last.next_due), (0, None), "now it may sleep");
    assert_eq!(marked(&session), ["w-1"]);
}

#[test]
fn a_worker_is_named_only_for_queues_that_it_serves() {
    let schema = Schema::new();
    let caller = fixture(&schema);
    let serving = |id: &str, queue: &str| {
        let sleeper = Sleeper::new(&schema, id, ServedJobs::InOrder(vec![queue_name(queue)]));
        assert!(sleeper.claim().is_empty());
        sleeper
    };
    let (mail, video) = (serving("w-mail", "mail"), serving("w-video", "video"));
    caller.store.enqueue(&[job("a").queue("mail").into()]).expect("enqueue");
    mail.hears_work();
    assert_eq!(mail.claim(), ["a"]);
    assert_eq!(marked(&schema.session()), ["w-video"], "the other sleeps on");
    assert_eq!(video.wake.take_work(), None);
}

#[test]
fn a_hint_for_a_worker_without_room_and_a_hint_that_is_passed_on_reach_another_worker() {
    let schema = Schema::new();
    let (caller, session) = (fixture(&schema), schema.session());
    let (busy, idle) = (Sleeper::all(&schema, "w-busy"), Sleeper::all(&schema, "w-idle"));
    caller.enqueue("a");
    assert_eq!(busy.claim(), ["a"]);
    assert!(idle.claim().is_empty() && marked(&session) == ["w-idle"]);
    session.run(&format!("select pg_notify('{}', 'w:7:w-busy')", schema.address.schema));
    wait_until("the busy worker hears it", || {
        busy.wake.take_orders();
        marked(&session).is_empty()
    });
    assert_eq!(idle.hears_work(), 7);
    assert!(idle.claim().is_empty() && marked(&session) == ["w-idle"]);
    busy.wake.pass_on(5);
    assert_eq!(idle.hears_work(), 5);
}

#[test]
fn orders_reach_every_worker_and_a_reader_the_one_that_it_names() {
    let schema = Schema::new();
    let caller = fixture(&schema);
    let sleepers = [Sleeper::all(&schema, "w-1"), Sleeper::all(&schema, "w-2")];
    caller.store.announce(Notice::Orders).expect("announce");
    for sleeper in &sleepers {
        assert!(is_readable(sleeper.wake.orders(), Duration::from_secs(10)), "{:?}", sleeper.id);
        let hints = sleeper.wake.take_orders();
        assert!(hints.has_orders && hints.readers.is_empty(), "{hints:?}");
    }
    let [other, named] = &sleepers;
    caller.store.announce(Notice::Reader { worker: &named.id, job: 17 }).expect("announce");
    assert!(is_readable(named.wake.orders(), Duration::from_secs(10)), "{:?}", named.id);
    let hints = named.wake.take_orders();
    assert_eq!((hints.has_orders, &hints.readers[..]), (false, &[17][..]));
    // What was sent before the next orders has arrived with them.
    caller.store.announce(Notice::Orders).expect("announce");
    assert!(is_readable(other.wake.orders(), Duration::from_secs(10)), "{:?}", other.id);
    assert_eq!(other.wake.take_orders(), OrderHints { has_orders: true, readers: Vec::new() });
}

/// The server sends a notification only to the worker that it names, so that it wakes no other process.
#[test]
fn a_hint_reaches_one_worker_of_many() {
    let schema = Schema::new();
    let caller = fixture(&schema);
    let sleepers = ["w-1", "w-2", "w-3"].map(|id| Sleeper::all(&schema, id));
    for sleeper in &sleepers {
        assert!(sleeper.claim().is_empty());
    }
    caller.enqueue(job("new"));
    // The last one is named first.
    sleepers[2].hears_work();
    for other in &sleepers[..2] {
        assert!(!is_readable(other.wake.orders(), Duration::ZERO), "{:?} was woken too", other.id);
    }
}

#[test]
fn a_worker_that_lost_its_listener_polls_until_it_listens_again_and_looks() {
    let schema = Schema::new();
    let sleeper = Sleeper::all(&schema, "w-1");
    let session = schema.session();
    assert!(sleeper.claim().is_empty());
    // The session of the store and the one that listens.
    assert_eq!(session.end_sessions_of(&schema), 2);
    assert!(is_readable(sleeper.wake.orders(), Duration::from_secs(10)));
    assert!(sleeper.wake.take_orders().has_orders);
    assert_eq!((sleeper.wake.take_work(), sleeper.fixture.store.pace()), (Some(1), Pace::Polling));
    assert!(is_readable(sleeper.wake.orders(), Duration::from_secs(10)), "it is time to listen again");
    assert!(sleeper.wake.take_orders().has_orders);
    assert_eq!((sleeper.wake.take_work(), sleeper.fixture.store.pace()), (Some(1), Pace::Listening));
    assert!(sleeper.claim().is_empty());
    fixture(&schema).enqueue("a");
    sleeper.hears_work();
    assert_eq!(sleeper.claim(), ["a"]);
}
