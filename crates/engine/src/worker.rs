//! A worker: one process with some slots, and one thread, this one, that keeps the books.
//!
//! This file is how it begins and ends; what it does in between is in `duties`.

pub(crate) mod dispatcher;
pub(crate) mod event_loop;
pub(crate) mod files;
pub(crate) mod health;
pub(crate) mod ledger;
pub(crate) mod prefetch;
pub(crate) mod relay;
pub(crate) mod slot;
pub(crate) mod spawn_backoff;
pub(crate) mod wake;

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, getppid, set_child_subreaper, set_parent_process_death_signal};

use super::attempt::command;
use super::attempt::slot_records::Slots;
use super::attempt::{Rules, Surroundings};
use super::duties::pruner::Pruner;
use super::duties::reaper::Reaper;
use super::duties::scheduler::Scheduler;
use super::error::EngineError;
use super::hooks::delivery_pool::Messenger;
use super::journal::Journal;
use super::orphans::reparented::Adopted;
use super::worker::dispatcher::{Desk, Interrupt, Order};
use super::worker::event_loop::End;
use super::worker::files::{Files, HomeFate};
use super::worker::health::HealthNote;
use super::worker::ledger::Ledger;
use super::worker::relay::Passed;
use super::worker::wake::{Event, Wake};
use domain::job::environment::Environment;
use domain::log;
use domain::settings::Settings;
use domain::values::name::WorkerId;
use domain::values::timestamp::Timestamp;
use store::{
    NewWorker, ServedJobs, Store, StoreError, UnkillableProcess, WorkerSlots, WorkerState, settings,
};
use sys::bell::Bell;
use sys::cgroup::DelegatedGroup;
use sys::host;
use sys::host::{Origin, Vantage};
use sys::process::{limit, spawn, user};
use sys::signal::interrupts::Interrupts;
use sys::{failpoint, signal};

/// How long a worker that has nothing left to do waits for its turn to say so.
const RETIRE_PATIENCE: Duration = Duration::from_secs(30);

/// What a worker is told when it is started.
#[derive(Debug)]
pub struct WorkerPlan {
    pub id: WorkerId,
    pub home: PathBuf,
    /// The database as an absolute path, where it is another than the home's own.
    pub store: Option<PathBuf>,
    pub served: ServedJobs,
    /// Slots; where none are given the setting counts, also when it changes.
    pub concurrency: Option<u32>,
    pub supervisor_pid: u32,
    pub stop_seen: Option<u64>,
    pub until_empty: bool,
    /// Whether the journal is also written to standard error.
    pub echo: bool,
    /// Where to say that it is ready.
    pub ready: OwnedFd,
}

/// How a worker ended that was told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Farewell {
    Stopped,
    /// It still holds leases on attempts that it could not kill: others give them back when these have ended.
    LeftBehind,
}

impl Farewell {
    /// The exit code by which its supervisor tells.
    pub const LEFT_BEHIND: u8 = 100;
}

/// Opens the store; called again after a commit whose outcome is unknown.
pub type OpenStore<'a> = &'a dyn Fn() -> Result<Box<dyn Store>, StoreError>;

/// Runs a worker until it is told to stop, or, if it was asked for, until nothing is left to do.
pub fn run(plan: &WorkerPlan, open: OpenStore<'_>) -> Result<Farewell, EngineError> {
    signal::reset_ignored();
    signal::survive_closed_pipe();
    signal::survive_file_limit();
    abort_on_panic();
    limit::raise_open_files();
    let signals = Interrupts::catch(&[
        Signal::USR1,
        Signal::USR2,
        Signal::TERM,
        Signal::INT,
        Signal::HUP,
        Signal::QUIT,
    ])
    .map_err(EngineError::system("failed to take over signals"))?;
    spawn::keep_descriptors_to_ourselves().map_err(EngineError::system("failed to mark descriptors"))?;
    tie_to_supervisor(plan.supervisor_pid)?;
    let mut worker = Worker::begin(plan, open, signals)?;
    worker.say_ready();
    match worker.work()? {
        End::Drained => worker.end(),
        End::HomeDeleted => Ok(Farewell::Stopped),
    }
}

/// A thread that panics would leave its job behind; a process that dies leaves it to the supervisor.
fn abort_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        std::process::abort();
    }));
}

/// When the supervisor dies this process is told to drain. If it died before that was arranged, nobody is there.
fn tie_to_supervisor(supervisor_pid: u32) -> Result<(), EngineError> {
    let system = EngineError::system("failed to tie the worker to its supervisor");
    set_parent_process_death_signal(Some(Signal::USR1)).map_err(|error| system(error.into()))?;
    set_child_subreaper(Some(getpid()))
        .map_err(|error| EngineError::system("failed to become a subreaper")(error.into()))?;
    let parent = getppid().map_or(0, |pid| pid.as_raw_pid().cast_unsigned());
    if parent == supervisor_pid { Ok(()) } else { Err(EngineError::NoSupervisor) }
}

