//! Recovers the jobs of workers that died: finds them, kills what they left behind, and gives their jobs back.
//!
//! While a supervisor lives, its workers are its own business. Only when supervisor and worker are both dead, or have both
//! been silent for far longer than a lease, does another worker step in. It is safe for many to do so at once: killing
//! what is dead does nothing, and the store takes a worker's leases back once.
//!
//! Processes and sessions are looked for only where the dead worker was *here* ([`host::reach`]). Of a worker under
//! another boot or in another container, this one knows the heartbeat, and whether the locks that it can see are held: it
//! gives jobs back when no lock is held and the heartbeat has not changed for long enough, and signals nothing.
//!
//! A round kills first and writes afterwards: what is killed may be what keeps everybody from writing.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::silence::Silences;
use crate::attempt::slot_records;
use crate::attempt::slot_records::Trace;
use crate::journal::Journal;
use crate::orphans::cleanup::{Remains, Sweeps, Swept, sweep};
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
use sys::host::{Reach, Vantage};
use sys::process;
use sys::process::ProcessHandle;

/// A round that comes this much later than it should tells nothing about others: we ourselves were asleep. Where leases
/// are long, so is the time that a worker may wait for the store.
const TOO_LATE: Duration = Duration::from_secs(5);
const TOO_LATE_PER_LEASE: u32 = 2;
/// How many heartbeats a worker of an earlier boot must miss: a cloned machine may share its ids and its home.
const MISSED_AFTER_BOOT: u32 = 2;
/// How long one that was killed is waited for.
const DEATH: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Reaper {
    vantage: Vantage,
    last_round: Instant,
    /// Since when, seen without a gap, workers have been holding leases past their time.
    overdue_since: HashMap<WorkerId, Instant>,
    silences: Silences,
    sweeps: Sweeps,
    /// Workers that cannot be recovered, and why not; each is told of once.
    obstacles: HashMap<WorkerId, String>,
    /// In the last round there was nobody to look after.
    is_alone: bool,
}

/// What is to be done about a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It lives, or somebody else takes care of it.
    Leave,
    /// It ran under another boot, and holds none of its locks: nothing of it can be alive.
    Rebooted,
    /// It is out of reach, holds no lock that can be seen, and was silent for a whole lease.
    Silent,
    /// Dead, and so is its supervisor.
    Dead,
    /// It is there, but has done nothing for longer than anybody should wait.
    Hung,
}

impl Verdict {
    /// What became of a worker that will be gone; `None` if it is to be left alone.
    fn what(self) -> Option<&'static str> {
        match self {
            Self::Leave => None,
            Self::Rebooted => Some("was running when the machine went down"),
            Self::Silent => {
                Some("was not heard from for a whole lease, in another container or on another machine")
            }
            Self::Dead => Some("died with its supervisor"),
            Self::Hung => Some("hung past its lease and was killed"),
        }
    }
}

impl Reaper {
    pub(crate) fn new(vantage: Vantage) -> Self {
        Self {
            vantage,
            last_round: Instant::now(),
            overdue_since: HashMap::new(),
            silences: Silences::default(),
            sweeps: Sweeps::default(),
            obstacles: HashMap::new(),
            is_alone: false,
        }
    }

