//! Deleting expired rows, a few at a time.
//!
//! No table has an index by age, because every write would pay for it. Instead a pass scans each kind of row in the
//! order of creation, up to the first row that was created too late to be expired. An old row that is still in use is
//! skipped; there are few of these. So is a row with a creation time in the future, written before the clock was set
//! back: it says nothing about the rows after it.

use rusqlite::{OptionalExtension, params};

use super::remove;
use crate::sqlite::jobs::{dependencies, unique_keys};
use crate::sqlite::session::row;
use crate::sqlite::session::tx::Tx;
use crate::{Cursor, JobRef, Prunable, PruneResult, PruneStep, StoreError};
use domain::job::life::StateName;
use domain::values::timestamp::Timestamp;

/// One page in so many may stay unused: it will be filled again sooner or later.
const PAGES_PER_UNUSED: u64 = 8;
/// Fewer unused pages than this are not worth returning.
const MIN_UNUSED: u64 = 64;

pub(crate) fn prune(tx: &Tx<'_>, prune: &PruneStep) -> Result<PruneResult, StoreError> {
    match prune.what {
        Prunable::Jobs(state) => jobs(tx, state, prune),
        Prunable::Outputs => outputs(tx, prune),
        Prunable::Events => events(tx, prune),
        Prunable::StaleRows => stale_rows(tx, prune),
        Prunable::FreePages => free_pages(tx, prune),
    }
}

/// The decision of a step about a row.
enum Verdict {
    Expired,
    Kept,
    /// Created so late that no row after it has expired.
    TooNew,
}

fn judge(tx: &Tx<'_>, made_at: i64, ended_at: i64, before: Timestamp) -> Verdict {
    let (before, now) = (before.as_millis(), tx.now.as_millis());
    if ended_at <= before {
        Verdict::Expired
    } else if before < made_at && made_at <= now {
        Verdict::TooNew
    } else {
        Verdict::Kept
    }
}

fn jobs(tx: &Tx<'_>, state: StateName, prune: &PruneStep) -> Result<PruneResult, StoreError> {
    let found = finished_jobs(tx, state, prune)?;
    let mut pruned = PruneResult::default();
    for (seq, created_at, finished_at) in &found {
        if tx.is_spent() {
            pruned.next = Some(cursor(seq - 1, 0));
            return Ok(pruned);
        }
        match judge(tx, *created_at, *finished_at, prune.before) {
            Verdict::TooNew => return Ok(pruned),
            Verdict::Expired if !is_needed(tx, *seq)? => {
                if !prune.dry_run {
                    let Some(gone) = delete_job(tx, *seq)? else {
                        pruned.next = Some(cursor(seq - 1, 0));
                        return Ok(pruned);
                    };
                    pruned.gone.push(gone);
                }
                pruned.count += 1;
            }
            Verdict::Expired | Verdict::Kept => {}
        }
    }
    pruned.next = found.last().filter(|_| found.len() == prune.limit).map(|last| cursor(last.0, 0));
    Ok(pruned)
}

