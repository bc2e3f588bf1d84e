//! Recovers the jobs of dead workers: finds these workers, kills their orphans, and reaps their jobs.
//!
//! A living supervisor takes care of its own workers. Another worker steps in only when supervisor and worker are both
//! dead, or when the worker has been unresponsive for far longer than a lease. Several workers may do so at once:
//! killing a dead process has no effect, and the store reaps a worker's leases once.
//!
//! The reaper searches for processes and sessions only if the dead worker ran *here* ([`host::reach`]). Of a worker
//! from another boot or in another container it knows only the heartbeat, and whether the locks that it can see are
//! held: it reaps the jobs when no lock is held and the heartbeat has not changed for long enough, and signals nothing.
//!
//! A round kills first and writes afterwards: a hung worker may hold the lock that keeps all others from writing.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::heartbeat_age::HeartbeatAges;
use crate::attempt::slot_records;
use crate::attempt::slot_records::AttemptRecord;
use crate::journal::Journal;
use crate::orphans::cleanup::{DeadWorker, KillResult, SearchTimes, kill_orphans};
use crate::orphans::survivor::Survivor;
use crate::worker::files;
use domain::settings::Settings;
use domain::values::name::WorkerId;
use domain::values::timestamp::Timestamp;
use store::{LeaseRef, Store, StoreError, UnkillableProcess, Worker};
use sys::clock::{boot_ticks, ticks};
use sys::failpoint;
use sys::fs::liveness_lock;
use sys::fs::liveness_lock::Role;
use sys::host;
use sys::host::{Observer, Reach};
use sys::process;
use sys::process::ProcessHandle;

/// After a longer gap between two rounds this process was itself asleep, so it cannot judge others. With long leases a
/// worker may also wait longer for the store.
const MAX_ROUND_GAP: Duration = Duration::from_secs(5);
const MAX_ROUND_GAPS_PER_LEASE: u32 = 2;
/// How many heartbeats a worker of an earlier boot must miss: a cloned machine may share its ids and its home.
const MISSED_HEARTBEATS_AFTER_BOOT: u32 = 2;
/// How long to wait for a hung worker to end after SIGKILL.
const WORKER_KILL_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Reaper {
    observer: Observer,
    last_round: Instant,
    /// Since when workers have held expired leases, as observed without a gap.
    overdue_since: HashMap<WorkerId, Instant>,
    heartbeat_ages: HeartbeatAges,
    searches: SearchTimes,
    /// Workers that cannot be recovered yet, and why; each reason is logged once.
    obstacles: HashMap<WorkerId, String>,
    /// The last round found no other worker.
    is_alone: bool,
}

/// The state of a worker as the reaper judges it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It is alive, or its supervisor takes care of it.
    Leave,
    /// It ran before the last boot and holds none of its locks, so none of its processes can be alive.
    Rebooted,
    /// It runs in another container or on another machine, holds no visible lock, and sent no heartbeat for a whole
    /// lease.
    Silent,
    /// It is dead, and so is its supervisor.
    Dead,
    /// It is alive, but has held expired leases for a whole lease.
    Hung,
}

impl Verdict {
    /// The log text for a worker that is reaped; `None` if it is not.
    fn log_text(self) -> Option<&'static str> {
        match self {
            Self::Leave => None,
            Self::Rebooted => Some("was running when the machine shut down"),
            Self::Silent => {
                Some("sent no heartbeat for a whole lease, in another container or on another machine")
            }
            Self::Dead => Some("died with its supervisor"),
            Self::Hung => Some("hung past its lease and was killed"),
        }
    }
}

impl Reaper {
    pub(crate) fn new(observer: Observer) -> Self {
        Self {
            observer,
            last_round: Instant::now(),
            overdue_since: HashMap::new(),
            heartbeat_ages: HeartbeatAges::default(),
            searches: SearchTimes::default(),
            obstacles: HashMap::new(),
            is_alone: false,
        }
    }

