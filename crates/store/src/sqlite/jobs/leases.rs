//! What a worker holds, and giving it back in the worker's name.

use std::time::Duration;

use crate::sqlite::session::row;
use crate::sqlite::session::row::{JobRow, select_jobs};
use crate::sqlite::session::tx::Tx;
use crate::sqlite::verbs::settle;
use crate::{LeaseRef, Settlement, StoreError};
use domain::job::Usage;
use domain::job::life::LossContext;
use domain::job::outcome::Outcome;

/// The jobs that a worker holds leases on.
pub(crate) fn held_by(tx: &Tx<'_>, worker_seq: i64) -> Result<Vec<JobRow>, StoreError> {
    // By index jobs_by_state: the jobs that run are few.
    let mut select =
        tx.prepare(select_jobs!("", "where j.state = 'processing' and j.worker_seq = ?1 order by j.seq"))?;
    let rows = select.query_map([worker_seq], |row| Ok(row::read_row(tx, row)))?;
    rows.map(|row| row?).collect()
}

/// The lease on a job that runs.
pub(crate) fn lease_on(job: &JobRow) -> LeaseRef {
    LeaseRef { job: job.id.clone(), attempt: job.life.attempts }
}

/// Gives back what the worker never started. `false` if it was no longer held.
pub(crate) fn release(tx: &Tx<'_>, job: &JobRow, worker_seq: i64) -> Result<bool, StoreError> {
    let settlement = in_its_name(job, Outcome::Released, None, Duration::ZERO);
    Ok(settle::record(tx, job, worker_seq, &settlement, LossContext::Alone)?.is_some())
}

/// Takes away what the worker may have started. `false` if it was no longer held.
pub(crate) fn lose(
    tx: &Tx<'_>,
    job: &JobRow,
    worker_seq: i64,
    why: String,
    loss_context: LossContext,
) -> Result<bool, StoreError> {
    let started_at = job.latest.started_at.unwrap_or(tx.now);
    let settlement = in_its_name(job, Outcome::Lost, Some(why), tx.now.since(started_at));
    Ok(settle::record(tx, job, worker_seq, &settlement, loss_context)?.is_some())
}

/// What the worker cannot say itself.
fn in_its_name(job: &JobRow, outcome: Outcome, error: Option<String>, duration: Duration) -> Settlement {
    Settlement {
        lease: lease_on(job),
        outcome,
        error,
        duration,
        ended: None,
        usage: Usage::default(),
        log_bytes: 0,
        output: None,
    }
}
