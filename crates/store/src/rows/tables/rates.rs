//! The rates of queues: the remaining tokens of each.

use crate::Result;
use crate::rows::keys::QueueKey;
use crate::rows::tx::Tx;
use crate::rows::value::malformed;
use crate::rows::{Row, params};
use domain::queue::rate::{Bucket, Meter, Rate};

/// Reads four columns, beginning with this one: count, period, tokens and the time of the last refill.
pub(crate) fn read(tx: &Tx<'_>, row: &Row<'_>, first: usize) -> Result<Option<Meter>> {
    let Some(count) = row.get(first)? else {
        return Ok(None);
    };
    let rate = Rate::new(count, row.get(first + 1)?).map_err(|error| malformed("rate", error))?;
    let (tokens, refilled_at): (Option<f64>, Option<_>) = (row.get(first + 2)?, row.get(first + 3)?);
    let bucket = tokens
        .zip(refilled_at)
        .map_or_else(|| rate.full(tx.now), |(tokens, refilled_at)| Bucket { tokens, refilled_at });
    Ok(Some(Meter { rate, bucket }))
}

/// Sets or clears a rate. Starts under an earlier rate count.
pub(crate) fn set(tx: &Tx<'_>, queue_id: QueueKey, rate: Option<Rate>) -> Result<()> {
    let earlier = find(tx, queue_id)?;
    tx.execute(
        "update queues set rate_count = ?2, rate_period_ms = ?3 where id = ?1",
        params![queue_id, rate.map(Rate::count), rate.map(Rate::period)],
    )?;
    let bucket = rate.map(|rate| match earlier {
        Some(meter) => meter.bucket.refilled(meter.rate, tx.now).refilled(rate, tx.now),
        None => rate.full(tx.now),
    });
    store_bucket(tx, queue_id, bucket)
}

/// A claimed job that did not start costs no token.
pub(crate) fn give_back(tx: &Tx<'_>, queue_id: QueueKey) -> Result<()> {
    let Some(Meter { rate, bucket }) = find(tx, queue_id)? else {
        return Ok(());
    };
    store_bucket(tx, queue_id, Some(bucket.give_back(rate, tx.now)))
}

fn find(tx: &Tx<'_>, queue_id: QueueKey) -> Result<Option<Meter>> {
    let found = tx.first(
        "select rate_count, rate_period_ms, rate_tokens, rate_refilled_at from queues
         where id = ?1 and rate_count is not null",
        params![queue_id],
        |row| read(tx, row, 0),
    )?;
    Ok(found.flatten())
}

pub(crate) fn store_bucket(tx: &Tx<'_>, queue_id: QueueKey, bucket: Option<Bucket>) -> Result<()> {
    tx.execute(
        "update queues set rate_tokens = ?2, rate_refilled_at = ?3 where id = ?1",
        params![queue_id, bucket.map(|bucket| bucket.tokens), bucket.map(|bucket| bucket.refilled_at)],
    )?;
    Ok(())
}
