//! The table of schedules.

use super::{events, queues};
use crate::rows::jobs::environments;
use crate::rows::keys::{EnvironmentKey, ScheduleKey};
use crate::rows::tx::Tx;
use crate::rows::value::malformed;
use crate::rows::{Row, named, params, read};
use crate::{NewSchedule, Pause, Result, ScheduleEdit, ScheduleRefusal, WriteError};
use domain::schedule::{Firing, Policy, Schedule, When, WhenError};
use domain::values::name::ScheduleName;
use domain::values::span::parse_span;
use domain::values::timestamp::Timestamp;
use sys::zone;

/// A schedule with its row ids.
#[derive(Clone, Debug)]
pub(crate) struct ScheduleRow {
    pub(crate) id: ScheduleKey,
    pub(crate) environment_id: Option<EnvironmentKey>,
    pub(crate) schedule: Schedule,
}

pub(crate) fn add(tx: &Tx<'_>, new: &NewSchedule, by: &str) -> Result<Schedule, WriteError<ScheduleRefusal>> {
    let refused = |error: WhenError| WriteError::Refused(error.into());
    let first = new.when.first(tx.now).map_err(refused)?;
    if is_taken(tx, &new.name)? {
        return Err(WriteError::Refused(ScheduleRefusal::NameTaken(new.name.clone())));
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
        paused: None,
    };
    let environment_id = new.environment.as_deref().map(|variables| environments::id(tx, variables));
    insert(tx, &schedule, environment_id.transpose()?)?;
    events::record(tx, None, "schedule_add", by, Some(new.name.as_str()))?;
    Ok(schedule)
}

/// The next occurrence changes only if the times do.
pub(crate) fn edit(
    tx: &Tx<'_>,
    seen: &Schedule,
    edit: &ScheduleEdit,
    by: &str,
) -> Result<Option<Schedule>, WriteError<ScheduleRefusal>> {
    let Some(ScheduleRow { id, environment_id, schedule: current }) = find(tx, &seen.name)? else {
        return Ok(None);
    };
    let is_as_seen = current.created_at == seen.created_at
        && (&current.when, &current.job, current.policy) == (&seen.when, &seen.job, seen.policy);
    if !is_as_seen {
        return Err(WriteError::Refused(ScheduleRefusal::Changed(seen.name.clone())));
    }
    let next_at =
        if edit.when == current.when { current.next_at } else { Some(next_of(tx, &current, edit)?) };
    let changed =
        Schedule { when: edit.when.clone(), job: edit.job.clone(), policy: edit.policy, next_at, ..current };
    update(tx, id, &changed, environment_id.filter(|_| !edit.drops_environment))?;
    events::record(tx, None, "schedule_edit", by, Some(seen.name.as_str()))?;
    Ok(Some(changed))
}

/// The first occurrence of the changed times. One that was handled does not come again.
fn next_of(
    tx: &Tx<'_>,
    current: &Schedule,
    edit: &ScheduleEdit,
) -> Result<Timestamp, WriteError<ScheduleRefusal>> {
    let first = edit.when.first(tx.now).map_err(|error| WriteError::Refused(error.into()))?;
    let after = current.last_at.map_or(tx.now, |last| last.max(tx.now));
    Ok(edit.when.next_after(current.created_at, after).unwrap_or(first))
}

fn update(
    tx: &Tx<'_>,
    id: ScheduleKey,
    schedule: &Schedule,
    environment_id: Option<EnvironmentKey>,
) -> Result<()> {
    let job = serde_json::to_string(&schedule.job).expect("a request serializes to JSON");
    tx.execute(
        "update schedules
         set kind = :kind, expression = :expression, time_zone = :time_zone, job = :job, on_missed = :on_missed,
             missed_limit = :missed_limit, on_overlap = :on_overlap, next_at = :next_at,
             environment_id = :environment_id
         where id = :id",
        named! {
            id,
            kind: schedule.when.kind(),
            expression: schedule.when.expression(),
            time_zone: schedule.when.zone_name(),
            job,
            on_missed: schedule.policy.on_missed,
            missed_limit: schedule.policy.missed_limit,
            on_overlap: schedule.policy.on_overlap,
            next_at: schedule.next_at,
            environment_id,
        },
    )?;
    Ok(())
}

