//! Several writers at once: each thread has a session of its own and calls random verbs. Afterwards the derived tables
//! agree with the jobs, and no attempt was given twice.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use domain::job::outcome::Outcome;
use domain::settings::SettingKey;
use domain::values::name::WorkerId;
use store::LeaseRef;
use store::postgres::Address;

use crate::engine::harness::wait_until;
use crate::postgres::cluster::Cluster;
use crate::store::fixture::new_job::job;
use crate::store::fixture::schema::Schema;
use crate::store::fixture::{FAILURE, Fixture, TestClock};

const THREADS: usize = 8;
const STEPS: usize = 60;
const QUEUES: [&str; 3] = ["a", "b", "limited"];
/// How many jobs of the last queue may run at once.
const LIMIT: u64 = 2;

#[test]
fn histories_of_several_writers_are_consistent() {
    // A server of its own, whose counts of deadlocks are those of this test.
    let cluster = Cluster::start("fsync = off");
    let schema = Schema { address: Address::parse(&cluster.socket_url("keeper")).expect("an address") };
    let clock = Arc::new(TestClock::default());
    let observer = Fixture::postgres_in(&schema, clock.clone());
    observer.set(SettingKey::RetryDelay, "1s");
    observer.limit(QUEUES[2], u32::try_from(LIMIT).ok(), None);
    let given = Mutex::new(HashSet::new());
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| watch_limit(&observer, &is_over));
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let fixture = Fixture::postgres_in(&schema, clock.clone());
                let given = &given;
                scope.spawn(move || Writer::new(&fixture, number, given).run())
            })
            .collect();
        let results: Vec<_> = threads.into_iter().map(thread::ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::SeqCst);
        watcher.join().expect("the limit was kept");
        for result in results {
            result.expect("no verb failed");
        }
    });
    observer.recount();
    assert_attempts_are_recorded(&schema);
    let given = given.into_inner().expect("no thread panicked").len();
    assert!(given > THREADS * STEPS / 8, "too few attempts: {given}");
    let counted = observer.store.total_metrics().expect("the totals");
    let counted: u64 = counted.iter().map(|queue| queue.activity.started).sum();
    assert_eq!(counted, given as u64, "every attempt is counted once");
    drop(observer);
    assert_eq!(deadlocks(&cluster), "0", "no two writers waited for each other");
}

fn deadlocks(cluster: &Cluster) -> String {
    // A server counts what a session did when the session ends, a moment after the client has left.
    let left = "select 1 from pg_stat_activity where usename = 'keeper'";
    wait_until("the sessions have ended", || cluster.sql("postgres", left).is_empty());
    cluster.sql("postgres", "select deadlocks from pg_stat_database where datname = 'jobs'")
}

/// Never more jobs of the limited queue run than allowed, in any snapshot.
fn watch_limit(observer: &Fixture, is_over: &AtomicBool) {
    while !is_over.load(Ordering::SeqCst) {
        for queue in observer.store.queues().expect("the queues are read") {
            let running = queue.counts.get(&domain::job::life::StateName::Processing).copied().unwrap_or(0);
            assert!(queue.name.as_str() != QUEUES[2] || running <= LIMIT, "{running} run at once");
        }
    }
}

/// Every attempt but the running one has its row, and only existing jobs have any.
fn assert_attempts_are_recorded(schema: &Schema) {
    let session = schema.session();
    for (what, sql) in [
        (
            "every attempt except the running one has its row",
            "select j.id from jobs j where j.attempts - case when j.state = 'processing' then 1 else 0 end
                                           <> (select count(*) from attempts a where a.seq = j.seq)",
        ),
        (
            "no table has rows of a removed job",
            "select 1 from attempts where seq not in (select seq from jobs)
             union all select 1 from job_tags where seq not in (select seq from jobs)
             union all select 1 from events where seq not in (select seq from jobs)
             union all select 1 from unique_keys where seq not in (select seq from jobs)",
        ),
        (
            "no shard of a counter is left for a queue that does not exist",
            "select 1 from counters where queue_id not in (select id from queues)",
        ),
    ] {
        assert_eq!(session.run(sql), [""; 0], "{what}");
    }
}

