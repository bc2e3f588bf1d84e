//! Starts a worker pool for jobs that have just become ready, if the setting `autostart` is on and no worker serves them.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::verbs::workers::worker::start_until_idle;
use domain::values::name::QueueName;
use ops::jobs::calling_job::CallingJob;
use ops::status::HOW_TO_START_A_WORKER;
use ops::worker::live::live_workers;
use store::settings::in_force;
use store::{JobFilter, Page, Phase, Store, WorkerState};
use sys::fs::lock::TimedLock;
use sys::fs::owner_only;

/// Held while a pool is being started, so that callers at the same time start one.
const LOCK: &str = "autostart.lock";
/// How long to wait for another caller that starts a pool.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Makes sure that workers serve these queues. The jobs are stored whatever happens here, so a failure is only a hint;
/// returns whether there was none.
pub(crate) fn autostart(
    context: &Context,
    store: &dyn Store,
    queues: &BTreeSet<QueueName>,
) -> Result<bool, Failure> {
    let Err(failure) = start_if_missing(context, store, queues) else {
        return Ok(true);
    };
    context.hint(&format!("no worker could be started ({}); {HOW_TO_START_A_WORKER}", failure.message()))?;
    Ok(false)
}

/// As [`autostart`], if the setting is on and there is a job of any queue that can run.
pub(crate) fn autostart_if_ready(context: &Context) -> Result<(), Failure> {
    let store = context.store()?;
    let one = Page { limit: 1, after: None };
    let has_work = || Ok::<_, Failure>(!store.list(&JobFilter::in_phase(Phase::Ready), &one)?.is_empty());
    if in_force(store)?.autostart && has_work()? {
        autostart(context, store, &BTreeSet::new())?;
    }
    Ok(())
}

fn start_if_missing(
    context: &Context,
    store: &dyn Store,
    queues: &BTreeSet<QueueName>,
) -> Result<(), Failure> {
    // A pool that a job starts ends with that job.
    if are_served(store, queues)? || CallingJob::find(store)?.is_some() {
        return Ok(());
    }
    let path = context.location()?.home.join(LOCK);
    let cannot_lock =
        |error| Failure::new(Exit::Failed, format!("failed to lock `{}` ({error})", path.display()));
    let lock = TimedLock::new(owner_only::open_file(&path).map_err(cannot_lock)?);
    // If the other caller takes too long, it does no harm to start a second pool.
    let _ = lock.take_within(LOCK_TIMEOUT).map_err(cannot_lock)?;
    if are_served(store, queues)? {
        return Ok(());
    }
    start_until_idle(context)
}

/// Whether a worker is running, and workers take the jobs of all these queues. One that has said that it ends takes no more.
fn are_served(store: &dyn Store, queues: &BTreeSet<QueueName>) -> Result<bool, Failure> {
    let mut workers = live_workers(store)?;
    workers.retain(|worker| worker.state == WorkerState::Running && worker.served.takes_new_jobs());
    Ok(!workers.is_empty()
        && queues.iter().all(|queue| workers.iter().any(|worker| worker.served.has_queue(queue))))
}
