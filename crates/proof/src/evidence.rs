//! What is known when a trial is over: everything that the checker judges by, and nothing else.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ProofError;
use super::calls::Call;
use super::hook_log;
use super::hook_log::Telling;
use super::ledger;
use super::ledger::Line;
use super::plan::JobPlan;
use super::sandbox::Field;
use super::trial::census::{command_line, processes_of};
use domain::job::life::StateName;
use domain::job::{Attempt, Job, JobRecord};
use domain::queue::rate::Rate;
use domain::schedule::Schedule;
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
    /// How many slots each worker had.
    pub concurrency: u32,
    /// How many jobs of a queue may run at once, where that is limited.
    pub queue_limits: BTreeMap<String, u32>,
    /// How many may start in how much time, where that is limited.
    pub rates: BTreeMap<String, Rate>,
    /// As they were when they were removed.
    pub schedules: Vec<ScheduleEvidence>,
    /// As the store counts them.
    pub batches: Vec<Batch>,
    /// What hooks were told.
    pub told: Vec<Telling>,
    /// Of how many events hooks are still to be told.
    pub to_be_told: u64,
    /// Whether the clock on the wall was set.
    pub is_clock_turned: bool,
    /// What the store counts, and what there is.
    pub counted: BTreeMap<StateName, u64>,
    /// What is left although all is over: processes, workers, files, damage.
    pub left: Vec<String>,
    /// How long jobs were in the hands of dead workers, at the longest.
    pub longest_abandoned: Duration,
    /// For how long that may be; `None` where nothing is promised.
    pub abandoned_limit: Option<Duration>,
    /// Whether what commands print may be lost: a nemesis spoils the disk.
    pub may_lose_output: bool,
    /// Problems that `status` named while no worker ran.
    pub problems: Vec<String>,
}

/// A job as the store tells it.
#[derive(Clone, Debug)]
pub struct JobEvidence {
    pub record: JobRecord,
    /// What each attempt printed first, by its number: the nonce of its command.
    pub nonces: BTreeMap<u32, String>,
}

/// A schedule, and what its jobs do.
#[derive(Clone, Debug)]
pub struct ScheduleEvidence {
    pub schedule: Schedule,
    pub job: JobPlan,
}

impl Evidence {
    /// The schedule whose jobs have such ids. It is gone, so the jobs themselves do not know it any more.
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

/// Gathers it all.
pub fn gather(field: &Field, concurrency: u32) -> Result<Evidence, ProofError> {
    Ok(Evidence {
        calls: field.calls.all(),
        lines: ledger::read(&field.ledger())?,
        jobs: jobs(field)?,
        concurrency,
        counted: counted(field.store())?,
        batches: field.store().batches(usize::MAX)?,
        told: hook_log::read(&field.told())?,
        to_be_told: to_be_told(field.store())?,
        left: left(field)?,
        ..Evidence::default()
    })
}

/// How many jobs there are in each state, as the store counts them.
pub(super) fn counted(store: &dyn Store) -> Result<BTreeMap<StateName, u64>, ProofError> {
    let mut counted = BTreeMap::new();
    for (state, count) in store.queues()?.into_iter().flat_map(|queue| queue.counts) {
        *counted.entry(state).or_default() += count;
    }
    Ok(counted)
}

/// Of how many events hooks are still to be told.
pub(super) fn to_be_told(store: &dyn Store) -> Result<u64, ProofError> {
    Ok(store.hooks()?.iter().map(|hook| hook.pending).sum())
}

fn jobs(field: &Field) -> Result<Vec<JobEvidence>, ProofError> {
    let store = field.store();
    let everything = Page { limit: usize::MAX, after: None };
    let mut jobs = Vec::new();
    for job in store.list(&JobFilter::default(), &everything)? {
        let Some(record) = store.record(&job.id)? else {
            continue;
        };
        let mut nonces = BTreeMap::new();
        for attempt in &record.history {
            if let Some(nonce) = first_line(field, store, &record.job, attempt)? {
                nonces.insert(attempt.number, nonce);
            }
        }
        jobs.push(JobEvidence { record, nonces });
    }
    Ok(jobs)
}

fn first_line(
    field: &Field,
    store: &dyn Store,
    job: &Job,
    attempt: &Attempt,
) -> Result<Option<String>, ProofError> {
    let pieces = AttemptOutput::new(&field.home(), job, attempt).read(store, true)?;
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

fn left(field: &Field) -> Result<Vec<String>, ProofError> {
    let mut left = Vec::new();
    for pid in processes_of(field.folder()) {
        left.push(format!("process {}: {}", pid.as_raw_pid(), command_line(pid)));
    }
    for worker in field.store().workers()? {
        left.push(format!("worker {} is {}", worker.id, worker.state.name()));
    }
    if let Ok(entries) = std::fs::read_dir(field.home().join("workers")) {
        let files = entries.flatten().filter(|entry| entry.file_name() != HOME_ID);
        left.extend(files.map(|entry| format!("file {}", entry.path().display())));
    }
    let examined = examine(&field.home().join(DATABASE), Depth::Full)?;
    left.extend(examined.damage.into_iter().map(|damage| format!("damage of the database: {damage}")));
    Ok(left)
}
