//! A store with a clock that tests control, and shorthands for operations on it.

pub(crate) mod new_job;
pub(crate) mod schema;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use domain::job::{Job, JobRecord, NewJob, Usage};
use domain::settings::SettingKey;
use domain::values::name::{BatchName, JobId, QueueName, WorkerId};
use domain::values::timestamp::Timestamp;
use store::sqlite::SqliteStore;
use store::{
    Change, Claim, EnqueueError, EnqueueRefusal, EnqueueResult, Exchange, ExchangeResult, JobFilter, JobVerb,
    LeaseRef, LeaseStatus, NewWorker, Orders, Page, PageStart, Pause, QueueUpdate, RefusedJob, ServedJobs,
    Settlement, Store, StoreError, Targets, Update, Worker, WorkerState,
};
use sys::clock::Clock;
use sys::host::{HostKey, Origin};
use tempfile::TempDir;

use super::fixture::new_job::{JobBuilder, job_id, queue_name};
use super::fixture::schema::Schema;

/// Makes each of these functions a test on each store, with a recount at its end. Another store needs another module here
/// and another constructor of [`Fixture`].
macro_rules! every_store {
    ($($test:ident),+ $(,)?) => {
        mod sqlite {
            use $crate::store::fixture::Fixture;

            $(
                #[test]
                fn $test() {
                    let fixture = Fixture::sqlite();
                    super::$test(&fixture);
                    fixture.recount();
                }
            )+
        }

        mod postgres {
            use $crate::store::fixture::Fixture;

            $(
                #[test]
                fn $test() {
                    let fixture = Fixture::postgres();
                    super::$test(&fixture);
                    fixture.recount();
                }
            )+
        }
    };
}
pub(super) use every_store;

pub const FAILURE: Outcome = Outcome::Failure { exit_code: 1 };
/// The user who makes changes in these tests.
pub const ACTOR: &str = "tester";

/// The initial wall clock time of every test.
pub const START_MILLIS: i64 = 1_800_000_000_000;

/// A clock that only tests advance.
#[derive(Debug)]
pub struct TestClock {
    wall: AtomicI64,
    awake: AtomicI64,
    /// How long a reader of the clock is kept waiting after it has read the wall clock, in milliseconds.
    stall: AtomicU64,
}

impl Default for TestClock {
    fn default() -> Self {
        Self {
            wall: AtomicI64::new(START_MILLIS),
            awake: AtomicI64::new(5_000_000),
            stall: AtomicU64::new(0),
        }
    }
}

impl TestClock {
    /// Advances both clocks.
    pub fn advance(&self, by: Duration) {
        let millis = i64::try_from(by.as_millis()).expect("the duration fits into milliseconds");
        self.wall.fetch_add(millis, Ordering::SeqCst);
        self.awake.fetch_add(millis, Ordering::SeqCst);
    }

    /// Makes real time pass within each transaction, as on a busy machine.
    pub fn stall(&self, by: Duration) {
        let millis = u64::try_from(by.as_millis()).expect("the duration fits into milliseconds");
        self.stall.store(millis, Ordering::SeqCst);
    }

    /// Sets the wall clock forwards or backwards.
    pub fn jump(&self, millis: i64) {
        self.wall.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn wall_millis(&self) -> i64 {
        self.wall.load(Ordering::SeqCst)
    }

    fn awake_millis(&self) -> i64 {
        std::thread::sleep(Duration::from_millis(self.stall.load(Ordering::SeqCst)));
        self.awake.load(Ordering::SeqCst)
    }
}

#[derive(Debug)]
pub struct Fixture {
    pub store: Box<dyn Store>,
    pub clock: Arc<TestClock>,
    /// Deleted with the fixture, after the store was closed.
    place: Option<Place>,
}

/// Where a store is.
#[derive(Debug)]
enum Place {
    Folder(TempDir),
    Schema(Schema),
}

impl Fixture {
    pub fn sqlite() -> Self {
        let home = tempfile::tempdir().expect("a temporary folder");
        let fixture = Self::sqlite_in(home.path());
        Self { place: Some(Place::Folder(home)), ..fixture }
    }

    /// The store in a schema of its own.
    pub fn postgres() -> Self {
        let schema = Schema::new();
        let fixture = Self::postgres_in(&schema, Arc::new(TestClock::default()));
        Self { place: Some(Place::Schema(schema)), ..fixture }
    }

    /// The store in a schema that the caller owns, with a session of its own.
    pub fn postgres_in(schema: &Schema, clock: Arc<TestClock>) -> Self {
        let store = schema.open(clock.clone()).expect("a store");
        Self { store: Box::new(store), clock, place: None }
    }

