//! The supervisor: starts workers, watches them, and cleans up after one that died before it starts the next.
//!
//! It has one thread and does little, so that little can crash it. It is a subreaper, so every process that a dead
//! worker left becomes its child, even one in a session of its own; when a worker has ended, the supervisor kills every
//! child that is not a living worker. Only then does it reap the worker's jobs and start a replacement. If a process
//! cannot be killed, it starts the replacement all the same and leaves the jobs to the reapers of the workers: see
//! `survivors`.
//!
//! Only the supervisor gets the terminal's signals; it forwards them to its workers as other signals, so that one
//! Ctrl-C counts once, however many processes received it.

pub(crate) mod pool;
pub(crate) mod restarts;
mod service_reports;
pub(crate) mod survivors;
pub(crate) mod watchdog;

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, getpid, set_child_subreaper};

use self::pool::{Pool, start_worker};
use self::restarts::{Crash, Restarts};
use self::service_reports::{PoolCounts, ServiceReports};
use self::survivors::{Survivors, kill_all};
use self::watchdog::Watchdog;
use super::attempt::slot_records;
use super::attempt::slot_records::AttemptRecord;
use super::duties::reaper::{RecoveryObstacle, reap, reap_others, was_active_within};
use super::error::EngineError;
use super::journal::Journal;
use super::orphans::containment;
use super::worker::files;
use super::worker::files::Folder;
use super::worker::{OpenStore, WorkerExit};
use domain::values::name::{JobIdSequence, WorkerId};
use domain::values::timestamp::Timestamp;
use store::{Store, StoreError, Worker, settings};
use sys::clock::{Clock, SystemClock};
use sys::fs::liveness_lock;
use sys::fs::liveness_lock::{LivenessLock, Role};
use sys::guards;
use sys::guards::Guard;
use sys::host::Observer;
use sys::process;
use sys::process::code;
use sys::process::spawn;
use sys::process::spawn::ChildProcess;
use sys::process::{Children, ProcessHandle};
use sys::signal::interrupts::{Interrupts, timespec};
use sys::{cgroup, failpoint, signal};

/// A worker that lived this long was healthy: its crash counts as the first.
const HEALTHY_AFTER: Duration = Duration::from_secs(30);
/// How long to wait before cleaning up again after the store failed.
const CLEANUP_RETRY_DELAY: Duration = Duration::from_millis(250);
/// How long to wait for the killed processes of a dead worker, before they are waited for one by one.
const GROUP_KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs a pool until its workers have ended for good. Calls `on_started` with `true` when all workers are up for the
/// first time, or with `false` when the supervisor gives up; in that case workers that are up still finish their
/// attempts.
pub fn run(pool: &Pool, open: OpenStore<'_>, on_started: &mut dyn FnMut(bool)) -> Result<(), EngineError> {
    let children = Children::open().map_err(|_| EngineError::NoChildrenList)?;
    signal::keep_ended_children();
    signal::survive_closed_pipe();
    let signals = Interrupts::catch(&[Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT])
        .map_err(EngineError::system("failed to install signal handlers"))?;
    spawn::keep_descriptors_to_ourselves()
        .map_err(EngineError::system("failed to set close-on-exec on descriptors"))?;
    set_child_subreaper(Some(getpid()))
        .map_err(|error| EngineError::system("failed to become a subreaper")(error.into()))?;
    // Without a delegated group, limits are enforced in other ways.
    let _ = cgroup::prepare();
    Supervisor::new(pool, open, signals, children)?.run_pool(on_started)
}

struct Supervisor<'a> {
    pool: &'a Pool,
    open: OpenStore<'a>,
    observer: Observer,
    /// See [`opened`].
    store: Option<Box<dyn Store>>,
    signals: Interrupts,
    children: Children,
    journal: Journal,
    folder: Folder,
    slots: Vec<PoolSlot>,
    ids: JobIdSequence,
    /// The newest stop request when the first worker registered; passed to all later workers.
    stop_seen: Option<u64>,
    is_stopping: bool,
    was_up: bool,
    watchdog: Watchdog,
    service: ServiceReports<'a>,
    survivors: Survivors,
    failure: Option<EngineError>,
}

