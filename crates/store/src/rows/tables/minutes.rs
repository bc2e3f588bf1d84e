//! What happened in each queue, minute by minute: changes are summed up and written once per queue and transaction.
//!
//! The store reads rows and sums them up here, not in the database: every turn of a worker writes a row, so the table has
//! no index but its key, and its numbers are encoded.
//!
//! On PostgreSQL the key also has a shard. A turn adds to the shard of its worker, which no other process writes, so that a
//! row which is read, added to and written back loses nothing, whatever other workers do. Verbs that run alone use shard 0.
//! The sampler makes the shards of past minutes one row; every reader sums up the rest.

mod encoding;
mod key;
mod sample;
pub(crate) mod shards;

pub(crate) use key::MinuteKey;
pub(crate) use sample::{sample, unsampled};

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use crate::Result;
use crate::rows::keys::QueueKey;
use crate::rows::tx::Tx;
use crate::rows::{Dialect, params, wording};
use domain::metrics::activity::{Activity, EndedAttempt};
use domain::metrics::depth::Depth;
use domain::metrics::resolution::{Fold, Resolution, minute_of};
use encoding::Numbers;

/// What this transaction adds to the current minute.
#[derive(Debug, Default)]
pub(crate) struct Minutes {
    changes: BTreeMap<QueueKey, Box<Activity>>,
}

impl Minutes {
    /// A job of this queue was claimed, this long after it became due.
    pub(crate) fn record_start(&mut self, queue_id: QueueKey, wait: Duration) {
        self.changes.entry(queue_id).or_default().record_start(wait);
    }

    pub(crate) fn record_end(&mut self, queue_id: QueueKey, ended: &EndedAttempt) {
        self.changes.entry(queue_id).or_default().record_end(ended);
    }

    pub(crate) fn write(self, tx: &Tx<'_>) -> Result<()> {
        let minute = minute_of(tx.now);
        for (queue_id, activity) in self.changes {
            let key = MinuteKey { resolution: Resolution::Minute, minute, queue_id };
            add(tx, key, tx.shard, &Content { activity: *activity, ..Content::default() })?;
        }
        Ok(())
    }
}

/// The shard of verbs that run alone.
pub(crate) const SHARED: i64 = 0;

/// The content of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) activity: Activity,
    /// Jobs that were enqueued since the sample before.
    pub(crate) enqueued: u64,
    /// Jobs at the time of the sample, if one was taken. In a coarser row, the most.
    pub(crate) depth: Option<Depth>,
}

impl Content {
    /// Whether it is more than a sample of a queue without jobs.
    pub(crate) fn has_happened(&self) -> bool {
        Self { depth: self.depth.filter(|depth| *depth != Depth::default()), ..*self } != Self::default()
    }
}

/// A row as it is stored.
pub(crate) fn encoded(content: &Content) -> Vec<u8> {
    Numbers::of(content).encode()
}

pub(crate) fn decoded(bytes: &[u8]) -> Result<Content> {
    Ok(Numbers::decode(bytes)?.content())
}

/// A row that was read.
#[derive(Clone, Debug)]
pub(crate) struct MinuteRow {
    pub(crate) key: MinuteKey,
    shard: i64,
    pub(crate) content: Content,
}

/// The same, as it is stored.
pub(crate) struct EncodedRow<'r> {
    pub(crate) key: MinuteKey,
    shard: i64,
    numbers: &'r [u8],
}

impl EncodedRow<'_> {
    /// How many jobs finished in it.
    pub(crate) fn finished(&self) -> Result<u64> {
        encoding::finished(self.numbers)
    }
}

/// The sum of rows. The number of jobs is that of all their samples together, so they should be of different queues.
#[derive(Clone, Debug)]
pub(crate) struct RowSum(Numbers);

impl Default for RowSum {
    fn default() -> Self {
        Self(Numbers::ZERO)
    }
}

impl RowSum {
    /// Answers with how many jobs the sample of the row counts as enqueued, if it has a sample.
    pub(crate) fn add(&mut self, row: &EncodedRow<'_>) -> Result<Option<u64>> {
        self.0.sum_up(row.numbers)
    }

    pub(crate) fn content(&self) -> Content {
        self.0.content()
    }
}

/// Adds to a row; a shard has no meaning on SQLite. Every turn of a worker passes here.
pub(crate) fn add(tx: &Tx<'_>, key: MinuteKey, shard: i64, content: &Content) -> Result<()> {
    let Some(id) = key.id() else {
        return Ok(());
    };
    let numbers = Numbers::of(content);
    match tx.dialect() {
        Dialect::Sqlite => add_to_row(tx, id, &numbers),
        Dialect::Postgres => shards::add(tx, id, shard, numbers),
    }
}

/// On SQLite.
fn add_to_row(tx: &Tx<'_>, id: i64, numbers: &Numbers) -> Result<()> {
    let before = tx.first("select content from minutes where id = ?1", params![id], |row| {
        Numbers::decode(row.get(0)?)
    })?;
    let Some(mut sum) = before else {
        tx.execute("insert into minutes (id, content) values (?1, ?2)", params![id, numbers.encode()])?;
        return Ok(());
    };
    sum.add(numbers);
    tx.execute("update minutes set content = ?2 where id = ?1", params![id, sum.encode()])?;
    Ok(())
}