    /// Checks every worker but this one, and recovers the dead ones.
    pub(crate) fn run_once(
        &mut self,
        store: &dyn Store,
        own: Option<&WorkerId>,
        settings: &Settings,
        journal: &Journal,
    ) -> Result<(), StoreError> {
        let lease = settings.lease;
        // If the store fails, other workers cannot reach it either, so their missing heartbeats prove nothing.
        let workers = store.workers()?;
        if self.last_round.elapsed() > MAX_ROUND_GAP.max(lease / MAX_ROUND_GAPS_PER_LEASE) {
            self.overdue_since.clear();
            self.heartbeat_ages.clear();
        }
        self.last_round = Instant::now();
        self.heartbeat_ages.keep(&workers);
        self.searches.keep(&workers);
        self.overdue_since.retain(|id, _| workers.iter().any(|worker| worker.id == *id && worker.overdue));
        self.obstacles.retain(|id, _| workers.iter().any(|worker| worker.id == *id));
        self.is_alone = workers.iter().all(|worker| Some(&worker.id) == own);
        let now = store.now()?;
        let mut gone = Vec::new();
        for worker in workers.iter().filter(|worker| Some(&worker.id) != own) {
            let verdict = self.judge(worker, settings, now);
            let cleared = self.clear(store, verdict, worker, now, lease)?;
            gone.extend(verdict.log_text().filter(|_| cleared.is_ok()).map(|what| (worker, what)));
            self.note(worker, cleared.err(), store, journal)?;
        }
        reap_all(store, &gone, journal)
    }

    /// Kills the worker's remaining processes; the inner result is an error if some are left.
    fn clear(
        &mut self,
        store: &dyn Store,
        verdict: Verdict,
        worker: &Worker,
        now: Timestamp,
        lease: Duration,
    ) -> Result<Result<(), RecoveryObstacle>, StoreError> {
        match verdict {
            Verdict::Leave | Verdict::Rebooted | Verdict::Silent => return Ok(Ok(())),
            Verdict::Hung if !kill(worker) => {
                let why = "it hangs past its lease and cannot be found or killed";
                return Ok(Err(why.to_owned().into()));
            }
            Verdict::Dead | Verdict::Hung => {}
        }
        let noted = check_noted_survivors(store, worker)?;
        if self.searches.begin(&worker.id, noted.is_err(), Instant::now()) {
            return Ok(kill_orphans_of(worker, now, lease).and(noted));
        }
        Ok(noted)
    }

    pub(crate) fn is_alone(&self) -> bool {
        self.is_alone
    }

    fn note(
        &mut self,
        worker: &Worker,
        obstacle: Option<RecoveryObstacle>,
        store: &dyn Store,
        journal: &Journal,
    ) -> Result<(), StoreError> {
        let Some(RecoveryObstacle { why, unkillable }) = obstacle else {
            self.obstacles.remove(&worker.id);
            return Ok(());
        };
        if self.obstacles.get(&worker.id) != Some(&why) {
            journal.cannot_recover(&worker.id, &why);
            reap_others(store, &worker.folder, &worker.id, &unkillable, journal)?;
            self.obstacles.insert(worker.id.clone(), why);
        }
        Ok(())
    }

    fn judge(&mut self, worker: &Worker, settings: &Settings, now: Timestamp) -> Verdict {
        match host::reach(&self.observer, &worker.origin, &worker.folder, worker.id.as_str()) {
            Reach::Here => self.judge_here(worker, settings.lease),
            Reach::Rebooted | Reach::Elsewhere if holds_a_lock(worker) => Verdict::Leave,
            Reach::Rebooted => {
                let unchanged_for = self.heartbeat_ages.of(worker).max(now.since(worker.last_heartbeat));
                let is_over = unchanged_for >= settings.heartbeat_interval * MISSED_HEARTBEATS_AFTER_BOOT;
                if is_over { Verdict::Rebooted } else { Verdict::Leave }
            }
            Reach::Elsewhere if self.heartbeat_ages.of(worker) >= settings.lease => Verdict::Silent,
            Reach::Elsewhere => Verdict::Leave,
        }
    }

    fn judge_here(&mut self, worker: &Worker, lease: Duration) -> Verdict {
        // A lock that cannot be checked may be held.
        let lives = |role| liveness_lock::is_held(&worker.folder, worker.id.as_str(), role).unwrap_or(true);
        let (worker_lives, supervisor_lives) = (lives(Role::Worker), lives(Role::Supervisor));
        if !worker_lives && !supervisor_lives {
            return Verdict::Dead;
        }
        if worker.overdue && self.overdue_for(&worker.id) >= lease && !was_active_within(worker, lease) {
            return if worker_lives { Verdict::Hung } else { Verdict::Dead };
        }
        Verdict::Leave
    }

