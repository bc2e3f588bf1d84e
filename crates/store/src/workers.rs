//! Workers: registering, orders, and what wakes them.

use std::fmt::Debug;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use rustix::process::Pid;

use crate::rows::jobs::unkillable;
use crate::rows::tables::{stops, workers};
use crate::rows::verbs::{extend, pause, reap};
use crate::rows::views::idle;
use crate::{HotVerb, LeaseRef, LeaseStatus, Result, Store};
use domain::job::Job;
use domain::settings::Settings;
use domain::values::name::{BatchName, JobId, QueueName, WorkerId};
use domain::values::signal::Signal;
use domain::values::timestamp::Timestamp;
use sys::host::{HostKey, Origin};
use sys::process;

impl dyn Store + '_ {
    /// Adds a worker. Returns the stop order that a worker must know of which replaces this one in its pool: see
    /// [`NewWorker::stop_seen`].
    pub fn register(&self, worker: &NewWorker) -> Result<u64> {
        let database_folder = self.reach(Path::new(""));
        let folder = worker.folder.strip_prefix(&database_folder).unwrap_or(&worker.folder);
        self.transact("register", |tx| workers::register(tx, worker, folder))
    }

    /// A heartbeat: extends leases. The answers are in the order of the leases.
    ///
    /// The worker names every lease that it knows of. The store releases any other lease of this worker, because it
    /// stems from a claim whose commit the worker never saw succeed; hence a worker must not call this concurrently
    /// with an `exchange` of its own.
    pub fn extend(&self, worker: &WorkerId, leases: &[LeaseRef]) -> Result<Vec<LeaseStatus>> {
        self.transact_hot(HotVerb::Extend(worker), |tx| extend::extend(tx, worker, leases))
    }

    /// Takes back the leases of a dead worker: the `started` ones are lost, the others released. `None` means that it is
    /// unknown which were started, so all are lost. Leases in `stay`, whose commands cannot be killed, remain; and as long
    /// as there are any, so does the worker.
    pub fn reap(
        &self,
        worker: &WorkerId,
        started: Option<&[LeaseRef]>,
        stay: &[LeaseRef],
    ) -> Result<Vec<LeaseRef>> {
        self.transact("reap", |tx| reap::reap(tx, worker, started, stay))
    }

    /// Records that a worker drains or has stopped. A stopped worker does not come back; it may still hold leases whose
    /// claim it never saw commit, and these are released.
    pub fn set_worker_state(&self, worker: &WorkerId, state: WorkerState) -> Result<()> {
        self.transact("set_worker_state", |tx| workers::change_state(tx, worker, state))
    }

    /// Records that a worker's number of slots has changed since it registered.
    pub fn set_worker_slots(&self, worker: &WorkerId, slots: WorkerSlots) -> Result<()> {
        self.transact("set_worker_slots", |tx| workers::set_slots(tx, worker, slots))
    }

    /// Records the current problem of a worker; `None` if it has none.
    pub fn set_worker_health(&self, worker: &WorkerId, problem: Option<&str>) -> Result<()> {
        self.transact("set_worker_health", |tx| workers::set_health(tx, worker, problem))
    }

    /// Orders workers to stop, including those that replace a crashed one in the same pool.
    pub fn stop(&self, stop: &Stop, by: &str) -> Result<()> {
        self.transact("stop", |tx| stops::add(tx, stop, by))
    }

    /// Resumes the paused jobs of a worker that has to stop.
    pub fn resume_all(&self, worker: &WorkerId) -> Result<()> {
        self.transact("resume_all", |tx| pause::resume_all(tx, worker))
    }

    /// Whether nothing that a worker serves is ready, processing or waiting for a retry, on any worker. Paused queues and
    /// jobs that are not due do not count.
    pub fn is_idle(&self, worker: &WorkerId) -> Result<bool> {
        self.view(|tx| idle::is_idle(tx, &workers::find(tx, worker)?.served))
    }

    /// When workers started since a time, the earliest first. Workers for certain jobs do not count.
    pub fn worker_starts(&self, since: Timestamp) -> Result<Vec<Timestamp>> {
        self.view(|tx| workers::starts(tx, since))
    }

    /// All workers that have not stopped.
    pub fn workers(&self) -> Result<Vec<Worker>> {
        self.listed(None)
    }

    /// The workers on one machine that have not stopped, in any of its homes: those whose locks an observer there may find.
    pub fn neighbours(&self, machine_id: &str) -> Result<Vec<Worker>> {
        self.listed(Some(machine_id))
    }

    fn listed(&self, machine_id: Option<&str>) -> Result<Vec<Worker>> {
        self.view(|tx| workers::list(tx, machine_id)).map(|workers| self.with_reached_folders(workers))
    }

    fn with_reached_folders(&self, mut workers: Vec<Worker>) -> Vec<Worker> {
        for worker in &mut workers {
            worker.folder = self.reach(&worker.folder);
        }
        workers
    }

    /// As `neighbours`, with the beats of all workers that have not stopped. Cheap, so that it can be read at every
    /// heartbeat.
    pub fn neighbours_and_beats(&self, machine_id: &str) -> Result<(Vec<Worker>, Vec<Beat>)> {
        let (workers, beats) =
            self.view(|tx| Ok((workers::list(tx, Some(machine_id))?, workers::beats(tx)?)))?;
        Ok((self.with_reached_folders(workers), beats))
    }

    /// Records processes that could not be killed, except those of attempts that have ended.
    pub fn record_unkillable(&self, found: &[UnkillableProcess]) -> Result<()> {
        self.transact("record_unkillable", |tx| unkillable::record(tx, found))
    }

    /// The recorded unkillable processes of attempts that still run.
    pub fn unkillable(&self) -> Result<Vec<UnkillableProcess>> {
        self.view(unkillable::list)
    }
}

