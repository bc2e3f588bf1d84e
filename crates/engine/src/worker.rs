//! A worker: one process with some slots, and a main thread that settles and claims.
//!
//! This file has its start and its end; the main loop is in `event_loop`.

pub(crate) mod dispatcher;
pub(crate) mod event_loop;
pub(crate) mod files;
pub(crate) mod health;
pub(crate) mod idle_end;
pub(crate) mod lease_keeper;
pub(crate) mod ledger;
pub(crate) mod prefetch;
pub(crate) mod relay;
pub(crate) mod slot;
pub(crate) mod spawn_backoff;
pub(crate) mod spool;
pub(crate) mod store_backoff;
pub(crate) mod wake;

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, getppid, set_child_subreaper, set_parent_process_death_signal};

use self::dispatcher::{Dispatcher, Interrupt};
use self::files::{Files, HomeState};
use self::health::HealthNote;
use self::lease_keeper::LeaseKeeper;
use self::ledger::Ledger;
use self::relay::Relay;
use self::spool::Spool;
use self::store_backoff::StoreBackoff;
use self::wake::{Event, Wake};
use super::attempt::command;
use super::attempt::slot_records::Slots;
use super::attempt::{AttemptContext, Rules};
use super::duties::pruner::Pruner;
use super::duties::reaper::Reaper;
use super::duties::sampler::Sampler;
use super::error::EngineError;
use super::hooks::delivery_pool::DeliveryPool;
use super::journal::Journal;
use super::orphans::containment;
use super::orphans::reparented::Orphans;
use domain::job::environment::Environment;
use domain::log;
use domain::settings::Settings;
use domain::values::concurrency::Concurrency;
use domain::values::name::WorkerId;
use domain::values::timestamp::Timestamp;
use store::{
    NewWorker, ServedJobs, Store, StoreError, UnkillableProcess, WorkerSlots, WorkerState, settings,
};
use sys::host;
use sys::host::{Observer, Origin};
use sys::process::{code, load, rlimit, spawn};
use sys::signal::interrupts::Interrupts;
use sys::{failpoint, signal};

/// How long a worker that has finished waits for the store to record that it has stopped.
const RETIRE_TIMEOUT: Duration = Duration::from_secs(30);

/// The parameters of a worker.
#[derive(Debug)]
pub struct WorkerPlan {
    pub id: WorkerId,
    pub home: PathBuf,
    /// The absolute path of the database, if it is not the home's own.
    pub store: Option<OsString>,
    /// The environment of commands that have none of their own.
    pub environment: Environment,
    pub served: ServedJobs,
    /// Slots; `None` follows the setting, also when it changes.
    pub concurrency: Option<Concurrency>,
    pub supervisor_pid: u32,
    pub stop_seen: Option<u64>,
    pub until_empty: bool,
    /// End after this time without work, as the setting `autostart_idle` says.
    pub until_idle: bool,
    /// Whether the journal is also written to standard error.
    pub echo: bool,
    /// The pipe on which it reports that it is ready.
    pub ready: OwnedFd,
}

/// How a worker ended that was asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerExit {
    Stopped,
    /// It still holds leases on attempts that it could not kill: other workers release them when those have ended.
    HoldsLeases,
    /// The store does not allow it to work, and only a person can change that.
    Refused,
    /// A newer program has migrated the store: it has finished its attempts and claims no more.
    Outdated,
}

impl WorkerExit {
    /// The exit code by which the supervisor recognises `HoldsLeases`.
    pub const HOLDS_LEASES_CODE: u8 = 100;
    /// The same for `Refused`. A panic exits with 101.
    pub const REFUSED_CODE: u8 = 102;
    /// The same for `Outdated`.
    pub const OUTDATED_CODE: u8 = 103;
}

/// Opens the store; also called after a commit whose outcome is unknown.
pub type OpenStore<'a> = &'a (dyn Fn() -> Result<Box<dyn Store>, StoreError> + Sync);

/// Runs a worker until it is asked to stop, or with `until_empty` until nothing is left to do.
pub fn run(plan: &WorkerPlan, open: OpenStore<'_>) -> Result<WorkerExit, EngineError> {
    match try_run(plan, open) {
        // The supervisor says why, once for all of its workers.
        Err(EngineError::Store(StoreError::NotAllowed { .. })) => Ok(WorkerExit::Refused),
        result => result,
    }
}

