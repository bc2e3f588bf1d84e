//! Recent problems. The cost does not depend on the number of jobs.

use rusqlite::{OptionalExtension, params};

use crate::sqlite::session::tx::Tx;
use crate::sqlite::tables::hooks;
use crate::{LastStop, MAX_DEATHS_COUNTED, RecentProblems, StoreError};
use domain::schedule::MISSED_AFTER;
use domain::values::timestamp::Timestamp;

pub(crate) fn recent_problems(
    tx: &Tx<'_>,
    died_since: Timestamp,
    missed_since: Timestamp,
) -> Result<RecentProblems, StoreError> {
    Ok(RecentProblems {
        deaths: deaths(tx, died_since)?,
        missed: missed(tx, missed_since)?,
        full: full(tx, missed_since)?,
        hooks: hooks::list(tx)?,
        last_stop: last_stop(tx)?,
    })
}

fn deaths(tx: &Tx<'_>, since: Timestamp) -> Result<u64, StoreError> {
    // By index jobs_by_state, from new to old. A job that was enqueued long before others and died after them may lie
    // beyond the limit; it takes that many newer dead jobs to hide it.
    let mut select =
        tx.prepare("select finished_at from jobs where state = 'dead' order by seq desc limit ?1")?;
    let mut rows = select.query([MAX_DEATHS_COUNTED])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        let finished_at: i64 = row.get(0)?;
        count += u64::from(finished_at >= since.as_millis());
    }
    Ok(count)
}

fn missed(tx: &Tx<'_>, since: Timestamp) -> Result<Vec<(String, Timestamp)>, StoreError> {
    let mut select = tx.prepare(
        "select name, case when paused_at is null and next_at < ?2 then next_at else missed_at end
         from schedules
         where (paused_at is null and next_at < ?2)
            or (missed_at >= ?1 and (last_at is null or missed_at >= last_at))
         order by name",
    )?;
    let overdue = tx.now.saturating_sub(MISSED_AFTER);
    let rows = select.query_map(params![since.as_millis(), overdue.as_millis()], |row| {
        Ok((row.get(0)?, Timestamp::from_millis(row.get(1)?)))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// With `queue`, an occurrence is skipped only if too many runs are unfinished.
fn full(tx: &Tx<'_>, since: Timestamp) -> Result<Vec<(String, Timestamp)>, StoreError> {
    let mut select = tx.prepare(
        "select name, skipped_at from schedules
         where on_overlap = 'queue' and skipped_at >= ?1 and skipped_at >= last_at order by name",
    )?;
    let rows = select
        .query_map([since.as_millis()], |row| Ok((row.get(0)?, Timestamp::from_millis(row.get(1)?))))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn last_stop(tx: &Tx<'_>) -> Result<Option<LastStop>, StoreError> {
    // By the primary key.
    let mut select =
        tx.prepare("select at, by, home_id from stops where id = (select max(id) from stops)")?;
    let read = |row: &rusqlite::Row<'_>| {
        Ok(LastStop { at: Timestamp::from_millis(row.get(0)?), by: row.get(1)?, home_id: row.get(2)? })
    };
    Ok(select.query_row([], read).optional()?)
}
