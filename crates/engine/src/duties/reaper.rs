//! Recovers the jobs of dead workers: finds these workers, kills their orphans, and reaps their jobs.
//!
//! A living supervisor takes care of its own workers. Another worker steps in only when supervisor and worker are both
//! dead, or when the worker has been unresponsive for far longer than a lease. Several workers may do so at once:
//! killing a dead process has no effect, and the store reaps a worker's leases once.
//!
//! The reaper searches for processes and sessions only if the dead worker ran *here* ([`host::reach`]). Of a worker
//! from another boot, in another container or on another machine it knows only the heartbeat, and whether the locks that
//! it can see are held: it reaps the jobs when no lock is held and the heartbeat has not changed for long enough, and
//! signals nothing. Twice a second it reads only the workers of its own machine, whose locks it can check; the beats of all
//! workers are read once a heartbeat, by one worker of each home (`silence`).
//!
//! A round kills first and writes afterwards: a hung worker may hold the lock that keeps all others from writing.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::beats::Asked;
use super::silence::{self, SilenceWatch};
use crate::attempt::slot_records;
use crate::attempt::slot_records::AttemptRecord;
use crate::journal::Journal;
use crate::orphans::cleanup::{DeadWorker, KillResult, kill_orphans};
use crate::orphans::survivor::Survivor;
use crate::worker::files;
use domain::settings::Settings;
use domain::values::name::WorkerId;
use domain::values::timestamp::Timestamp;
use store::{LeaseRef, Store, StoreError, UnkillableProcess, Worker};
use sys::clock::{boot_ticks, since_boot_with_sleep, ticks};
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

/// The log text for a worker elsewhere whose beats have stopped.
const SILENT: &str = "sent no heartbeat for a whole lease, in another container or on another machine";

/// How often to search while a known unkillable process is alive: a search reads all of `/proc`, and would only find
/// that process again.
const SEARCH_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Reaper {
    observer: Observer,
    silence: SilenceWatch,
    last_round: Instant,
    /// The other workers, as this process has seen them.
    observations: HashMap<WorkerId, Observation>,
    /// The other workers of this machine, as of the last round.
    others: Vec<Worker>,
}

/// What earlier rounds observed of a worker.
#[derive(Debug, Default)]
struct Observation {
    /// Since when it has held expired leases, as observed without a gap.
    overdue_since: Option<Instant>,
    /// Its last heartbeat, and since when that has not changed. A heartbeat is a wall-clock time, and that clock may
    /// jump; so the reaper checks only whether it changes, and measures the time since then on its own monotonic clock.
    heartbeat: Option<(Timestamp, Instant)>,
    /// When its orphans were last searched for.
    searched: Option<Instant>,
    /// Why it cannot be recovered yet; each reason is logged once.
    obstacle: Option<String>,
}

impl Observation {
    /// How long the worker's heartbeat has not changed; zero when this is first asked.
    fn heartbeat_age(&mut self, worker: &Worker) -> Duration {
        let now = (worker.last_heartbeat, Instant::now());
        let known = self.heartbeat.get_or_insert(now);
        if known.0 != worker.last_heartbeat {
            *known = now;
        }
        known.1.elapsed()
    }

    /// Whether to search for the orphans of the worker now; if so, notes the search. `is_stuck`: a known unkillable
    /// process of the worker is still alive.
    fn begin_search(&mut self, is_stuck: bool, now: Instant) -> bool {
        let is_due =
            !is_stuck || self.searched.is_none_or(|last| now.duration_since(last) >= SEARCH_INTERVAL);
        if is_due {
            self.searched = Some(now);
        }
        is_due
    }
}

/// The state of a worker as the reaper judges it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It is alive, or its supervisor takes care of it.
    Leave,
    /// It ran before the last boot and holds none of its locks, so none of its processes can be alive.
    Rebooted,
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
            Self::Dead => Some("died with its supervisor"),
            Self::Hung => Some("hung past its lease and was killed"),
        }
    }
}