    /// Looks at every worker but this one, and recovers what is dead.
    pub(crate) fn run_once(
        &mut self,
        store: &dyn Store,
        own: Option<&WorkerId>,
        settings: &Settings,
        journal: &Journal,
    ) -> Result<(), StoreError> {
        let lease = settings.lease;
        // Where the store failed, others could not reach it either: their silence proves nothing.
        let workers = store.workers()?;
        if self.last_round.elapsed() > TOO_LATE.max(lease / TOO_LATE_PER_LEASE) {
            self.overdue_since.clear();
            self.silences.clear();
        }
        self.last_round = Instant::now();
        self.silences.keep(&workers);
        self.sweeps.keep(&workers);
        self.overdue_since.retain(|id, _| workers.iter().any(|worker| worker.id == *id && worker.overdue));
        self.obstacles.retain(|id, _| workers.iter().any(|worker| worker.id == *id));
        self.is_alone = workers.iter().all(|worker| Some(&worker.id) == own);
        let now = store.now()?;
        let mut gone = Vec::new();
        for worker in workers.iter().filter(|worker| Some(&worker.id) != own) {
            let verdict = self.judge(worker, settings, now);
            let cleared = self.clear(store, verdict, worker, now, lease)?;
            gone.extend(verdict.what().filter(|_| cleared.is_ok()).map(|what| (worker, what)));
            self.note(worker, cleared.err(), store, journal)?;
        }
        give_all_back(store, &gone, journal)
    }

    /// Kills what is left of it, and says whether all of it is gone.
    fn clear(
        &mut self,
        store: &dyn Store,
        verdict: Verdict,
        worker: &Worker,
        now: Timestamp,
        lease: Duration,
    ) -> Result<Result<(), Obstacle>, StoreError> {
        match verdict {
            Verdict::Leave | Verdict::Rebooted | Verdict::Silent => return Ok(Ok(())),
            Verdict::Hung if !kill(worker) => {
                let why = "it hangs past its lease and cannot be found or killed";
                return Ok(Err(why.to_owned().into()));
            }
            Verdict::Dead | Verdict::Hung => {}
        }
        let noted = nothing_noted_lives(store, worker)?;
        if self.sweeps.begin(&worker.id, noted.is_err(), Instant::now()) {
            return Ok(sweep_after(worker, now, lease).and(noted));
        }
        Ok(noted)
    }

    pub(crate) fn is_alone(&self) -> bool {
        self.is_alone
    }

    fn note(
        &mut self,
        worker: &Worker,
        obstacle: Option<Obstacle>,
        store: &dyn Store,
        journal: &Journal,
    ) -> Result<(), StoreError> {
        let Some(Obstacle { why, unkillable }) = obstacle else {
            self.obstacles.remove(&worker.id);
            return Ok(());
        };
        if self.obstacles.get(&worker.id) != Some(&why) {
            journal.cannot_recover(&worker.id, &why);
            leave(store, &worker.folder, &worker.id, &unkillable, journal)?;
            self.obstacles.insert(worker.id.clone(), why);
        }
        Ok(())
    }

    fn judge(&mut self, worker: &Worker, settings: &Settings, now: Timestamp) -> Verdict {
        match host::reach(&self.vantage, &worker.origin, &worker.folder, worker.id.as_str()) {
            Reach::Here => self.judge_here(worker, settings.lease),
            Reach::Rebooted | Reach::Elsewhere if holds_a_lock(worker) => Verdict::Leave,
            Reach::Rebooted => {
                let silent_for = self.silences.of(worker).max(now.since(worker.last_heartbeat));
                let is_over = silent_for >= settings.heartbeat_interval * MISSED_AFTER_BOOT;
                if is_over { Verdict::Rebooted } else { Verdict::Leave }
            }
            Reach::Elsewhere if self.silences.of(worker) >= settings.lease => Verdict::Silent,
            Reach::Elsewhere => Verdict::Leave,
        }
    }

    fn judge_here(&mut self, worker: &Worker, lease: Duration) -> Verdict {
        // A lock that cannot be looked at proves nothing.
        let lives = |role| liveness_lock::is_held(&worker.folder, worker.id.as_str(), role).unwrap_or(true);
        let (worker_lives, supervisor_lives) = (lives(Role::Worker), lives(Role::Supervisor));
        if !worker_lives && !supervisor_lives {
            return Verdict::Dead;
        }
        if worker.overdue && self.overdue_for(&worker.id) >= lease && !shows_life(worker, lease) {
            return if worker_lives { Verdict::Hung } else { Verdict::Dead };
        }
        Verdict::Leave
    }

