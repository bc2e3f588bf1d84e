//! The table of schedules.

use rusqlite::{OptionalExtension, Row, params};

use super::events;
use crate::sqlite::jobs::environments;
use crate::sqlite::session::row;
use crate::sqlite::session::row::malformed;
use crate::sqlite::session::tx::Tx;
use crate::{NewSchedule, Pause, ScheduleRefusal, StoreError};
use domain::schedule::{Firing, OnMissed, OnOverlap, Policy, Schedule, SchedulePause, When};
use domain::values::name::ScheduleName;
use domain::values::span::parse_span;
use domain::values::timestamp::Timestamp;
use sys::zone;

/// A schedule with its row ids.
#[derive(Clone, Debug)]
pub(crate) struct ScheduleRow {
    pub(crate) id: i64,
    pub(crate) environment_id: Option<i64>,
    pub(crate) schedule: Schedule,
}

pub(crate) fn add(
    tx: &Tx<'_>,
    new: &NewSchedule,
    by: &str,
) -> Result<Result<Schedule, ScheduleRefusal>, StoreError> {
    let first = match new.when.first(tx.now) {
        Ok(first) => first,
        Err(error) => return Ok(Err(error.into())),
    };
    if is_taken(tx, &new.name)? {
        return Ok(Err(ScheduleRefusal::NameTaken(new.name.clone())));
    }
    let schedule = Schedule {
        name: new.name.clone(),
        when: new.when.clone(),
        job: new.job.clone(),
        policy: new.policy,
        created_at: tx.now,
        created_by: by.to_owned(),
        last_at: None,
        next_at: Some(first),
        missed_at: None,
        skipped_at: None,
        pause: None,
    };
    let environment_id = new.environment.as_deref().map(|variables| environments::id(tx, variables));
    insert(tx, &schedule, environment_id.transpose()?)?;
    events::record(tx, None, "schedule_add", by, Some(new.name.as_str()))?;
    Ok(Ok(schedule))
}

fn is_taken(tx: &Tx<'_>, name: &ScheduleName) -> Result<bool, StoreError> {
    let mut select = tx.prepare("select 1 from schedules where name = ?1")?;
    Ok(select.exists([name.as_str()])?)
}

fn insert(tx: &Tx<'_>, schedule: &Schedule, environment_id: Option<i64>) -> Result<(), StoreError> {
    let job = serde_json::to_string(&schedule.job).expect("a request serializes to JSON");
    let mut insert = tx.prepare(
        "insert into schedules (id, name, kind, expression, time_zone, job, on_missed, missed_limit, on_overlap,
                                created_at, created_by, next_at, environment_id)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?;
    insert.execute(params![
        next_id(tx)?,
        schedule.name.as_str(),
        schedule.when.kind(),
        schedule.when.expression(),
        schedule.when.zone_name(),
        job,
        schedule.policy.on_missed.name(),
        schedule.policy.missed_limit,
        schedule.policy.on_overlap.name(),
        schedule.created_at.as_millis(),
        schedule.created_by,
        schedule.next_at.map(Timestamp::as_millis),
        environment_id,
    ])?;
    Ok(())
}

/// A row id that no job refers to: jobs of a removed schedule must not be taken for runs of a new one.
pub(crate) fn next_id(tx: &Tx<'_>) -> Result<i64, StoreError> {
    // By the primary key, and by index jobs_by_schedule.
    let mut select = tx.prepare(
        "select max(coalesce((select max(id) from schedules), 0),
                    coalesce((select max(schedule_id) from jobs where schedule_id is not null), 0)) + 1",
    )?;
    Ok(select.query_row([], |row| row.get(0))?)
}

pub(crate) fn change_pause(
    tx: &Tx<'_>,
    name: &ScheduleName,
    pause: Option<&Pause>,
    by: &str,
) -> Result<bool, StoreError> {
    let Some(known) = find(tx, name)? else {
        return Ok(false);
    };
    match (pause, &known.schedule.pause) {
        (Some(pause), _) => {
            set_pause(tx, known.id, Some(pause))?;
            events::record(tx, None, "schedule_pause", by, Some(name.as_str()))?;
        }
        (None, Some(_)) => {
            set_pause(tx, known.id, None)?;
            set_next(tx, known.id, known.schedule.resumed_at(tx.now))?;
            events::record(tx, None, "schedule_resume", by, Some(name.as_str()))?;
        }
        (None, None) => {}
    }
    Ok(true)
}

pub(crate) fn set_pause(tx: &Tx<'_>, id: i64, pause: Option<&Pause>) -> Result<(), StoreError> {
    tx.prepare("update schedules set paused_at = ?2, paused_by = ?3, pause_reason = ?4 where id = ?1")?
        .execute(params![
            id,
            pause.map(|_| tx.now.as_millis()),
            pause.map(|pause| &pause.by),
            pause.and_then(|pause| pause.reason.as_ref()),
        ])?;
    Ok(())
}

fn set_next(tx: &Tx<'_>, id: i64, next_at: Option<Timestamp>) -> Result<(), StoreError> {
    tx.prepare("update schedules set next_at = ?2 where id = ?1")?
        .execute(params![id, next_at.map(Timestamp::as_millis)])?;
    Ok(())
}