/// How a worker learns that there may be work, or orders for it. Each wake-up is a hint that may get lost; no worker
/// relies on it alone.
pub trait Wake: Send + Sync + Debug {
    /// Becomes readable when there may be work. It wakes one of the workers that watch it.
    fn work(&self) -> BorrowedFd<'_>;
    /// Takes the hints of work so far. Returns how often the strongest may be passed on, if there was one.
    fn take_work(&self) -> Option<u8>;
    /// Passes a hint of work on to another worker, because there may be more than this one takes.
    fn pass_on(&self, hops: u8);
    /// Becomes readable when there may be orders for this worker.
    fn orders(&self) -> BorrowedFd<'_>;
    /// Takes the hints of orders so far.
    fn take_orders(&self) -> OrderHints;
}

/// How often a worker must look for work and orders by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Every second or so: wake-ups get lost.
    Polling,
    /// Once a heartbeat: it hears of every change while its connection lasts, and knows when that is lost.
    Listening,
}

/// The extension of the file that a store may create in the folder of a worker, with the worker's id as its name. It is
/// deleted with the worker's other files.
pub const WORKER_FILE: &str = "bell";

/// The reasons why a worker was woken for orders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderHints {
    /// There may be orders in the store.
    pub has_orders: bool,
    /// The numbers of jobs whose output a reader follows.
    pub readers: Vec<u64>,
}

/// A reason to wake workers.
#[derive(Clone, Copy, Debug)]
pub enum Notice<'a> {
    /// There may be orders for any worker.
    Orders,
    /// A reader follows the output of a job that this worker runs, so the worker writes it to the log file at once.
    Reader { worker: &'a WorkerId, job: u64 },
}

/// Which jobs a worker runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServedJobs {
    /// Those of all queues, including later ones.
    All,
    /// Those of these queues; each queue only while the ones before it have nothing ready.
    InOrder(Vec<QueueName>),
    /// Those of this batch, in any queue, until all of them are finished.
    Batch(BatchName),
    /// This one job only.
    Job(JobId),
}

impl ServedJobs {
    /// Whether jobs of this queue are among them.
    pub fn has_queue(&self, queue: &QueueName) -> bool {
        match self {
            Self::All => true,
            Self::InOrder(queues) => queues.contains(queue),
            Self::Batch(_) | Self::Job(_) => false,
        }
    }

    pub fn has(&self, job: &Job) -> bool {
        match self {
            Self::All | Self::InOrder(_) => self.has_queue(&job.queue),
            Self::Batch(name) => job.batch.as_ref() == Some(name),
            Self::Job(id) => *id == job.id,
        }
    }

