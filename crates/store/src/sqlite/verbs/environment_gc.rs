//! Forgetting environments that nothing uses: see [`Sweep`].

use std::collections::BTreeSet;

use rusqlite::params;

use crate::sqlite::session::tx::Tx;
use crate::{StoreError, Sweep};

/// Crosses off what the next jobs use. Says whether these were the last.
pub(crate) fn look_on(tx: &Tx<'_>, sweep: &Sweep, limit: usize) -> Result<(Sweep, bool), StoreError> {
    let mut sweep = sweep.clone();
    let mut unseen = match sweep.unseen.take() {
        Some(unseen) => unseen,
        None => all(tx)?,
    };
    let jobs = if unseen.is_empty() { Vec::new() } else { jobs_after(tx, sweep.after, limit)? };
    for (seq, environment_id) in &jobs {
        sweep.after = *seq;
        if let Some(id) = environment_id {
            unseen.remove(id);
        }
    }
    sweep.unseen = Some(unseen);
    Ok((sweep, jobs.len() < limit))
}

/// Looks once more, and forgets some of those that are left, if there are no more jobs.
pub(crate) fn forget(tx: &Tx<'_>, sweep: &Sweep, limit: usize) -> Result<Sweep, StoreError> {
    let (mut sweep, is_last) = look_on(tx, sweep, limit)?;
    let mut unseen = sweep.unseen.take().unwrap_or_default();
    let some: Vec<i64> = unseen.iter().copied().take(limit).filter(|_| is_last).collect();
    for id in some {
        unseen.remove(&id);
        if !is_used_elsewhere(tx, id)? {
            tx.prepare("delete from environments where id = ?1")?.execute([id])?;
            sweep.forgotten += 1;
        }
    }
    sweep.unseen = Some(unseen);
    Ok(sweep)
}

fn all(tx: &Tx<'_>) -> Result<BTreeSet<i64>, StoreError> {
    let mut select = tx.prepare("select id from environments where id > 0")?;
    let rows = select.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn jobs_after(tx: &Tx<'_>, seq: i64, limit: usize) -> Result<Vec<(i64, Option<i64>)>, StoreError> {
    let mut select =
        tx.prepare("select seq, environment_id from jobs where seq > ?1 order by seq limit ?2")?;
    let rows = select.query_map(params![seq, limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// There are few schedules and hooks.
fn is_used_elsewhere(tx: &Tx<'_>, id: i64) -> Result<bool, StoreError> {
    let mut select = tx.prepare(
        "select 1 where exists (select 1 from schedules where environment_id = ?1)
                     or exists (select 1 from hooks where environment_id = ?1)",
    )?;
    Ok(select.exists([id])?)
}