/// One thread: a worker that also enqueues and changes jobs.
struct Writer<'a> {
    fixture: &'a Fixture,
    number: usize,
    worker: WorkerId,
    /// How often it has died and come back.
    lives: usize,
    held: Vec<LeaseRef>,
    random: fastrand::Rng,
    /// The attempts that any thread has got.
    given: &'a Mutex<HashSet<LeaseRef>>,
}

impl<'a> Writer<'a> {
    fn new(fixture: &'a Fixture, number: usize, given: &'a Mutex<HashSet<LeaseRef>>) -> Self {
        let random = fastrand::Rng::with_seed(number as u64);
        let worker = fixture.worker(&format!("w{number}-0"));
        Self { fixture, number, worker, lives: 0, held: Vec::new(), random, given }
    }

    fn run(mut self) {
        for step in 0..STEPS {
            match self.random.u8(0..12) {
                0..4 => self.enqueue(step),
                4..8 => self.exchange(),
                8 => self.extend(),
                9 => self.change(step),
                10 => self.fixture.pass_millis(self.random.u64(0..2_000)),
                _ => self.die(),
            }
        }
    }

    fn enqueue(&mut self, step: usize) {
        let number = self.number;
        let queue = QUEUES[self.random.usize(0..QUEUES.len())];
        let mut new =
            job(&format!("j{number}-{step}")).queue(queue).priority(self.random.i32(-1..2)).tags(&["t"]);
        match self.random.u8(0..6) {
            0 => new = new.delay_secs(self.random.u64(0..5)),
            1 => new = new.unique_key(&format!("k{}", self.random.u8(0..3))),
            2 => new = new.batch(&format!("b{}", self.random.u8(0..3))),
            3 => new = new.after(&[&self.any_job(step)]),
            _ => {}
        }
        // A dependency may be unknown.
        let _ = self.fixture.try_enqueue([new]);
    }

    /// The name of a job that a thread may have enqueued.
    fn any_job(&mut self, step: usize) -> String {
        format!("j{}-{}", self.random.usize(0..THREADS), self.random.usize(0..=step))
    }

    fn exchange(&mut self) {
        let outcomes = [Outcome::Success, FAILURE, Outcome::Released];
        let mut kept = Vec::new();
        let mut settlements = Vec::new();
        for lease in std::mem::take(&mut self.held) {
            if self.random.u8(0..4) == 0 {
                kept.push(lease);
            } else {
                let outcome = outcomes[self.random.usize(0..outcomes.len())];
                settlements.push(crate::store::fixture::settlement(&lease, outcome));
            }
        }
        let exchanged = self.fixture.exchange(&self.worker, &settlements, self.random.usize(0..4));
        assert_eq!(exchanged.stale, [], "only this thread reaps this worker");
        let mut given = self.given.lock().expect("no thread panicked");
        for claim in exchanged.claimed {
            assert!(given.insert(claim.lease.clone()), "{:?} was given twice", claim.lease);
            kept.push(claim.lease);
        }
        self.held = kept;
    }

    fn extend(&mut self) {
        let statuses = self.fixture.store.extend(&self.worker, &self.held).expect("extend");
        assert!(!statuses.contains(&store::LeaseStatus::Lost), "{statuses:?}");
    }

    fn change(&mut self, step: usize) {
        let name = self.any_job(step);
        match self.random.u8(0..4) {
            0 => drop(self.fixture.cancel(&name)),
            1 => drop(self.fixture.retry(&name)),
            2 => drop(self.fixture.remove(&name)),
            _ => drop(self.fixture.pause_job(&name)),
        }
    }

    /// The worker dies, others take back its leases, and another worker comes in its place.
    fn die(&mut self) {
        let reaped = self.fixture.reap(&self.worker);
        let reaped: HashSet<LeaseRef> = reaped.into_iter().collect();
        assert_eq!(reaped, std::mem::take(&mut self.held).into_iter().collect());
        self.lives += 1;
        self.worker = self.fixture.worker(&format!("w{}-{}", self.number, self.lives));
    }
}
