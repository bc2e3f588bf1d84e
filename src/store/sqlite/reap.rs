//! Taking back what a dead worker held.

use std::time::Duration;

use super::row::{self, JobRow, select_jobs};
use super::tx::Tx;
use super::{settle, workers};
use crate::domain::job::Usage;
use crate::domain::name::WorkerId;
use crate::domain::outcome::Outcome;
use crate::store::{LeaseRef, Settlement, StoreError};

pub(super) fn reap(
    tx: &Tx<'_>,
    worker: &WorkerId,
    unstarted: &[LeaseRef],
) -> Result<Vec<LeaseRef>, StoreError> {
    let worker_seq = workers::seq(tx, worker)?;
    let mut reaped = Vec::new();
    for job in held_by(tx, worker_seq)? {
        let lease = LeaseRef { job: job.id.clone(), attempt: job.life.attempts };
        let outcome = if unstarted.contains(&lease) { Outcome::Released } else { Outcome::Lost };
        if settle::record(tx, &job, worker_seq, &in_its_name(tx, &job, worker, &lease, outcome))? {
            reaped.push(lease);
        }
    }
    workers::retire(tx, worker)?;
    Ok(reaped)
}

/// What a dead worker can no longer say itself.
fn in_its_name(
    tx: &Tx<'_>,
    job: &JobRow,
    worker: &WorkerId,
    lease: &LeaseRef,
    outcome: Outcome,
) -> Settlement {
    let started_at = job.latest.started_at.unwrap_or(tx.now);
    let was_lost = outcome == Outcome::Lost;
    Settlement {
        lease: lease.clone(),
        outcome,
        error: was_lost.then(|| format!("worker {worker} died")),
        duration: if was_lost { tx.now.since(started_at) } else { Duration::ZERO },
        usage: Usage::default(),
        log_bytes: 0,
        output: None,
    }
}

fn held_by(tx: &Tx<'_>, worker_seq: i64) -> Result<Vec<JobRow>, StoreError> {
    // By index jobs_by_state: the jobs that run are few.
    let mut select =
        tx.prepare(select_jobs!("", "where j.state = 'processing' and j.worker_seq = ?1 order by j.seq"))?;
    let rows = select.query_map([worker_seq], |row| Ok(row::read_row(tx, row)))?;
    rows.map(|row| row?).collect()
}
