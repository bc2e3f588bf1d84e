//! The table of hooks.

use rusqlite::{Row, params};

use super::{events, queues};
use crate::sqlite::jobs::environments;
use crate::sqlite::session::row;
use crate::sqlite::session::row::malformed;
use crate::sqlite::session::tx::Tx;
use crate::{Hook, MAX_PENDING_COUNTED, NewHook, StoreError};
use domain::hook::{HookEvent, Secret, Target, Trigger};
use domain::values::name::{HookName, QueueName};
use domain::values::timestamp::Timestamp;

/// The part of a hook that is needed to match events.
#[derive(Clone, Debug)]
pub(crate) struct HookRow {
    pub(crate) id: i64,
    pub(crate) trigger: Trigger,
    /// The row id of the queue that its trigger names.
    pub(crate) queue_id: Option<i64>,
}

/// A row id that no queue has, for a trigger whose queue does not exist.
const NO_QUEUE: i64 = 0;

/// All hooks. If there are none, this query is all that hooks cost a transaction.
pub(crate) fn load(tx: &Tx<'_>) -> Result<Vec<HookRow>, StoreError> {
    let mut select = tx.prepare("select id, event, queue, threshold from hooks order by id")?;
    let mut rows = select.query([])?;
    let mut loaded = Vec::new();
    while let Some(row) = rows.next()? {
        let trigger = read_trigger(row, 1)?;
        let queue_id = trigger.queue().map(|queue| queues::find_id(tx, queue)).transpose()?;
        let queue_id = queue_id.map(|id| id.unwrap_or(NO_QUEUE));
        loaded.push(HookRow { id: row.get(0)?, trigger, queue_id });
    }
    Ok(loaded)
}

pub(crate) fn add(tx: &Tx<'_>, hook: &NewHook, by: &str) -> Result<bool, StoreError> {
    let NewHook { name, trigger, target } = hook;
    if let Some(queue) = trigger.queue() {
        queues::id(tx, queue)?;
    }
    let columns = TargetColumns::of(tx, target)?;
    let mut insert = tx.prepare(
        "insert into hooks (name, event, queue, threshold, command, url, secret, cwd, environment_id, created_at,
                            created_by)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) on conflict (name) do nothing",
    )?;
    let added = insert.execute(params![
        name.as_str(),
        trigger.event().name(),
        trigger.queue().map(QueueName::as_str),
        trigger.threshold(),
        columns.command,
        columns.url,
        columns.secret,
        columns.cwd,
        columns.environment_id,
        tx.now.as_millis(),
        by,
    ])?;
    if added == 1 {
        events::record(tx, None, "hook_add", by, Some(name.as_str()))?;
    }
    Ok(added == 1)
}

/// The columns that only some targets fill.
#[derive(Default)]
struct TargetColumns<'a> {
    command: Option<&'a str>,
    url: Option<&'a str>,
    secret: Option<&'a str>,
    cwd: Option<&'a str>,
    environment_id: Option<i64>,
}

impl<'a> TargetColumns<'a> {
    fn of(tx: &Tx<'_>, target: &'a Target) -> Result<Self, StoreError> {
        Ok(match target {
            Target::Command { line, cwd, environment } => Self {
                command: Some(line),
                cwd: cwd.as_deref(),
                environment_id: environment
                    .as_ref()
                    .map(|environment| environments::id(tx, environment))
                    .transpose()?,
                ..Self::default()
            },
            Target::Url { url, secret } => Self {
                url: Some(url.as_str()),
                secret: secret.as_ref().map(Secret::reveal),
                ..Self::default()
            },
        })
    }
}

pub(crate) fn remove(tx: &Tx<'_>, name: &HookName, by: &str) -> Result<bool, StoreError> {
    let removed: Vec<i64> = tx
        .prepare("delete from hooks where name = ?1 returning id")?
        .query_map([name.as_str()], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for id in &removed {
        // By index deliveries_by_hook.
        tx.prepare("delete from deliveries where hook_id = ?1")?.execute([id])?;
        events::record(tx, None, "hook_remove", by, Some(name.as_str()))?;
    }
    Ok(!removed.is_empty())
}

pub(crate) fn list(tx: &Tx<'_>) -> Result<Vec<Hook>, StoreError> {
    let mut select = tx.prepare(
        "select id, event, queue, threshold, command, url, secret, cwd, environment_id, name, created_at, created_by,
                delivered_at, failing_since, error, gave_up, gave_up_at
         from hooks order by name",
    )?;
    let mut rows = select.query([])?;
    let mut hooks = Vec::new();
    while let Some(row) = rows.next()? {
        hooks.push(read(tx, row)?);
    }
    Ok(hooks)
}

fn read(tx: &Tx<'_>, row: &Row<'_>) -> Result<Hook, StoreError> {
    Ok(Hook {
        name: row::name(row, 9)?,
        trigger: read_trigger(row, 1)?,
        target: read_target(tx, row, 4)?,
        created_at: Timestamp::from_millis(row.get(10)?),
        created_by: row.get(11)?,
        pending: pending(tx, row.get(0)?)?,
        delivered_at: row::time(row, 12)?,
        failing_since: row::time(row, 13)?,
        error: row.get(14)?,
        gave_up: row.get(15)?,
        gave_up_at: row::time(row, 16)?,
    })
}

fn pending(tx: &Tx<'_>, hook_id: i64) -> Result<u64, StoreError> {
    // By index deliveries_by_hook.
    let mut select = tx.prepare("select 1 from deliveries where hook_id = ?1 limit ?2")?;
    let mut rows = select.query(params![hook_id, MAX_PENDING_COUNTED])?;
    let mut count = 0;
    while rows.next()?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// Reads the trigger from three columns, beginning with this one.
pub(crate) fn read_trigger(row: &Row<'_>, first: usize) -> Result<Trigger, StoreError> {
    let event: String = row.get(first)?;
    let event: HookEvent = event.parse().map_err(|error| malformed("hook", error))?;
    let queue: Option<String> = row.get(first + 1)?;
    let queue = queue.map(|queue| queue.parse()).transpose().map_err(|error| malformed("queue", error))?;
    Trigger::new(event, queue, row.get(first + 2)?).map_err(|error| malformed("hook", error))
}

/// Reads the target from five columns, beginning with this one.
pub(crate) fn read_target(tx: &Tx<'_>, row: &Row<'_>, first: usize) -> Result<Target, StoreError> {
    if let Some(line) = row.get(first)? {
        let environment_id: Option<i64> = row.get(first + 4)?;
        return Ok(Target::Command {
            line,
            cwd: row.get(first + 3)?,
            environment: environment_id.map(|id| environments::load(tx, id)).transpose()?,
        });
    }
    let url: String = row.get(first + 1)?;
    let secret: Option<String> = row.get(first + 2)?;
    Ok(Target::Url {
        url: url.parse().map_err(|error| malformed("hook", error))?,
        secret: secret.map(Secret::new).transpose().map_err(|error| malformed("hook", error))?,
    })
}
