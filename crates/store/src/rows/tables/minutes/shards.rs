//! The rows of a minute on PostgreSQL: one for each worker that ran jobs in it, until the minute is over.

use super::encoding::Numbers;
use super::{MinuteRow, SHARED, add_all, key, read};
use crate::Result;
use crate::rows::tx::Tx;
use crate::rows::{Dialect, params};
use domain::metrics::resolution::Resolution;

/// How many past minutes are searched for shards. The samples are a minute apart; if no worker took one for longer, the
/// shards stay until their minutes are folded.
const GATHERED_MINUTES: i64 = 10;

/// A row, by the primary key of minutes.
pub(crate) const OF_SHARD: &str = "select content from minutes where id = ?1 and shard = ?2";

pub(crate) const REPLACE: &str = "insert into minutes (id, shard, content) values (?1, ?2, ?3)
     on conflict (id, shard) do update set content = excluded.content";

/// Adds to a row that no other transaction writes at the same time.
pub(super) fn add(tx: &Tx<'_>, id: i64, shard: i64, mut numbers: Numbers) -> Result<()> {
    let before = tx.first(OF_SHARD, params![id, shard], |row| Numbers::decode(row.get(0)?))?;
    if let Some(before) = before {
        numbers.add(&before);
    }
    tx.execute(REPLACE, params![id, shard, numbers.encode()])?;
    Ok(())
}

/// Makes one row of the shards of each queue and minute before this one.
pub(super) fn gather(tx: &Tx<'_>, minute: i64) -> Result<()> {
    if tx.dialect() == Dialect::Sqlite {
        return Ok(());
    }
    let past = minute - GATHERED_MINUTES..minute;
    let ids = key::ids(Resolution::Minute, &past);
    let mut rows: Vec<MinuteRow> = Vec::new();
    read(tx, Resolution::Minute, past, &mut |row| {
        if row.shard != SHARED {
            rows.push(row);
        }
        true
    })?;
    if rows.is_empty() {
        return Ok(());
    }
    add_all(tx, Resolution::Minute, &rows)?;
    // By the primary key of minutes.
    tx.execute(
        "delete from minutes where id >= ?1 and id < ?2 and shard <> ?3",
        params![ids.start, ids.end, SHARED],
    )?;
    Ok(())
}

/// Deletes the rows from this number up to this row, and including it.
pub(super) fn delete_up_to(tx: &Tx<'_>, first: i64, last: i64, shard: i64) -> Result<()> {
    // By the primary key of minutes.
    tx.execute(
        "delete from minutes where id >= ?1 and (id, shard) <= (?2, ?3)",
        params![first, last, shard],
    )?;
    Ok(())
}