    fn overdue_for(&mut self, worker: &WorkerId) -> Duration {
        self.overdue_since.entry(worker.clone()).or_insert_with(Instant::now).elapsed()
    }
}

/// Why the jobs of a dead worker cannot be given back yet.
#[derive(Debug, Default)]
pub(crate) struct Obstacle {
    pub(crate) why: String,
    /// What could not be killed, where it is known.
    pub(crate) unkillable: Vec<UnkillableProcess>,
}

impl From<String> for Obstacle {
    fn from(why: String) -> Self {
        Self { why, ..Self::default() }
    }
}

/// Whether the worker, its supervisor or one of its commands holds a lock that can be seen from here. A lock that cannot be
/// looked at may be held.
pub(crate) fn holds_a_lock(worker: &Worker) -> bool {
    let (folder, name) = (&worker.folder, worker.id.as_str());
    let lives = |role| liveness_lock::is_held(folder, name, role).unwrap_or(true);
    lives(Role::Worker) || lives(Role::Supervisor) || slot_records::are_held(folder, name).unwrap_or(true)
}

/// Whether nothing lives of what was noted as unkillable for this worker's attempts. Such a process may have shed every
/// mark by which a sweep would find it.
pub(crate) fn nothing_noted_lives(
    store: &dyn Store,
    worker: &Worker,
) -> Result<Result<(), Obstacle>, StoreError> {
    let started = started(&worker.folder, &worker.id).unwrap_or_default();
    let mut noted = store.unkillable()?;
    noted.retain(|noted| started.contains(&noted.lease) && noted.is_there());
    let pids: Vec<Pid> = noted.iter().filter_map(|noted| Pid::from_raw(noted.pid.cast_signed())).collect();
    Ok(if pids.is_empty() { Ok(()) } else { Err(Obstacle::of(&pids, &[])) })
}

/// Whether a worker whose leases have run out was merely unable to write to the store.
pub(crate) fn shows_life(worker: &Worker, lease: Duration) -> bool {
    liveness_lock::was_touched_within(&worker.folder, worker.id.as_str(), lease)
}

/// Whether it is dead now. Who has its pid is looked at after the handle was opened, and must be the one that holds its
/// lock: the pid may have been given to another process meanwhile.
fn kill(worker: &Worker) -> bool {
    let (folder, name) = (&worker.folder, worker.id.as_str());
    if let Some(pid) = Pid::from_raw(worker.pid.cast_signed())
        && let Ok(handle) = ProcessHandle::open(pid)
        && !process::locks_on(pid, &liveness_lock::path(folder, name)).is_empty()
    {
        let _ = handle.signal(Signal::KILL);
        let _ = handle.ends_within(DEATH);
    }
    !liveness_lock::is_held(folder, name, Role::Worker).unwrap_or(true)
}

/// Kills what a dead worker left behind; only when all of it is gone are its jobs given back.
pub(crate) fn sweep_after(worker: &Worker, now: Timestamp, lease: Duration) -> Result<(), Obstacle> {
    let traces = slot_records::read(&worker.folder, worker.id.as_str()).unwrap_or_default();
    let remains = Remains {
        folder: &worker.folder,
        worker: worker.id.as_str(),
        traces: &traces,
        last_seen_ticks: last_seen_ticks(worker, now, lease),
    };
    match sweep(remains) {
        Ok(Swept::Clean) => Ok(()),
        Ok(Swept::Left(left)) => Err(Obstacle::of(&left, &traces)),
        Ok(Swept::Hidden) => Err("something that it started cannot be found or killed".to_owned().into()),
        Err(error) => Err(error.to_string().into()),
    }
}