fn is_taken(tx: &Tx<'_>, name: &ScheduleName) -> Result<bool> {
    tx.exists("select 1 from schedules where name = :name", named! { name })
}

fn insert(tx: &Tx<'_>, schedule: &Schedule, environment_id: Option<EnvironmentKey>) -> Result<()> {
    let job = serde_json::to_string(&schedule.job).expect("a request serializes to JSON");
    tx.execute(
        "insert into schedules (id, name, kind, expression, time_zone, job, on_missed, missed_limit, on_overlap,
                                created_at, created_by, next_at, environment_id)
         values (:id, :name, :kind, :expression, :time_zone, :job, :on_missed, :missed_limit, :on_overlap,
                 :created_at, :created_by, :next_at, :environment_id)",
        named! {
            id: next_id(tx)?,
            name: schedule.name,
            kind: schedule.when.kind(),
            expression: schedule.when.expression(),
            time_zone: schedule.when.zone_name(),
            job,
            on_missed: schedule.policy.on_missed,
            missed_limit: schedule.policy.missed_limit,
            on_overlap: schedule.policy.on_overlap,
            created_at: schedule.created_at,
            created_by: schedule.created_by,
            next_at: schedule.next_at,
            environment_id,
        },
    )?;
    Ok(())
}

/// A row id that no job refers to: jobs of a removed schedule must not be taken for runs of a new one.
pub(crate) fn next_id(tx: &Tx<'_>) -> Result<ScheduleKey> {
    // By the primary key, and by index jobs_by_schedule.
    let used: Vec<Option<i64>> = tx.values(
        "select max(id) from schedules
         union all select max(schedule_id) from jobs where schedule_id is not null",
        params![],
    )?;
    Ok(ScheduleKey(used.into_iter().flatten().max().unwrap_or(0) + 1))
}