fn try_run(plan: &WorkerPlan, open: OpenStore<'_>) -> Result<WorkerExit, EngineError> {
    signal::reset_ignored();
    signal::survive_closed_pipe();
    signal::survive_file_limit();
    abort_on_panic();
    rlimit::raise_open_files();
    let signals = Interrupts::catch(&[
        Signal::USR1,
        Signal::USR2,
        Signal::TERM,
        Signal::INT,
        Signal::HUP,
        Signal::QUIT,
    ])
    .map_err(EngineError::system("failed to install signal handlers"))?;
    spawn::keep_descriptors_to_ourselves()
        .map_err(EngineError::system("failed to set close-on-exec on descriptors"))?;
    drain_on_supervisor_death(plan.supervisor_pid)?;
    let mut worker = Worker::begin(plan, open, signals)?;
    std::thread::scope(|threads| {
        let spool = worker.context.spool.clone();
        if let Some(spool) = &spool {
            let (spool, workers) = (Arc::clone(spool), worker.files.folder.clone());
            threads.spawn(move || spool::run(&spool, &workers, open));
        }
        worker.report_ready();
        code::release();
        let result = worker.work();
        if let Some(spool) = spool {
            spool.close();
        }
        result
    })
}

/// A thread that panics would abandon its job; when the whole process dies, the supervisor recovers the job.
fn abort_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        std::process::abort();
    }));
}

/// Arranges that this process drains when the supervisor dies, and checks that it had not died before.
fn drain_on_supervisor_death(supervisor_pid: u32) -> Result<(), EngineError> {
    let system = EngineError::system("failed to arrange a signal for the death of the supervisor");
    set_parent_process_death_signal(Some(Signal::USR1)).map_err(|error| system(error.into()))?;
    set_child_subreaper(Some(getpid()))
        .map_err(|error| EngineError::system("failed to become a subreaper")(error.into()))?;
    let parent = getppid().map_or(0, |pid| pid.as_raw_pid().cast_unsigned());
    if parent == supervisor_pid { Ok(()) } else { Err(EngineError::NoSupervisor) }
}

/// How far the shutdown of a worker has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Working,
    /// Claims nothing more and lets running attempts finish; those still running at `kill_at` are killed.
    Draining {
        kill_at: Option<Instant>,
    },
    /// Running attempts are being killed and released.
    Ending,
}

/// The state of the main thread; its loop is in `event_loop`.
pub(super) struct Worker<'a> {
    pub(super) plan: &'a WorkerPlan,
    pub(super) open: OpenStore<'a>,
    pub(super) store: Box<dyn Store>,
    pub(super) settings: Settings,
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) context: Arc<AttemptContext>,
    pub(super) journal: Arc<Journal>,
    pub(super) ledger: Ledger,
    /// Only where another machine can take leases over.
    pub(super) lease_keeper: Option<LeaseKeeper>,
    pub(super) store_backoff: StoreBackoff,
    /// Since when the store has not allowed this worker to work.
    pub(super) refused_since: Option<Instant>,
    pub(super) reaper: Reaper,
    /// When the next schedule is due, as of the last orders.
    pub(super) next_fire: Option<Timestamp>,
    pub(super) pruner: Pruner,
    pub(super) sampler: Sampler,
    pub(super) wake: Wake,
    pub(super) signals: Interrupts,
    /// The store's hints that there is work, or that there are orders for this worker.
    pub(super) hints: Box<dyn store::Wake>,
    pub(super) phase: Phase,
    /// A newer program has migrated the store, and this worker only finishes what it runs.
    pub(super) is_outdated: bool,
    pub(super) timers: Timers,
    pub(super) relay: Relay,
    pub(super) files: Files,
    pub(super) health: HealthNote,
    pub(super) home_state: HomeState,
    /// Processes that could not be killed and that are not noted in the store yet.
    pub(super) unkillable: Vec<UnkillableProcess>,
    pub(super) deliveries: DeliveryPool,
    /// When the next delivery to a hook is due.
    pub(super) next_delivery: Option<Timestamp>,
    /// Since when it has had nothing to do, for a worker that ends after a while.
    pub(super) idle_since: Option<Instant>,
    /// Since when only deliveries to hooks have kept this worker from ending.
    pub(super) waiting_for_deliveries_since: Option<Instant>,
    threads: Vec<JoinHandle<()>>,
    /// How many attempts may run at once. Kept, because counting the processors reads several files.
    concurrency: u32,
    /// The slots of this worker as the store last recorded them.
    published_slots: WorkerSlots,
    /// The problem of this worker as the store last recorded it.
    published_problem: Option<String>,
    stop_seen: u64,
}

