//! Recording how an attempt ended.

use crate::rows::jobs::apply;
use crate::rows::jobs::history;
use crate::rows::jobs::row;
use crate::rows::jobs::row::JobRow;
use crate::rows::keys::WorkerSeq;
use crate::rows::tables::{rates, retry_rules, settings, workers};
use crate::rows::tx::Tx;
use crate::{Result, SettledJob, Settlement};
use domain::job::Ending;
use domain::job::life::{Event, Life, LossContext, Policy, StateName, transition};
use domain::job::outcome::Outcome;
use domain::metrics::activity::EndedAttempt;
use domain::plan::settlement::{AttemptTimes, latest_attempt};
use domain::values::timestamp::Timestamp;
use sys::guards;
use sys::guards::Guard;

/// `None` if the lease was lost; then nothing is recorded.
pub(crate) fn settle(
    tx: &mut Tx<'_>,
    worker_seq: WorkerSeq,
    settlement: &Settlement,
) -> Result<Option<SettledJob>> {
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
    tx: &mut Tx<'_>,
    job: &JobRow,
    worker_seq: WorkerSeq,
    settlement: &Settlement,
) -> Result<Option<SettledJob>> {
    let mut current = settlement.clone();
    current.lease.attempt = job.life.attempts;
    record(tx, job, job.worker_seq.unwrap_or(worker_seq), &current, LossContext::Alone)
}

/// As `settle`, but may be called on behalf of the worker, for example by the reaper.
pub(crate) fn record(
    tx: &mut Tx<'_>,
    job: &JobRow,
    worker_seq: WorkerSeq,
    settlement: &Settlement,
    loss_context: LossContext,
) -> Result<Option<SettledJob>> {
    let event = Event::Settle {
        attempt: settlement.lease.attempt,
        outcome: settlement.outcome,
        boot: boot(tx, settlement.outcome, worker_seq)?,
        loss_context,
    };
    let policy = policy(tx, job, settlement.outcome)?;
    let claimed_at = job.latest.started_at.unwrap_or(tx.now);
    // Counted to the time of the transaction, not to this moment: an attempt must not end before it has ended, or its
    // retry would start too early.
    let ended_ago = settlement.ended.map(|ended| tx.began.saturating_duration_since(ended));
    let times = AttemptTimes::of(claimed_at, settlement.duration, ended_ago, tx.now);
    let Ok(transition) = transition(&job.life, event, &policy, times.finished_at) else {
        return Ok(None);
    };
    let latest = latest_attempt(times.started_at, settlement.outcome, settlement.error.as_deref());
    if !apply(tx, job, &transition, &latest)? {
        return Ok(None);
    }
    let ending = Ending {
        finished_at: times.finished_at,
        duration: settlement.duration,
        outcome: settlement.outcome,
        error: latest.error,
        usage: settlement.usage,
        log_bytes: settlement.log_bytes,
    };
    history::add(tx, job, worker_seq, times.started_at, &ending)?;
    let ended = EndedAttempt {
        outcome: settlement.outcome.kind(),
        duration: settlement.duration,
        cpu: settlement.usage.cpu,
        died: transition.life.state.dead_reason().is_some(),
    };
    tx.minutes.record_end(job.queue_id, &ended);
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
        dead: transition.life.state.dead_reason(),
    }))
}

/// The boot of the worker matters only to a lost attempt.
fn boot(tx: &Tx<'_>, outcome: Outcome, worker_seq: WorkerSeq) -> Result<String> {
    if outcome == Outcome::Lost { workers::boot_id(tx, worker_seq) } else { Ok(String::new()) }
}

/// The queue's retry rules matter only after a non-zero exit code; other outcomes do not pay for reading them.
fn policy(tx: &Tx<'_>, job: &JobRow, outcome: Outcome) -> Result<Policy> {
    let policy = settings::policy(tx, job)?;
    if matches!(outcome, Outcome::Failure { .. }) && policy.retry.is_none() {
        return Ok(Policy { retry: retry_rules::of_queue(tx, job.queue_id)?, ..policy });
    }
    Ok(policy)
}

fn next_retry_at(life: &Life) -> Option<Timestamp> {
    (life.state.name() == StateName::Failed).then_some(life.due_at)
}
