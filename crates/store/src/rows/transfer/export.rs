//! Exporting a queue, or some of its jobs with what belongs to them, as lines in one snapshot.

use rusqlite::Row;
use serde_json::{Map, Value};

use super::scope::Scope;
use super::{attempts, batches, deliveries, hooks, schedules};
use crate::rows::jobs::row;
use crate::rows::jobs::row::{malformed, strings};
use crate::rows::tx::Tx;
use crate::transfer::{EnvironmentLine, EventLine, FORMAT, JobLine, Line, QueueLine, SettingLine};
use crate::{ExportScope, StoreError};
use domain::values::timestamp::Timestamp;

/// Takes a line; `false` if it wants no more.
pub(in crate::sqlite) type Sink<'a> = &'a mut dyn FnMut(Line) -> bool;

/// Exports all rows of one kind; `false` if the sink wants no more.
type Kind = fn(&Tx<'_>, &Scope, Sink<'_>) -> Result<bool, StoreError>;

/// Each kind refers only to kinds before it, so that an import can proceed in this order.
const KINDS: [Kind; 11] = [
    settings,
    queues,
    environments,
    batches::export,
    schedules::export,
    jobs,
    dependencies,
    unique_keys,
    events,
    hooks::export,
    deliveries::export,
];

pub(in crate::sqlite) fn export(
    tx: &Tx<'_>,
    which: &ExportScope<'_>,
    sink: Sink<'_>,
) -> Result<(), StoreError> {
    let scope = Scope::of(tx, which)?;
    if !sink(Line::Queuectl { format: FORMAT }) {
        return Ok(());
    }
    for kind in KINDS {
        if !kind(tx, &scope, sink)? {
            return Ok(());
        }
    }
    Ok(())
}

