//! Duties that one worker performs for all from time to time.

use std::time::Duration;

use super::events;
use crate::rows::named;
use crate::rows::tx::Tx;
use crate::{Duty, Result};
use domain::values::timestamp::Timestamp;

/// No duty is due later than this. A later due time was written while the clock was wrong.
const MAX_DUTY_DELAY: Duration = Duration::from_secs(24 * 3600);

pub(crate) fn is_due(tx: &Tx<'_>, duty: Duty) -> Result<bool> {
    let due_at: Option<Timestamp> =
        tx.value("select due_at from duties where name = :name", named! { name: duty.name() })?;
    let latest = tx.now.saturating_add(MAX_DUTY_DELAY);
    Ok(due_at.is_none_or(|due_at| due_at <= tx.now || due_at > latest))
}

/// `false` if another worker was quicker.
pub(crate) fn take(tx: &Tx<'_>, duty: Duty, lease: Duration) -> Result<bool> {
    let is_due = is_due(tx, duty)?;
    if is_due {
        postpone(tx, duty, lease)?;
    }
    Ok(is_due)
}

pub(crate) fn end(tx: &Tx<'_>, duty: Duty, next: Duration, by: &str, done: Option<&str>) -> Result<()> {
    postpone(tx, duty, next)?;
    match done {
        Some(done) => events::record(tx, None, duty.name(), by, Some(done)),
        None => Ok(()),
    }
}

fn postpone(tx: &Tx<'_>, duty: Duty, by: Duration) -> Result<()> {
    tx.execute(
        "insert into duties (name, due_at) values (:name, :due_at)
         on conflict (name) do update set due_at = excluded.due_at",
        named! { name: duty.name(), due_at: tx.now.saturating_add(by) },
    )?;
    Ok(())
}