impl<'a> Worker<'a> {
    fn begin(plan: &'a WorkerPlan, open: OpenStore<'a>, signals: Interrupts) -> Result<Self, EngineError> {
        let files = Files::create(&plan.home, &plan.id)?;
        let journal = Arc::new(Journal::open(&plan.home, plan.id.as_str(), plan.echo));
        let store = open()?;
        store.prepare_logs(&plan.home.join(log::FOLDER))?;
        let settings = settings::in_force(store.as_ref())?;
        let system = EngineError::system("failed to determine the host of this worker");
        let origin = Origin::of_worker(&files.folder, plan.id.as_str()).map_err(system)?;
        let observer = Observer::here().map_err(system)?;
        let dispatcher = Dispatcher::new(rules(&settings), plan.served.clone())
            .map_err(EngineError::system("failed to create a bell"))?;
        let concurrency = slots_of(plan, &settings);
        let new = NewWorker {
            id: plan.id.clone(),
            host: host::name(),
            origin,
            pid: std::process::id(),
            supervisor_pid: Some(plan.supervisor_pid),
            served: plan.served.clone(),
            concurrency,
            folder: files.folder.clone(),
            stop_seen: plan.stop_seen,
        };
        // A registered worker is up at once: making its control group takes the longest.
        let context = Arc::new(attempt_context(plan, &files, store.as_ref())?);
        let dispatcher = Arc::new(dispatcher);
        let hints = store.listen(&new)?;
        let stop_seen = store.register(&new)?;
        let lease_keeper =
            store.spans_machines().then(|| LeaseKeeper::start(&dispatcher, &journal, &settings));
        let lease_keeper =
            lease_keeper.transpose().map_err(EngineError::system("failed to start the keeper of leases"))?;
        files::remove_stale(&files.folder, store.as_ref())?;
        let mut worker = Self {
            deliveries: DeliveryPool::new(&context)
                .map_err(EngineError::system("failed to create a bell"))?,
            next_delivery: None,
            idle_since: None,
            waiting_for_deliveries_since: None,
            wake: Wake::new().map_err(EngineError::system("failed to create an epoll instance"))?,
            ledger: Ledger::new(plan.id.clone(), &dispatcher, &context, &journal),
            lease_keeper,
            store_backoff: StoreBackoff::default(),
            refused_since: None,
            dispatcher,
            context,
            reaper: Reaper::new(observer, files.folder.clone()),
            next_fire: None,
            pruner: Pruner::new(),
            sampler: Sampler::new(),
            hints,
            stop_seen,
            published_slots: WorkerSlots { concurrency, most: concurrency },
            published_problem: None,
            phase: Phase::Working,
            is_outdated: false,
            timers: Timers::now(),
            relay: Relay::default(),
            threads: Vec::new(),
            concurrency,
            plan,
            open,
            store,
            settings,
            journal,
            signals,
            files,
            health: HealthNote::default(),
            home_state: HomeState::Kept,
            unkillable: Vec::new(),
        };
        worker.apply_concurrency()?;
        worker.watch().map_err(EngineError::system("failed to watch for events"))?;
        worker.journal.worker_started(worker.slots());
        Ok(worker)
    }

    fn watch(&self) -> io::Result<()> {
        self.wake.watch(&self.signals, Event::Signal)?;
        self.wake.watch(self.hints.orders(), Event::Orders)?;
        self.wake.watch(&self.deliveries, Event::DeliveryFinished)?;
        self.wake.watch(self.dispatcher.as_ref(), Event::AttemptFinished)
    }

    /// Reports to the supervisor, with the stop request that it must pass to this worker's replacements.
    fn report_ready(&self) {
        let line = format!("{}\n", self.stop_seen);
        // If the supervisor is dead, its death signal has already asked this worker to drain.
        let _ = rustix::io::write(&self.plan.ready, line.as_bytes());
    }

    /// How many attempts may run at once.
    pub(super) fn slots(&self) -> usize {
        usize::try_from(self.concurrency).unwrap_or(usize::MAX)
    }

    /// Adopts the setting, and the number of processors if it follows that. Starts missing slots; surplus slots stay idle.
    pub(super) fn apply_concurrency(&mut self) -> Result<(), EngineError> {
        self.concurrency = slots_of(self.plan, &self.settings);
        self.dispatcher.set_max_running(self.slots());
        self.start_missing_slots()
    }

    fn start_missing_slots(&mut self) -> Result<(), EngineError> {
        let slots = self.slots() + self.dispatcher.given_up();
        while self.threads.len() < slots {
            let thread = slot::start(&self.dispatcher, &self.context, &self.journal)
                .map_err(EngineError::system("failed to start a slot"))?;
            self.threads.push(thread);
        }
        Ok(())
    }

    /// Records a changed concurrency in the store, and how many attempts that were started before still run.
    pub(super) fn publish_slots(&mut self) -> Result<(), StoreError> {
        let load = self.dispatcher.load();
        // While one attempt must run alone the other slots are useless, so they must not count as capacity.
        let concurrency = if load.is_reserved { 1 } else { self.concurrency };
        let busy = u32::try_from(load.running).unwrap_or(u32::MAX);
        let slots = WorkerSlots { concurrency, most: busy.max(concurrency) };
        if slots != self.published_slots {
            self.store.set_worker_slots(&self.plan.id, slots)?;
            self.published_slots = slots;
        }
        Ok(())
    }