    /// The store in a folder that the caller owns.
    pub fn sqlite_in(home: &Path) -> Self {
        let clock = Arc::new(TestClock::default());
        let store = SqliteStore::open(&home.join("queue.db"), clock.clone()).expect("a store");
        Self { store: Box::new(store), clock, place: None }
    }

    /// Another connection to the same store, as of a process that has just started.
    pub fn new_connection(&self) -> Box<dyn Store> {
        match self.place.as_ref().expect("the fixture owns its place") {
            Place::Folder(home) => {
                let path = home.path().join("queue.db");
                Box::new(SqliteStore::open(&path, self.clock.clone()).expect("a store"))
            }
            Place::Schema(schema) => Box::new(schema.open(self.clock.clone()).expect("a store")),
        }
    }

    // Time

    pub fn now(&self) -> Timestamp {
        self.store.now().expect("the time")
    }

    pub fn pass_secs(&self, secs: u64) {
        self.clock.advance(Duration::from_secs(secs));
    }

    pub fn pass_millis(&self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
    }

    // Jobs

    /// Enqueues one job that must be new.
    pub fn enqueue(&self, job: impl Into<JobBuilder>) {
        let job = job.into();
        let answers = self.enqueue_all([job]);
        assert!(matches!(answers[..], [EnqueueResult::Created(_)]), "the job is new: {answers:?}");
    }

    pub fn enqueue_all(&self, jobs: impl IntoIterator<Item = JobBuilder>) -> Vec<EnqueueResult> {
        self.try_enqueue(jobs).expect("the jobs are stored")
    }

    /// The position of the refused job, and the reason.
    pub fn refused(&self, jobs: impl IntoIterator<Item = JobBuilder>) -> (usize, EnqueueRefusal) {
        match self.try_enqueue(jobs) {
            Err(EnqueueError::Refused(RefusedJob { at, reason })) => (at, reason),
            other => panic!("the jobs should be refused: {other:?}"),
        }
    }

    pub fn try_enqueue(
        &self,
        jobs: impl IntoIterator<Item = JobBuilder>,
    ) -> Result<Vec<EnqueueResult>, EnqueueError> {
        let jobs: Vec<NewJob> = jobs.into_iter().map(NewJob::from).collect();
        self.store.enqueue(&jobs)
    }

    pub fn job(&self, id: &str) -> Job {
        let found = self.store.find(&job_id(id)).expect("find");
        found.unwrap_or_else(|| panic!("there is no job {id}"))
    }

    pub fn record(&self, id: &str) -> JobRecord {
        let found = self.store.record(&job_id(id)).expect("record");
        found.unwrap_or_else(|| panic!("there is no job {id}"))
    }

    pub fn state(&self, id: &str) -> StateName {
        self.job(id).life.state.name()
    }

    /// The outcomes of the attempts that ended.
    pub fn outcomes(&self, id: &str) -> Vec<Outcome> {
        let history = self.record(id).history;
        history.iter().filter_map(|attempt| Some(attempt.ending.as_ref()?.outcome)).collect()
    }

    /// Changes these jobs, one portion after the other. The results are in the order of the ids.
    pub fn change_all(&self, verb: JobVerb, ids: &[JobId]) -> Vec<Change> {
        change_all(self.store.as_ref(), verb, ids, ACTOR).expect("the jobs are changed")
    }

    pub fn cancel(&self, id: &str) -> Change {
        one(self.change_all(JobVerb::CANCEL, &[job_id(id)]))
    }

    pub fn pause_job(&self, id: &str) -> Change {
        one(self.change_all(JobVerb::Pause, &[job_id(id)]))
    }

    pub fn resume_job(&self, id: &str) -> Change {
        one(self.change_all(JobVerb::Resume, &[job_id(id)]))
    }

    pub fn retry(&self, id: &str) -> Change {
        one(self.change_all(JobVerb::Retry, &[job_id(id)]))
    }

    pub fn remove(&self, id: &str) -> Change {
        one(self.change_all(JobVerb::Remove, &[job_id(id)]))
    }

    /// The ids of all jobs that match a filter, in its order, read in pages of `limit`.
    pub fn list_by(&self, filter: &JobFilter, limit: usize) -> Vec<String> {
        ids(self.pages(filter, limit).iter().map(|job| &job.id))
    }

    fn pages(&self, filter: &JobFilter, limit: usize) -> Vec<Job> {
        let mut jobs: Vec<Job> = Vec::new();
        let mut seen = HashSet::new();
        loop {
            let after = jobs.last().map(|job| PageStart::Job(job.id.clone()));
            let page = self.store.list(filter, &Page { limit, after }).expect("list");
            assert!(page.len() <= limit, "a page has at most {limit} jobs");
            if page.is_empty() {
                return jobs;
            }
            for job in page {
                assert!(seen.insert(job.id.clone()), "{} is listed once", job.id);
                jobs.push(job);
            }
        }
    }