pub(crate) fn note_fired(tx: &Tx<'_>, id: i64, firing: &Firing) -> Result<(), StoreError> {
    tx.prepare(
        "update schedules
         set last_at = ?2, next_at = ?3, missed_at = coalesce(?4, missed_at), skipped_at = coalesce(?5, skipped_at)
         where id = ?1",
    )?
    .execute(params![
        id,
        firing.last_at.as_millis(),
        firing.next_at.map(Timestamp::as_millis),
        firing.missed_at.map(Timestamp::as_millis),
        firing.skipped_at.map(Timestamp::as_millis),
    ])?;
    Ok(())
}

pub(crate) fn note_skipped(tx: &Tx<'_>, id: i64, at: Timestamp) -> Result<(), StoreError> {
    tx.prepare("update schedules set skipped_at = ?2 where id = ?1")?.execute(params![id, at.as_millis()])?;
    Ok(())
}

pub(crate) fn remove(tx: &Tx<'_>, name: &ScheduleName, by: &str) -> Result<bool, StoreError> {
    let removed = tx.prepare("delete from schedules where name = ?1")?.execute([name.as_str()])?;
    if removed == 0 {
        return Ok(false);
    }
    events::record(tx, None, "schedule_remove", by, Some(name.as_str()))?;
    Ok(true)
}

pub(crate) fn find(tx: &Tx<'_>, name: &ScheduleName) -> Result<Option<ScheduleRow>, StoreError> {
    let mut select = tx.prepare(
        "select id, name, kind, expression, time_zone, job, on_missed, missed_limit, on_overlap, created_at, created_by,
                last_at, next_at, missed_at, skipped_at, paused_at, paused_by, pause_reason, environment_id
         from schedules where name = ?1",
    )?;
    select.query_row([name.as_str()], |row| Ok(read(row))).optional()?.transpose()
}

pub(crate) fn all(tx: &Tx<'_>) -> Result<Vec<ScheduleRow>, StoreError> {
    let mut select = tx.prepare(
        "select id, name, kind, expression, time_zone, job, on_missed, missed_limit, on_overlap, created_at, created_by,
                last_at, next_at, missed_at, skipped_at, paused_at, paused_by, pause_reason, environment_id
         from schedules order by name",
    )?;
    let mut rows = select.query([])?;
    let mut schedules = Vec::new();
    while let Some(row) = rows.next()? {
        schedules.push(read(row)?);
    }
    Ok(schedules)
}

/// The due schedules, the longest overdue first.
pub(crate) fn due(tx: &Tx<'_>, limit: usize) -> Result<Vec<(i64, ScheduleName)>, StoreError> {
    // By index schedules_due.
    let mut select = tx.prepare(
        "select id, name from schedules
         where next_at is not null and paused_at is null and next_at <= ?1 order by next_at limit ?2",
    )?;
    let mut rows = select.query(params![tx.now.as_millis(), limit])?;
    let mut due = Vec::new();
    while let Some(row) = rows.next()? {
        due.push((row.get(0)?, row::name(row, 1)?));
    }
    Ok(due)
}

/// When the next schedule is due.
pub(crate) fn next_fire(tx: &Tx<'_>) -> Result<Option<Timestamp>, StoreError> {
    // The first entry of index schedules_due.
    let mut select = tx.prepare(
        "select next_at from schedules where next_at is not null and paused_at is null order by next_at limit 1",
    )?;
    Ok(select.query_row([], |row| row.get(0)).optional()?.map(Timestamp::from_millis))
}

fn read(row: &Row<'_>) -> Result<ScheduleRow, StoreError> {
    let job: String = row.get(5)?;
    Ok(ScheduleRow {
        id: row.get(0)?,
        environment_id: row.get(18)?,
        schedule: Schedule {
            name: row::name(row, 1)?,
            when: read_when(row)?,
            job: serde_json::from_str(&job).map_err(|error| malformed("schedule", error))?,
            policy: read_policy(row)?,
            created_at: Timestamp::from_millis(row.get(9)?),
            created_by: row.get(10)?,
            last_at: row::time(row, 11)?,
            next_at: row::time(row, 12)?,
            missed_at: row::time(row, 13)?,
            skipped_at: row::time(row, 14)?,
            pause: read_pause(row)?,
        },
    })
}

fn read_when(row: &Row<'_>) -> Result<When, StoreError> {
    let (kind, expression): (String, String) = (row.get(2)?, row.get(3)?);
    match kind.as_str() {
        "cron" => {
            let name: String = row.get::<_, Option<String>>(4)?.unwrap_or_default();
            let zone = zone::find(&name)
                .ok_or_else(|| malformed("schedule", format_args!("there is no time zone `{name}`")))?;
            When::cron(&expression, zone).map_err(|error| malformed("schedule", error))
        }
        "every" => {
            let period = parse_span(&expression).map_err(|error| malformed("schedule", error))?;
            When::every(period).map_err(|error| malformed("schedule", error))
        }
        _ => expression.parse().map(When::At).map_err(|error| malformed("schedule", error)),
    }
}

fn read_policy(row: &Row<'_>) -> Result<Policy, StoreError> {
    let (missed, overlap): (String, String) = (row.get(6)?, row.get(8)?);
    Ok(Policy {
        on_missed: OnMissed::from_name(&missed).ok_or_else(|| malformed("schedule", &missed))?,
        missed_limit: row.get(7)?,
        on_overlap: OnOverlap::from_name(&overlap).ok_or_else(|| malformed("schedule", &overlap))?,
    })
}

fn read_pause(row: &Row<'_>) -> Result<Option<SchedulePause>, StoreError> {
    let since = row::time(row, 15)?;
    let held = |since| Ok(SchedulePause { since, by: row.get(16)?, reason: row.get(17)? });
    since.map(held).transpose()
}
