//! Recording how an attempt ended.

use std::time::Duration;

use crate::sqlite::jobs::apply;
use crate::sqlite::jobs::history;
use crate::sqlite::session::row;
use crate::sqlite::session::row::JobRow;
use crate::sqlite::session::tx::Tx;
use crate::sqlite::tables::{rates, retry_rules, settings, workers};
use crate::{SettledJob, Settlement, StoreError};
use domain::job::life::{DeadReason, Event, Life, LossContext, Policy, State, StateName, transition};
use domain::job::outcome::Outcome;
use domain::job::{Ending, LatestAttempt};
use domain::values::timestamp::Timestamp;
use sys::guards;
use sys::guards::Guard;

/// `None` if the lease was lost; then nothing is recorded.
pub(crate) fn settle(
    tx: &Tx<'_>,
    worker_seq: i64,
    settlement: &Settlement,
) -> Result<Option<SettledJob>, StoreError> {
    let Some(job) = row::by_id(tx, &settlement.lease.job)? else {
        return Ok(None);
    };
    if guards::is_off(Guard::Fencing) {
        return record_unfenced(tx, &job, worker_seq, settlement);
    }
    if job.worker_seq != Some(worker_seq) {
        return Ok(None);
    }
    record(tx, &job, worker_seq, settlement, LossContext::Alone)
}

/// For tests that show what fencing prevents: any caller is taken for the current attempt.
fn record_unfenced(
    tx: &Tx<'_>,
    job: &JobRow,
    worker_seq: i64,
    settlement: &Settlement,
) -> Result<Option<SettledJob>, StoreError> {
    let mut current = settlement.clone();
    current.lease.attempt = job.life.attempts;
    record(tx, job, job.worker_seq.unwrap_or(worker_seq), &current, LossContext::Alone)
}

/// As `settle`, but may be called on behalf of the worker, for example by the reaper.
pub(crate) fn record(
    tx: &Tx<'_>,
    job: &JobRow,
    worker_seq: i64,
    settlement: &Settlement,
    loss_context: LossContext,
) -> Result<Option<SettledJob>, StoreError> {
    let event = Event::Settle {
        attempt: settlement.lease.attempt,
        outcome: settlement.outcome,
        boot: workers::boot_id(tx, worker_seq)?,
        loss_context,
    };
    let policy = policy(tx, job, settlement.outcome)?;
    let (started_at, finished_at) = times(tx, job, settlement);
    let Ok(transition) = transition(&job.life, event, &policy, finished_at) else {
        return Ok(None);
    };
    let latest = LatestAttempt {
        started_at: Some(started_at),
        exit_code: settlement.outcome.exit_code(),
        signal: settlement.outcome.signal(),
        error: match settlement.outcome {
            Outcome::Success => None,
            Outcome::Failure { .. }
            | Outcome::Signal { .. }
            | Outcome::Timeout
            | Outcome::SpawnError
            | Outcome::Lost
            | Outcome::Cancelled
            | Outcome::Released => settlement.error.clone(),
        },
    };
    if !apply(tx, job, &transition, &latest)? {
        return Ok(None);
    }
    let ending = Ending {
        finished_at,
        duration: settlement.duration,
        outcome: settlement.outcome,
        error: latest.error,
        usage: settlement.usage,
        log_bytes: settlement.log_bytes,
    };
    history::add(tx, job, worker_seq, started_at, &ending)?;
    if settlement.outcome == Outcome::Released && settlement.duration.is_zero() {
        rates::give_back(tx, job.queue_id)?;
    }
    if let Some(output) = &settlement.output {
        history::add_output(tx, job.seq, settlement.lease.attempt, output)?;
    }
    Ok(Some(SettledJob {
        lease: settlement.lease.clone(),
        state: transition.life.state.name(),
        next_retry_at: next_retry_at(&transition.life),
        dead: dead_reason(&transition.life),
    }))
}

/// When the attempt started and ended, by the current clock. Claiming and recording are only approximations: a claim
/// may be prefetched, and outcomes wait for a shared commit. Never before the claim, unless the clock was set back.
fn times(tx: &Tx<'_>, job: &JobRow, settlement: &Settlement) -> (Timestamp, Timestamp) {
    let claimed_at = job.latest.started_at.unwrap_or(tx.now);
    let not_before = |at: Timestamp| if claimed_at > tx.now { at } else { at.max(claimed_at) };
    let ago = settlement.ended.map_or(Duration::ZERO, |ended| ended.elapsed());
    let finished_at = not_before(tx.now.saturating_sub(ago));
    let started_at = match settlement.ended {
        Some(_) => not_before(finished_at.saturating_sub(settlement.duration)),
        None => claimed_at,
    };
    (started_at, finished_at)
}

/// The queue's retry rules matter only after a non-zero exit code; other outcomes do not pay for reading them.
fn policy(tx: &Tx<'_>, job: &JobRow, outcome: Outcome) -> Result<Policy, StoreError> {
    let policy = settings::policy(tx, job)?;
    match outcome {
        Outcome::Failure { .. } if policy.retry.is_none() => {
            Ok(Policy { retry: retry_rules::of_queue(tx, job.queue_id)?, ..policy })
        }
        Outcome::Failure { .. }
        | Outcome::Success
        | Outcome::Signal { .. }
        | Outcome::Timeout
        | Outcome::SpawnError
        | Outcome::Lost
        | Outcome::Cancelled
        | Outcome::Released => Ok(policy),
    }
}

fn dead_reason(life: &Life) -> Option<DeadReason> {
    match life.state {
        State::Dead { reason, .. } => Some(reason),
        State::Pending { .. }
        | State::Processing(_)
        | State::Completed { .. }
        | State::Failed
        | State::Cancelled { .. } => None,
    }
}

fn next_retry_at(life: &Life) -> Option<Timestamp> {
    (life.state.name() == StateName::Failed).then_some(life.due_at)
}
