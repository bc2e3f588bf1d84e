//! Deliveries: which worker sends which, and with what result.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{events, hooks, workers};
use crate::rows::keys::{HookKey, WorkerSeq};
use crate::rows::tx::Tx;
use crate::rows::value::malformed;
use crate::rows::{named, read};
use crate::{
    Delivery, DeliveryExchangeResult, DeliveryReport, DeliveryResult, DeliveryRetry, HookDeliveries, Result,
    TryResult, WaitingDelivery,
};
use domain::hook::{expired_before, retry_at};
use domain::values::name::{HookName, WorkerId};
use domain::values::timestamp::Timestamp;

/// How long a worker may hold a delivery. Longer than any try may take.
const DELIVERY_HOLD: Duration = Duration::from_secs(60);
/// How many deliveries one transaction gives up at most, so that no writer waits long; the next failed try continues.
const GIVEN_UP_PER_TRANSACTION: usize = 1_000;
/// The actor recorded in the event log.
const QUEUECTL: &str = "queuectl";

pub(crate) fn exchange(
    tx: &Tx<'_>,
    worker: &WorkerId,
    reports: &[DeliveryReport],
    want: usize,
) -> Result<DeliveryExchangeResult> {
    let worker_seq = workers::seq(tx, worker)?;
    let mut gave_up = Vec::new();
    for DeliveryReport { number, result, .. } in reports {
        match result {
            DeliveryResult::Delivered => delivered(tx, *number)?,
            DeliveryResult::Failed(error) => gave_up.extend(failed(tx, worker_seq, *number, error)?),
            DeliveryResult::GivenBack => give_back(tx, worker_seq, Some(*number))?,
        }
    }
    // A worker that was reaped in its absence gets nothing.
    let want = if workers::is_live(tx, worker_seq)? { want } else { 0 };
    Ok(DeliveryExchangeResult { taken: take(tx, worker_seq, want)?, next_due: next_due(tx)?, gave_up })
}

/// When the next delivery is due, among the hooks that have none in flight.
pub(crate) fn next_due(tx: &Tx<'_>) -> Result<Option<Timestamp>> {
    Ok(heads(tx)?.first().map(|(due_at, _)| *due_at))
}

/// Returns unsent deliveries of a worker, one or all, as if it had never taken them.
pub(crate) fn give_back(tx: &Tx<'_>, worker_seq: WorkerSeq, id: Option<i64>) -> Result<()> {
    // By index deliveries_sent.
    tx.execute(
        "update deliveries set due_at = case when created_at < :now then created_at else :now end, worker_seq = null
         where worker_seq = :worker_seq and (id = :id or :id is null)",
        named! { worker_seq, now: tx.now, id },
    )?;
    Ok(())
}

/// Takes back the deliveries of a dead worker. The first time they are due at once; after that it counts as a failed
/// try, because a command that kills its worker must not be restarted at once for ever.
pub(crate) fn take_back(tx: &Tx<'_>, worker_seq: WorkerSeq, error: &str) -> Result<()> {
    // By index deliveries_sent.
    let tried: Vec<i64> = tx.values(
        "select id from deliveries where worker_seq = :worker_seq and tries > 0",
        named! { worker_seq },
    )?;
    for id in tried {
        failed(tx, worker_seq, id, error)?;
    }
    tx.execute(
        "update deliveries set tries = tries + 1 where worker_seq = :worker_seq",
        named! { worker_seq },
    )?;
    give_back(tx, worker_seq, None)
}

/// The next delivery of each hook that has none in flight, the soonest first: when it is due, and its number.
fn heads(tx: &Tx<'_>) -> Result<Vec<(Timestamp, i64)>> {
    // By indexes deliveries_by_hook and deliveries_sent.
    let mut heads = tx.all(
        "select d.due_at, d.id from hooks join deliveries d
             on d.id = (select id from deliveries where hook_id = hooks.id order by due_at, id limit 1)
         where hooks.id not in (select hook_id from deliveries where worker_seq > 0 and due_at > :now)",
        named! { now: tx.now },
        |row| Ok((row.get("due_at")?, row.get("id")?)),
    )?;
    heads.sort_unstable();
    Ok(heads)
}

fn take(tx: &Tx<'_>, worker_seq: WorkerSeq, want: usize) -> Result<Vec<Delivery>> {
    let due = heads(tx)?.into_iter().take_while(|(due_at, _)| *due_at <= tx.now).take(want);
    due.map(|(_, id)| take_one(tx, worker_seq, id)).collect()
}

