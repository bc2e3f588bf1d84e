//! The leases of a worker, and ending them on its behalf.

use std::time::Duration;

use crate::rows::jobs::row;
use crate::rows::jobs::row::{JobRow, select_jobs};
use crate::rows::keys::WorkerSeq;
use crate::rows::params;
use crate::rows::tx::Tx;
use crate::rows::verbs::settle;
use crate::{LeaseRef, Result, Settlement};
use domain::job::Usage;
use domain::job::life::LossContext;
use domain::job::outcome::Outcome;

/// By index jobs_by_state: few jobs run at a time.
pub(crate) const HELD_BY: &str =
    select_jobs!("", "where j.state = 'processing' and j.worker_seq = ?1 order by j.seq");

/// The jobs that a worker holds leases on.
pub(crate) fn held_by(tx: &Tx<'_>, worker_seq: WorkerSeq) -> Result<Vec<JobRow>> {
    tx.all(HELD_BY, params![worker_seq], |row| row::read_row(tx, row))
}

/// The lease on a running job.
pub(crate) fn lease_on(job: &JobRow) -> LeaseRef {
    LeaseRef { job: job.id.clone(), attempt: job.life.attempts }
}

/// Releases a job that the worker never started; `false` if the lease was lost.
pub(crate) fn release(tx: &mut Tx<'_>, job: &JobRow, worker_seq: WorkerSeq) -> Result<bool> {
    let settlement = settlement_for(job, Outcome::Released, None, Duration::ZERO);
    Ok(settle::record(tx, job, worker_seq, &settlement, LossContext::Alone)?.is_some())
}

/// Marks a job lost that the worker may have started; `false` if the lease was lost.
pub(crate) fn lose(
    tx: &mut Tx<'_>,
    job: &JobRow,
    worker_seq: WorkerSeq,
    why: String,
    loss_context: LossContext,
) -> Result<bool> {
    let started_at = job.latest.started_at.unwrap_or(tx.now);
    let settlement = settlement_for(job, Outcome::Lost, Some(why), tx.now.since(started_at));
    Ok(settle::record(tx, job, worker_seq, &settlement, loss_context)?.is_some())
}

/// A settlement on behalf of the worker.
fn settlement_for(job: &JobRow, outcome: Outcome, error: Option<String>, duration: Duration) -> Settlement {
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
