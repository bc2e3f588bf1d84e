//! Which job holds which unique key.

use crate::rows::jobs::row::JobRow;
use crate::rows::keys::JobSeq;
use crate::rows::tx::Tx;
use crate::rows::{named, params, wording};
use crate::{Conflict, Result};
use domain::job::unique::UniqueFor;
use domain::values::name::JobId;

/// The job that holds a key. An expired holder does not count, even before its row is deleted.
pub(crate) fn holder(tx: &Tx<'_>, key: &str) -> Result<Option<JobId>> {
    tx.value(
        "select j.id from unique_keys k join jobs j on j.seq = k.seq
         where k.key = :key and (k.held_until is null or k.held_until > :now)",
        named! { key, now: tx.now },
    )
}

/// Takes a free key. On PostgreSQL another enqueue may have taken it since the caller found it free: then the verb has to
/// be repeated.
pub(crate) fn take(tx: &Tx<'_>, key: &str, seq: JobSeq, unique_for: UniqueFor) -> Result<()> {
    // The server sees the newest row of the key, but other tables as they were when the statement began: only the row itself
    // can say whether the key is free.
    let sql = wording!(
        "insert into unique_keys (key, seq, held_until) values (?1, ?2, ?3)
         on conflict (key) do update set seq = excluded.seq, held_until = excluded.held_until
         where unique_keys.held_until <= ?4",
        (" or not exists (select 1 from jobs where seq = unique_keys.seq)" | "")
    );
    let taken = tx.execute(sql.of(tx), params![key, seq, unique_for.held_until(tx.now), tx.now])?;
    if taken == 1 { Ok(()) } else { Err(tx.conflict()) }
}

/// By the primary keys of both.
pub(crate) const IS_HELD: &str = "select 1 from jobs j cross join unique_keys k
     where j.seq = ?1 and k.key = j.unique_key and k.seq = j.seq and (k.held_until is null or k.held_until > ?2)";

/// Whether a job holds a key now.
pub(crate) fn is_held(tx: &Tx<'_>, seq: JobSeq) -> Result<bool> {
    tx.exists(IS_HELD, params![seq, tx.now])
}

pub(crate) const DELETE: &str = "delete from unique_keys where key = ?1 and seq = ?2";

/// Deletes the key of a job, if the job holds it.
pub(crate) fn delete(tx: &Tx<'_>, job: &JobRow) -> Result<()> {
    if let Some(key) = &job.unique_key {
        tx.execute(DELETE, params![key, job.seq])?;
    }
    Ok(())
}

/// Takes the key again for a job that is retried. The job may have released it, and another may have taken it since.
pub(crate) fn take_again(tx: &Tx<'_>, job: &JobRow) -> Result<Option<Conflict>> {
    let unique_for = job.options.unique_for;
    let Some(key) = job.unique_key.as_ref().filter(|_| unique_for.needs_key_again(&job.life)) else {
        return Ok(None);
    };
    match holder(tx, key)? {
        Some(holder) if holder == job.id => {}
        Some(holder) => return Ok(Some(Conflict::KeyTaken { holder })),
        None if unique_for.takes_key_again() => take(tx, key, job.seq, unique_for)?,
        None => {}
    }
    Ok(None)
}
