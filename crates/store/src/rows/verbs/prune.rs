//! Deleting expired rows, a few at a time.
//!
//! No table has an index by age, because every write would pay for it. Instead a pass scans each kind of row in the
//! order of creation, up to the first row that was created too late to be expired. An old row that is still in use is
//! skipped; there are few of these. So is a row with a creation time in the future, written before the clock was set
//! back: it says nothing about the rows after it.

use std::time::Duration;

use super::{free_pages, remove};
use crate::rows::jobs::row;
use crate::rows::jobs::{dependencies, output_parts, unique_keys};
use crate::rows::keys::JobSeq;
use crate::rows::tables::minutes;
use crate::rows::tx::Tx;
use crate::rows::{named, params, read};
use crate::{Cursor, JobRef, Prunable, PruneResult, PruneStep, Result};
use domain::job::life::StateName;
use domain::metrics::resolution::folds;
use domain::values::timestamp::Timestamp;

pub(crate) fn prune(tx: &mut Tx<'_>, prune: &PruneStep) -> Result<PruneResult> {
    match prune.what {
        Prunable::Jobs(state) => jobs(tx, state, false, prune),
        Prunable::ReportedJobs => jobs(tx, StateName::Dead, true, prune),
        Prunable::Outputs => outputs(tx, prune),
        Prunable::Events => events(tx, prune),
        Prunable::Minutes { retain } => fold_minutes(tx, retain, prune),
        Prunable::StaleRows => stale_rows(tx, prune),
        Prunable::Space => free_pages::free_pages(tx, prune),
    }
}

/// The decision of a step about a row.
enum Verdict {
    Expired,
    Kept,
    /// Created so late that no row after it has expired.
    TooNew,
}

fn judge(tx: &Tx<'_>, made_at: Timestamp, ended_at: Timestamp, before: Timestamp) -> Verdict {
    if ended_at <= before {
        Verdict::Expired
    } else if before < made_at && made_at <= tx.now {
        Verdict::TooNew
    } else {
        Verdict::Kept
    }
}

/// A finished job.
struct FinishedJob {
    seq: JobSeq,
    created_at: Timestamp,
    finished_at: Timestamp,
    is_reported: bool,
}

fn jobs(tx: &mut Tx<'_>, state: StateName, are_reported: bool, prune: &PruneStep) -> Result<PruneResult> {
    let found = finished_jobs(tx, state, prune)?;
    let mut pruned = PruneResult::default();
    for FinishedJob { seq, created_at, finished_at, is_reported } in &found {
        if tx.is_spent() {
            pruned.next = Some(cursor(seq.previous(), 0));
            return Ok(pruned);
        }
        match judge(tx, *created_at, *finished_at, prune.before) {
            Verdict::TooNew => return Ok(pruned),
            Verdict::Expired if *is_reported == are_reported && !is_needed(tx, *seq)? => {
                if !prune.dry_run {
                    let Some(gone) = delete_job(tx, *seq)? else {
                        pruned.next = Some(cursor(seq.previous(), 0));
                        return Ok(pruned);
                    };
                    pruned.gone.push(gone);
                }
                pruned.count += 1;
            }
            Verdict::Expired | Verdict::Kept => {}
        }
    }
    pruned.next = found.last().filter(|_| found.len() == prune.limit).map(|last| cursor(last.seq, 0));
    Ok(pruned)
}

/// Deletes the first of the selected jobs, as many as this transaction's budget allows. Also returns how many it
/// examined.
pub(crate) fn prune_selected(
    tx: &mut Tx<'_>,
    jobs: &[JobRef],
    dry_run: bool,
) -> Result<(usize, PruneResult)> {
    let mut pruned = PruneResult::default();
    for (at, selected) in jobs.iter().enumerate() {
        if tx.is_spent() {
            return Ok((at, pruned));
        }
        tx.spend(1);
        let Some(job) = row::find(tx, JobSeq::of_number(selected.number))? else {
            continue;
        };
        let state = job.life.state.name();
        if state != selected.state || !state.is_finished() || is_needed(tx, job.seq)? {
            continue;
        }
        if !dry_run {
            let Some(gone) = delete_job(tx, job.seq)? else {
                return Ok((at, pruned));
            };
            pruned.gone.push(gone);
        }
        pruned.count += 1;
    }
    Ok((jobs.len(), pruned))
}