/// How far a worker is on its way to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Working,
    /// Claims nothing more and lets finish what runs; at that moment, if there is one, it is killed.
    Draining {
        kill_at: Option<Instant>,
    },
    /// What runs is being killed and given back.
    Ending,
}

/// Everything that the thread that keeps the books has at hand. What it does with it is in `duties`.
pub(super) struct Worker<'a> {
    pub(super) plan: &'a WorkerPlan,
    pub(super) open: OpenStore<'a>,
    pub(super) store: Box<dyn Store>,
    pub(super) settings: Settings,
    pub(super) desk: Arc<Desk>,
    pub(super) around: Arc<Surroundings>,
    pub(super) journal: Arc<Journal>,
    pub(super) ledger: Ledger,
    pub(super) reaper: Reaper,
    pub(super) scheduler: Scheduler,
    pub(super) pruner: Pruner,
    pub(super) wake: Wake,
    pub(super) signals: Interrupts,
    /// Rings when there may be work for anybody.
    pub(super) work_bell: Bell,
    /// Rings when there are orders for this worker.
    pub(super) own_bell: Bell,
    pub(super) phase: Phase,
    pub(super) times: Times,
    pub(super) passed: Passed,
    pub(super) files: Files,
    pub(super) health: HealthNote,
    pub(super) home_fate: HomeFate,
    /// Processes that could not be killed and that are not noted in the store yet.
    pub(super) unkillable: Vec<UnkillableProcess>,
    pub(super) messenger: Messenger,
    /// When a hook is to be told something.
    pub(super) next_delivery: Option<Timestamp>,
    /// Since when only that keeps this worker from ending.
    pub(super) farewell: Option<Instant>,
    threads: Vec<JoinHandle<()>>,
    /// What the store shows of this worker.
    shown: WorkerSlots,
    stop_seen: u64,
}

impl<'a> Worker<'a> {
    fn begin(plan: &'a WorkerPlan, open: OpenStore<'a>, signals: Interrupts) -> Result<Self, EngineError> {
        let files = Files::create(&plan.home, &plan.id)?;
        let own_bell = Bell::open(&files.bell()).map_err(EngineError::system("failed to make a bell"))?;
        let journal = Arc::new(Journal::open(&plan.home, plan.id.as_str(), plan.echo));
        let store = open()?;
        store.finish_restore(&plan.home.join(log::FOLDER))?;
        let settings = settings::in_force(store.as_ref())?;
        let system = EngineError::system("failed to read where this worker runs");
        let origin = Origin::of_worker(files.folder(), plan.id.as_str()).map_err(system)?;
        let vantage = Vantage::here().map_err(system)?;
        let desk = Desk::new(rules(&settings), order(&plan.served))
            .map_err(EngineError::system("failed to make a bell"))?;
        let concurrency = plan.concurrency.unwrap_or(settings.concurrency);
        let registered = store.register(&NewWorker {
            id: plan.id.clone(),
            host: host::name(),
            origin,
            pid: std::process::id(),
            supervisor_pid: Some(plan.supervisor_pid),
            served: plan.served.clone(),
            concurrency,
            folder: files.folder().to_owned(),
            stop_seen: plan.stop_seen,
        })?;
        files::tidy(files.folder(), store.as_ref())?;
        let around = Arc::new(surroundings(plan, &files)?);
        let mut worker = Self {
            messenger: Messenger::new(&around).map_err(EngineError::system("failed to make a bell"))?,
            next_delivery: None,
            farewell: None,
            around,
            wake: Wake::new().map_err(EngineError::system("failed to make an epoll instance"))?,
            desk: Arc::new(desk),
            ledger: Ledger::new(plan.id.clone()),
            reaper: Reaper::new(vantage),
            scheduler: Scheduler::default(),
            pruner: Pruner::new(),
            work_bell: registered.bell,
            stop_seen: registered.stop_seen,
            shown: WorkerSlots { concurrency, most: concurrency },
            phase: Phase::Working,
            times: Times::now(),
            passed: Passed::default(),
            threads: Vec::new(),
            plan,
            open,
            store,
            settings,
            journal,
            signals,
            own_bell,
            files,
            health: HealthNote::default(),
            home_fate: HomeFate::Kept,
            unkillable: Vec::new(),
        };
        worker.adopt_concurrency()?;
        worker.watch().map_err(EngineError::system("failed to watch for events"))?;
        worker.journal.worker_started(worker.slots());
        Ok(worker)
    }

    fn watch(&self) -> io::Result<()> {
        self.wake.watch(&self.signals, Event::Signal)?;
        self.wake.watch(&self.own_bell, Event::Orders)?;
        self.wake.watch(&self.messenger, Event::Told)?;
        self.wake.watch(self.desk.as_ref(), Event::Finished)
    }

    /// Tells the supervisor, with what it must tell those that take this worker's place.
    fn say_ready(&self) {
        let line = format!("{}\n", self.stop_seen);
        // A supervisor that is gone does not hear it; its death has told this worker to drain.
        let _ = rustix::io::write(&self.plan.ready, line.as_bytes());
    }

