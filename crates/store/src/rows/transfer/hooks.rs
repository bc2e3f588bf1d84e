//! Exporting and importing hooks.

use rusqlite::{OptionalExtension, params};

use super::export::{Sink, each, timestamp};
use super::import::{malformed, parse_name};
use super::scope::Scope;
use crate::StoreError;
use crate::rows::jobs::row;
use crate::rows::tx::Tx;
use crate::rows::tables::{hooks, queues};
use crate::transfer::{HookLine, ImportError, Line};
use domain::values::name::{HookName, QueueName};
use domain::values::timestamp::Timestamp;

pub(super) fn export(tx: &Tx<'_>, scope: &Scope, sink: Sink<'_>) -> Result<bool, StoreError> {
    each(
        tx,
        sink,
        "select name, event, queue, threshold, command, url, secret, cwd, environment_id, created_at, created_by,
                delivered_at, failing_since, error, gave_up, gave_up_at
         from hooks where id > 0 order by id",
        |_| Ok(scope.is_all()),
        |row| {
            Ok(Line::Hook(Box::new(HookLine {
                name: row.get(0)?,
                event: row.get(1)?,
                queue: row.get(2)?,
                threshold: row.get(3)?,
                command: row.get(4)?,
                url: row.get(5)?,
                secret: row.get(6)?,
                cwd: row.get(7)?,
                environment: row.get(8)?,
                created_at: timestamp(row, 9)?,
                created_by: row.get(10)?,
                delivered_at: row::time(row, 11)?,
                failing_since: row::time(row, 12)?,
                error: row.get(13)?,
                gave_up: row.get(14)?,
                gave_up_at: row::time(row, 15)?,
            })))
        },
    )
}

/// Returns its row id, or `None` if the name exists: the existing hook stays as it is.
pub(super) fn import(
    tx: &Tx<'_>,
    line: &HookLine,
    environment_id: Option<i64>,
) -> Result<Option<i64>, ImportError> {
    let name: HookName = parse_name(&line.name, "a hook")?;
    if let Some(queue) = &line.queue {
        queues::id(tx, &parse_name::<QueueName>(queue, "a queue")?)?;
    }
    let bad = |error: StoreError| malformed(format!("hook `{name}`"), error);
    let id = insert(tx, line, environment_id).map_err(bad)?;
    // An unreadable row would break every later use of hooks.
    hooks::list(tx).map_err(bad)?;
    Ok(id)
}

fn insert(tx: &Tx<'_>, line: &HookLine, environment_id: Option<i64>) -> Result<Option<i64>, StoreError> {
    let time = |at: Option<Timestamp>| at.map(Timestamp::as_millis);
    let mut insert = tx.prepare(
        "insert into hooks (name, event, queue, threshold, command, url, secret, cwd, environment_id, created_at,
                            created_by, delivered_at, failing_since, error, gave_up, gave_up_at)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
         on conflict (name) do nothing returning id",
    )?;
    let columns = params![
        line.name,
        line.event,
        line.queue,
        line.threshold,
        line.command,
        line.url,
        line.secret,
        line.cwd,
        environment_id,
        line.created_at.as_millis(),
        line.created_by,
        time(line.delivered_at),
        time(line.failing_since),
        line.error,
        line.gave_up,
        time(line.gave_up_at),
    ];
    Ok(insert.query_row(columns, |row| row.get(0)).optional()?)
}