    /// Records a changed problem in the store, for readers on other machines, who cannot read the lock file.
    pub(super) fn publish_problem(&mut self) -> Result<(), StoreError> {
        let problem = self.health.published();
        if self.store.spans_machines() && problem != self.published_problem.as_deref() {
            self.store.set_worker_health(&self.plan.id, problem)?;
            self.published_problem = problem.map(str::to_owned);
        }
        Ok(())
    }

    /// Interrupts all running attempts and waits until they have ended.
    pub(super) fn abandon(&mut self, how: Interrupt) {
        self.dispatcher.recall();
        self.dispatcher.interrupt_all(how);
        self.deliveries.stop();
        self.close();
    }

    fn close(&mut self) {
        self.dispatcher.close();
        if !self.dispatcher.unkillable_leases().is_empty() {
            // The slots of unkillable commands do not end before these do; this process must not wait for them.
            return;
        }
        for thread in self.threads.drain(..) {
            // A panic in a slot has already aborted the process.
            let _ = thread.join();
        }
    }

    /// Ends the worker: everything is recorded, and only attempts that cannot be killed still run.
    fn end(&mut self) -> Result<WorkerExit, EngineError> {
        self.close();
        self.stop_deliveries();
        let left = self.dispatcher.unkillable_leases();
        if !left.is_empty() {
            self.journal.worker_stopped_with_unkillable(&left);
            self.journal.flush();
            return Ok(WorkerExit::HoldsLeases);
        }
        failpoint::hit("worker.before_retire");
        self.retire()?;
        failpoint::hit("worker.after_retire");
        self.journal.note(format_args!("worker stopped"));
        self.journal.flush();
        self.files.remove();
        Ok(if self.is_outdated { WorkerExit::Outdated } else { WorkerExit::Stopped })
    }

    /// Retries while the store is busy: the worker holds no lease any more, so no reaper takes it for hung.
    fn retire(&self) -> Result<(), StoreError> {
        let began = Instant::now();
        loop {
            match self.store.set_worker_state(&self.plan.id, WorkerState::Stopped) {
                Err(StoreError::Busy { .. }) if began.elapsed() < RETIRE_TIMEOUT => {}
                result => return result,
            }
        }
    }
}

fn slots_of(plan: &WorkerPlan, settings: &Settings) -> u32 {
    plan.concurrency.unwrap_or(settings.concurrency).slots(load::processors())
}

pub(super) fn rules(settings: &Settings) -> Rules {
    Rules { kill_grace: settings.kill_grace, log_max_bytes: settings.log_max_bytes, traces: settings.traces }
}

fn attempt_context(
    plan: &WorkerPlan,
    files: &Files,
    store: &dyn Store,
) -> Result<AttemptContext, EngineError> {
    let spool = store.spans_machines().then(|| Arc::new(Spool::new(&plan.home)));
    let slots = Slots::create(&files.folder, plan.id.as_str())
        .map_err(EngineError::system("failed to create the file of slots"))?;
    let orphans = Orphans::new().map_err(EngineError::system("failed to watch for orphans"))?;
    let containment = containment::make(&files.folder, plan.id.as_str())
        .map_err(EngineError::system("failed to record the cgroup of this worker"))?;
    Ok(AttemptContext {
        command: command::Context {
            worker_id: plan.id.clone(),
            home: plan.home.clone(),
            store: plan.store.clone(),
            own_environment: plan.environment.clone(),
        },
        logs: spool.as_ref().map_or_else(|| plan.home.join(log::FOLDER), |spool| spool.folder.clone()),
        spool,
        slots,
        orphans,
        containment,
        was_short: AtomicBool::new(false),
        is_followed: matches!(plan.served, ServedJobs::Job(_)),
    })
}

/// When periodic duties are due.
#[derive(Debug)]
pub(super) struct Timers {
    /// To read orders and look for dead workers.
    pub(super) tick: Instant,
    /// To check the locks of other workers, while ticks are rare.
    pub(super) locks: Instant,
    /// To look for work.
    pub(super) poll: Instant,
    pub(super) heartbeat: Instant,
    /// Until then only other workers listen to the bell.
    pub(super) muted_until: Instant,
    /// When to try a store again that has failed.
    pub(super) store: Instant,
    /// To touch the lock file, which shows that this worker is alive.
    pub(super) touch: Instant,
}

impl Timers {
    fn now() -> Self {
        let now = Instant::now();
        Self { tick: now, locks: now, poll: now, heartbeat: now, muted_until: now, store: now, touch: now }
    }
}