    /// How many attempts may run at once.
    pub(super) fn slots(&self) -> usize {
        let slots = self.plan.concurrency.unwrap_or(self.settings.concurrency);
        usize::try_from(slots).unwrap_or(usize::MAX)
    }

    /// Starts the slots that are missing. Slots that are too many get nothing to do.
    pub(super) fn adopt_concurrency(&mut self) -> Result<(), EngineError> {
        self.desk.set_most(self.slots());
        self.start_missing_slots()
    }

    pub(super) fn start_missing_slots(&mut self) -> Result<(), EngineError> {
        let slots = self.slots() + self.desk.given_up();
        while self.threads.len() < slots {
            let thread = slot::start(&self.desk, &self.around, &self.journal)
                .map_err(EngineError::system("failed to start a slot"))?;
            self.threads.push(thread);
        }
        Ok(())
    }

    /// Lets the store show a concurrency that has changed, and how many attempts still run that were started before.
    pub(super) fn show_slots(&mut self) -> Result<(), StoreError> {
        let load = self.desk.load();
        // Where one attempt must be alone the other slots are of no use, and a job that needs one looks elsewhere.
        let concurrency =
            if load.is_reserved { 1 } else { self.plan.concurrency.unwrap_or(self.settings.concurrency) };
        let busy = u32::try_from(load.running).unwrap_or(u32::MAX);
        let slots = WorkerSlots { concurrency, most: busy.max(concurrency) };
        if slots != self.shown {
            self.store.set_worker_slots(&self.plan.id, slots)?;
            self.shown = slots;
        }
        Ok(())
    }

    /// Ends what runs, in this way, and waits until it is dead.
    pub(super) fn abandon(&mut self, how: Interrupt) {
        self.desk.recall();
        self.desk.interrupt_all(how);
        self.messenger.stop();
        self.close();
    }

    fn close(&mut self) {
        self.desk.close();
        if !self.desk.left_behind().is_empty() {
            // Their threads do not end before their commands do; this process does.
            return;
        }
        for thread in self.threads.drain(..) {
            // A slot that panicked has ended the process.
            let _ = thread.join();
        }
    }

    /// Everything is recorded, and nothing runs but what cannot be killed.
    fn end(mut self) -> Result<Farewell, EngineError> {
        self.close();
        self.stop_telling();
        let left = self.desk.left_behind();
        if !left.is_empty() {
            self.journal.worker_leaves(&left);
            self.journal.flush();
            return Ok(Farewell::LeftBehind);
        }
        failpoint::hit("worker.before_retire");
        self.retire()?;
        failpoint::hit("worker.after_retire");
        self.journal.worker_stopped();
        self.journal.flush();
        self.files.remove();
        Ok(Farewell::Stopped)
    }

    /// It holds no lease any more, so there is time: nobody takes it for one that hangs.
    fn retire(&self) -> Result<(), StoreError> {
        let began = Instant::now();
        loop {
            match self.store.set_worker_state(&self.plan.id, WorkerState::Stopped) {
                Err(StoreError::Busy { .. }) if began.elapsed() < RETIRE_PATIENCE => {}
                result => return result,
            }
        }
    }
}

fn order(served: &ServedJobs) -> Order {
    match served {
        ServedJobs::All | ServedJobs::Job(_) => Order::Turn,
        ServedJobs::InOrder(queues) => Order::Queues(queues.clone()),
    }
}

pub(super) fn rules(settings: &Settings) -> Rules {
    Rules { kill_grace: settings.kill_grace, log_max_bytes: settings.log_max_bytes }
}

fn surroundings(plan: &WorkerPlan, files: &Files) -> Result<Surroundings, EngineError> {
    let slots = Slots::create(files.folder(), plan.id.as_str())
        .map_err(EngineError::system("failed to make the file of slots"))?;
    let adopted =
        Adopted::new().map_err(EngineError::system("failed to watch for what commands leave behind"))?;
    Ok(Surroundings {
        command: command::Context {
            worker_id: plan.id.clone(),
            home: plan.home.clone(),
            store: plan.store.clone(),
            own_environment: Environment::capture(user::variables()),
        },
        logs: plan.home.join(log::FOLDER),
        slots,
        adopted,
        means: DelegatedGroup::find(),
        has_reader: matches!(plan.served, ServedJobs::Job(_)),
    })
}

/// When things are due that nobody rings for.
#[derive(Debug)]
pub(super) struct Times {
    /// Orders are read, and dead workers looked for.
    pub(super) tick: Instant,
    /// Work is looked for.
    pub(super) look: Instant,
    pub(super) beat: Instant,
    /// Until then the bell is left to other workers.
    pub(super) muted_until: Instant,
    /// The store failed: not before this moment again.
    pub(super) store: Instant,
    /// Others are shown that this worker lives.
    pub(super) sign: Instant,
}

impl Times {
    fn now() -> Self {
        let now = Instant::now();
        Self { tick: now, look: now, beat: now, muted_until: now, store: now, sign: now }
    }
}