/// The position of one worker in the pool.
enum PoolSlot {
    /// A worker is to be started at this moment.
    Vacant {
        at: Instant,
        restarts: Restarts,
    },
    Occupied(Member),
    /// Its worker died, and the supervisor has not cleaned up after it yet.
    Dead {
        member: Member,
        at: Instant,
    },
    /// No worker is started here again.
    Closed,
}

struct Member {
    id: WorkerId,
    pid: Pid,
    handle: ProcessHandle,
    /// The pipe on which the worker reports that it is up; `None` after it has reported or died.
    report: Option<OwnedFd>,
    is_up: bool,
    since: Instant,
    /// Crashes of earlier workers in this slot.
    restarts: Restarts,
    _liveness_lock: LivenessLock,
}

impl<'a> Supervisor<'a> {
    fn new(
        pool: &'a Pool,
        open: OpenStore<'a>,
        signals: Interrupts,
        children: Children,
    ) -> Result<Self, EngineError> {
        let now = Instant::now();
        let who = format!("supervisor-{}", std::process::id());
        Ok(Self {
            pool,
            open,
            observer: Observer::here().map_err(EngineError::system("failed to determine the host"))?,
            store: None,
            signals,
            children,
            journal: Journal::open(&pool.home, &who, pool.echo),
            folder: Folder::create(&pool.home)?,
            slots: (0..pool.count)
                .map(|_| PoolSlot::Vacant { at: now, restarts: Restarts::default() })
                .collect(),
            ids: JobIdSequence::default(),
            stop_seen: None,
            is_stopping: false,
            was_up: false,
            watchdog: Watchdog::new(now),
            service: ServiceReports::new(pool.service_manager.as_ref(), now),
            survivors: Survivors::default(),
            failure: None,
        })
    }

    fn run_pool(mut self, on_started: &mut dyn FnMut(bool)) -> Result<(), EngineError> {
        loop {
            for at in 0..self.slots.len() {
                self.advance(at);
            }
            self.survivors.reap_ended();
            self.kill_hung();
            self.journal.flush();
            self.report_to_service_manager();
            if !self.was_up && self.failure.is_some() {
                on_started(false);
            }
            if self.slots.iter().all(|slot| matches!(slot, PoolSlot::Closed)) {
                return self.failure.map_or(Ok(()), Err);
            }
            self.wait();
            self.handle_signals();
            self.read_reports();
            failpoint::hit("supervisor.after_reports");
            if !self.was_up && self.all_are_up() {
                self.was_up = true;
                self.service.is_ready(self.counts());
                on_started(true);
            }
        }
    }

    /// Advances one slot to its next state, if that is due.
    fn advance(&mut self, at: usize) {
        let now = Instant::now();
        let slot = std::mem::replace(&mut self.slots[at], PoolSlot::Closed);
        self.slots[at] = match slot {
            PoolSlot::Vacant { .. } if self.is_stopping || self.failure.is_some() => PoolSlot::Closed,
            // The home was deleted: there are no jobs to run or to reap.
            PoolSlot::Dead { member, .. } if self.folder.is_gone() => {
                self.kill_group(&member.id);
                PoolSlot::Closed
            }
            PoolSlot::Vacant { .. } if self.folder.is_gone() => PoolSlot::Closed,
            PoolSlot::Vacant { .. } if self.waits_for_first(at) => slot,
            PoolSlot::Vacant { at, restarts } if at <= now => self.try_start(restarts),
            PoolSlot::Occupied(member) if member.handle.ends_within(Duration::ZERO).unwrap_or(false) => {
                self.handle_exit(member)
            }
            PoolSlot::Dead { member, at } if at <= now => self.clean_up(member),
            PoolSlot::Vacant { .. } | PoolSlot::Occupied(_) | PoolSlot::Dead { .. } | PoolSlot::Closed => {
                slot
            }
        };
    }

    /// The first worker learns which stop requests predate this pool; the others wait for that.
    fn waits_for_first(&self, at: usize) -> bool {
        at > 0 && self.stop_seen.is_none() && !matches!(self.slots[0], PoolSlot::Closed)
    }