/// The rows of one resolution within these minutes, in the order of time, until `each` returns `false`.
pub(crate) fn read(
    tx: &Tx<'_>,
    resolution: Resolution,
    minutes: Range<i64>,
    each: &mut dyn FnMut(MinuteRow) -> bool,
) -> Result<()> {
    read_encoded(tx, resolution, minutes, &mut |row| {
        Ok(each(MinuteRow { key: row.key, shard: row.shard, content: decoded(row.numbers)? }))
    })
}

/// As [`read`], for a reader of so many rows that their contents cost more than the rows.
pub(crate) fn read_encoded(
    tx: &Tx<'_>,
    resolution: Resolution,
    minutes: Range<i64>,
    each: &mut dyn FnMut(&EncodedRow<'_>) -> Result<bool>,
) -> Result<()> {
    // In the order of the primary key of minutes.
    let sql = wording!(
        "select id, content, ",
        ("0" | "shard"),
        " from minutes where id >= ?1 and id < ?2 order by id",
        ("" | ", shard")
    );
    let ids = key::ids(resolution, &minutes);
    tx.query(sql.of(tx), params![ids.start, ids.end], &mut |row| {
        let key = MinuteKey::from_id(row.get(0)?, resolution);
        each(&EncodedRow { key, numbers: row.get(1)?, shard: row.get(2)? })
    })
}

/// The last minute before this one in which a sample was taken, as far as single minutes are kept.
pub(crate) fn sampled_before(tx: &Tx<'_>, minute: i64) -> Result<Option<i64>> {
    let mut sampled = None;
    let ids = key::ids(Resolution::Minute, &(i64::MIN..minute));
    // By the primary key of minutes, backwards. Nearly every minute has a sample.
    tx.query(
        "select content, id from minutes where id >= ?1 and id < ?2 order by id desc",
        params![ids.start, ids.end],
        &mut |row| {
            if Numbers::decode(row.get(0)?)?.content().depth.is_some() {
                sampled = Some(MinuteKey::from_id(row.get(1)?, Resolution::Minute).minute);
            }
            Ok(sampled.is_none())
        },
    )?;
    Ok(sampled)
}

/// Makes up to `limit` old rows part of coarser ones; returns how many.
pub(crate) fn fold(tx: &Tx<'_>, fold: &Fold, limit: usize) -> Result<usize> {
    if limit == 0 {
        return Ok(0);
    }
    let mut rows: Vec<MinuteRow> = Vec::new();
    read(tx, fold.from, i64::MIN..fold.end(tx.now), &mut |row| {
        rows.push(row);
        rows.len() < limit
    })?;
    add_all(tx, fold.to, &rows)?;
    if let Some(last) = rows.last() {
        delete_up_to(tx, fold.from, last)?;
    }
    Ok(rows.len())
}

/// Adds rows to those of the same or a coarser resolution that cover their time.
fn add_all(tx: &Tx<'_>, to: Resolution, rows: &[MinuteRow]) -> Result<()> {
    let mut sums: BTreeMap<(i64, QueueKey), Numbers> = BTreeMap::new();
    for row in rows {
        let depth = row.content.depth.filter(|_| to != Resolution::Rest);
        let numbers = Numbers::of(&Content { depth, ..row.content });
        let key = (to.start_of(row.key.minute), row.key.queue_id);
        sums.entry(key).and_modify(|sum| sum.add(&numbers)).or_insert(numbers);
    }
    for ((minute, queue_id), sum) in sums {
        add(tx, MinuteKey { resolution: to, minute, queue_id }, SHARED, &sum.content())?;
    }
    Ok(())
}

/// Deletes the rows of this resolution up to this one, and including it.
fn delete_up_to(tx: &Tx<'_>, resolution: Resolution, last: &MinuteRow) -> Result<()> {
    let first = key::ids(resolution, &(i64::MIN..i64::MAX)).start;
    let Some(id) = last.key.id() else {
        return Ok(());
    };
    match tx.dialect() {
        Dialect::Sqlite => {
            tx.execute("delete from minutes where id >= ?1 and id <= ?2", params![first, id]).map(drop)
        }
        Dialect::Postgres => shards::delete_up_to(tx, first, id, last.shard),
    }
}

/// Deletes what happened in a queue that is removed. Its number may be used again.
pub(crate) fn delete_queue(tx: &Tx<'_>, queue_id: QueueKey) -> Result<()> {
    for resolution in Resolution::ALL {
        let ids = key::ids(resolution, &(i64::MIN..i64::MAX));
        // By the primary key of minutes.
        tx.execute(
            "delete from minutes where id >= ?1 and id < ?2 and id & ?3 = ?4",
            params![ids.start, ids.end, key::QUEUE_MASK, queue_id],
        )?;
    }
    Ok(())
}