impl Obstacle {
    /// Processes that live on are in the session of an attempt, or else in any of the worker's.
    pub(crate) fn of(left: &[Pid], traces: &[Trace]) -> Self {
        let mut unkillable = Vec::new();
        for pid in left {
            let leads = |trace: &&Trace| trace.is_leader_of(*pid);
            let owners = traces.iter().find(leads).map_or(traces, std::slice::from_ref);
            let survivor = Survivor::look(*pid);
            unkillable.extend(
                survivor
                    .iter()
                    .flat_map(|survivor| owners.iter().map(|trace| survivor.clone().of(&trace.lease))),
            );
        }
        let mut pids: Vec<i32> = left.iter().map(|pid| pid.as_raw_pid()).collect();
        // Always in the same words: a process that may be of several attempts is noted for each of them.
        pids.sort_unstable();
        pids.dedup();
        let pids: Vec<String> = pids.iter().map(i32::to_string).collect();
        Self { why: format!("it left processes that cannot be killed: {}", pids.join(", ")), unkillable }
    }
}

/// Until when the worker may have started anything: until its leases ran out. These do not move when somebody sets the
/// clock, unlike the time of its last heartbeat, which has to do where it held none.
fn last_seen_ticks(worker: &Worker, now: Timestamp, lease: Duration) -> u64 {
    let until = worker.lease_until.unwrap_or_else(|| worker.last_heartbeat.saturating_add(lease));
    boot_ticks().saturating_sub(ticks(now.since(until))) + ticks(until.since(now))
}

/// Whatever is wrong with one of them, the others get their turn; but where one waited in vain they would too.
fn give_all_back(store: &dyn Store, gone: &[(&Worker, &str)], journal: &Journal) -> Result<(), StoreError> {
    let mut result = Ok(());
    for (worker, what) in gone {
        let given = give_back(store, worker, what, journal);
        if let Err(StoreError::Busy { .. }) = given {
            return given;
        }
        result = result.and(given);
    }
    result
}

fn give_back(store: &dyn Store, worker: &Worker, what: &str, journal: &Journal) -> Result<(), StoreError> {
    let started = started(&worker.folder, &worker.id);
    failpoint::hit("reaper.before_reap");
    match store.reap(&worker.id, started.as_deref()) {
        Ok(leases) => {
            failpoint::hit("reaper.after_reap");
            journal.reaped(&worker.id, what, &leases);
        }
        // The store does not know it any more, so it holds nothing.
        Err(StoreError::NoSuchWorker(_)) => {}
        Err(error) => return Err(error),
    }
    files::remove(&worker.folder, &worker.id);
    Ok(())
}

/// Notes what a dead worker left that cannot be killed, and gives back its other jobs.
pub(crate) fn leave(
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
    match store.reap_except(worker, started(folder, worker).as_deref(), &stay) {
        Ok(given_back) if given_back.is_empty() => {}
        Ok(given_back) => journal.reaped(worker, "died", &given_back),
        // The store does not know it any more, so it holds nothing.
        Err(StoreError::NoSuchWorker(_)) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// The leases whose commands were started, or about to be. `None`: nobody knows any more.
pub(crate) fn started(folder: &Path, worker: &WorkerId) -> Option<Vec<LeaseRef>> {
    let traces = slot_records::read(folder, worker.as_str()).ok()?;
    Some(traces.into_iter().map(|trace| trace.lease).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use store::sqlite::SqliteStore;
    use sys::clock::SystemClock;

    #[test]
    fn a_dead_worker_that_the_store_does_not_know_holds_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let store =
            SqliteStore::open(&folder.path().join("queue.db"), Arc::new(SystemClock)).expect("a store");
        let journal = Journal::open(folder.path(), "w-2", false);
        let (worker, lease) = ("w-1".parse().expect("a name"), "job".parse().expect("an id"));
        let lease = LeaseRef { job: lease, attempt: 1 };
        let left =
            UnkillableProcess { lease, pid: 1, start_time: 1, why: "this user may not signal it".to_owned() };
        leave(&store, folder.path(), &worker, &[left], &journal).expect("there is nothing to give back");
    }
}