    fn try_start(&mut self, restarts: Restarts) -> PoolSlot {
        match self.start(restarts) {
            Ok(member) => PoolSlot::Occupied(member),
            Err(error) => {
                self.journal.error(&error);
                self.after_crash(restarts.after(Crash::Idle))
            }
        }
    }

    fn start(&mut self, restarts: Restarts) -> std::io::Result<Member> {
        let id = self.next_id();
        let liveness_lock = LivenessLock::hold(&self.folder.path, id.as_str(), Role::Supervisor)?;
        let (ChildProcess { pid, handle }, report) = start_worker(self.pool, &id, self.stop_seen)?;
        failpoint::hit("supervisor.after_start");
        let since = Instant::now();
        Ok(Member {
            id,
            pid,
            handle,
            report: Some(report),
            is_up: false,
            since,
            restarts,
            _liveness_lock: liveness_lock,
        })
    }

    /// Worker ids sort by creation time, as job ids do.
    fn next_id(&mut self) -> WorkerId {
        let now = Timestamp::from_millis(SystemClock.wall_millis());
        let id = self.ids.next(now, fastrand::u64(..));
        format!("w-{id}").parse().expect("letters, digits and a dash")
    }

    /// Handles the end of a worker: a clean stop, or a crash to clean up after.
    fn handle_exit(&mut self, mut member: Member) -> PoolSlot {
        // It may have ended right after its report.
        self.stop_seen = self.stop_seen.or(member.take_report());
        let Some(ended) = process::reap(member.pid).ok().flatten() else {
            // Only this process reaps its children, so this does not happen.
            return PoolSlot::Dead { member, at: Instant::now() };
        };
        if ended.status.success() {
            self.kill_orphans();
            files::remove(&self.folder.path, &member.id);
            return PoolSlot::Closed;
        }
        if ended.status.code() == Some(WorkerExit::HOLDS_LEASES_CODE.into()) {
            // The worker itself has noted what it could not kill.
            self.kill_orphans();
            return PoolSlot::Closed;
        }
        if ended.status.code() == Some(WorkerExit::OUTDATED_CODE.into()) {
            self.kill_orphans();
            return self.after_outdated();
        }
        self.journal.note(format_args!("worker {} crashed: {}", member.id, ended.status));
        if ended.status.code() == Some(WorkerExit::REFUSED_CODE.into())
            && let Some(refusal) = self.refusal()
        {
            return self.abandon(&member, refusal);
        }
        self.clean_up(member)
    }

    /// Why the store does not allow this pool to work, if that is so.
    fn refusal(&mut self) -> Option<StoreError> {
        self.fitness().err().filter(StoreError::is_refusal_of_workers)
    }

    /// Whether the store allows this pool to work.
    fn fitness(&mut self) -> Result<(), StoreError> {
        opened(&mut self.store, self.open).and_then(Store::check_fitness_for_workers)
    }

    /// A worker has ended because this program is older than the store. So are the others and their replacements.
    fn after_outdated(&mut self) -> PoolSlot {
        match self.fitness() {
            Err(refusal) if refusal.is_refusal_of_workers() => {
                self.give_up(refusal.into());
                PoolSlot::Closed
            }
            // An operator has restored the earlier schema.
            Ok(()) => PoolSlot::Vacant { at: Instant::now(), restarts: Restarts::default() },
            Err(_) => {
                let at = Instant::now() + CLEANUP_RETRY_DELAY;
                PoolSlot::Vacant { at, restarts: Restarts::default() }
            }
        }
    }

    /// Gives up without reaping the jobs of a dead worker, because the store does not allow that either, or is too new for
    /// this program. Other workers take them over when their leases are over, or when this process has released its lock.
    fn abandon(&mut self, member: &Member, refusal: StoreError) -> PoolSlot {
        self.kill_group(&member.id);
        self.kill_orphans();
        self.give_up(refusal.into());
        PoolSlot::Closed
    }