    /// Compares the counters of every queue and batch with a count of all jobs.
    pub fn recount(&self) {
        assert_eq!(self.store.recount().expect("a recount"), [], "the derived tables agree with the jobs");
        self.recount_batches();
        let mut counted: BTreeMap<QueueName, BTreeMap<StateName, u64>> = BTreeMap::new();
        for job in self.pages(&JobFilter::default(), 1_000) {
            let counts = counted.entry(job.queue).or_default();
            *counts.entry(job.life.state.name()).or_default() += 1;
        }
        for queue in self.store.queues().expect("queues") {
            let counts = counted.remove(&queue.name).unwrap_or_default();
            assert_eq!(queue.counts, counts, "the counters of queue {} equal a recount", queue.name);
        }
        assert!(counted.is_empty(), "jobs in unknown queues: {counted:?}");
    }

    fn recount_batches(&self) {
        let mut counted: BTreeMap<BatchName, BTreeMap<StateName, u64>> = BTreeMap::new();
        for job in self.pages(&JobFilter::default(), 1_000) {
            if let Some(batch) = job.batch {
                *counted.entry(batch).or_default().entry(job.life.state.name()).or_default() += 1;
            }
        }
        for batch in self.store.batches(usize::MAX).expect("batches") {
            let counts = counted.remove(&batch.name).unwrap_or_default();
            assert!(!counts.is_empty(), "batch {} has no jobs", batch.name);
            assert_eq!(batch.counts, counts, "the counters of batch {} equal a recount", batch.name);
            let is_over = counts.keys().all(|state| state.is_finished());
            assert_eq!(batch.finished_at.is_some(), is_over, "whether batch {} is finished", batch.name);
        }
        assert!(counted.is_empty(), "jobs in unknown batches: {counted:?}");
    }

    // Workers

    /// A new worker that serves all queues.
    pub fn worker(&self, id: &str) -> WorkerId {
        self.worker_serving(id, ServedJobs::All)
    }

    pub fn worker_serving(&self, id: &str, served: ServedJobs) -> WorkerId {
        self.register(NewWorker { served, ..new_worker(id) })
    }

    pub fn register(&self, worker: NewWorker) -> WorkerId {
        self.store.register(&worker).expect("register");
        worker.id
    }

    pub fn exchange(&self, worker: &WorkerId, settlements: &[Settlement], want: usize) -> ExchangeResult {
        let exchange = Exchange { worker, settlements, want, want_limited: want };
        self.store.exchange(&exchange).expect("exchange")
    }

    /// The ids of up to `want` jobs that the worker claims now.
    pub fn claim(&self, worker: &WorkerId, want: usize) -> Vec<String> {
        ids(self.leases(worker, want).iter().map(|lease| &lease.job))
    }

    pub fn leases(&self, worker: &WorkerId, want: usize) -> Vec<LeaseRef> {
        self.claims(worker, want).into_iter().map(|claim| claim.lease).collect()
    }

    pub fn claims(&self, worker: &WorkerId, want: usize) -> Vec<Claim> {
        let exchanged = self.exchange(worker, &[], want);
        assert!(exchanged.claimed.len() <= want, "the store returned more claims than wanted");
        exchanged.claimed
    }

    /// The lease on the next job. Panics if no job is ready.
    pub fn lease(&self, worker: &WorkerId) -> LeaseRef {
        self.leases(worker, 1).pop().expect("a job is ready")
    }

    /// Records an outcome; `false` if the store reports the lease as lost.
    pub fn settle(&self, worker: &WorkerId, lease: &LeaseRef, outcome: Outcome) -> bool {
        let exchanged = self.exchange(worker, &[settlement(lease, outcome)], 0);
        exchanged.stale.is_empty()
    }

    /// Runs the next job with this outcome and returns its id.
    pub fn run(&self, worker: &WorkerId, outcome: Outcome) -> String {
        let lease = self.lease(worker);
        assert!(self.settle(worker, &lease, outcome), "a fresh lease is current");
        lease.job.to_string()
    }

    pub fn extend(&self, worker: &WorkerId, lease: &LeaseRef) -> LeaseStatus {
        let statuses = self.store.extend(worker, std::slice::from_ref(lease));
        one(statuses.expect("extend"))
    }

    /// Takes back all of a worker's leases as lost.
    pub fn reap(&self, worker: &WorkerId) -> Vec<LeaseRef> {
        self.store.reap(worker, None, &[]).expect("reap")
    }

    /// As `reap`, with the list of started attempts.
    pub fn reap_started(&self, worker: &WorkerId, started: &[LeaseRef]) -> Vec<LeaseRef> {
        self.store.reap(worker, Some(started), &[]).expect("reap")
    }

