//! The evidence of a trial: all input of the checker.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ProofError;
use super::calls::Call;
use super::ledger;
use super::ledger::Line;
use super::notifications;
use super::notifications::Notification;
use super::plan::JobPlan;
use super::sandbox::{Sandbox, lock};
use super::trial::processes::{command_line, processes_of};
use domain::job::life::StateName;
use domain::job::{Attempt, Job, JobRecord};
use domain::queue::rate::Rate;
use domain::schedule::Schedule;
use ops::OpError;
use ops::home::location::DATABASE;
use ops::jobs::logs::{AttemptOutput, Piece};
use store::sqlite::{Depth, examine};
use store::{Batch, JobFilter, Page, Store};
use sys::host::HOME_ID;

#[derive(Clone, Debug, Default)]
pub struct Evidence {
    pub calls: Vec<Call>,
    pub lines: Vec<Line>,
    pub jobs: Vec<JobEvidence>,
    /// The slots of each worker.
    pub concurrency: u32,
    /// The concurrency limits of queues.
    pub queue_limits: BTreeMap<String, u32>,
    /// The rate limits of queues.
    pub rates: BTreeMap<String, Rate>,
    /// The schedules at the time of their removal.
    pub schedules: Vec<ScheduleEvidence>,
    /// The batches with the store's counters.
    pub batches: Vec<Batch>,
    /// The deliveries that hooks received.
    pub notifications: Vec<Notification>,
    /// How many deliveries are still pending.
    pub pending_notifications: u64,
    /// Whether the nemesis changed the wall clock.
    pub is_clock_set: bool,
    /// The store's counters, by state.
    pub counted: BTreeMap<StateName, u64>,
    /// Everything that outlived the trial: processes, workers, files, damage.
    pub left: Vec<String>,
    /// The longest time that a dead worker kept a lease.
    pub longest_abandoned: Duration,
    /// The limit for that; `None` if nothing is promised.
    pub abandoned_limit: Option<Duration>,
    /// Whether output of commands may be lost, because the nemesis disturbs the disk.
    pub may_lose_output: bool,
    /// What the nemesis did that excuses violations.
    pub disturbances: Disturbances,
    /// The problems that `status` reported while no worker was running.
    pub problems: Vec<String>,
}

/// What a nemesis did that excuses violations.
#[derive(Clone, Debug, Default)]
pub struct Disturbances {
    /// Hosts that were stopped completely, so that they could not end their commands.
    pub frozen: Vec<FrozenHost>,
    /// Periods whose commits were lost.
    pub lost_tails: Vec<LostTail>,
}

/// A host whose processes were all stopped. Times are on the ledger's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrozenHost {
    pub host: String,
    pub from: Duration,
    pub to: Duration,
}

/// A failover to a standby that had received nothing since `from`, and was promoted before `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostTail {
    pub from: Duration,
    pub to: Duration,
}

/// A job as stored.
#[derive(Clone, Debug)]
pub struct JobEvidence {
    pub record: JobRecord,
    /// The first output line of each attempt, by number: the nonce of its command.
    pub nonces: BTreeMap<u32, String>,
}

/// A schedule and how its jobs behave.
#[derive(Clone, Debug)]
pub struct ScheduleEvidence {
    pub schedule: Schedule,
    pub job: JobPlan,
}

impl Evidence {
    /// The schedule of a job, by the prefix of its id. The schedule was removed, so the job no longer refers to it.
    pub fn schedule_of(&self, id: &str) -> Option<&ScheduleEvidence> {
        let (name, _) = id.split_once(':')?;
        self.schedules.iter().find(|one| one.schedule.name.as_str() == name)
    }
}

impl JobEvidence {
    pub fn id(&self) -> &str {
        self.record.job.id.as_str()
    }
}

/// Gathers the evidence.
pub fn gather(sandbox: &Sandbox, concurrency: u32) -> Result<Evidence, ProofError> {
    Ok(Evidence {
        calls: lock(&sandbox.calls).clone(),
        lines: ledger::read(&sandbox.ledger())?,
        jobs: jobs(sandbox)?,
        concurrency,
        counted: counted(sandbox.store())?,
        batches: sandbox.store().batches(usize::MAX)?,
        notifications: notifications::read(&sandbox.notifications())?,
        pending_notifications: pending_notifications(sandbox.store())?,
        left: left(sandbox)?,
        disturbances: lock(&sandbox.disturbances).clone(),
        ..Evidence::default()
    })
}

