//! Looking up a job.

use crate::rows::jobs::row;
use crate::rows::jobs::row::{read_job, select_whole_jobs};
use crate::rows::jobs::{environments, history};
use crate::rows::keys::{EnvironmentKey, JobSeq};
use crate::rows::tables::{events, runs};
use crate::rows::tx::Tx;
use crate::rows::verbs::enqueue;
use crate::rows::{named, params};
use crate::{JobInputs, JobSummary, Result};
use domain::job::{Job, JobRecord};
use domain::values::name::JobId;

pub(crate) fn find(tx: &Tx<'_>, id: &JobId) -> Result<Option<Job>> {
    tx.first(select_whole_jobs!("where j.id = :id"), named! { id }, |row| read_job(tx, row))
}

pub(crate) fn summary(tx: &Tx<'_>, id: &JobId) -> Result<Option<JobSummary>> {
    tx.first(
        "select j.seq, q.name, j.state from jobs j join queues q on q.id = j.queue_id where j.id = ?1",
        params![id],
        |row| {
            let seq: JobSeq = row.get(0)?;
            Ok(JobSummary { number: seq.number(), queue: row.get(1)?, state: row.get(2)? })
        },
    )
}

pub(crate) fn record(tx: &Tx<'_>, id: &JobId) -> Result<Option<JobRecord>> {
    let Some(job) = find(tx, id)? else {
        return Ok(None);
    };
    let Some(known) = row::by_id(tx, id)? else {
        return Ok(None);
    };
    let (schedule, scheduled_for) = runs::origin(tx, id)?;
    Ok(Some(JobRecord {
        job,
        schedule,
        scheduled_for,
        events: events::of_job(tx, known.seq)?,
        history: history::of_job(tx, &known)?,
    }))
}

pub(crate) fn inputs(tx: &Tx<'_>, id: &JobId) -> Result<Option<JobInputs>> {
    let Some(job) = row::by_id(tx, id)? else {
        return Ok(None);
    };
    let environment_id: Option<Option<EnvironmentKey>> =
        tx.value("select environment_id from jobs where seq = ?1", params![job.seq])?;
    let environment = environment_id.flatten().map(|id| environments::load(tx, id)).transpose()?;
    let stdin = (job.options.stdin_bytes > 0).then(|| history::stdin(tx, job.seq)).transpose()?;
    Ok(Some(JobInputs { environment, stdin }))
}

pub(crate) fn output(tx: &Tx<'_>, id: &JobId, attempt: u32) -> Result<Option<Vec<u8>>> {
    match row::by_id(tx, id)? {
        Some(job) => history::output(tx, job.seq, attempt),
        None => Ok(None),
    }
}

pub(crate) fn ids_with_prefix(tx: &Tx<'_>, prefix: &JobId, limit: usize) -> Result<Vec<JobId>> {
    // By the unique index of ids. Every character of an id sorts before the tilde.
    tx.values(
        "select id from jobs where id >= :prefix and id < :prefix || '~' order by id limit :limit",
        named! { prefix, limit },
    )
}

/// The ids among the newest jobs that end with this text, in the order of enqueuing, newest first. No index has the ends of
/// ids, so the search is bounded.
pub(crate) fn ids_with_suffix(tx: &Tx<'_>, suffix: &JobId, among: u64, limit: usize) -> Result<Vec<JobId>> {
    let newest: Option<Option<JobSeq>> = tx.value("select max(seq) from jobs", named! {})?;
    let newest = newest.flatten().unwrap_or(JobSeq::BEFORE_FIRST);
    let (length, oldest) =
        (suffix.as_str().len(), JobSeq::of_number((newest.number() + 1).saturating_sub(among)));
    tx.values(
        "select id from jobs where seq >= :oldest and substr(id, length(id) - :length + 1) = :suffix
         order by seq desc limit :limit",
        named! { oldest, length, suffix, limit },
    )
}

/// The job that was enqueued last.
pub(crate) fn latest(tx: &Tx<'_>) -> Result<Option<JobId>> {
    tx.value("select id from jobs order by seq desc limit 1", named! {})
}

/// The job that was enqueued last among those that run, except for one.
pub(crate) fn latest_running(tx: &Tx<'_>, except: Option<&JobId>) -> Result<Option<JobId>> {
    tx.value(
        "select id from jobs where state = 'processing' and id is distinct from :except order by seq desc limit 1",
        named! { except },
    )
}

pub(crate) fn existing_ids(tx: &Tx<'_>, ids: &[JobId]) -> Result<Vec<JobId>> {
    let mut existing = Vec::new();
    for id in ids {
        if enqueue::is_taken(tx, id)? {
            existing.push(id.clone());
        }
    }
    Ok(existing)
}