fn take_one(tx: &Tx<'_>, worker_seq: WorkerSeq, id: i64) -> Result<Delivery> {
    tx.execute(
        "update deliveries set worker_seq = :worker_seq, due_at = :due_at where id = :id",
        named! { id, worker_seq, due_at: tx.now.saturating_add(DELIVERY_HOLD) },
    )?;
    tx.one(
        "select d.name, d.payload, h.name as hook, h.event, h.queue, h.threshold, h.command, h.url, h.secret, h.cwd,
                h.environment_id
         from deliveries d join hooks h on h.id = d.hook_id where d.id = :id",
        named! { id },
        |row| {
            Ok(Delivery {
                number: id,
                name: row.get("name")?,
                payload: row.get("payload")?,
                hook: row.get("hook")?,
                trigger: hooks::read_trigger(row)?,
                target: hooks::read_target(tx, row)?,
            })
        },
    )
}

/// Counts even if another worker holds the delivery by now.
fn delivered(tx: &Tx<'_>, id: i64) -> Result<()> {
    let ended =
        tx.first("delete from deliveries where id = :id returning hook_id, name", named! { id }, |row| {
            Ok((row.get::<HookKey>("hook_id")?, row.get::<String>("name")?))
        })?;
    if let Some((hook_id, name)) = ended {
        let results = results_with(tx, hook_id, name, None)?;
        tx.execute(
            "update hooks set delivered_at = :now, failing_since = null, results = :results where id = :hook_id",
            named! { hook_id, now: tx.now, results },
        )?;
    }
    Ok(())
}

/// How many results of a hook are kept.
const KEPT_RESULTS: usize = 20;

/// The results of a hook's tries as they are stored, after another one.
fn results_with(tx: &Tx<'_>, hook_id: HookKey, delivery: String, error: Option<&str>) -> Result<String> {
    let mut results =
        vec![StoredResult { at: tx.now.as_millis(), delivery, error: error.map(str::to_owned) }];
    results.extend(stored_results(tx, hook_id)?);
    results.truncate(KEPT_RESULTS);
    serde_json::to_string(&results).map_err(|error| malformed("hook", error))
}