impl Reaper {
    pub(crate) fn new(observer: Observer, folder: PathBuf) -> Self {
        Self {
            observer,
            silence: SilenceWatch::new(folder),
            last_round: Instant::now(),
            observations: HashMap::new(),
            others: Vec::new(),
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
        let (mut workers, silent) =
            self.look_around(store, settings).inspect_err(|_| self.silence.start_over())?;
        if self.last_round.elapsed() > MAX_ROUND_GAP.max(lease / MAX_ROUND_GAPS_PER_LEASE) {
            for observation in self.observations.values_mut() {
                (observation.overdue_since, observation.heartbeat) = (None, None);
            }
        }
        self.last_round = Instant::now();
        workers.retain(|worker| Some(&worker.id) != own);
        self.observations.retain(|id, _| workers.iter().any(|worker| worker.id == *id));
        let now = store.now()?;
        let mut gone = Vec::new();
        for worker in &workers {
            let observation = self.observations.entry(worker.id.clone()).or_default();
            let verdict = observation.judge(worker, &self.observer, settings, now);
            let cleared = observation.clear(store, verdict, worker, now, lease)?;
            gone.extend(verdict.log_text().filter(|_| cleared.is_ok()).map(|what| (worker, what)));
            observation.note(worker, cleared.err(), store, journal)?;
        }
        let silent = silence::elsewhere(store, &self.observer, own, silent);
        let silent = silent.inspect_err(|_| self.silence.start_over())?;
        gone.extend(silent.iter().map(|worker| (worker, SILENT)));
        let reaped = reap_all(store, &gone, journal);
        self.others = workers;
        reaped
    }

    /// The workers of this machine, and those anywhere whose beats have been missing for a whole lease.
    fn look_around(
        &mut self,
        store: &dyn Store,
        settings: &Settings,
    ) -> Result<(Vec<Worker>, Vec<WorkerId>), StoreError> {
        let machine_id = &self.observer.machine_id;
        if !self.silence.is_due(settings) {
            return Ok((store.neighbours(machine_id)?, Vec::new()));
        }
        let sent = since_boot_with_sleep();
        let (workers, beats) = store.neighbours_and_beats(machine_id)?;
        let asked = Asked { sent, answered: since_boot_with_sleep() };
        Ok((workers, self.silence.note(&beats, asked, settings.lease)))
    }

    /// Whether the last round found no other worker on this machine.
    pub(crate) fn is_alone(&self) -> bool {
        self.others.is_empty()
    }

    /// Whether a worker of this machine and its supervisor seem to have died since the last round, by their locks alone.
    pub(crate) fn suspects_death(&self) -> bool {
        let is_dead = |worker: &Worker| {
            host::finds_lock_of(&worker.origin, &worker.folder, worker.id.as_str())
                && !lives(worker, Role::Worker)
                && !lives(worker, Role::Supervisor)
        };
        self.others.iter().any(is_dead)
    }
}

impl Observation {
    fn judge(
        &mut self,
        worker: &Worker,
        observer: &Observer,
        settings: &Settings,
        now: Timestamp,
    ) -> Verdict {
        if !worker.overdue {
            self.overdue_since = None;
        }
        match host::reach(observer, &worker.origin, &worker.folder, worker.id.as_str()) {
            Reach::Here => self.judge_here(worker, settings.lease),
            Reach::Rebooted if holds_a_lock(worker) => Verdict::Leave,
            Reach::Rebooted => {
                let unchanged_for = self.heartbeat_age(worker).max(now.since(worker.last_heartbeat));
                let is_over = unchanged_for >= settings.heartbeat_interval * MISSED_HEARTBEATS_AFTER_BOOT;
                if is_over { Verdict::Rebooted } else { Verdict::Leave }
            }
            // Its beats decide: see `silence`.
            Reach::Elsewhere => Verdict::Leave,
        }
    }