    /// Kills the orphans of a dead worker, reaps its jobs, and vacates its slot; in this order.
    fn clean_up(&mut self, member: Member) -> PoolSlot {
        self.kill_group(&member.id);
        self.kill_orphans();
        failpoint::hit("supervisor.before_reap");
        let records = slot_records::read(&self.folder.path, member.id.as_str()).unwrap_or_default();
        let left = self.survivors.left_by(member.pid, member.since, &records);
        if let Err(error) = self.reap(&member.id, &left, &records) {
            if error.is_refusal_of_workers() {
                return self.abandon(&member, error);
            }
            self.journal.error(&error);
            self.store = None;
            return PoolSlot::Dead { member, at: Instant::now() + CLEANUP_RETRY_DELAY };
        }
        failpoint::hit("supervisor.after_reap");
        let restarts = self.restarts_after(&member);
        if left.is_empty() {
            files::remove(&self.folder.path, &member.id);
        }
        if self.was_to_stop(&member.id) {
            return PoolSlot::Closed;
        }
        self.after_crash(restarts)
    }

    /// Whether a worker had the order to stop. A replacement has another id, so an order to this worker alone would not
    /// reach it.
    fn was_to_stop(&mut self, worker: &WorkerId) -> bool {
        let orders = opened(&mut self.store, self.open).and_then(|store| store.orders(worker));
        orders.is_ok_and(|orders| orders.drain)
    }

    /// Reaps the jobs of a dead worker. If processes are left, notes them and reaps the other jobs: when the supervisor
    /// releases its lock on the dead worker, the reapers take over the rest and wait until these processes have ended.
    fn reap(&mut self, worker: &WorkerId, left: &[Pid], records: &[AttemptRecord]) -> Result<(), StoreError> {
        let store = opened(&mut self.store, self.open)?;
        let folder = &self.folder.path;
        if left.is_empty() {
            return reap(store, folder, worker, "died", &[], &self.journal);
        }
        let RecoveryObstacle { why, unkillable } = RecoveryObstacle::of(left, records);
        reap_others(store, folder, worker, &unkillable, &self.journal)?;
        self.journal.cannot_recover(worker, &why);
        Ok(())
    }

    fn restarts_after(&self, member: &Member) -> Restarts {
        let has_worked = slot_records::were_used(&self.folder.path, member.id.as_str());
        let was_healthy = member.since.elapsed() >= HEALTHY_AFTER;
        let before = if was_healthy { Restarts::default() } else { member.restarts };
        before.after(if has_worked { Crash::AfterWork } else { Crash::Idle })
    }

    /// The supervisor does not give up a pool that was up while any worker is up: that worker can still run jobs.
    fn after_crash(&mut self, restarts: Restarts) -> PoolSlot {
        let is_any_up = self.was_up && self.members().any(|member| member.is_up);
        if let Some(crashes) = restarts.too_many(self.was_up).filter(|_| !is_any_up) {
            self.give_up(if self.was_up {
                EngineError::GaveUp { crashes }
            } else {
                EngineError::CannotStart { message: String::new() }
            });
            return PoolSlot::Closed;
        }
        PoolSlot::Vacant { at: Instant::now() + restarts.pause(), restarts }
    }

    /// Gives up the pool; the remaining workers finish their attempts.
    fn give_up(&mut self, error: EngineError) {
        self.journal.error(&error);
        self.failure.get_or_insert(error);
        self.signal_workers(Signal::USR1);
    }

    /// Kills every process in the control group of a dead worker, also those that this user may not signal.
    fn kill_group(&self, worker: &WorkerId) {
        if guards::is_off(Guard::OrphanCleanup) {
            return;
        }
        if let Some(group) = containment::open(&self.folder.path, worker.as_str()) {
            group.kill();
            group.empties_within(GROUP_KILL_TIMEOUT);
        }
    }

    /// Kills every child that is not a living worker: dead workers left it.
    fn kill_orphans(&mut self) {
        if guards::is_off(Guard::OrphanCleanup) {
            return;
        }
        let is_member = |pid| self.members().any(|member| member.pid == pid);
        let left = kill_all(&self.children, is_member, &self.survivors);
        let lives = |member: &&Member| !member.handle.ends_within(Duration::ZERO).unwrap_or(false);
        let living = self.members().filter(lives).map(|member| member.pid).collect();
        self.survivors.note(&left, &living);
    }