/// The store's counters, by state.
pub(super) fn counted(store: &dyn Store) -> Result<BTreeMap<StateName, u64>, ProofError> {
    let mut counted = BTreeMap::new();
    for (state, count) in store.queues()?.into_iter().flat_map(|queue| queue.counts) {
        *counted.entry(state).or_default() += count;
    }
    Ok(counted)
}

/// How many deliveries are still pending.
pub(super) fn pending_notifications(store: &dyn Store) -> Result<u64, ProofError> {
    Ok(store.hooks()?.iter().map(|hook| hook.pending).sum())
}

fn jobs(sandbox: &Sandbox) -> Result<Vec<JobEvidence>, ProofError> {
    let store = sandbox.store();
    let everything = Page { limit: usize::MAX, after: None };
    let mut jobs = Vec::new();
    for job in store.list(&JobFilter::default(), &everything)? {
        let Some(record) = store.record(&job.id)? else {
            continue;
        };
        let mut nonces = BTreeMap::new();
        for attempt in &record.history {
            if let Some(nonce) = first_line(sandbox, store, &record.job, attempt)? {
                nonces.insert(attempt.number, nonce);
            }
        }
        jobs.push(JobEvidence { record, nonces });
    }
    Ok(jobs)
}

fn first_line(
    sandbox: &Sandbox,
    store: &dyn Store,
    job: &Job,
    attempt: &Attempt,
) -> Result<Option<String>, ProofError> {
    let pieces = match AttemptOutput::new(&sandbox.home(), job, attempt).read(store, true) {
        // No worker has shipped it yet.
        Err(OpError::OutputElsewhere { .. }) => return Ok(spooled_nonce(sandbox, job, attempt)),
        read => read?,
    };
    let bytes: Vec<u8> = pieces
        .into_iter()
        .flat_map(|piece| match piece {
            Piece::Output(chunk) => chunk.bytes,
            Piece::Cut { .. } => Vec::new(),
        })
        .collect();
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().next().map(str::to_owned))
}

/// The nonce in a file that is still on its host, where a worker will ship it. It is all that a command prints.
fn spooled_nonce(sandbox: &Sandbox, job: &Job, attempt: &Attempt) -> Option<String> {
    let name = domain::log::file_name(job.number, attempt.number);
    let mut paths = sandbox.hosts.iter().map(|host| host.home.join("spool").join(&name));
    let bytes = paths.find_map(|path| std::fs::read(path).ok())?;
    let is_nonce = |bytes: &&[u8]| bytes.iter().all(u8::is_ascii_hexdigit);
    let nonce = bytes.windows(ledger::NONCE_LENGTH).find(is_nonce)?;
    Some(String::from_utf8_lossy(nonce).into_owned())
}

fn left(sandbox: &Sandbox) -> Result<Vec<String>, ProofError> {
    let mut left = Vec::new();
    for pid in processes_of(sandbox.folder()) {
        left.push(format!("process {}: {}", pid.as_raw_pid(), command_line(pid)));
    }
    for worker in sandbox.store().workers()? {
        left.push(format!("worker {} is {}", worker.id, worker.state.name()));
    }
    for host in &sandbox.hosts {
        if let Ok(entries) = std::fs::read_dir(host.home.join("workers")) {
            let files = entries.flatten().filter(|entry| entry.file_name() != HOME_ID);
            left.extend(files.map(|entry| format!("file {}", entry.path().display())));
        }
    }
    let contradictions = sandbox.store().recount()?;
    left.extend(contradictions.into_iter().map(|one| format!("contradiction: {}", one.message)));
    if sandbox.server().is_none() {
        let examined = examine(&sandbox.home().join(DATABASE), Depth::Full)?;
        left.extend(examined.damage.into_iter().map(|damage| format!("database damage: {damage}")));
    }
    Ok(left)
}