    fn overdue_for(&mut self, worker: &WorkerId) -> Duration {
        self.overdue_since.entry(worker.clone()).or_insert_with(Instant::now).elapsed()
    }
}

/// Why the jobs of a dead worker cannot be reaped yet.
#[derive(Debug, Default)]
pub(crate) struct RecoveryObstacle {
    pub(crate) why: String,
    /// The processes that could not be killed, if known.
    pub(crate) unkillable: Vec<UnkillableProcess>,
}

impl From<String> for RecoveryObstacle {
    fn from(why: String) -> Self {
        Self { why, ..Self::default() }
    }
}

/// Whether the worker, its supervisor or one of its commands holds a lock that is visible here. A lock that cannot be
/// checked may be held.
pub(crate) fn holds_a_lock(worker: &Worker) -> bool {
    let (folder, name) = (&worker.folder, worker.id.as_str());
    let lives = |role| liveness_lock::is_held(folder, name, role).unwrap_or(true);
    lives(Role::Worker) || lives(Role::Supervisor) || slot_records::are_held(folder, name).unwrap_or(true)
}

/// Fails if a process that was noted as unkillable for this worker's attempts is still alive. Such a process may have
/// shed everything by which a search would find it.
pub(crate) fn check_noted_survivors(
    store: &dyn Store,
    worker: &Worker,
) -> Result<Result<(), RecoveryObstacle>, StoreError> {
    let started = started_leases(&worker.folder, &worker.id).unwrap_or_default();
    let mut noted = store.unkillable()?;
    noted.retain(|noted| started.contains(&noted.lease) && noted.is_alive());
    let pids: Vec<Pid> = noted.iter().filter_map(|noted| Pid::from_raw(noted.pid.cast_signed())).collect();
    Ok(if pids.is_empty() { Ok(()) } else { Err(RecoveryObstacle::of(&pids, &[])) })
}

/// Whether a worker with expired leases has touched its lock file: then it is alive and merely cannot write to the
/// store.
pub(crate) fn was_active_within(worker: &Worker, lease: Duration) -> bool {
    liveness_lock::was_touched_within(&worker.folder, worker.id.as_str(), lease)
}

/// Kills a hung worker; returns whether it is dead. After opening the handle it checks that the process holds the
/// worker's lock: the kernel may have reused the pid.
fn kill(worker: &Worker) -> bool {
    let (folder, name) = (&worker.folder, worker.id.as_str());
    if let Some(pid) = Pid::from_raw(worker.pid.cast_signed())
        && let Ok(handle) = ProcessHandle::open(pid)
        && !process::locks_on(pid, &liveness_lock::path(folder, name)).is_empty()
    {
        let _ = handle.signal(Signal::KILL);
        let _ = handle.ends_within(WORKER_KILL_TIMEOUT);
    }
    !liveness_lock::is_held(folder, name, Role::Worker).unwrap_or(true)
}

/// Kills the orphans of a dead worker; its jobs may be reaped only if that succeeds.
pub(crate) fn kill_orphans_of(
    worker: &Worker,
    now: Timestamp,
    lease: Duration,
) -> Result<(), RecoveryObstacle> {
    let records = slot_records::read(&worker.folder, worker.id.as_str()).unwrap_or_default();
    let dead = DeadWorker {
        folder: &worker.folder,
        worker: worker.id.as_str(),
        records: &records,
        last_seen_ticks: last_seen_ticks(worker, now, lease),
    };
    match kill_orphans(dead) {
        Ok(KillResult::Clean) => Ok(()),
        Ok(KillResult::Survivors(left)) => Err(RecoveryObstacle::of(&left, &records)),
        Ok(KillResult::Hidden) => Err("one of its processes cannot be found or killed".to_owned().into()),
        Err(error) => Err(error.to_string().into()),
    }
}

