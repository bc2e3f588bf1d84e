//! The outbox: writing deliveries for hooks in the transaction that makes the change.

use std::collections::BTreeMap;

use super::hooks::HookRow;
use super::{counters, workers};
use crate::rows::jobs::row::{JobRow, read_job, select_whole_jobs};
use crate::rows::keys::JobSeq;
use crate::rows::tx::Tx;
use crate::rows::{named, params};
use crate::{LeaseRef, StoreError};
use domain::hook::{BatchPayload, DlqPayload, JobResult, Payload, Subject, Trigger, WorkerPayload};
use domain::job::Job;
use domain::job::life::StateName;
use domain::plan::crossing::rises_above;
use domain::values::name::{JobIdSequence, QueueName, WorkerId};

/// An attempt of a job had this result.
pub(crate) fn job_changed(tx: &Tx<'_>, before: &JobRow, happened: JobResult) -> Result<(), StoreError> {
    let matches = |hook: &&HookRow| match &hook.trigger {
        Trigger::Job { result, .. } => {
            *result == happened && hook.queue_id.is_none_or(|queue_id| queue_id == before.queue_id)
        }
        Trigger::BatchFinished | Trigger::WorkerCrashed | Trigger::DlqAbove { .. } => false,
    };
    let mut job = None;
    for hook in tx.hooks()?.iter().filter(matches) {
        let job: &Job = match &job {
            Some(job) => job,
            None => job.insert(whole_job(tx, before.seq)?),
        };
        write(tx, hook, Subject::Job(Box::new(job.into())))?;
    }
    Ok(())
}

fn whole_job(tx: &Tx<'_>, seq: JobSeq) -> Result<Job, StoreError> {
    tx.one(select_whole_jobs!("where j.seq = ?1"), params![seq], |row| read_job(tx, row))
}

/// Must be called before the counters are written. Fires once when the number of dead jobs rises above the threshold;
/// re-arms when it falls back.
pub(crate) fn dlq_changed(tx: &Tx<'_>) -> Result<(), StoreError> {
    // Only newly dead jobs can raise the number; without any, no query is needed.
    if !tx.counters.has_more(StateName::Dead) {
        return Ok(());
    }
    for hook in tx.hooks()? {
        let Trigger::DlqAbove { threshold, queue } = &hook.trigger else {
            continue;
        };
        let before = counters::before(tx, StateName::Dead, hook.queue_id)?;
        let after = before + tx.counters.change_of(StateName::Dead, hook.queue_id);
        if rises_above(*threshold, before, after) {
            let queue = queue.as_ref().map(QueueName::as_str);
            let count = after.unsigned_abs();
            write(tx, hook, Subject::Dlq(DlqPayload { count, threshold: *threshold, queue }))?;
        }
    }
    Ok(())
}

/// A worker was found dead, and these leases were taken back.
pub(crate) fn worker_crashed(tx: &Tx<'_>, worker: &WorkerId, reaped: &[LeaseRef]) -> Result<(), StoreError> {
    for hook in tx.hooks()?.iter().filter(|hook| hook.trigger == Trigger::WorkerCrashed) {
        let host = workers::host(tx, workers::seq(tx, worker)?)?;
        let jobs = reaped.iter().map(|lease| lease.job.as_str()).collect();
        write(tx, hook, Subject::Worker(WorkerPayload { id: worker.as_str(), host: &host, jobs }))?;
    }
    Ok(())
}

/// All jobs of a batch are finished, with this many in each state.
pub(crate) fn batch_finished(
    tx: &Tx<'_>,
    name: &str,
    counts: &BTreeMap<StateName, u64>,
) -> Result<(), StoreError> {
    for hook in tx.hooks()?.iter().filter(|hook| hook.trigger == Trigger::BatchFinished) {
        let count = |state: StateName| (state.name(), counts.get(&state).copied().unwrap_or(0));
        let jobs = StateName::ALL.into_iter().map(count).collect();
        write(tx, hook, Subject::Batch(BatchPayload { name, jobs }))?;
    }
    Ok(())
}

fn write(tx: &Tx<'_>, hook: &HookRow, subject: Subject<'_>) -> Result<(), StoreError> {
    let name = format!("d-{}", JobIdSequence::default().next(tx.now, fastrand::u64(..)));
    let payload = Payload { delivery: &name, event: hook.trigger.event(), at: tx.now, subject };
    tx.execute(
        "insert into deliveries (name, hook_id, payload, created_at, due_at)
         values (:name, :hook_id, :payload, :now, :now)",
        named! { name, hook_id: hook.id, payload: payload.to_json(), now: tx.now },
    )?;
    Ok(())
}
