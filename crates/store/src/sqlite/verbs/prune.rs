//! Forgetting what is old, a few rows at a time.
//!
//! Nothing has an index by age, so that nobody pays for one. Instead each kind of row is walked along in the order in which
//! rows were made: jobs of one state by number, up to the first that was made too late to be old. What is not old although
//! it was made early is passed over; there is little of it. So is what was made in the future, by a clock that was set back
//! since: it says nothing about what comes behind it.

use rusqlite::{OptionalExtension, params};

use super::remove;
use crate::sqlite::jobs::{dependencies, unique_keys};
use crate::sqlite::session::row;
use crate::sqlite::session::tx::Tx;
use crate::{Mark, Old, Prune, Pruned, Seen, StoreError};
use domain::job::life::StateName;
use domain::values::timestamp::Timestamp;

/// Of so many pages one part may be unused: they are filled again sooner or later.
const PART_UNUSED: u64 = 8;
/// Less than this is not worth giving back.
const MIN_UNUSED: u64 = 64;

pub(crate) fn prune(tx: &Tx<'_>, prune: &Prune) -> Result<Pruned, StoreError> {
    match prune.what {
        Old::Jobs(state) => jobs(tx, state, prune),
        Old::Outputs => outputs(tx, prune),
        Old::Events => events(tx, prune),
        Old::Remains => remains(tx, prune),
        Old::Space => space(tx, prune),
    }
}

/// What a step makes of one row.
enum Row {
    Old,
    Kept,
    /// Made so late that nothing behind it is old.
    TooNew,
}

fn judge(tx: &Tx<'_>, made_at: i64, ended_at: i64, before: Timestamp) -> Row {
    let (before, now) = (before.as_millis(), tx.now.as_millis());
    if ended_at <= before {
        Row::Old
    } else if before < made_at && made_at <= now {
        Row::TooNew
    } else {
        Row::Kept
    }
}

fn jobs(tx: &Tx<'_>, state: StateName, prune: &Prune) -> Result<Pruned, StoreError> {
    let found = finished_jobs(tx, state, prune)?;
    let mut pruned = Pruned::default();
    for (seq, created_at, finished_at) in &found {
        if tx.is_spent() {
            pruned.next = Some(mark(seq - 1, 0));
            return Ok(pruned);
        }
        match judge(tx, *created_at, *finished_at, prune.before) {
            Row::TooNew => return Ok(pruned),
            Row::Old if !is_of_use(tx, *seq)? => {
                if !prune.dry_run {
                    let Some(gone) = forget(tx, *seq)? else {
                        pruned.next = Some(mark(seq - 1, 0));
                        return Ok(pruned);
                    };
                    pruned.gone.push(gone);
                }
                pruned.count += 1;
            }
            Row::Old | Row::Kept => {}
        }
    }
    pruned.next = found.last().filter(|_| found.len() == prune.limit).map(|last| mark(last.0, 0));
    Ok(pruned)
}

/// The first of the jobs that were chosen a moment ago, as many as this transaction's portion holds; gives how many of
/// them were looked at, too.
pub(crate) fn forget_chosen(
    tx: &Tx<'_>,
    jobs: &[Seen],
    dry_run: bool,
) -> Result<(usize, Pruned), StoreError> {
    let mut pruned = Pruned::default();
    for (at, seen) in jobs.iter().enumerate() {
        if tx.is_spent() {
            return Ok((at, pruned));
        }
        tx.spend(1);
        let Some(job) = row::by_number(tx, seen.number)? else {
            continue;
        };
        let state = job.life.state.name();
        if state != seen.state || !state.is_finished() || is_of_use(tx, job.seq)? {
            continue;
        }
        if !dry_run {
            let Some(gone) = forget(tx, job.seq)? else {
                return Ok((at, pruned));
            };
            pruned.gone.push(gone);
        }
        pruned.count += 1;
    }
    Ok((jobs.len(), pruned))
}

/// Whether somebody waits for a finished job, or it keeps others with its unique key away.
fn is_of_use(tx: &Tx<'_>, seq: i64) -> Result<bool, StoreError> {
    Ok(dependencies::is_waited_for(tx, seq)? || unique_keys::is_held(tx, seq)?)
}

