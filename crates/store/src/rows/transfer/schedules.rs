//! Exporting and importing schedules.

use rusqlite::params;

use super::export::{Sink, each, object, timestamp};
use super::import::{malformed, parse_name};
use super::scope::Scope;
use crate::StoreError;
use crate::rows::jobs::row;
use crate::rows::tx::Tx;
use crate::rows::tables::schedules;
use crate::transfer::{ImportError, Line, ScheduleLine};
use domain::values::name::ScheduleName;
use domain::values::timestamp::Timestamp;

pub(super) fn export(tx: &Tx<'_>, scope: &Scope, sink: Sink<'_>) -> Result<bool, StoreError> {
    each(
        tx,
        sink,
        "select name, kind, expression, time_zone, job, on_missed, missed_limit, on_overlap, created_at, created_by,
                last_at, next_at, missed_at, skipped_at, paused_at, paused_by, pause_reason, environment_id
         from schedules where id > 0 order by id",
        |_| Ok(scope.is_all()),
        |row| {
            let job: String = row.get(4)?;
            Ok(Line::Schedule(Box::new(ScheduleLine {
                name: row.get(0)?,
                when: row.get(1)?,
                expression: row.get(2)?,
                time_zone: row.get(3)?,
                job: object(Some(&job))?,
                on_missed: row.get(5)?,
                missed_limit: row.get(6)?,
                on_overlap: row.get(7)?,
                created_at: timestamp(row, 8)?,
                created_by: row.get(9)?,
                last_at: row::time(row, 10)?,
                next_at: row::time(row, 11)?,
                missed_at: row::time(row, 12)?,
                skipped_at: row::time(row, 13)?,
                paused_at: row::time(row, 14)?,
                paused_by: row.get(15)?,
                pause_reason: row.get(16)?,
                environment: row.get(17)?,
            })))
        },
    )
}

/// Returns its row id, or `None` if the name exists: the existing schedule stays as it is and keeps its own runs.
pub(super) fn import(
    tx: &Tx<'_>,
    line: &ScheduleLine,
    environment_id: Option<i64>,
) -> Result<Option<i64>, ImportError> {
    let name: ScheduleName = parse_name(&line.name, "a schedule")?;
    if schedules::find(tx, &name)?.is_some() {
        return Ok(None);
    }
    let bad = |error: &dyn std::fmt::Display| malformed(format!("schedule `{name}`"), error);
    let id = schedules::next_id(tx)?;
    insert(tx, id, line, environment_id).map_err(|error| bad(&error))?;
    // An unreadable row would break every later use of the schedule.
    schedules::find(tx, &name).map_err(|error| bad(&error))?;
    Ok(Some(id))
}

fn insert(tx: &Tx<'_>, id: i64, line: &ScheduleLine, environment_id: Option<i64>) -> Result<(), StoreError> {
    let time = |at: Option<Timestamp>| at.map(Timestamp::as_millis);
    tx.prepare(
        "insert into schedules (id, name, kind, expression, time_zone, job, on_missed, missed_limit, on_overlap,
                                created_at, created_by, last_at, next_at, missed_at, skipped_at, paused_at, paused_by,
                                pause_reason, environment_id)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)",
    )?
    .execute(params![
        id,
        line.name,
        line.when,
        line.expression,
        line.time_zone,
        serde_json::Value::Object(line.job.clone()).to_string(),
        line.on_missed,
        line.missed_limit,
        line.on_overlap,
        line.created_at.as_millis(),
        line.created_by,
        time(line.last_at),
        time(line.next_at),
        time(line.missed_at),
        time(line.skipped_at),
        time(line.paused_at),
        line.paused_by,
        line.pause_reason,
        environment_id,
    ])?;
    Ok(())
}
