//! Deleting environments that nothing refers to: see [`EnvironmentGc`].

use std::collections::BTreeSet;

use crate::rows::keys::{EnvironmentKey, JobSeq};
use crate::rows::named;
use crate::rows::tx::Tx;
use crate::{EnvironmentGc, Result};

/// Removes from the candidates what the next jobs refer to. Also returns whether these were the last jobs.
pub(crate) fn scan(tx: &Tx<'_>, gc: &EnvironmentGc, limit: usize) -> Result<(EnvironmentGc, bool)> {
    let mut gc = gc.clone();
    let mut candidates = match gc.candidates.take() {
        Some(candidates) => candidates,
        None => all(tx)?,
    };
    let jobs = if candidates.is_empty() { Vec::new() } else { jobs_after(tx, gc.after, limit)? };
    for (seq, environment_id) in &jobs {
        gc.after = *seq;
        if let Some(id) = environment_id {
            candidates.remove(id);
        }
    }
    gc.candidates = Some(candidates);
    Ok((gc, jobs.len() < limit))
}

/// Scans once more, and deletes some of the candidates if there are no more jobs.
pub(crate) fn delete_unused(tx: &Tx<'_>, gc: &EnvironmentGc, limit: usize) -> Result<EnvironmentGc> {
    let (mut gc, is_last) = scan(tx, gc, limit)?;
    let mut candidates = gc.candidates.take().unwrap_or_default();
    let some: Vec<EnvironmentKey> = candidates.iter().copied().take(limit).filter(|_| is_last).collect();
    for id in some {
        candidates.remove(&id);
        if !is_used_elsewhere(tx, id)? {
            tx.execute("delete from environments where id = :id", named! { id })?;
            gc.deleted += 1;
        }
    }
    gc.candidates = Some(candidates);
    Ok(gc)
}

fn all(tx: &Tx<'_>) -> Result<BTreeSet<EnvironmentKey>> {
    Ok(tx.values("select id from environments where id > 0", named! {})?.into_iter().collect())
}

fn jobs_after(tx: &Tx<'_>, seq: JobSeq, limit: usize) -> Result<Vec<(JobSeq, Option<EnvironmentKey>)>> {
    tx.all(
        "select seq, environment_id from jobs where seq > :seq order by seq limit :limit",
        named! { seq, limit },
        |row| Ok((row.get("seq")?, row.get("environment_id")?)),
    )
}

/// A full scan: there are few schedules and hooks.
fn is_used_elsewhere(tx: &Tx<'_>, id: EnvironmentKey) -> Result<bool> {
    tx.exists(
        "select 1 where exists (select 1 from schedules where environment_id = :id)
                     or exists (select 1 from hooks where environment_id = :id)",
        named! { id },
    )
}
