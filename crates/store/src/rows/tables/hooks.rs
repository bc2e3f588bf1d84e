//! The table of hooks.

use super::{events, queues};
use crate::rows::jobs::environments;
use crate::rows::keys::{EnvironmentKey, HookKey, QueueKey};
use crate::rows::tx::Tx;
use crate::rows::value::malformed;
use crate::rows::{Row, named, params, read};
use crate::{Hook, MAX_PENDING_COUNTED, NewHook, Result};
use domain::hook::{HookEvents, Secret, Target, Trigger};
use domain::values::name::HookName;

/// The part of a hook that is needed to match events.
#[derive(Clone, Debug)]
pub(crate) struct HookRow {
    pub(crate) id: HookKey,
    pub(crate) trigger: Trigger,
    /// The row id of the queue that its trigger names.
    pub(crate) queue_id: Option<QueueKey>,
}

/// No queue has the id 0, which stands for a queue that does not exist.
pub(crate) const ALL: &str = "select id, event, queue, threshold,
            case when queue is not null then coalesce((select q.id from queues q where q.name = queue), 0) end as queue_id
     from hooks order by id";

/// All hooks. If there are none, this query is all that hooks cost a transaction.
pub(crate) fn load(tx: &Tx<'_>) -> Result<Vec<HookRow>> {
    tx.all(ALL, params![], |row| Ok(read!(row, HookRow { id, trigger: read_trigger(row)?, queue_id })))
}

pub(crate) fn add(tx: &Tx<'_>, hook: &NewHook, by: &str) -> Result<bool> {
    let NewHook { name, trigger: Trigger { events, queue, threshold, .. }, target } = hook;
    if let Some(queue) = queue {
        queues::id(tx, queue)?;
    }
    let (command, cwd, environment, url, secret) = match target {
        Target::Command { line, cwd, environment } => {
            (Some(line), cwd.as_ref(), environment.as_ref(), None, None)
        }
        Target::Url { url, secret } => {
            (None, None, None, Some(url.as_str()), secret.as_ref().map(Secret::reveal))
        }
    };
    let environment_id = environment.map(|environment| environments::id(tx, environment)).transpose()?;
    let added = tx.execute(
        "insert into hooks (name, event, queue, threshold, command, url, secret, cwd, environment_id, created_at,
                            created_by)
         values (:name, :event, :queue, :threshold, :command, :url, :secret, :cwd, :environment_id, :now, :by)
         on conflict (name) do nothing",
        named! {
            name, event: events.to_string(), queue, threshold, command, url, secret, cwd, environment_id, now: tx.now, by,
        },
    )?;
    if added == 1 {
        events::record(tx, None, "hook_add", by, Some(name.as_str()))?;
    }
    Ok(added == 1)
}

pub(crate) fn remove(tx: &Tx<'_>, name: &HookName, by: &str) -> Result<bool> {
    let removed: Option<HookKey> =
        tx.value("delete from hooks where name = :name returning id", named! { name })?;
    if let Some(hook_id) = removed {
        // By index deliveries_by_hook.
        tx.execute("delete from deliveries where hook_id = :hook_id", named! { hook_id })?;
        events::record(tx, None, "hook_remove", by, Some(name.as_str()))?;
    }
    Ok(removed.is_some())
}

pub(crate) fn list(tx: &Tx<'_>) -> Result<Vec<Hook>> {
    tx.all(
        // By index deliveries_by_hook.
        "select event, queue, threshold, command, url, secret, cwd, environment_id, name, created_at, created_by,
                delivered_at, failing_since, error, gave_up, gave_up_at,
                (select count(*) from (select 1 from deliveries where hook_id = hooks.id limit :limit) d) as pending
         from hooks order by name",
        named! { limit: MAX_PENDING_COUNTED },
        |row| read(tx, row),
    )
}

fn read(tx: &Tx<'_>, row: &Row<'_>) -> Result<Hook> {
    Ok(Hook {
        name: row.get("name")?,
        trigger: read_trigger(row)?,
        target: read_target(tx, row)?,
        created_at: row.get("created_at")?,
        created_by: row.get("created_by")?,
        pending: row.get("pending")?,
        delivered_at: row.get("delivered_at")?,
        failing_since: row.get("failing_since")?,
        error: row.get("error")?,
        gave_up: row.get("gave_up")?,
        gave_up_at: row.get("gave_up_at")?,
    })
}

/// Reads the columns `event`, `queue` and `threshold`.
pub(crate) fn read_trigger(row: &Row<'_>) -> Result<Trigger> {
    let events: HookEvents = row.get::<&str>("event")?.parse().map_err(|error| malformed("hook", error))?;
    Trigger::new(events, row.get("queue")?, row.get("threshold")?).map_err(|error| malformed("hook", error))
}

/// Reads the columns `command`, `url`, `secret`, `cwd` and `environment_id`.
pub(crate) fn read_target(tx: &Tx<'_>, row: &Row<'_>) -> Result<Target> {
    if let Some(line) = row.get("command")? {
        let environment_id: Option<EnvironmentKey> = row.get("environment_id")?;
        let environment = environment_id.map(|id| environments::load(tx, id)).transpose()?;
        return Ok(Target::Command { line, cwd: row.get("cwd")?, environment });
    }
    let url: &str = row.get("url")?;
    let secret: Option<String> = row.get("secret")?;
    Ok(Target::Url {
        url: url.parse().map_err(|error| malformed("hook", error))?,
        secret: secret.map(Secret::new).transpose().map_err(|error| malformed("hook", error))?,
    })
}