/// Deletes the first of the selected jobs, as many as this transaction's budget allows. Also returns how many it
/// examined.
pub(crate) fn prune_selected(
    tx: &Tx<'_>,
    jobs: &[JobRef],
    dry_run: bool,
) -> Result<(usize, PruneResult), StoreError> {
    let mut pruned = PruneResult::default();
    for (at, selected) in jobs.iter().enumerate() {
        if tx.is_spent() {
            return Ok((at, pruned));
        }
        tx.spend(1);
        let Some(job) = row::by_number(tx, selected.number)? else {
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
fn is_needed(tx: &Tx<'_>, seq: i64) -> Result<bool, StoreError> {
    Ok(dependencies::is_waited_for(tx, seq)? || unique_keys::is_held(tx, seq)?)
}

/// The next jobs in this state: number, creation time, finish time.
fn finished_jobs(
    tx: &Tx<'_>,
    state: StateName,
    prune: &PruneStep,
) -> Result<Vec<(i64, i64, i64)>, StoreError> {
    // By index jobs_by_state.
    let mut select = tx.prepare(
        "select seq, created_at, finished_at from jobs where state = ?1 and seq > ?2 order by seq limit ?3",
    )?;
    let rows = select.query_map(params![state.name(), prune.after.0, prune.limit], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Deletes a job and returns its number and attempts. `None` if it has more links than one transaction should delete.
fn delete_job(tx: &Tx<'_>, seq: i64) -> Result<Option<(u64, u32)>, StoreError> {
    tx.spend_job();
    let job = row::by_seq(tx, seq)?;
    let is_gone = remove::delete(tx, &job)?;
    Ok(is_gone.then(|| (unsigned(seq), job.life.attempts)))
}

fn outputs(tx: &Tx<'_>, prune: &PruneStep) -> Result<PruneResult, StoreError> {
    let found = stored_outputs(tx, prune)?;
    let mut pruned = PruneResult::default();
    for (seq, number, created_at, finished_at) in &found {
        match judge(tx, *created_at, *finished_at, prune.before) {
            Verdict::TooNew => return Ok(pruned),
            Verdict::Kept => {}
            Verdict::Expired => {
                pruned.count += 1;
                if !prune.dry_run {
                    tx.prepare("delete from outputs where seq = ?1 and number = ?2")?
                        .execute(params![seq, number])?;
                }
            }
        }
    }
    let last = found.last().filter(|_| found.len() == prune.limit);
    pruned.next = last.map(|(seq, number, ..)| cursor(*seq, *number));
    Ok(pruned)
}

/// The next outputs: job, attempt, creation time of the job, finish time of the attempt.
fn stored_outputs(tx: &Tx<'_>, prune: &PruneStep) -> Result<Vec<(i64, u32, i64, i64)>, StoreError> {
    // By the primary key of outputs.
    let mut select = tx.prepare(
        "select o.seq, o.number, j.created_at, a.finished_at
         from outputs o cross join attempts a on a.seq = o.seq and a.number = o.number
              cross join jobs j on j.seq = o.seq
         where (o.seq, o.number) > (?1, ?2) order by o.seq, o.number limit ?3",
    )?;
    let rows = select.query_map(params![prune.after.0, prune.after.1, prune.limit], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn events(tx: &Tx<'_>, prune: &PruneStep) -> Result<PruneResult, StoreError> {
    let mut select = tx.prepare("select id, at from events where id > ?1 order by id limit ?2")?;
    let rows = select.query_map(params![prune.after.0, prune.limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let found: Vec<(i64, i64)> = rows.collect::<Result<_, _>>()?;
    let is_old = |at: i64| at <= prune.before.as_millis();
    let is_passed = |(_, at): &&(i64, i64)| is_old(*at) || *at > tx.now.as_millis();
    let passed: Vec<(i64, i64)> = found.iter().take_while(is_passed).copied().collect();
    let last = passed.last().map(|(id, _)| *id);
    if let (Some(last), false) = (last, prune.dry_run) {
        tx.prepare("delete from events where id > ?1 and id <= ?2 and at <= ?3")?.execute(params![
            prune.after.0,
            last,
            prune.before.as_millis()
        ])?;
    }
    let count = passed.iter().filter(|(_, at)| is_old(*at)).count() as u64;
    let next = last.filter(|_| passed.len() == prune.limit).map(|last| cursor(last, 0));
    Ok(PruneResult { count, next, ..PruneResult::default() })
}

/// A worker that stopped before the oldest remaining job was enqueued appears in no history.
fn stale_rows(tx: &Tx<'_>, prune: &PruneStep) -> Result<PruneResult, StoreError> {
    if prune.dry_run {
        return Ok(PruneResult::default());
    }
    let workers = tx
        .prepare(
            "delete from workers where seq in (select seq from workers
                                               where state = 'stopped' and last_seq < ?1 limit ?2)",
        )?
        .execute(params![oldest_job(tx)?, prune.limit])?;
    // By index unique_keys_ending.
    let keys =
        tx.prepare("delete from unique_keys where held_until < ?1")?.execute(params![tx.now.as_millis()])?;
    let next = (workers == prune.limit).then(Cursor::default);
    Ok(PruneResult { count: (workers + keys) as u64, next, ..PruneResult::default() })
}

/// The number of the oldest remaining job; the maximum if there is none.
fn oldest_job(tx: &Tx<'_>) -> Result<i64, StoreError> {
    let mut select = tx.prepare("select coalesce(min(seq), ?1) from jobs")?;
    Ok(select.query_row([i64::MAX], |row| row.get(0))?)
}

/// Returns unused pages to the filesystem.
fn free_pages(tx: &Tx<'_>, prune: &PruneStep) -> Result<PruneResult, StoreError> {
    let unused: u64 = tx.prepare("pragma freelist_count")?.query_row([], |row| row.get(0))?;
    let pages: u64 = tx.prepare("pragma page_count")?.query_row([], |row| row.get(0))?;
    let spare = unused.saturating_sub((pages / PAGES_PER_UNUSED).max(MIN_UNUSED));
    let count = spare.min(prune.limit as u64);
    if count == 0 || prune.dry_run {
        return Ok(PruneResult { count: spare, ..PruneResult::default() });
    }
    // The pragma returns one row per page.
    let mut vacuum = tx.prepare(&format!("pragma incremental_vacuum({count})"))?;
    let mut rows = vacuum.query([])?;
    while rows.next()?.is_some() {}
    Ok(PruneResult { count, next: (spare > count).then(Cursor::default), ..PruneResult::default() })
}

pub(crate) fn expired_logs(
    tx: &Tx<'_>,
    files: &[(u64, u32)],
    before: Option<Timestamp>,
) -> Result<Vec<(u64, u32)>, StoreError> {
    let mut expired = Vec::new();
    for (seq, number) in files {
        let is_expired = match ended_at(tx, *seq, *number)? {
            Some(ended_at) => before.is_some_and(|before| ended_at <= before.as_millis()),
            // The attempt is running, or its job was deleted.
            None => !job_exists(tx, *seq)?,
        };
        if is_expired {
            expired.push((*seq, *number));
        }
    }
    Ok(expired)
}

fn ended_at(tx: &Tx<'_>, seq: u64, number: u32) -> Result<Option<i64>, StoreError> {
    let mut select = tx.prepare("select finished_at from attempts where seq = ?1 and number = ?2")?;
    Ok(select.query_row(params![seq, number], |row| row.get(0)).optional()?)
}

fn job_exists(tx: &Tx<'_>, seq: u64) -> Result<bool, StoreError> {
    Ok(tx.prepare("select 1 from jobs where seq = ?1")?.exists([seq])?)
}

fn cursor(seq: i64, number: u32) -> Cursor {
    Cursor(unsigned(seq), number)
}

/// Row numbers are positive.
fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
