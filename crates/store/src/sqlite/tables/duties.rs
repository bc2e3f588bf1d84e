//! Duties that one worker performs for all from time to time.

use std::time::Duration;

use rusqlite::{OptionalExtension, params};

use super::events;
use crate::sqlite::session::tx::{Tx, millis};
use crate::{Duty, StoreError};

/// No duty is due later than this. A later due time was written while the clock was wrong.
const MAX_DUTY_DELAY: Duration = Duration::from_secs(24 * 3600);

pub(crate) fn is_due(tx: &Tx<'_>, duty: Duty) -> Result<bool, StoreError> {
    let mut select = tx.prepare("select due_at from duties where name = ?1")?;
    let due_at: Option<i64> = select.query_row([duty.name()], |row| row.get(0)).optional()?;
    let now = tx.now.as_millis();
    Ok(due_at.is_none_or(|due_at| due_at <= now || due_at > now + millis(MAX_DUTY_DELAY)))
}

/// `false` if another worker was quicker.
pub(crate) fn take(tx: &Tx<'_>, duty: Duty, lease: Duration) -> Result<bool, StoreError> {
    let is_due = is_due(tx, duty)?;
    if is_due {
        postpone(tx, duty, lease)?;
    }
    Ok(is_due)
}

pub(crate) fn end(
    tx: &Tx<'_>,
    duty: Duty,
    next: Duration,
    by: &str,
    done: Option<&str>,
) -> Result<(), StoreError> {
    postpone(tx, duty, next)?;
    match done {
        Some(done) => events::record(tx, None, duty.name(), by, Some(done)),
        None => Ok(()),
    }
}

fn postpone(tx: &Tx<'_>, duty: Duty, by: Duration) -> Result<(), StoreError> {
    tx.prepare("insert or replace into duties (name, due_at) values (?1, ?2)")?
        .execute(params![duty.name(), tx.now.saturating_add(by).as_millis()])?;
    Ok(())
}