    fn members(&self) -> impl Iterator<Item = &Member> {
        self.slots.iter().filter_map(|slot| match slot {
            PoolSlot::Occupied(member) => Some(member),
            PoolSlot::Vacant { .. } | PoolSlot::Dead { .. } | PoolSlot::Closed => None,
        })
    }

    fn all_are_up(&self) -> bool {
        self.slots.iter().all(|slot| matches!(slot, PoolSlot::Occupied(member) if member.is_up))
    }

    fn report_to_service_manager(&mut self) {
        self.service.give_sign_of_life(Instant::now());
        if self.service.has_listener() && self.was_up && !self.is_stopping {
            self.service.update_status(self.counts());
        }
    }

    fn counts(&self) -> PoolCounts {
        let running = |member: &Member| {
            slot_records::read(&self.folder.path, member.id.as_str()).map_or(0, |used| used.len())
        };
        PoolCounts {
            workers: self.slots.len(),
            up: self.members().filter(|member| member.is_up).count(),
            running: self.members().map(running).sum(),
        }
    }

    // A worker that holds leases past their expiry hangs: the supervisor kills it and then handles it as a crash.

    fn kill_hung(&mut self) {
        let now = Instant::now();
        if !self.watchdog.is_due(now) || self.members().next().is_none() {
            return;
        }
        match self.hung() {
            Ok((lease, hung)) => {
                // A server need not keep a session for a process that asks hardly ever.
                self.store.take_if(|store| store.spans_machines());
                if self.watchdog.may_judge(now, lease) {
                    let when = if self.watchdog.spans_machines() {
                        "is stopped or hangs: killed before another machine takes its jobs over"
                    } else {
                        "hung past the end of its leases: killed"
                    };
                    for member in self.members().filter(|member| hung.contains(&member.id)) {
                        self.journal.note(format_args!("worker {} {when}", member.id));
                        let _ = member.handle.signal(Signal::KILL);
                    }
                }
            }
            Err(error) => {
                self.journal.error(&error);
                self.store = None;
                self.watchdog = Watchdog::new(now);
            }
        }
    }

    fn hung(&mut self) -> Result<(Duration, Vec<WorkerId>), StoreError> {
        let were_touched_within = |span| self.members().all(|member| self.was_touched_within(member, span));
        if let Some(lease) = self.watchdog.unless_quiet(were_touched_within) {
            return Ok((lease, Vec::new()));
        }
        match (self.hung_in_store(), self.watchdog.lease()) {
            // Other machines do not wait until this one reaches the store again.
            (Err(_), Some(lease)) if self.watchdog.spans_machines() => {
                Ok((lease, self.stopped(lease).collect()))
            }
            (found, _) => found,
        }
    }

    fn hung_in_store(&mut self) -> Result<(Duration, Vec<WorkerId>), StoreError> {
        let store = opened(&mut self.store, self.open)?;
        let lease = settings::in_force(store)?.lease;
        // A supervisor that waits for the store replaces no worker.
        store.bound_waits(lease);
        let hangs = |worker: &Worker| worker.overdue && !was_active_within(worker, lease);
        // Its own workers run on this machine.
        let workers = store.neighbours(&self.observer.machine_id)?.into_iter();
        let mut hung: Vec<WorkerId> = workers.filter(hangs).map(|worker| worker.id).collect();
        self.watchdog.set_spans_machines(store.spans_machines());
        if self.watchdog.spans_machines() {
            hung.extend(self.stopped(lease));
        }
        Ok((lease, hung))
    }

    /// The workers that are stopped and have left their lock files alone for too long. One that runs ends its commands by
    /// itself when it is cut off from the store, also if it waits for it.
    fn stopped(&self, lease: Duration) -> impl Iterator<Item = WorkerId> {
        let limit = Watchdog::quiet_limit(lease);
        let is_stopped = |member: &&Member| process::stat(member.pid).is_some_and(|stat| stat.is_stopped);
        let quiet = self.members().filter(move |member| !self.was_touched_within(member, limit));
        quiet.filter(is_stopped).map(|member| member.id.clone())
    }