    fn judge_here(&mut self, worker: &Worker, lease: Duration) -> Verdict {
        let worker_lives = lives(worker, Role::Worker);
        if !worker_lives && !lives(worker, Role::Supervisor) {
            return Verdict::Dead;
        }
        let is_overdue =
            worker.overdue && self.overdue_since.get_or_insert_with(Instant::now).elapsed() >= lease;
        match (is_overdue && !was_active_within(worker, lease), worker_lives) {
            (true, true) => Verdict::Hung,
            (true, false) => Verdict::Dead,
            (false, _) => Verdict::Leave,
        }
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
            Verdict::Leave | Verdict::Rebooted => return Ok(Ok(())),
            Verdict::Hung if !kill(worker) => {
                let why = "it hangs past its lease and cannot be found or killed";
                return Ok(Err(why.to_owned().into()));
            }
            Verdict::Dead | Verdict::Hung => {}
        }
        let noted = check_noted_survivors(store, worker)?;
        if self.begin_search(noted.is_err(), Instant::now()) {
            return Ok(kill_orphans_of(worker, now, lease).and(noted));
        }
        Ok(noted)
    }

    fn note(
        &mut self,
        worker: &Worker,
        obstacle: Option<RecoveryObstacle>,
        store: &dyn Store,
        journal: &Journal,
    ) -> Result<(), StoreError> {
        let Some(RecoveryObstacle { why, unkillable }) = obstacle else {
            self.obstacle = None;
            return Ok(());
        };
        if self.obstacle.as_ref() != Some(&why) {
            journal.cannot_recover(&worker.id, &why);
            reap_others(store, &worker.folder, &worker.id, &unkillable, journal)?;
            self.obstacle = Some(why);
        }
        Ok(())
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

/// Whether the worker or its supervisor holds its lock. A lock that cannot be checked may be held.
pub(crate) fn lives(worker: &Worker, role: Role) -> bool {
    liveness_lock::is_held(&worker.folder, worker.id.as_str(), role).unwrap_or(true)
}

/// Whether the worker, its supervisor or one of its commands holds a lock that is visible here.
pub(crate) fn holds_a_lock(worker: &Worker) -> bool {
    lives(worker, Role::Worker)
        || lives(worker, Role::Supervisor)
        || slot_records::are_held(&worker.folder, worker.id.as_str()).unwrap_or(true)
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
    let lock = liveness_lock::path(&worker.folder, worker.id.as_str());
    if let Some(pid) = Pid::from_raw(worker.pid.cast_signed())
        && let Ok(handle) = ProcessHandle::open(pid)
        && !process::locks_on(pid, &lock).is_empty()
    {
        let _ = handle.signal(Signal::KILL);
        let _ = handle.ends_within(WORKER_KILL_TIMEOUT);
    }
    !lives(worker, Role::Worker)
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
    failpoint::hit("reaper.before_reap");
    reap(store, &worker.folder, &worker.id, what, &[], journal)?;
    failpoint::hit("reaper.after_reap");
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
    reap(store, folder, worker, "died", &stay, journal)
}

/// Reaps the jobs of a dead worker, except those that `stay`.
pub(crate) fn reap(
    store: &dyn Store,
    folder: &Path,
    worker: &WorkerId,
    what: &str,
    stay: &[LeaseRef],
    journal: &Journal,
) -> Result<(), StoreError> {
    match store.reap(worker, started_leases(folder, worker).as_deref(), stay) {
        Ok(leases) if leases.is_empty() && !stay.is_empty() => Ok(()),
        Ok(leases) => {
            journal.reaped(worker, what, &leases);
            Ok(())
        }
        // It died before it registered, or the store has already removed it: it holds no leases.
        Err(StoreError::NoSuchWorker(_)) => Ok(()),
        Err(error) => Err(error),
    }
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

    #[test]
    fn searches_are_rare_while_an_unkillable_process_is_alive() {
        let (mut observation, began) = (Observation::default(), Instant::now());
        let mut begins =
            |is_stuck, millis| observation.begin_search(is_stuck, began + Duration::from_millis(millis));
        assert!(begins(true, 0), "the first search finds other orphans");
        assert!(!begins(true, 500) && !begins(true, 9_999));
        assert!(begins(true, 10_000), "it may have started other processes");
        assert!(begins(false, 10_500), "the unkillable process has ended");
        assert!(!begins(true, 11_000));
    }
}
