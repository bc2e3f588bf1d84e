//! The outbox: writing deliveries for hooks in the transaction that makes the change.

use std::collections::BTreeMap;

use super::hooks::HookRow;
use super::{counters, workers};
use crate::rows::jobs::row::{JobRow, read_job, select_whole_jobs};
use crate::rows::tx::Tx;
use crate::rows::{named, params};
use crate::{LeaseRef, Result};
use domain::hook::{HookEvent, Payload, Subject};
use domain::job::life::StateName;
use domain::plan::crossing::rises_above;
use domain::values::name::{JobIdSequence, WorkerId};

/// An attempt left its job in a state that is an event for hooks.
pub(crate) fn job_changed(tx: &Tx<'_>, before: &JobRow, event: HookEvent) -> Result<()> {
    let in_queue = |hook: &&HookRow| hook.queue_id.is_none_or(|queue_id| queue_id == before.queue_id);
    let mut hooks = hooks_for(tx, event)?.filter(in_queue).peekable();
    if hooks.peek().is_none() {
        return Ok(());
    }
    let whole_job = select_whole_jobs!("where j.seq = ?1");
    let job = tx.one(whole_job, params![before.seq], |row| read_job(tx, row))?;
    hooks.try_for_each(|hook| write(tx, hook, event, Subject::Job(Box::new((&job).into()))))
}

/// Must be called before the counters are written. Fires once when the number of dead jobs rises above the threshold;
/// re-arms when it falls back.
pub(crate) fn dlq_changed(tx: &Tx<'_>) -> Result<()> {
    // Only newly dead jobs can raise the number; without any, no query is needed.
    if !tx.counters.has_more(StateName::Dead) {
        return Ok(());
    }
    for hook in hooks_for(tx, HookEvent::DlqAbove)? {
        let threshold = hook.trigger.threshold.unwrap_or_default();
        let before = counters::before(tx, StateName::Dead, hook.queue_id)?;
        let after = before + tx.counters.change_of(StateName::Dead, hook.queue_id);
        if rises_above(threshold, before, after) {
            let (count, queue) = (after.unsigned_abs(), hook.trigger.queue.as_ref());
            write(tx, hook, HookEvent::DlqAbove, Subject::Dlq { count, threshold, queue })?;
        }
    }
    Ok(())
}

/// A worker was found dead, and these leases were taken back.
pub(crate) fn worker_crashed(tx: &Tx<'_>, worker: &WorkerId, reaped: &[LeaseRef]) -> Result<()> {
    for hook in hooks_for(tx, HookEvent::WorkerCrashed)? {
        let host = workers::host(tx, workers::seq(tx, worker)?)?;
        let jobs = reaped.iter().map(|lease| lease.job.as_str()).collect();
        write(
            tx,
            hook,
            HookEvent::WorkerCrashed,
            Subject::Worker { id: worker.as_str(), host: &host, jobs },
        )?;
    }
    Ok(())
}

/// All jobs of a batch are finished, with this many in each state.
pub(crate) fn batch_finished(tx: &Tx<'_>, name: &str, counts: &BTreeMap<StateName, u64>) -> Result<()> {
    for hook in hooks_for(tx, HookEvent::BatchFinished)? {
        let count = |state: StateName| (state.name(), counts.get(&state).copied().unwrap_or(0));
        let jobs = StateName::ALL.into_iter().map(count).collect();
        write(tx, hook, HookEvent::BatchFinished, Subject::Batch { name, jobs })?;
    }
    Ok(())
}

fn hooks_for<'t>(tx: &'t Tx<'_>, event: HookEvent) -> Result<impl Iterator<Item = &'t HookRow>> {
    Ok(tx.hooks()?.iter().filter(move |hook| hook.trigger.events.contains(event)))
}

fn write(tx: &Tx<'_>, hook: &HookRow, event: HookEvent, subject: Subject<'_>) -> Result<()> {
    let name = format!("d-{}", JobIdSequence::default().next(tx.now, fastrand::u64(..)));
    let payload = Payload { delivery: &name, event, at: tx.now, subject };
    tx.execute(
        "insert into deliveries (name, hook_id, payload, created_at, due_at)
         values (:name, :hook_id, :payload, :now, :now)",
        named! { name, hook_id: hook.id, payload: payload.to_json(), now: tx.now },
    )?;
    Ok(())
}