/// Exports a line for each selected row.
pub(super) fn each(
    tx: &Tx<'_>,
    sink: Sink<'_>,
    sql: &str,
    is_wanted: impl Fn(&Row<'_>) -> rusqlite::Result<bool>,
    line: impl Fn(&Row<'_>) -> Result<Line, StoreError>,
) -> Result<bool, StoreError> {
    let mut select = tx.prepare(sql)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        if is_wanted(row)? && !sink(line(row)?) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn settings(tx: &Tx<'_>, scope: &Scope, sink: Sink<'_>) -> Result<bool, StoreError> {
    each(
        tx,
        sink,
        "select key, value from settings",
        |_| Ok(scope.is_all()),
        |row| Ok(Line::Setting(SettingLine { key: row.get(0)?, value: row.get(1)? })),
    )
}

fn queues(tx: &Tx<'_>, scope: &Scope, sink: Sink<'_>) -> Result<bool, StoreError> {
    each(
        tx,
        sink,
        "select name, created_at, paused_at, paused_by, pause_reason, concurrency, rate_count, rate_period_ms, limits,
                retry_on, no_retry_on, id
         from queues where id > 0 order by id",
        |row| Ok(scope.has_queue(row.get(11)?)),
        |row| {
            Ok(Line::Queue(QueueLine {
                name: row.get(0)?,
                created_at: timestamp(row, 1)?,
                paused_at: row::time(row, 2)?,
                paused_by: row.get(3)?,
                pause_reason: row.get(4)?,
                concurrency: row.get(5)?,
                rate_count: row.get(6)?,
                rate_period_ms: row.get(7)?,
                limits: row.get(8)?,
                retry_on: row.get(9)?,
                no_retry_on: row.get(10)?,
            }))
        },
    )
}

fn environments(tx: &Tx<'_>, scope: &Scope, sink: Sink<'_>) -> Result<bool, StoreError> {
    each(
        tx,
        sink,
        "select id, variables from environments where id > 0 order by id",
        |row| Ok(scope.has_environment(row.get(0)?)),
        |row| Ok(Line::Environment(EnvironmentLine { number: row.get(0)?, variables: row.get(1)? })),
    )
}

fn jobs(tx: &Tx<'_>, scope: &Scope, sink: Sink<'_>) -> Result<bool, StoreError> {
    each(
        tx,
        sink,
        "select j.seq, j.id, q.name, j.command, j.state, j.priority, j.blocked_by, j.run_at, j.due_at, j.attempts,
                j.max_retries, j.failures, j.losses, j.loss_boot, w.id, j.cancel_requested, j.created_at, j.updated_at,
                j.started_at, j.finished_at, j.exit_code, j.signal, j.error, j.reason, j.timeout_ms, j.cwd,
                j.environment_id, j.unique_key, j.tags, j.depends_on, j.options,
                (select name from batches where id = j.batch_id), (select name from schedules where id = j.schedule_id),
                j.scheduled_for
         from jobs j join queues q on q.id = j.queue_id left join workers w on w.seq = j.worker_seq
         where j.seq > 0 order by j.seq",
        |row| Ok(scope.has_job(row.get(0)?)),
        |row| Ok(Line::Job(Box::new(job(tx, row)?))),
    )
}

fn job(tx: &Tx<'_>, row: &Row<'_>) -> Result<JobLine, StoreError> {
    let text = |column| Ok::<Option<String>, StoreError>(row.get(column)?);
    Ok(JobLine {
        number: row.get(0)?,
        id: row.get(1)?,
        queue: row.get(2)?,
        command: row.get(3)?,
        state: row.get(4)?,
        priority: row.get(5)?,
        blocked_by: row.get(6)?,
        run_at: row::time(row, 7)?,
        due_at: timestamp(row, 8)?,
        attempts: row.get(9)?,
        max_retries: row.get(10)?,
        failures: row.get(11)?,
        losses: row.get(12)?,
        loss_boot: row.get(13)?,
        worker_id: row.get(14)?,
        cancel_requested: row.get(15)?,
        created_at: timestamp(row, 16)?,
        updated_at: timestamp(row, 17)?,
        started_at: row::time(row, 18)?,
        finished_at: row::time(row, 19)?,
        exit_code: row.get(20)?,
        signal: row.get(21)?,
        error: row.get(22)?,
        reason: row.get(23)?,
        timeout_ms: row.get(24)?,
        cwd: row.get(25)?,
        environment: row.get(26)?,
        unique_key: row.get(27)?,
        tags: strings(text(28)?.as_deref())?,
        depends_on: strings(text(29)?.as_deref())?,
        batch: row.get(31)?,
        schedule: row.get(32)?,
        scheduled_for: row::time(row, 33)?,
        options: object(text(30)?.as_deref())?,
        history: attempts::of(tx, row.get(0)?)?,
    })
}

pub(super) fn object(json: Option<&str>) -> Result<Map<String, Value>, StoreError> {
    let Some(json) = json else {
        return Ok(Map::new());
    };
    serde_json::from_str(json).map_err(|error| malformed("JSON", error))
}

/// The waits between jobs. The other dependencies of a job are in its own line.
fn dependencies(tx: &Tx<'_>, scope: &Scope, sink: Sink<'_>) -> Result<bool, StoreError> {
    each(
        tx,
        sink,
        "select c.id, p.id, d.child_seq from dependencies d cross join jobs p on p.seq = d.parent_seq
                cross join jobs c on c.seq = d.child_seq
         where d.parent_seq > 0 and d.blocks = 1 order by d.parent_seq, d.child_seq",
        |row| Ok(scope.has_job(row.get(2)?)),
        |row| Ok(Line::Dependency { job: row.get(0)?, waits_for: row.get(1)? }),
    )
}

fn unique_keys(tx: &Tx<'_>, scope: &Scope, sink: Sink<'_>) -> Result<bool, StoreError> {
    each(
        tx,
        sink,
        "select k.key, j.id, k.held_until, k.seq from unique_keys k cross join jobs j on j.seq = k.seq
         where k.key > '' order by k.key",
        |row| Ok(scope.has_job(row.get(3)?)),
        |row| Ok(Line::UniqueKey { key: row.get(0)?, job: row.get(1)?, held_until: row::time(row, 2)? }),
    )
}

fn events(tx: &Tx<'_>, scope: &Scope, sink: Sink<'_>) -> Result<bool, StoreError> {
    each(
        tx,
        sink,
        "select e.at, e.event, e.by, j.id, e.detail, e.seq from events e left join jobs j on j.seq = e.seq
         where e.id > 0 order by e.id",
        |row| Ok(row.get::<_, Option<i64>>(5)?.map_or(scope.is_all(), |seq| scope.has_job(seq))),
        |row| {
            Ok(Line::Event(EventLine {
                at: timestamp(row, 0)?,
                event: row.get(1)?,
                by: row.get(2)?,
                job: row.get(3)?,
                detail: row.get(4)?,
            }))
        },
    )
}

pub(super) fn timestamp(row: &Row<'_>, column: usize) -> Result<Timestamp, StoreError> {
    Ok(Timestamp::from_millis(row.get(column)?))
}