pub(crate) fn change_pause(
    tx: &Tx<'_>,
    name: &ScheduleName,
    pause: Option<&Pause>,
    by: &str,
) -> Result<bool> {
    let Some(known) = find(tx, name)? else {
        return Ok(false);
    };
    match (pause, &known.schedule.paused) {
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

pub(crate) fn set_pause(tx: &Tx<'_>, id: ScheduleKey, pause: Option<&Pause>) -> Result<()> {
    tx.execute(
        "update schedules set paused_at = :at, paused_by = :by, pause_reason = :reason where id = :id",
        named! {
            id,
            at: pause.map(|_| tx.now),
            by: pause.map(|pause| &pause.by),
            reason: pause.and_then(|pause| pause.reason.as_ref()),
        },
    )?;
    Ok(())
}

fn set_next(tx: &Tx<'_>, id: ScheduleKey, next_at: Option<Timestamp>) -> Result<()> {
    tx.execute("update schedules set next_at = :next_at where id = :id", named! { id, next_at })?;
    Ok(())
}

pub(crate) fn note_fired(tx: &Tx<'_>, id: ScheduleKey, firing: &Firing) -> Result<()> {
    tx.execute(
        "update schedules
         set last_at = :last_at, next_at = :next_at, missed_at = coalesce(:missed_at, missed_at),
             skipped_at = coalesce(:skipped_at, skipped_at)
         where id = :id",
        named! {
            id,
            last_at: firing.last_at,
            next_at: firing.next_at,
            missed_at: firing.missed_at,
            skipped_at: firing.skipped_at,
        },
    )?;
    Ok(())
}

pub(crate) fn note_skipped(tx: &Tx<'_>, id: ScheduleKey, at: Timestamp) -> Result<()> {
    tx.execute("update schedules set skipped_at = :at where id = :id", named! { id, at })?;
    Ok(())
}

pub(crate) fn remove(tx: &Tx<'_>, name: &ScheduleName, by: &str) -> Result<bool> {
    let removed = tx.execute("delete from schedules where name = :name", named! { name })?;
    if removed == 0 {
        return Ok(false);
    }
    events::record(tx, None, "schedule_remove", by, Some(name.as_str()))?;
    Ok(true)
}

pub(crate) fn find_id(tx: &Tx<'_>, name: &ScheduleName) -> Result<Option<ScheduleKey>> {
    tx.value("select id from schedules where name = ?1", params![name])
}

pub(crate) fn find(tx: &Tx<'_>, name: &ScheduleName) -> Result<Option<ScheduleRow>> {
    tx.first(
        "select id, name, kind, expression, time_zone, job, on_missed, missed_limit, on_overlap, created_at, created_by,
                last_at, next_at, missed_at, skipped_at, paused_at, paused_by, pause_reason, environment_id
         from schedules where name = :name",
        named! { name },
        read,
    )
}

pub(crate) fn all(tx: &Tx<'_>) -> Result<Vec<ScheduleRow>> {
    tx.all(
        "select id, name, kind, expression, time_zone, job, on_missed, missed_limit, on_overlap, created_at, created_by,
                last_at, next_at, missed_at, skipped_at, paused_at, paused_by, pause_reason, environment_id
         from schedules order by name",
        params![],
        read,
    )
}

/// The due schedules, the longest overdue first.
pub(crate) fn due(tx: &Tx<'_>, limit: usize) -> Result<Vec<(ScheduleKey, ScheduleName)>> {
    // By index schedules_due.
    tx.all(
        "select id, name from schedules
         where next_at is not null and paused_at is null and next_at <= :now order by next_at limit :limit",
        named! { now: tx.now, limit },
        |row| Ok((row.get("id")?, row.get("name")?)),
    )
}

/// The schedules that fire next, the soonest first.
pub(crate) fn next(tx: &Tx<'_>, limit: usize) -> Result<Vec<ScheduleRow>> {
    // By index schedules_due.
    tx.all(
        "select id, name, kind, expression, time_zone, job, on_missed, missed_limit, on_overlap, created_at, created_by,
                last_at, next_at, missed_at, skipped_at, paused_at, paused_by, pause_reason, environment_id
         from schedules where next_at is not null and paused_at is null order by next_at limit :limit",
        named! { limit },
        read,
    )
}

/// When the next schedule is due.
pub(crate) fn next_fire(tx: &Tx<'_>) -> Result<Option<Timestamp>> {
    // The first entry of index schedules_due.
    tx.value(
        "select next_at from schedules where next_at is not null and paused_at is null order by next_at limit 1",
        params![],
    )
}

fn read(row: &Row<'_>) -> Result<ScheduleRow> {
    let job: &str = row.get("job")?;
    Ok(ScheduleRow {
        id: row.get("id")?,
        environment_id: row.get("environment_id")?,
        schedule: Schedule {
            name: row.get("name")?,
            when: read_when(row)?,
            job: serde_json::from_str(job).map_err(|error| malformed("schedule", error))?,
            policy: read!(row, Policy { on_missed, missed_limit, on_overlap }),
            created_at: row.get("created_at")?,
            created_by: row.get("created_by")?,
            last_at: row.get("last_at")?,
            next_at: row.get("next_at")?,
            missed_at: row.get("missed_at")?,
            skipped_at: row.get("skipped_at")?,
            paused: queues::read_pause(row)?,
        },
    })
}

fn read_when(row: &Row<'_>) -> Result<When> {
    let (kind, expression): (&str, &str) = (row.get("kind")?, row.get("expression")?);
    match kind {
        "cron" => {
            let name = row.get::<Option<&str>>("time_zone")?.unwrap_or_default();
            let zone = zone::find(name)
                .ok_or_else(|| malformed("schedule", format_args!("there is no time zone `{name}`")))?;
            When::cron(expression, zone).map_err(|error| malformed("schedule", error))
        }
        "every" => {
            let period = parse_span(expression).map_err(|error| malformed("schedule", error))?;
            When::every(period).map_err(|error| malformed("schedule", error))
        }
        _ => expression.parse().map(When::At).map_err(|error| malformed("schedule", error)),
    }
}
