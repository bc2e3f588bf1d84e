//! Recent problems. The cost does not depend on the number of jobs.

use crate::rows::jobs::row;
use crate::rows::tables::hooks;
use crate::rows::tx::Tx;
use crate::rows::{named, read};
use crate::{LastStop, MAX_DEATHS_COUNTED, Pause, RecentProblems, Result};
use domain::schedule::MISSED_AFTER;
use domain::values::timestamp::Timestamp;

pub(crate) fn recent_problems(
    tx: &Tx<'_>,
    died_since: Timestamp,
    missed_since: Timestamp,
) -> Result<RecentProblems> {
    let (deaths, hooks) = (deaths(tx, died_since)?, hooks::list(tx)?);
    // Compiling statements is most of the work where there are no schedules.
    if !any_schedule(tx)? {
        return Ok(RecentProblems { deaths, hooks, ..RecentProblems::default() });
    }
    Ok(RecentProblems {
        deaths,
        missed: missed(tx, missed_since)?,
        full: full(tx, missed_since)?,
        paused: paused(tx)?,
        active: active(tx)?,
        hooks,
    })
}

fn deaths(tx: &Tx<'_>, since: Timestamp) -> Result<u64> {
    // By index jobs_by_state, from new to old. A job that was enqueued long before others and died after them may lie
    // beyond the limit; it takes that many newer dead jobs to hide it.
    let newest: Vec<(Timestamp, bool)> = tx.all(
        "select finished_at, attempts, options from jobs where state = 'dead' order by seq desc limit :limit",
        named! { limit: MAX_DEATHS_COUNTED },
        |row| Ok((row.get("finished_at")?, row::is_reported(row)?)),
    )?;
    // A death that `run` has reported is known.
    let is_news = |(finished_at, is_reported): &(Timestamp, bool)| *finished_at >= since && !is_reported;
    Ok(newest.iter().filter(|death| is_news(death)).count() as u64)
}

fn missed(tx: &Tx<'_>, since: Timestamp) -> Result<Vec<(String, Timestamp)>> {
    tx.all(
        "select name, case when paused_at is null and next_at < :overdue then next_at else missed_at end as at
         from schedules
         where (paused_at is null and next_at < :overdue)
            or (missed_at >= :since and (last_at is null or missed_at >= last_at))
         order by name",
        named! { since, overdue: tx.now.saturating_sub(MISSED_AFTER) },
        |row| Ok((row.get("name")?, row.get("at")?)),
    )
}

/// With `queue`, an occurrence is skipped only if too many runs are unfinished.
fn full(tx: &Tx<'_>, since: Timestamp) -> Result<Vec<(String, Timestamp)>> {
    tx.all(
        "select name, skipped_at from schedules
         where on_overlap = 'queue' and skipped_at >= :since and skipped_at >= last_at order by name",
        named! { since },
        |row| Ok((row.get("name")?, row.get("skipped_at")?)),
    )
}

fn paused(tx: &Tx<'_>) -> Result<Vec<(String, Pause)>> {
    tx.all(
        "select name, paused_by, pause_reason from schedules where paused_at is not null order by name",
        named! {},
        |row| Ok((row.get("name")?, Pause { by: row.get("paused_by")?, reason: row.get("pause_reason")? })),
    )
}

fn any_schedule(tx: &Tx<'_>) -> Result<bool> {
    // Reads one row at most.
    Ok(tx.value::<i64>("select 1 from schedules limit 1", named! {})?.is_some())
}

fn active(tx: &Tx<'_>) -> Result<u64> {
    // By index schedules_due.
    let count: Option<u64> = tx
        .value("select count(*) from schedules where next_at is not null and paused_at is null", named! {})?;
    Ok(count.unwrap_or(0))
}

pub(crate) fn last_stop(tx: &Tx<'_>) -> Result<Option<LastStop>> {
    // By the primary key.
    tx.first("select at, by, home_id from stops where id = (select max(id) from stops)", named! {}, |row| {
        Ok(read!(row, LastStop { at, by, home_id }))
    })
}
