//! The jobs that schedules have enqueued.

use super::schedules;
use super::schedules::ScheduleRow;
use crate::Result;
use crate::rows::keys::ScheduleKey;
use crate::rows::tx::Tx;
use crate::rows::{Row, named, read};
use domain::job::life::StateName;
use domain::schedule::{LAST_RUNS, MAX_UNFINISHED_RUNS, Run, Schedule};
use domain::values::name::{JobId, ScheduleName};
use domain::values::timestamp::Timestamp;

pub(crate) fn all_with_latest(tx: &Tx<'_>) -> Result<Vec<(Schedule, Option<Run>)>> {
    let with_latest = |known: ScheduleRow| Ok((known.schedule, latest(tx, known.id, 1)?.pop()));
    schedules::all(tx)?.into_iter().map(with_latest).collect()
}

/// All schedules, each with its latest runs, the newest first.
pub(crate) fn all_with_runs(tx: &Tx<'_>, limit: usize) -> Result<Vec<(Schedule, Vec<Run>)>> {
    let with_runs = |known: ScheduleRow| Ok((known.schedule, latest(tx, known.id, limit)?));
    schedules::all(tx)?.into_iter().map(with_runs).collect()
}

pub(crate) fn find_with_latest(
    tx: &Tx<'_>,
    name: &ScheduleName,
    limit: usize,
) -> Result<Option<(Schedule, Vec<Run>)>> {
    let Some(known) = schedules::find(tx, name)? else {
        return Ok(None);
    };
    Ok(Some((known.schedule, latest(tx, known.id, limit)?)))
}

/// The latest runs of a schedule, the newest first.
pub(crate) fn latest(tx: &Tx<'_>, schedule_id: ScheduleKey, limit: usize) -> Result<Vec<Run>> {
    // By index jobs_by_schedule.
    tx.all(
        "select id, state, scheduled_for, created_at, finished_at from jobs
         where schedule_id = :schedule_id order by seq desc limit :limit",
        named! { schedule_id, limit },
        read,
    )
}

/// The unfinished runs of a schedule: all that are running, however old, and the waiting ones among the latest.
pub(crate) fn unfinished(tx: &Tx<'_>, schedule_id: ScheduleKey) -> Result<Vec<Run>> {
    let waits = |run: &Run| !run.state.is_finished() && run.state != StateName::Processing;
    let mut unfinished = running(tx, schedule_id)?;
    unfinished.extend(latest(tx, schedule_id, LAST_RUNS)?.into_iter().filter(waits));
    Ok(unfinished)
}

/// How many of the latest runs are unfinished. If runs wait for each other, these are all unfinished ones.
pub(crate) fn count_unfinished(tx: &Tx<'_>, schedule_id: ScheduleKey) -> Result<usize> {
    let latest = latest(tx, schedule_id, MAX_UNFINISHED_RUNS)?;
    Ok(latest.iter().filter(|run| !run.state.is_finished()).count())
}

fn running(tx: &Tx<'_>, schedule_id: ScheduleKey) -> Result<Vec<Run>> {
    // By index jobs_by_state: few jobs run at a time.
    tx.all(
        "select id, state, scheduled_for, created_at, finished_at from jobs
         where state = 'processing' and +schedule_id = :schedule_id order by seq desc",
        named! { schedule_id },
        read,
    )
}

fn read(row: &Row<'_>) -> Result<Run> {
    Ok(read!(row, Run { id, state, scheduled_for, created_at, finished_at }))
}

/// Records the schedule of a new job, and the occurrence that it is for, if any.
pub(crate) fn assign(
    tx: &Tx<'_>,
    job: &JobId,
    schedule_id: ScheduleKey,
    scheduled_for: Option<Timestamp>,
) -> Result<()> {
    tx.execute(
        "update jobs set schedule_id = :schedule_id, scheduled_for = :scheduled_for where id = :job",
        named! { job, schedule_id, scheduled_for },
    )?;
    Ok(())
}

/// The name of the schedule that enqueued a job, unless it was removed, and the occurrence that the job is for.
pub(crate) fn origin(tx: &Tx<'_>, job: &JobId) -> Result<(Option<ScheduleName>, Option<Timestamp>)> {
    let origin = tx.first(
        "select s.name, j.scheduled_for from jobs j left join schedules s on s.id = j.schedule_id where j.id = :job",
        named! { job },
        |row| Ok((row.get("name")?, row.get("scheduled_for")?)),
    )?;
    Ok(origin.unwrap_or_default())
}