    pub fn retire(&self, worker: &WorkerId) {
        self.store.set_worker_state(worker, WorkerState::Stopped).expect("retire");
    }

    pub fn workers(&self) -> Vec<Worker> {
        self.store.workers().expect("workers")
    }

    /// The workers that hold an expired lease.
    pub fn overdue(&self) -> Vec<WorkerId> {
        let overdue = self.workers().into_iter().filter(|worker| worker.overdue);
        overdue.map(|worker| worker.id).collect()
    }

    pub fn orders(&self, worker: &WorkerId) -> Orders {
        self.store.orders(worker).expect("orders")
    }

    pub fn is_idle(&self, worker: &WorkerId) -> bool {
        self.store.is_idle(worker).expect("is_idle")
    }

    /// The leases that this worker has to cancel.
    pub fn cancelled(&self, worker: &WorkerId) -> Vec<LeaseRef> {
        self.orders(worker).cancelled.into_iter().map(|order| order.lease).collect()
    }

    // Settings and queues

    pub fn set(&self, key: SettingKey, value: &str) {
        self.store.set(key, Some(value), ACTOR).expect("the value is valid");
    }

    pub fn pause(&self, queue: &str) {
        let pause = Pause { by: ACTOR.to_owned(), reason: None };
        self.store.pause_queue(&queue_name(queue), &pause).expect("pause");
    }

    /// Sets both limits of a queue; `None` clears a limit.
    pub fn limit(&self, queue: &str, concurrency: Option<u32>, rate: Option<&str>) {
        let rate = rate.map(|rate| rate.parse().expect("a rate"));
        let update = QueueUpdate {
            concurrency: concurrency.map_or(Update::Clear, Update::Set),
            rate: rate.map_or(Update::Clear, Update::Set),
            ..QueueUpdate::default()
        };
        self.store.set_queue(&queue_name(queue), &update, ACTOR).expect("limits");
    }

    /// Sets the resource limits and retry rules of a queue.
    pub fn set_queue(&self, queue: &str, limits: &str, retry_on: &str, no_retry_on: &str) {
        let update = QueueUpdate {
            limits: Update::Set(limits.parse().expect("limits")),
            retry_on: Update::Set(retry_on.parse().expect("exit codes")),
            no_retry_on: Update::Set(no_retry_on.parse().expect("exit codes")),
            ..QueueUpdate::default()
        };
        self.store.set_queue(&queue_name(queue), &update, ACTOR).expect("the queue is updated");
    }

    pub fn resume(&self, queue: &str) {
        self.store.resume_queue(&queue_name(queue), ACTOR).expect("resume");
    }
}

pub fn new_worker(id: &str) -> NewWorker {
    NewWorker {
        id: id.parse().expect("a worker id"),
        host: "here".to_owned(),
        origin: under_boot("boot-1"),
        pid: 4711,
        supervisor_pid: None,
        served: ServedJobs::All,
        concurrency: 1,
        folder: "/home/tester/.queuectl/workers".into(),
        stop_seen: None,
    }
}

/// An origin with only a boot id.
pub fn under_boot(boot_id: &str) -> Origin {
    let key = HostKey { boot_id: boot_id.to_owned(), ..HostKey::default() };
    Origin { key, ..Origin::default() }
}

pub fn serving(queues: &[&str]) -> ServedJobs {
    ServedJobs::InOrder(queues.iter().map(|name| queue_name(name)).collect())
}

/// A settlement with this outcome and no other data.
pub fn settlement(lease: &LeaseRef, outcome: Outcome) -> Settlement {
    Settlement {
        lease: lease.clone(),
        outcome,
        error: None,
        duration: Duration::ZERO,
        ended: None,
        usage: Usage::default(),
        log_bytes: 0,
        output: None,
    }
}

fn ids<'a>(ids: impl Iterator<Item = &'a JobId>) -> Vec<String> {
    ids.map(JobId::to_string).collect()
}

/// Changes these jobs, one portion after the other. The results are in the order of the ids.
pub fn change_all(
    store: &dyn Store,
    verb: JobVerb,
    ids: &[JobId],
    by: &str,
) -> Result<Vec<Change>, StoreError> {
    let mut changes = Vec::with_capacity(ids.len());
    while changes.len() < ids.len() {
        changes.extend(store.change(verb, Targets::Ids(&ids[changes.len()..]), by)?.changes);
    }
    Ok(changes)
}

fn one<T: std::fmt::Debug>(mut answers: Vec<T>) -> T {
    assert_eq!(answers.len(), 1, "expected one answer: {answers:?}");
    answers.remove(0)
}