/// The result of a try, as JSON.
#[derive(Serialize, Deserialize)]
struct StoredResult {
    at: i64,
    delivery: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

fn stored_results(tx: &Tx<'_>, hook_id: HookKey) -> Result<Vec<StoredResult>> {
    let json: Option<Option<String>> =
        tx.value("select results from hooks where id = :hook_id", named! { hook_id })?;
    let read = |json: String| serde_json::from_str(&json).map_err(|error| malformed("hook", error));
    json.flatten().map_or(Ok(Vec::new()), read)
}

/// The deliveries of a hook that are waiting, up to `limit`, and the last results; `None` if there is no such hook.
pub(crate) fn of_hook(tx: &Tx<'_>, hook: &HookName, limit: usize) -> Result<Option<HookDeliveries>> {
    let hook_id: Option<HookKey> = tx.value("select id from hooks where name = :hook", named! { hook })?;
    let Some(hook_id) = hook_id else {
        return Ok(None);
    };
    // By index deliveries_by_hook.
    let waiting = tx.all(
        "select name, payload, created_at, due_at, tries, worker_seq is not null as is_sending from deliveries
         where hook_id = :hook_id order by due_at, id limit :limit",
        named! { hook_id, limit },
        |row| Ok(read!(row, WaitingDelivery { name, payload, created_at, due_at, tries, is_sending })),
    )?;
    let result =
        |StoredResult { at, delivery, error }| TryResult { at: Timestamp::from_millis(at), delivery, error };
    let results = stored_results(tx, hook_id)?.into_iter().map(result).collect();
    Ok(Some(HookDeliveries { waiting, results }))
}

/// How many deliveries one transaction makes due at most; the next call continues.
pub(crate) const RETRIED_PER_TRANSACTION: usize = 1_000;

/// Makes the deliveries of a hook that wait for their next try due now. Returns how many; `None` if there is no such hook.
pub(crate) fn retry_all(tx: &Tx<'_>, hook: &HookName, by: &str) -> Result<Option<usize>> {
    let hook_id: Option<HookKey> = tx.value("select id from hooks where name = :hook", named! { hook })?;
    let Some(hook_id) = hook_id else {
        return Ok(None);
    };
    // By index deliveries_by_hook.
    let retried = tx.execute(
        "update deliveries set due_at = :now
         where id in (select id from deliveries
                      where hook_id = :hook_id and due_at > :now and worker_seq is null limit :limit)",
        named! { hook_id, now: tx.now, limit: RETRIED_PER_TRANSACTION },
    )?;
    if retried > 0 {
        events::record(tx, None, "hook_retry", by, Some(hook.as_str()))?;
    }
    Ok(Some(retried))
}

/// Makes one delivery of a hook due now.
pub(crate) fn retry_one(tx: &Tx<'_>, hook: &HookName, delivery: &str, by: &str) -> Result<DeliveryRetry> {
    let hook_id: Option<HookKey> = tx.value("select id from hooks where name = :hook", named! { hook })?;
    let Some(hook_id) = hook_id else {
        return Ok(DeliveryRetry::NoHook);
    };
    // By index deliveries_by_hook.
    let found = tx.first(
        "select id, worker_seq is not null and due_at > :now as is_sending from deliveries
         where hook_id = :hook_id and name = :delivery",
        named! { hook_id, delivery, now: tx.now },
        |row| Ok((row.get::<i64>("id")?, row.get::<bool>("is_sending")?)),
    )?;
    match found {
        None => Ok(DeliveryRetry::NotWaiting),
        Some((_, true)) => Ok(DeliveryRetry::Sending),
        Some((id, false)) => {
            tx.execute(
                "update deliveries set due_at = :now where id = :id and due_at > :now",
                named! { id, now: tx.now },
            )?;
            events::record(tx, None, "hook_retry", by, Some(&format!("{hook} {delivery}")))?;
            Ok(DeliveryRetry::Due)
        }
    }
}

fn failed(tx: &Tx<'_>, worker_seq: WorkerSeq, id: i64, error: &str) -> Result<Option<HookName>> {
    let held = tx.first(
        "select hook_id, name, tries + 1 as tries, created_at from deliveries
         where id = :id and worker_seq = :worker_seq",
        named! { id, worker_seq },
        |row| Ok((row.get("hook_id")?, row.get("name")?, row.get("tries")?, row.get("created_at")?)),
    )?;
    // Another worker holds it by now, or its hook was removed.
    let Some((hook_id, name, tries, created_at)) = held else {
        return Ok(None);
    };
    let results = results_with(tx, hook_id, name, Some(error))?;
    let failing_since = tx.one(
        "update hooks set failing_since = coalesce(failing_since, :now), error = :error, results = :results
         where id = :hook_id returning failing_since",
        named! { hook_id, now: tx.now, error, results },
        |row| row.get("failing_since"),
    )?;
    let mut given_up = match expired_before(failing_since, tx.now) {
        Some(before) => give_up_before(tx, hook_id, before)?,
        None => 0,
    };
    if let Some(due_at) = retry_at(tries, created_at, tx.now) {
        tx.execute(
            "update deliveries set tries = :tries, due_at = :due_at, worker_seq = null where id = :id",
            named! { id, tries, due_at },
        )?;
    } else {
        tx.execute("delete from deliveries where id = :id", named! { id })?;
        given_up += 1;
    }
    if given_up == 0 {
        return Ok(None);
    }
    note_given_up(tx, hook_id, given_up, error).map(Some)
}

/// Deliveries that became due that long ago were never tried, or not for as long. Returns how many were given up.
fn give_up_before(tx: &Tx<'_>, hook_id: HookKey, before: Timestamp) -> Result<usize> {
    // By index deliveries_by_hook.
    tx.execute(
        "delete from deliveries
         where id in (select id from deliveries where hook_id = :hook_id and due_at < :before limit :limit)",
        named! { hook_id, before, limit: GIVEN_UP_PER_TRANSACTION },
    )
}

fn note_given_up(tx: &Tx<'_>, hook_id: HookKey, count: usize, error: &str) -> Result<HookName> {
    let name: HookName = tx.one(
        "update hooks set gave_up = gave_up + :count, gave_up_at = :now where id = :hook_id returning name",
        named! { hook_id, now: tx.now, count },
        |row| row.get("name"),
    )?;
    let what = if count == 1 { String::new() } else { format!(" ({count} events)") };
    events::record(tx, None, "hook_gave_up", QUEUECTL, Some(&format!("{name}{what}: {error}")))?;
    Ok(name)
}