/// The next jobs in this state: number, when it was made, when it ended.
fn finished_jobs(tx: &Tx<'_>, state: StateName, prune: &Prune) -> Result<Vec<(i64, i64, i64)>, StoreError> {
    // By index jobs_by_state.
    let mut select = tx.prepare(
        "select seq, created_at, finished_at from jobs where state = ?1 and seq > ?2 order by seq limit ?3",
    )?;
    let rows = select.query_map(params![state.name(), prune.after.0, prune.limit], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The number and the attempts of a job that is gone now. `None`: it has more links than one transaction should forget.
fn forget(tx: &Tx<'_>, seq: i64) -> Result<Option<(u64, u32)>, StoreError> {
    tx.spend_job();
    let job = row::by_seq(tx, seq)?;
    let is_gone = remove::forget(tx, &job)?;
    Ok(is_gone.then(|| (unsigned(seq), job.life.attempts)))
}

fn outputs(tx: &Tx<'_>, prune: &Prune) -> Result<Pruned, StoreError> {
    let found = stored_outputs(tx, prune)?;
    let mut pruned = Pruned::default();
    for (seq, number, created_at, finished_at) in &found {
        match judge(tx, *created_at, *finished_at, prune.before) {
            Row::TooNew => return Ok(pruned),
            Row::Kept => {}
            Row::Old => {
                pruned.count += 1;
                if !prune.dry_run {
                    tx.prepare("delete from outputs where seq = ?1 and number = ?2")?
                        .execute(params![seq, number])?;
                }
            }
        }
    }
    let last = found.last().filter(|_| found.len() == prune.limit);
    pruned.next = last.map(|(seq, number, ..)| mark(*seq, *number));
    Ok(pruned)
}

/// The next outputs: of which job and attempt, when the job was made, when the attempt ended.
fn stored_outputs(tx: &Tx<'_>, prune: &Prune) -> Result<Vec<(i64, u32, i64, i64)>, StoreError> {
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

fn events(tx: &Tx<'_>, prune: &Prune) -> Result<Pruned, StoreError> {
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
    let next = last.filter(|_| passed.len() == prune.limit).map(|last| mark(last, 0));
    Ok(Pruned { count, next, ..Pruned::default() })
}

/// A worker that had stopped before any job came that is kept is in nobody's history.
fn remains(tx: &Tx<'_>, prune: &Prune) -> Result<Pruned, StoreError> {
    if prune.dry_run {
        return Ok(Pruned::default());
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
    let next = (workers == prune.limit).then(Mark::default);
    Ok(Pruned { count: (workers + keys) as u64, next, ..Pruned::default() })
}

/// The number of the oldest job that is kept; beyond all numbers if there is none.
fn oldest_job(tx: &Tx<'_>) -> Result<i64, StoreError> {
    let mut select = tx.prepare("select coalesce(min(seq), ?1) from jobs")?;
    Ok(select.query_row([i64::MAX], |row| row.get(0))?)
}

/// Gives unused pages back to the filesystem.
fn space(tx: &Tx<'_>, prune: &Prune) -> Result<Pruned, StoreError> {
    let unused: u64 = tx.prepare("pragma freelist_count")?.query_row([], |row| row.get(0))?;
    let pages: u64 = tx.prepare("pragma page_count")?.query_row([], |row| row.get(0))?;
    let spare = unused.saturating_sub((pages / PART_UNUSED).max(MIN_UNUSED));
    let count = spare.min(prune.limit as u64);
    if count == 0 || prune.dry_run {
        return Ok(Pruned { count: spare, ..Pruned::default() });
    }
    // A row for each page.
    let mut vacuum = tx.prepare(&format!("pragma incremental_vacuum({count})"))?;
    let mut rows = vacuum.query([])?;
    while rows.next()?.is_some() {}
    Ok(Pruned { count, next: (spare > count).then(Mark::default), ..Pruned::default() })
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
            // It runs, or its job is gone.
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

fn mark(seq: i64, number: u32) -> Mark {
    Mark(unsigned(seq), number)
}

/// Numbers of rows are positive.
fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