/// Whether another job waits for a finished job, or its unique key still excludes others.
fn is_needed(tx: &Tx<'_>, seq: JobSeq) -> Result<bool> {
    Ok(dependencies::is_waited_for(tx, seq)? || unique_keys::is_held(tx, seq)?)
}

/// By index jobs_by_state.
pub(crate) const FINISHED: &str =
    "select seq, created_at, finished_at, attempts, options from jobs where state = ?1 and seq > ?2
     order by seq limit ?3";

/// The next jobs in this state.
fn finished_jobs(tx: &Tx<'_>, state: StateName, prune: &PruneStep) -> Result<Vec<FinishedJob>> {
    tx.all(FINISHED, params![state, prune.after.0, prune.limit], |row| {
        let is_reported = state == StateName::Dead && row::is_reported(row)?;
        Ok(read!(row, FinishedJob { seq, created_at, finished_at, is_reported: is_reported }))
    })
}

/// Deletes a job and returns its number and attempts. `None` if it has more links than one transaction should delete.
fn delete_job(tx: &mut Tx<'_>, seq: JobSeq) -> Result<Option<(u64, u32)>> {
    tx.spend_job();
    let job = row::by_seq(tx, seq)?;
    let is_gone = remove::delete(tx, &job)?;
    Ok(is_gone.then(|| (seq.number(), job.life.attempts)))
}

fn outputs(tx: &Tx<'_>, prune: &PruneStep) -> Result<PruneResult> {
    let mut pruned = outputs_of_attempts(tx, prune)?;
    if pruned.next.is_none() {
        pruned.count += expired_parts(tx, prune)?;
    }
    Ok(pruned)
}

/// Deletes the parts of expired outputs, of a few attempts at a time. Only a store of several machines has any.
fn expired_parts(tx: &Tx<'_>, prune: &PruneStep) -> Result<u64> {
    let (mut count, mut at) = (0, (JobSeq::of_number(0), 0));
    for _ in 0..prune.limit {
        let Some((seq, number)) = output_parts::next_attempt(tx, at.0, at.1)? else {
            break;
        };
        at = (seq, number);
        let Some((created_at, finished_at)) = output_parts::times(tx, seq, number)? else { continue };
        match judge(tx, created_at, finished_at, prune.before) {
            Verdict::TooNew => break,
            Verdict::Kept => {}
            Verdict::Expired => {
                count += 1;
                if !prune.dry_run {
                    output_parts::delete_of_attempt(tx, seq, number)?;
                }
            }
        }
    }
    Ok(count)
}

fn outputs_of_attempts(tx: &Tx<'_>, prune: &PruneStep) -> Result<PruneResult> {
    let found = stored_outputs(tx, prune)?;
    let mut pruned = PruneResult::default();
    for (seq, number, created_at, finished_at) in &found {
        match judge(tx, *created_at, *finished_at, prune.before) {
            Verdict::TooNew => return Ok(pruned),
            Verdict::Kept => {}
            Verdict::Expired => {
                pruned.count += 1;
                if !prune.dry_run {
                    tx.execute(
                        "delete from outputs where seq = :seq and number = :number",
                        named! { seq, number },
                    )?;
                }
            }
        }
    }
    let last = found.last().filter(|_| found.len() == prune.limit);
    pruned.next = last.map(|(seq, number, ..)| cursor(*seq, *number));
    Ok(pruned)
}

/// The next outputs: job, attempt, creation time of the job, finish time of the attempt.
fn stored_outputs(tx: &Tx<'_>, prune: &PruneStep) -> Result<Vec<(JobSeq, u32, Timestamp, Timestamp)>> {
    let Cursor(seq, number) = prune.after;
    // By the primary key of outputs.
    tx.all(
        "select o.seq, o.number, j.created_at, a.finished_at
         from outputs o cross join attempts a cross join jobs j
         where a.seq = o.seq and a.number = o.number and j.seq = o.seq and (o.seq, o.number) > (:seq, :number) order by o.seq, o.number limit :limit",
        named! { seq, number, limit: prune.limit },
        |row| Ok((row.get("seq")?, row.get("number")?, row.get("created_at")?, row.get("finished_at")?)),
    )
}

