//! What dead jobs died of.

use std::collections::BTreeMap;

use crate::rows::jobs::causes;
use crate::rows::keys::{JobSeq, QueueKey};
use crate::rows::tx::Tx;
use crate::rows::{params, read};
use crate::{CauseSummary, JobRef, Result};
use domain::job::cause::CauseId;
use domain::values::name::QueueName;
use domain::values::timestamp::Timestamp;

/// The causes with the most dead jobs.
pub(crate) fn largest(tx: &Tx<'_>, queue_id: Option<QueueKey>, limit: usize) -> Result<Vec<CauseSummary>> {
    let names = names(tx)?;
    let mut summaries = Vec::new();
    for id in causes::largest(tx, queue_id, limit)? {
        summaries.extend(summary(tx, id, queue_id, &names)?);
    }
    Ok(summaries)
}

/// One cause; `None` if no dead job has it.
pub(crate) fn find(tx: &Tx<'_>, id: CauseId) -> Result<Option<CauseSummary>> {
    summary(tx, id, None, &names(tx)?)
}

fn names(tx: &Tx<'_>) -> Result<BTreeMap<QueueKey, QueueName>> {
    let named = tx.all("select id, name from queues", params![], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(named.into_iter().collect())
}

fn summary(
    tx: &Tx<'_>,
    id: CauseId,
    queue_id: Option<QueueKey>,
    names: &BTreeMap<QueueKey, QueueName>,
) -> Result<Option<CauseSummary>> {
    let mut by_queue = causes::of_cause(tx, id)?;
    by_queue.retain(|of, _| queue_id.is_none_or(|queue_id| queue_id == *of));
    let (Some(example), Some(first)) = (newest(tx, id, queue_id)?, by_queue.values().next()) else {
        return Ok(None);
    };
    let queues = by_queue.iter().filter_map(|(of, deaths)| Some((names.get(of)?.clone(), deaths.count)));
    Ok(Some(CauseSummary {
        cause: first.cause.clone(),
        count: by_queue.values().map(|deaths| deaths.count).sum(),
        queues: queues.collect(),
        first_at: by_queue.values().map(|deaths| deaths.first_at).min().unwrap_or(first.first_at),
        last_at: by_queue.values().map(|deaths| deaths.last_at).max().unwrap_or(first.last_at),
        example,
    }))
}

/// The newest dead job of a cause.
fn newest(tx: &Tx<'_>, id: CauseId, queue_id: Option<QueueKey>) -> Result<Option<JobRef>> {
    // By index jobs_by_cause.
    tx.first(
        "select id, seq, state from jobs where cause_id = ?1 and (queue_id = ?2 or ?2 is null)
         order by seq desc limit 1",
        params![id, queue_id],
        |row| Ok(read!(row, JobRef { id, number: row.get("seq")?, state })),
    )
}

/// The next dead jobs of a cause, from new to old, and when each died; with `below`, only those of lower numbers.
pub(crate) fn deaths_below(
    tx: &Tx<'_>,
    id: CauseId,
    queue_id: Option<QueueKey>,
    below: Option<JobSeq>,
    limit: usize,
) -> Result<Vec<(JobSeq, Timestamp)>> {
    let below = below.unwrap_or(JobSeq::LAST);
    // By index jobs_by_cause.
    tx.all(
        "select seq, finished_at from jobs
         where cause_id = ?1 and seq < ?2 and (queue_id = ?3 or ?3 is null) order by seq desc limit ?4",
        params![id, below, queue_id, limit],
        |row| Ok((row.get("seq")?, row.get("finished_at")?)),
    )
}
