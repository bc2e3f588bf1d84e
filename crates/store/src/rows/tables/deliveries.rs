//! Deliveries: which worker sends which, and with what result.

use std::time::Duration;

use super::{events, hooks, workers};
use crate::rows::keys::{HookKey, WorkerSeq};
use crate::rows::tx::Tx;
use crate::rows::{Row, named};
use crate::{Delivery, DeliveryExchange, DeliveryExchangeResult, DeliveryReport, DeliveryResult, StoreError};
use domain::hook::{NextStep, after_failure, expired_before};
use domain::values::name::HookName;
use domain::values::timestamp::Timestamp;

/// How long a worker may hold a delivery. Longer than any try may take.
const DELIVERY_HOLD: Duration = Duration::from_secs(60);
/// How many deliveries one transaction gives up at most, so that no writer waits long; the next failed try continues.
const GIVEN_UP_PER_TRANSACTION: usize = 1_000;
/// The actor recorded in the event log.
const QUEUECTL: &str = "queuectl";

pub(crate) fn exchange(
    tx: &Tx<'_>,
    exchange: &DeliveryExchange<'_>,
) -> Result<DeliveryExchangeResult, StoreError> {
    let worker_seq = workers::seq(tx, exchange.worker)?;
    let mut gave_up = Vec::new();
    for report in exchange.reports {
        gave_up.extend(record(tx, worker_seq, report)?);
    }
    // A worker that was reaped in its absence gets nothing.
    let want = if workers::is_live(tx, worker_seq)? { exchange.want } else { 0 };
    Ok(DeliveryExchangeResult { taken: take(tx, worker_seq, want)?, next_due: next_due(tx)?, gave_up })
}

/// When the next delivery is due, among the hooks that have none in flight.
pub(crate) fn next_due(tx: &Tx<'_>) -> Result<Option<Timestamp>, StoreError> {
    Ok(heads(tx)?.first().map(|head| head.due_at))
}

/// Returns a worker's unsent deliveries, as if it had never taken them.
pub(crate) fn give_back(tx: &Tx<'_>, worker_seq: WorkerSeq) -> Result<(), StoreError> {
    // By index deliveries_sent.
    tx.execute(
        "update deliveries set due_at = case when created_at < :now then created_at else :now end, worker_seq = null
         where worker_seq = :worker_seq",
        named! { worker_seq, now: tx.now },
    )?;
    Ok(())
}

/// Takes back the deliveries of a dead worker. The first time they are due at once; after that it counts as a failed
/// try, because a command that kills its worker must not be restarted at once for ever.
pub(crate) fn take_back(tx: &Tx<'_>, worker_seq: WorkerSeq, error: &str) -> Result<(), StoreError> {
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
    give_back(tx, worker_seq)
}

/// The next delivery of a hook.
#[derive(Clone, Copy, Debug)]
struct Head {
    due_at: Timestamp,
    id: i64,
}

/// The next delivery of each hook that has none in flight, the soonest first.
fn heads(tx: &Tx<'_>) -> Result<Vec<Head>, StoreError> {
    if tx.hooks()?.is_empty() {
        return Ok(Vec::new());
    }
    let busy = busy(tx)?;
    let mut heads = Vec::new();
    for hook in tx.hooks()?.iter().filter(|hook| !busy.contains(&hook.id)) {
        heads.extend(head(tx, hook.id)?);
    }
    heads.sort_by_key(|head| (head.due_at, head.id));
    Ok(heads)
}

fn head(tx: &Tx<'_>, hook_id: HookKey) -> Result<Option<Head>, StoreError> {
    // By index deliveries_by_hook.
    tx.first(
        "select due_at, id from deliveries where hook_id = :hook_id order by due_at, id limit 1",
        named! { hook_id },
        |row| Ok(Head { due_at: row.get("due_at")?, id: row.get("id")? }),
    )
}

/// The hooks that have a delivery in flight.
fn busy(tx: &Tx<'_>) -> Result<Vec<HookKey>, StoreError> {
    // By index deliveries_sent.
    tx.values("select hook_id from deliveries where worker_seq > 0 and due_at > :now", named! { now: tx.now })
}

fn take(tx: &Tx<'_>, worker_seq: WorkerSeq, want: usize) -> Result<Vec<Delivery>, StoreError> {
    let due: Vec<Head> = heads(tx)?.into_iter().take_while(|head| head.due_at <= tx.now).take(want).collect();
    due.into_iter().map(|head| take_one(tx, worker_seq, head.id)).collect()
}