    fn was_touched_within(&self, member: &Member, span: Duration) -> bool {
        liveness_lock::was_touched_within(&self.folder.path, member.id.as_str(), span)
    }

    // Waiting, and handling what woke the supervisor

    fn wait(&self) {
        let mut watched = vec![PollFd::new(&self.signals, PollFlags::IN)];
        for member in self.members() {
            watched.push(PollFd::new(&member.handle, PollFlags::IN));
            watched.extend(member.report.iter().map(|report| PollFd::new(report, PollFlags::IN)));
        }
        let now = Instant::now();
        let due = self.slots.iter().enumerate().filter_map(|(place, slot)| match slot {
            PoolSlot::Vacant { .. } if self.waits_for_first(place) => None,
            PoolSlot::Vacant { at, .. } | PoolSlot::Dead { at, .. } => Some(*at),
            PoolSlot::Occupied(_) | PoolSlot::Closed => None,
        });
        // Without workers no check is due.
        let next_check = self.members().next().map(|_| self.watchdog.next());
        let next_sign = self.service.next_sign_of_life();
        let wake_in =
            due.chain(next_check).chain(next_sign).min().map(|at| at.saturating_duration_since(now));
        let timeout = wake_in.map(timespec);
        // An interrupted sleep just ends early.
        let _ = poll(&mut watched, timeout.as_ref());
    }

    fn handle_signals(&mut self) {
        while let Some(signal) = self.signals.take() {
            let is_gentle = signal == Signal::HUP || (signal != Signal::QUIT && !self.is_stopping);
            self.is_stopping = true;
            let what = if is_gentle { "finish" } else { "release" };
            self.journal.note(format_args!("stop requested: the workers {what} their attempts"));
            self.service.is_stopping(what);
            self.signal_workers(if is_gentle { Signal::USR1 } else { Signal::USR2 });
        }
    }

    fn signal_workers(&self, signal: Signal) {
        for member in self.members() {
            let _ = member.handle.signal(signal);
        }
    }

    /// A worker reports that it is up with the number of the newest stop request that it knows.
    fn read_reports(&mut self) {
        for slot in &mut self.slots {
            if let PoolSlot::Occupied(member) = slot
                && let Some(stop_seen) = member.take_report()
            {
                code::release();
                self.stop_seen = self.stop_seen.or(Some(stop_seen));
            }
        }
    }
}

impl Member {
    /// Reads whether the worker is up now, and the newest stop request that it found.
    fn take_report(&mut self) -> Option<u64> {
        let report = self.report.take()?;
        match read_report(&report) {
            Report::NotYet => {
                self.report = Some(report);
                None
            }
            Report::Up { stop_seen } => {
                self.is_up = true;
                Some(stop_seen)
            }
            // The worker has died or is about to.
            Report::Closed => None,
        }
    }
}

/// The store, which is opened on first use.
fn opened<'s>(
    store: &'s mut Option<Box<dyn Store>>,
    open: OpenStore<'_>,
) -> Result<&'s dyn Store, StoreError> {
    let known = match store.take() {
        Some(known) => known,
        None => open()?,
    };
    Ok(&**store.insert(known))
}

enum Report {
    NotYet,
    Up { stop_seen: u64 },
    Closed,
}

fn read_report(report: &OwnedFd) -> Report {
    let mut watched = [PollFd::new(report, PollFlags::IN)];
    if !matches!(poll(&mut watched, Some(&timespec(Duration::ZERO))), Ok(1..)) {
        return Report::NotYet;
    }
    let mut buffer = [0; 32];
    let read = rustix::io::read(report, &mut buffer).unwrap_or(0);
    let number = std::str::from_utf8(&buffer[..read]).ok().and_then(|text| text.trim().parse().ok());
    number.map_or(Report::Closed, |stop_seen| Report::Up { stop_seen })
}