    /// Whether it runs jobs that are enqueued later. A worker for certain jobs does not.
    pub fn takes_new_jobs(&self) -> bool {
        match self {
            Self::All | Self::InOrder(_) => true,
            Self::Batch(_) | Self::Job(_) => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewWorker {
    pub id: WorkerId,
    /// The name of its machine, for people.
    pub host: String,
    pub origin: Origin,
    pub pid: u32,
    pub supervisor_pid: Option<u32>,
    pub served: ServedJobs,
    pub concurrency: u32,
    /// The absolute folder of its files. The store may return it under the path by which the reader knows it.
    pub folder: PathBuf,
    /// The newest stop order when its pool started; `None` for the newest now. Later orders apply to it.
    pub stop_seen: Option<u64>,
}

/// How many attempts a worker can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerSlots {
    pub concurrency: u32,
    /// At least `concurrency`: more while attempts from before a reduction are still running.
    pub most: u32,
}

domain::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum WorkerState {
        Running = "running",
        Draining = "draining",
        Stopped = "stopped",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    pub id: WorkerId,
    /// The name of its machine, for people.
    pub host: String,
    pub origin: Origin,
    pub pid: u32,
    pub supervisor_pid: Option<u32>,
    pub served: ServedJobs,
    pub concurrency: u32,
    /// How many leases it holds. Those without a slot are not started yet.
    pub held: u32,
    /// How many attempts it has started, as far as the store can know: a held lease waits for a slot only if all slots
    /// are taken. An attempt counts as running until its outcome is recorded.
    pub running: u32,
    pub state: WorkerState,
    pub started_at: Timestamp,
    pub last_heartbeat: Timestamp,
    /// See [`Beat::number`].
    pub beat: u64,
    /// Its current problem, as of its last heartbeat.
    pub health: Option<String>,
    /// See [`NewWorker::folder`].
    pub folder: PathBuf,
    /// The earliest end of its leases.
    pub lease_until: Option<Timestamp>,
    /// Whether one of its leases has expired.
    pub overdue: bool,
}

/// The [`Worker::health`] of a worker that a migration has shut out, because its program does not know the new schema. The
/// migration records it: the worker itself can write nothing any more.
pub const OUTDATED: &str = "older than the schema";

/// A sign of life of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    pub worker: WorkerId,
    /// Each heartbeat raises it.
    pub number: u64,
}

/// The orders for a worker.
#[derive(Clone, Debug, PartialEq)]
pub struct Orders {
    pub state: WorkerState,
    /// Claim nothing more, and exit when nothing runs.
    pub drain: bool,
    /// When to kill the remaining commands.
    pub kill_at: Option<Timestamp>,
    /// Its leases on jobs whose cancellation was requested.
    pub cancelled: Vec<CancelOrder>,
    /// Its leases on jobs that are paused.
    pub paused: Vec<LeaseRef>,
    pub settings: Settings,
    /// When the next schedule is due; any worker may run its jobs.
    pub next_fire: Option<Timestamp>,
    /// When the next delivery is due, among the hooks that have none in flight.
    pub next_delivery: Option<Timestamp>,
}

/// The order to end an attempt whose job was cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelOrder {
    pub lease: LeaseRef,
    /// The signal to send first.
    pub signal: Signal,
}

/// A stop order to workers of the pools that exist now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    pub scope: StopScope,
    /// When to kill running commands; `None` to let them finish.
    pub kill_at: Option<Timestamp>,
}

/// Which workers have to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopScope {
    /// Those of every home, on every machine.
    Everywhere,
    /// Those of this home, on its machine and in any boot.
    Home(HostKey),
    /// This one; the others of its pool continue.
    Worker(WorkerId),
}

/// A process of a running attempt that could not be killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnkillableProcess {
    pub lease: LeaseRef,
    pub pid: u32,
    /// In clock ticks since boot: together with the pid it identifies a process.
    pub start_time: u64,
    pub why: String,
}

impl UnkillableProcess {
    /// Whether it is still alive, as far as this process can see.
    pub fn is_alive(&self) -> bool {
        let stat = Pid::from_raw(self.pid.cast_signed()).and_then(process::stat);
        stat.is_some_and(|stat| !stat.is_zombie && stat.start_time == self.start_time)
    }
}