fn take_one(tx: &Tx<'_>, worker_seq: WorkerSeq, id: i64) -> Result<Delivery, StoreError> {
    tx.execute(
        "update deliveries set worker_seq = :worker_seq, due_at = :due_at where id = :id",
        named! { id, worker_seq, due_at: tx.now.saturating_add(DELIVERY_HOLD) },
    )?;
    tx.one(
        "select d.id, d.name, d.payload, h.name as hook, h.event, h.queue, h.threshold, h.command, h.url, h.secret,
                h.cwd, h.environment_id
         from deliveries d cross join hooks h on h.id = d.hook_id where d.id = :id",
        named! { id },
        |row| read(tx, row),
    )
}

fn read(tx: &Tx<'_>, row: &Row<'_>) -> Result<Delivery, StoreError> {
    Ok(Delivery {
        number: row.get("id")?,
        name: row.get("name")?,
        payload: row.get("payload")?,
        hook: row.get("hook")?,
        trigger: hooks::read_trigger(row)?,
        target: hooks::read_target(tx, row)?,
    })
}

/// Returns the hook if an event was given up.
fn record(
    tx: &Tx<'_>,
    worker_seq: WorkerSeq,
    report: &DeliveryReport,
) -> Result<Option<HookName>, StoreError> {
    match &report.result {
        DeliveryResult::Delivered => delivered(tx, report.number).map(|()| None),
        DeliveryResult::Failed(error) => failed(tx, worker_seq, report.number, error),
        DeliveryResult::GivenBack => {
            tx.execute(
                "update deliveries
                 set due_at = case when created_at < :now then created_at else :now end, worker_seq = null
                 where id = :id and worker_seq = :worker_seq",
                named! { id: report.number, worker_seq, now: tx.now },
            )?;
            Ok(None)
        }
    }
}

/// Counts even if another worker holds the delivery by now.
fn delivered(tx: &Tx<'_>, id: i64) -> Result<(), StoreError> {
    let hook_id: Option<HookKey> =
        tx.value("delete from deliveries where id = :id returning hook_id", named! { id })?;
    if let Some(hook_id) = hook_id {
        tx.execute(
            "update hooks set delivered_at = :now, failing_since = null where id = :hook_id",
            named! { hook_id, now: tx.now },
        )?;
    }
    Ok(())
}

fn failed(tx: &Tx<'_>, worker_seq: WorkerSeq, id: i64, error: &str) -> Result<Option<HookName>, StoreError> {
    let held = tx.first(
        "select hook_id, tries + 1 as tries, created_at from deliveries where id = :id and worker_seq = :worker_seq",
        named! { id, worker_seq },
        |row| Ok((row.get("hook_id")?, row.get("tries")?, row.get("created_at")?)),
    )?;
    // Another worker holds it by now, or its hook was removed.
    let Some((hook_id, tries, created_at)) = held else {
        return Ok(None);
    };
    let failing_since = note_failure(tx, hook_id, error)?;
    let mut given_up = match expired_before(failing_since, tx.now) {
        Some(before) => give_up_before(tx, hook_id, before)?,
        None => 0,
    };
    match after_failure(tries, created_at, tx.now) {
        NextStep::RetryAt(due_at) => {
            tx.execute(
                "update deliveries set tries = :tries, due_at = :due_at, worker_seq = null where id = :id",
                named! { id, tries, due_at },
            )?;
        }
        NextStep::GiveUp => {
            tx.execute("delete from deliveries where id = :id", named! { id })?;
            given_up += 1;
        }
    }
    if given_up == 0 {
        return Ok(None);
    }
    note_given_up(tx, hook_id, given_up, error).map(Some)
}

/// Returns since when the hook has been failing.
fn note_failure(tx: &Tx<'_>, hook_id: HookKey, error: &str) -> Result<Timestamp, StoreError> {
    tx.one(
        "update hooks set failing_since = coalesce(failing_since, :now), error = :error where id = :hook_id
         returning failing_since",
        named! { hook_id, now: tx.now, error },
        |row| row.get("failing_since"),
    )
}

/// Deliveries that became due that long ago were never tried, or not for as long. Returns how many were given up.
fn give_up_before(tx: &Tx<'_>, hook_id: HookKey, before: Timestamp) -> Result<usize, StoreError> {
    // By index deliveries_by_hook.
    tx.execute(
        "delete from deliveries
         where id in (select id from deliveries where hook_id = :hook_id and due_at < :before limit :limit)",
        named! { hook_id, before, limit: GIVEN_UP_PER_TRANSACTION },
    )
}

fn note_given_up(tx: &Tx<'_>, hook_id: HookKey, count: usize, error: &str) -> Result<HookName, StoreError> {
    let name: HookName = tx.one(
        "update hooks set gave_up = gave_up + :count, gave_up_at = :now where id = :hook_id returning name",
        named! { hook_id, now: tx.now, count },
        |row| row.get("name"),
    )?;
    let what = if count == 1 { String::new() } else { format!(" ({count} events)") };
    events::record(tx, None, "hook_gave_up", QUEUECTL, Some(&format!("{name}{what}: {error}")))?;
    Ok(name)
}