impl RecoveryObstacle {
    /// Assigns each surviving process to the attempt of its session, or else to every attempt of the worker.
    pub(crate) fn of(left: &[Pid], records: &[AttemptRecord]) -> Self {
        let mut unkillable = Vec::new();
        for pid in left {
            let leads = |record: &&AttemptRecord| record.has_in_session(*pid);
            let owners = records.iter().find(leads).map_or(records, std::slice::from_ref);
            let survivor = Survivor::inspect(*pid);
            unkillable.extend(
                survivor
                    .iter()
                    .flat_map(|survivor| owners.iter().map(|record| survivor.clone().of(&record.lease))),
            );
        }
        let mut pids: Vec<i32> = left.iter().map(|pid| pid.as_raw_pid()).collect();
        // Sorted and without duplicates, because a changed text is logged again, and a process that may belong to
        // several attempts is noted for each of them.
        pids.sort_unstable();
        pids.dedup();
        let pids: Vec<String> = pids.iter().map(i32::to_string).collect();
        Self { why: format!("it left processes that cannot be killed: {}", pids.join(", ")), unkillable }
    }
}

/// Until when the worker may have started processes: until its leases expired. Unlike the time of the last heartbeat,
/// lease expiry does not shift when the clock is set; the heartbeat serves only if the worker held no lease.
fn last_seen_ticks(worker: &Worker, now: Timestamp, lease: Duration) -> u64 {
    let until = worker.lease_until.unwrap_or_else(|| worker.last_heartbeat.saturating_add(lease));
    boot_ticks().saturating_sub(ticks(now.since(until))) + ticks(until.since(now))
}

/// Continues after an error, so that one worker does not block the others; but stops when the store is busy.
fn reap_all(store: &dyn Store, gone: &[(&Worker, &str)], journal: &Journal) -> Result<(), StoreError> {
    let mut result = Ok(());
    for (worker, what) in gone {
        let given = reap_worker(store, worker, what, journal);
        if let Err(StoreError::Busy { .. }) = given {
            return given;
        }
        result = result.and(given);
    }
    result
}

fn reap_worker(store: &dyn Store, worker: &Worker, what: &str, journal: &Journal) -> Result<(), StoreError> {
    let started = started_leases(&worker.folder, &worker.id);
    failpoint::hit("reaper.before_reap");
    match store.reap(&worker.id, started.as_deref(), &[]) {
        Ok(leases) => {
            failpoint::hit("reaper.after_reap");
            journal.reaped(&worker.id, what, &leases);
        }
        // The store has already removed the worker, so it holds no leases.
        Err(StoreError::NoSuchWorker(_)) => {}
        Err(error) => return Err(error),
    }
    files::remove(&worker.folder, &worker.id);
    Ok(())
}

/// Notes the unkillable processes of a dead worker, and reaps its other jobs.
pub(crate) fn reap_others(
    store: &dyn Store,
    folder: &Path,
    worker: &WorkerId,
    unkillable: &[UnkillableProcess],
    journal: &Journal,
) -> Result<(), StoreError> {
    if unkillable.is_empty() {
        return Ok(());
    }
    store.record_unkillable(unkillable)?;
    let stay: Vec<LeaseRef> = unkillable.iter().map(|found| found.lease.clone()).collect();
    match store.reap(worker, started_leases(folder, worker).as_deref(), &stay) {
        Ok(given_back) if given_back.is_empty() => {}
        Ok(given_back) => journal.reaped(worker, "died", &given_back),
        // The store has already removed the worker, so it holds no leases.
        Err(StoreError::NoSuchWorker(_)) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// The leases whose commands were started or about to be; `None` if the record file cannot be read.
pub(crate) fn started_leases(folder: &Path, worker: &WorkerId) -> Option<Vec<LeaseRef>> {
    let records = slot_records::read(folder, worker.as_str()).ok()?;
    Some(records.into_iter().map(|record| record.lease).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use store::sqlite::SqliteStore;
    use sys::clock::SystemClock;

    #[test]
    fn a_dead_worker_that_the_store_has_removed_holds_no_leases() {
        let folder = tempfile::tempdir().expect("a folder");
        let store =
            SqliteStore::open(&folder.path().join("queue.db"), Arc::new(SystemClock)).expect("a store");
        let journal = Journal::open(folder.path(), "w-2", false);
        let (worker, lease) = ("w-1".parse().expect("a name"), "job".parse().expect("an id"));
        let lease = LeaseRef { job: lease, attempt: 1 };
        let left =
            UnkillableProcess { lease, pid: 1, start_time: 1, why: "this user may not signal it".to_owned() };
        reap_others(&store, folder.path(), &worker, &[left], &journal).expect("there is nothing to reap");
    }
}