fn events(tx: &Tx<'_>, prune: &PruneStep) -> Result<PruneResult> {
    let after = prune.after.0;
    let found: Vec<(i64, Timestamp)> = tx.all(
        "select id, at from events where id > :after order by id limit :limit",
        named! { after, limit: prune.limit },
        |row| Ok((row.get("id")?, row.get("at")?)),
    )?;
    let is_old = |at: Timestamp| at <= prune.before;
    let is_passed = |(_, at): &&(i64, Timestamp)| is_old(*at) || *at > tx.now;
    let passed: Vec<(i64, Timestamp)> = found.iter().take_while(is_passed).copied().collect();
    let last = passed.last().map(|(id, _)| *id);
    if let (Some(last), false) = (last, prune.dry_run) {
        tx.execute(
            "delete from events where id > :after and id <= :last and at <= :before",
            named! { after, last, before: prune.before },
        )?;
    }
    let count = passed.iter().filter(|(_, at)| is_old(*at)).count() as u64;
    let next = last.filter(|_| passed.len() == prune.limit).map(|last| Cursor(last.unsigned_abs(), 0));
    Ok(PruneResult { count, next, ..PruneResult::default() })
}

fn fold_minutes(tx: &Tx<'_>, retain: Option<Duration>, prune: &PruneStep) -> Result<PruneResult> {
    let mut left = if prune.dry_run { 0 } else { prune.limit };
    for fold in folds(retain) {
        left -= minutes::fold(tx, &fold, left)?;
    }
    let next = (left == 0 && !prune.dry_run).then(Cursor::default);
    Ok(PruneResult { next, ..PruneResult::default() })
}

/// A worker that stopped before the oldest remaining job was enqueued appears in no history.
fn stale_rows(tx: &Tx<'_>, prune: &PruneStep) -> Result<PruneResult> {
    if prune.dry_run {
        return Ok(PruneResult::default());
    }
    let workers = tx.execute(
        "delete from workers where seq in (select seq from workers
                                           where state = 'stopped' and last_seq < :oldest_job limit :limit)",
        named! { oldest_job: oldest_job(tx)?, limit: prune.limit },
    )?;
    // By index unique_keys_ending.
    let keys = tx.execute("delete from unique_keys where held_until < :now", named! { now: tx.now })?;
    let next = (workers == prune.limit).then(Cursor::default);
    Ok(PruneResult { count: (workers + keys) as u64, next, ..PruneResult::default() })
}

/// The number of the oldest remaining job; the maximum if there is none.
fn oldest_job(tx: &Tx<'_>) -> Result<JobSeq> {
    let oldest: Option<Option<JobSeq>> = tx.value("select min(seq) from jobs", named! {})?;
    Ok(oldest.flatten().unwrap_or(JobSeq::LAST))
}

pub(crate) fn expired_logs(
    tx: &Tx<'_>,
    files: &[(u64, u32)],
    before: Option<Timestamp>,
) -> Result<Vec<(u64, u32)>> {
    let mut expired = Vec::new();
    for (seq, number) in files {
        let is_expired = match ended_at(tx, *seq, *number)? {
            Some(ended_at) => before.is_some_and(|before| ended_at <= before),
            // The attempt is running, or its job was deleted.
            None => !job_exists(tx, *seq)?,
        };
        if is_expired {
            expired.push((*seq, *number));
        }
    }
    Ok(expired)
}

fn ended_at(tx: &Tx<'_>, seq: u64, number: u32) -> Result<Option<Timestamp>> {
    tx.value("select finished_at from attempts where seq = :seq and number = :number", named! { seq, number })
}

fn job_exists(tx: &Tx<'_>, seq: u64) -> Result<bool> {
    tx.exists("select 1 from jobs where seq = :seq", named! { seq })
}

fn cursor(seq: JobSeq, number: u32) -> Cursor {
    Cursor(seq.number(), number)
}
