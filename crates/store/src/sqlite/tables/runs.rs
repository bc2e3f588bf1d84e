//! The jobs that schedules have enqueued.

use rusqlite::{OptionalExtension, Row, Rows, params};

use super::schedules;
use super::schedules::ScheduleRow;
use crate::StoreError;
use crate::sqlite::session::row;
use crate::sqlite::session::row::malformed;
use crate::sqlite::session::tx::Tx;
use domain::job::life::StateName;
use domain::schedule::{LAST_RUNS, MAX_UNFINISHED_RUNS, Run, Schedule};
use domain::values::name::{JobId, ScheduleName};
use domain::values::timestamp::Timestamp;

pub(crate) fn all_with_latest(tx: &Tx<'_>) -> Result<Vec<(Schedule, Option<Run>)>, StoreError> {
    let with_latest = |known: ScheduleRow| Ok((known.schedule, latest(tx, known.id, 1)?.pop()));
    schedules::all(tx)?.into_iter().map(with_latest).collect()
}

pub(crate) fn find_with_latest(
    tx: &Tx<'_>,
    name: &ScheduleName,
    limit: usize,
) -> Result<Option<(Schedule, Vec<Run>)>, StoreError> {
    let Some(known) = schedules::find(tx, name)? else {
        return Ok(None);
    };
    Ok(Some((known.schedule, latest(tx, known.id, limit)?)))
}

/// The latest runs of a schedule, the newest first.
pub(crate) fn latest(tx: &Tx<'_>, schedule_id: i64, limit: usize) -> Result<Vec<Run>, StoreError> {
    // By index jobs_by_schedule.
    let mut select = tx.prepare(
        "select id, state, scheduled_for, created_at, finished_at from jobs
         where schedule_id = ?1 order by seq desc limit ?2",
    )?;
    read_all(select.query(params![schedule_id, limit])?)
}

/// The unfinished runs of a schedule: all that are running, however old, and the waiting ones among the latest.
pub(crate) fn unfinished(tx: &Tx<'_>, schedule_id: i64) -> Result<Vec<Run>, StoreError> {
    let waits = |run: &Run| !run.state.is_finished() && run.state != StateName::Processing;
    let mut unfinished = running(tx, schedule_id)?;
    unfinished.extend(latest(tx, schedule_id, LAST_RUNS)?.into_iter().filter(waits));
    Ok(unfinished)
}

/// How many of the latest runs are unfinished. If runs wait for each other, these are all unfinished ones.
pub(crate) fn count_unfinished(tx: &Tx<'_>, schedule_id: i64) -> Result<usize, StoreError> {
    let latest = latest(tx, schedule_id, MAX_UNFINISHED_RUNS)?;
    Ok(latest.iter().filter(|run| !run.state.is_finished()).count())
}

fn running(tx: &Tx<'_>, schedule_id: i64) -> Result<Vec<Run>, StoreError> {
    // By index jobs_by_state: few jobs run at a time.
    let mut select = tx.prepare(
        "select id, state, scheduled_for, created_at, finished_at from jobs
         where state = 'processing' and +schedule_id = ?1 order by seq desc",
    )?;
    read_all(select.query([schedule_id])?)
}

fn read_all(mut rows: Rows<'_>) -> Result<Vec<Run>, StoreError> {
    let mut runs = Vec::new();
    while let Some(row) = rows.next()? {
        runs.push(read(row)?);
    }
    Ok(runs)
}

fn read(row: &Row<'_>) -> Result<Run, StoreError> {
    let word: String = row.get(1)?;
    Ok(Run {
        id: row::name(row, 0)?,
        state: StateName::from_name(&word).ok_or_else(|| malformed("state", &word))?,
        scheduled_for: row::time(row, 2)?,
        created_at: Timestamp::from_millis(row.get(3)?),
        finished_at: row::time(row, 4)?,
    })
}

/// Records the schedule of a new job, and the occurrence that it is for, if any.
pub(crate) fn assign(
    tx: &Tx<'_>,
    job: &JobId,
    schedule_id: i64,
    scheduled_for: Option<Timestamp>,
) -> Result<(), StoreError> {
    tx.prepare("update jobs set schedule_id = ?2, scheduled_for = ?3 where id = ?1")?.execute(params![
        job.as_str(),
        schedule_id,
        scheduled_for.map(Timestamp::as_millis)
    ])?;
    Ok(())
}

/// The name of the schedule that enqueued a job, unless it was removed, and the occurrence that the job is for.
pub(crate) fn origin(
    tx: &Tx<'_>,
    job: &JobId,
) -> Result<(Option<ScheduleName>, Option<Timestamp>), StoreError> {
    let mut select = tx.prepare(
        "select s.name, j.scheduled_for from jobs j left join schedules s on s.id = j.schedule_id where j.id = ?1",
    )?;
    let origin = select.query_row([job.as_str()], |row| {
        Ok((row.get::<_, Option<String>>(0)?, row.get::<_, Option<i64>>(1)?.map(Timestamp::from_millis)))
    });
    let (name, at) = origin.optional()?.unwrap_or_default();
    let name = name.map(|name| name.parse().map_err(|error| malformed("name", error))).transpose()?;
    Ok((name, at))
}
