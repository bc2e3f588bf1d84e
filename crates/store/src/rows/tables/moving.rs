//! The marks of a queue that moves from one store to another. They are rows of the settings table, which an older program
//! refuses as unknown settings: it cannot write to a store that is not in use.

use super::settings;
use crate::rows::dialect::wording;
use crate::rows::tx::Tx;
use crate::rows::{named, params};
use crate::{Relocation, Result, StoreError};

/// The keys, as a list in SQL.
pub(crate) const RESERVED: &str = "('moved_to', 'copy_of')";
const MOVED_TO: &str = "moved_to";
const COPY_OF: &str = "copy_of";

pub(crate) fn is_reserved(key: &str) -> bool {
    [MOVED_TO, COPY_OF].contains(&key)
}

pub(crate) fn find(tx: &Tx<'_>) -> Result<Option<Relocation>> {
    let mut found = None;
    tx.query(settings::ALL, params![], &mut |row| {
        found = match row.get(0)? {
            MOVED_TO => Some(Relocation::MovedTo(row.get(1)?)),
            COPY_OF => Some(Relocation::CopyOf(row.get(1)?)),
            _ => None,
        };
        Ok(found.is_none())
    })?;
    Ok(found)
}

/// Refuses a write to a queue that has moved away, or that has not arrived yet.
pub(crate) fn refuse(tx: &Tx<'_>) -> Result<()> {
    match find(tx)? {
        None => Ok(()),
        Some(relocation) => Err(StoreError::Relocated(relocation)),
    }
}

pub(crate) fn mark(tx: &Tx<'_>, relocation: &Relocation) -> Result<()> {
    let (key, value) = match relocation {
        Relocation::MovedTo(address) => (MOVED_TO, address),
        Relocation::CopyOf(address) => (COPY_OF, address),
    };
    tx.execute("insert into settings (key, value) values (:key, :value)", named! { key, value })?;
    Ok(())
}

/// The copy is complete.
pub(crate) fn unmark_copy(tx: &Tx<'_>) -> Result<()> {
    tx.execute("delete from settings where key = :key", named! { key: COPY_OF })?;
    Ok(())
}

/// The kind of rows that a store has, if it has any that a copy could meet.
pub(crate) fn content(tx: &Tx<'_>) -> Result<Option<&'static str>> {
    let tables = [
        ("jobs", "select 1 from jobs where seq > 0 limit 1"),
        ("schedules", "select 1 from schedules limit 1"),
        ("hooks", "select 1 from hooks limit 1"),
        ("batches", "select 1 from batches where id > 0 limit 1"),
        ("settings", "select 1 from settings limit 1"),
        ("queues", "select 1 from queues where name <> 'default' limit 1"),
    ];
    for (what, sql) in tables {
        if tx.value::<i64>(sql, params![])?.is_some() {
            return Ok(Some(what));
        }
    }
    Ok(None)
}

/// The number that the next job would get.
pub(crate) fn next_number(tx: &Tx<'_>) -> Result<i64> {
    let sql = wording!(
        ("select max(coalesce((select max(seq) + 1 from jobs), 1), (select next_seq from sequence))"
            | "select case when is_called then last_value + 1 else last_value end from jobs_seq_seq")
    );
    Ok(tx.value(sql.of(tx), params![])?.unwrap_or(1))
}

pub(crate) fn set_next_number(tx: &Tx<'_>, next: i64) -> Result<()> {
    let sql = wording!(
        ("update sequence set next_seq = :next returning next_seq"
            | "select setval('jobs_seq_seq', :next, false)")
    );
    tx.value::<i64>(sql.of(tx), named! { next }).map(drop)
}

/// Lets a transaction wait as long as a copy takes. The server ends it when this process ends.
pub(crate) fn wait_long(tx: &Tx<'_>) -> Result<()> {
    let sql =
        wording!(("select '0'" | "select set_config('idle_in_transaction_session_timeout', '0', true)"));
    tx.value::<String>(sql.of(tx), params![]).map(drop)
}
