//! Deliveries: which worker sends which, and with what result.

use std::time::Duration;

use rusqlite::{OptionalExtension, Row, params};

use super::{events, hooks, workers};
use crate::sqlite::session::row;
use crate::sqlite::session::tx::Tx;
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
pub(crate) fn give_back(tx: &Tx<'_>, worker_seq: i64) -> Result<(), StoreError> {
    // By index deliveries_sent.
    tx.prepare(
        "update deliveries set due_at = min(created_at, ?2), worker_seq = null where worker_seq = ?1",
    )?
    .execute(params![worker_seq, tx.now.as_millis()])?;
    Ok(())
}

/// Takes back the deliveries of a dead worker. The first time they are due at once; after that it counts as a failed
/// try, because a command that kills its worker must not be restarted at once for ever.
pub(crate) fn take_back(tx: &Tx<'_>, worker_seq: i64, error: &str) -> Result<(), StoreError> {
    // By index deliveries_sent.
    let mut select = tx.prepare("select id from deliveries where worker_seq = ?1 and tries > 0")?;
    let tried: Vec<i64> = select.query_map([worker_seq], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for id in tried {
        failed(tx, worker_seq, id, error)?;
    }
    tx.prepare("update deliveries set tries = tries + 1 where worker_seq = ?1")?.execute([worker_seq])?;
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

fn head(tx: &Tx<'_>, hook_id: i64) -> Result<Option<Head>, StoreError> {
    // By index deliveries_by_hook.
    let mut select =
        tx.prepare("select due_at, id from deliveries where hook_id = ?1 order by due_at, id limit 1")?;
    let head = select.query_row([hook_id], |row| {
        Ok(Head { due_at: Timestamp::from_millis(row.get(0)?), id: row.get(1)? })
    });
    Ok(head.optional()?)
}

/// The hooks that have a delivery in flight.
fn busy(tx: &Tx<'_>) -> Result<Vec<i64>, StoreError> {
    // By index deliveries_sent.
    let mut select = tx.prepare("select hook_id from deliveries where worker_seq > 0 and due_at > ?1")?;
    let rows = select.query_map([tx.now.as_millis()], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn take(tx: &Tx<'_>, worker_seq: i64, want: usize) -> Result<Vec<Delivery>, StoreError> {
    let due: Vec<Head> = heads(tx)?.into_iter().take_while(|head| head.due_at <= tx.now).take(want).collect();
    due.into_iter().map(|head| take_one(tx, worker_seq, head.id)).collect()
}

fn take_one(tx: &Tx<'_>, worker_seq: i64, id: i64) -> Result<Delivery, StoreError> {
    tx.prepare("update deliveries set worker_seq = ?2, due_at = ?3 where id = ?1")?.execute(params![
        id,
        worker_seq,
        tx.now.saturating_add(DELIVERY_HOLD).as_millis()
    ])?;
    let mut select = tx.prepare(
        "select d.id, d.name, d.payload, h.name, h.event, h.queue, h.threshold, h.command, h.url, h.secret, h.cwd,
                h.environment_id
         from deliveries d cross join hooks h on h.id = d.hook_id where d.id = ?1",
    )?;
    select.query_row([id], |row| Ok(read(tx, row)))?
}

fn read(tx: &Tx<'_>, row: &Row<'_>) -> Result<Delivery, StoreError> {
    Ok(Delivery {
        number: row.get(0)?,
        name: row.get(1)?,
        payload: row.get(2)?,
        hook: row::name(row, 3)?,
        trigger: hooks::read_trigger(row, 4)?,
        target: hooks::read_target(tx, row, 7)?,
    })
}

/// Returns the hook if an event was given up.
fn record(tx: &Tx<'_>, worker_seq: i64, report: &DeliveryReport) -> Result<Option<HookName>, StoreError> {
    match &report.result {
        DeliveryResult::Delivered => delivered(tx, report.number).map(|()| None),
        DeliveryResult::Failed(error) => failed(tx, worker_seq, report.number, error),
        DeliveryResult::GivenBack => {
            tx.prepare(
                "update deliveries set due_at = min(created_at, ?3), worker_seq = null
                 where id = ?1 and worker_seq = ?2",
            )?
            .execute(params![report.number, worker_seq, tx.now.as_millis()])?;
            Ok(None)
        }
    }
}

/// Counts even if another worker holds the delivery by now.
fn delivered(tx: &Tx<'_>, id: i64) -> Result<(), StoreError> {
    let mut delete = tx.prepare("delete from deliveries where id = ?1 returning hook_id")?;
    let hook_id: Option<i64> = delete.query_row([id], |row| row.get(0)).optional()?;
    if let Some(hook_id) = hook_id {
        tx.prepare("update hooks set delivered_at = ?2, failing_since = null where id = ?1")?
            .execute(params![hook_id, tx.now.as_millis()])?;
    }
    Ok(())
}

fn failed(tx: &Tx<'_>, worker_seq: i64, id: i64, error: &str) -> Result<Option<HookName>, StoreError> {
    let mut select = tx
        .prepare("select hook_id, tries + 1, created_at from deliveries where id = ?1 and worker_seq = ?2")?;
    let held = select.query_row(params![id, worker_seq], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    // Another worker holds it by now, or its hook was removed.
    let Some((hook_id, tries, created_at)) = held.optional()? else {
        return Ok(None);
    };
    let failing_since = note_failure(tx, hook_id, error)?;
    let mut given_up = match expired_before(failing_since, tx.now) {
        Some(before) => give_up_before(tx, hook_id, before)?,
        None => 0,
    };
    match after_failure(tries, Timestamp::from_millis(created_at), tx.now) {
        NextStep::RetryAt(at) => {
            tx.prepare("update deliveries set tries = ?2, due_at = ?3, worker_seq = null where id = ?1")?
                .execute(params![id, tries, at.as_millis()])?;
        }
        NextStep::GiveUp => {
            tx.prepare("delete from deliveries where id = ?1")?.execute([id])?;
            given_up += 1;
        }
    }
    if given_up == 0 {
        return Ok(None);
    }
    note_given_up(tx, hook_id, given_up, error).map(Some)
}

/// Returns since when the hook has been failing.
fn note_failure(tx: &Tx<'_>, hook_id: i64, error: &str) -> Result<Timestamp, StoreError> {
    let mut update = tx.prepare(
        "update hooks set failing_since = coalesce(failing_since, ?2), error = ?3 where id = ?1
         returning failing_since",
    )?;
    let since = update.query_row(params![hook_id, tx.now.as_millis(), error], |row| row.get(0))?;
    Ok(Timestamp::from_millis(since))
}

/// Deliveries that became due that long ago were never tried, or not for as long. Returns how many were given up.
fn give_up_before(tx: &Tx<'_>, hook_id: i64, before: Timestamp) -> Result<usize, StoreError> {
    // By index deliveries_by_hook.
    let mut delete = tx.prepare(
        "delete from deliveries
         where id in (select id from deliveries where hook_id = ?1 and due_at < ?2 limit ?3)",
    )?;
    Ok(delete.execute(params![hook_id, before.as_millis(), GIVEN_UP_PER_TRANSACTION])?)
}

fn note_given_up(tx: &Tx<'_>, hook_id: i64, count: usize, error: &str) -> Result<HookName, StoreError> {
    let mut update =
        tx.prepare("update hooks set gave_up = gave_up + ?3, gave_up_at = ?2 where id = ?1 returning name")?;
    let name: HookName =
        update.query_row(params![hook_id, tx.now.as_millis(), count], |row| Ok(row::name(row, 0)))??;
    let what = if count == 1 { String::new() } else { format!(" ({count} events)") };
    events::record(tx, None, "hook_gave_up", QUEUECTL, Some(&format!("{name}{what}: {error}")))?;
    Ok(name)
}
