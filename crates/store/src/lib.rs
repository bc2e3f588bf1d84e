//! Where the queue lives: few verbs, each one transaction.
//!
//! [`Store`] is synchronous and object-safe: jobs, workers and settings here, everything else in one trait per area, in the
//! file of its name. An implementation applies what [`domain`] decides and decides
//! nothing itself. Every implementation passes the same suite, `tests/it/store/`.
//!
//! **Fencing.** A claim raises the attempt number, which never goes back. Whatever a worker writes later carries the
//! number that it was given; if that is no longer the current one, the write changes nothing and the worker is told so.

pub mod batches;
pub mod error;
pub mod filter;
pub mod graphs;
pub mod hooks;
pub mod options;
pub mod queues;
pub mod recent_problems;
pub mod recount;
pub mod retention;
pub mod schedules;
pub mod settings;
pub mod sqlite;
pub mod transfer;
pub mod upkeep;
pub mod verbs;

pub use batches::{Batch, Batches};
pub use error::{EnqueueError, Refused, StoreError};
pub use filter::{After, JobFilter, Page, Phase};
pub use graphs::Graphs;
pub use hooks::*;
pub use queues::{Pause, Queue, QueueUpdate, Queues, Update};
pub use recent_problems::{LastStop, MAX_DEATHS_COUNTED, Troubles};
pub use recount::{Contradiction, Derived};
pub use schedules::{Fired, NewSchedule, ScheduleRefused, Schedules};
pub use upkeep::{
    Backup, Duty, Event, EventPage, Exported, Mark, Old, Progress, Prune, Pruned, RestoreError, Restored,
    Situation, Stretch, Sweep, Upkeep,
};
pub use verbs::*;

use std::collections::BTreeMap;

use domain::job::{Job, JobRecord, NewJob};
use domain::settings::{SettingError, SettingKey};
use domain::values::name::{JobId, WorkerId};
use domain::values::timestamp::Timestamp;

pub trait Store:
    Queues + Graphs + Schedules + Batches + Hooks + Upkeep + Send + Sync + std::fmt::Debug
{
    /// The store's clock: the only one that times are taken from.
    fn now(&self) -> Result<Timestamp, StoreError>;

    /// Leaves things as the next process would like to find them. Dropping a store does this too.
    fn tidy(&self);

    // Jobs

    /// Stores all of these jobs, or none. The answers are in the order of the jobs.
    fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, EnqueueError>;
    /// Which of these ids belong to a job.
    fn taken(&self, ids: &[JobId]) -> Result<Vec<JobId>, StoreError>;
    fn find(&self, id: &JobId) -> Result<Option<Job>, StoreError>;
    /// A job with its events and its history.
    fn record(&self, id: &JobId) -> Result<Option<JobRecord>, StoreError>;
    /// The output that was stored with an attempt, if any was.
    fn output(&self, id: &JobId, attempt: u32) -> Result<Option<Vec<u8>>, StoreError>;
    fn list(&self, filter: &JobFilter, page: &Page) -> Result<Vec<Job>, StoreError>;
    /// The numbers of the jobs that a filter lets through, from new to old and below `below`, where that is given.
    fn select(&self, filter: &JobFilter, below: Option<u64>, limit: usize) -> Result<Vec<Seen>, StoreError>;
    /// The ids that begin like this, in their order.
    fn ids_like(&self, prefix: &JobId, limit: usize) -> Result<Vec<JobId>, StoreError>;
    /// Changes the first of these jobs, as many as one short transaction takes: those that are still in the state in which
    /// they were seen.
    fn change(&self, verb: JobVerb, jobs: &[Seen], by: &str) -> Result<Portion, StoreError>;
    /// The same by id, whatever state they are in. `Cancel` ends jobs, or marks those that run, so that their workers end
    /// them; `Retry` makes them pending again, with fresh retries; `Remove` forgets them and everything about them.
    fn change_ids(&self, verb: JobVerb, ids: &[JobId], by: &str) -> Result<Portion, StoreError>;
    /// All of these, portion after portion. The answers are in the order of the ids; so are those of the next two.
    fn cancel(&self, ids: &[JobId], by: &str) -> Result<Vec<Change>, StoreError> {
        change_all(self, JobVerb::Cancel, ids, by)
    }
    fn retry(&self, ids: &[JobId], by: &str) -> Result<Vec<Change>, StoreError> {
        change_all(self, JobVerb::Retry, ids, by)
    }
    fn remove(&self, ids: &[JobId], by: &str) -> Result<Vec<Change>, StoreError> {
        change_all(self, JobVerb::Remove, ids, by)
    }
    /// Dead jobs by reason and error line.
    fn dead_by_error(&self) -> Result<Vec<DeadGroup>, StoreError>;
    /// What went wrong of late: jobs that died, schedules that were missed, hooks that could not be told.
    fn troubles(&self, died_since: Timestamp, missed_since: Timestamp) -> Result<Troubles, StoreError>;

    // Workers

    fn register(&self, worker: &NewWorker) -> Result<Registered, StoreError>;
    /// Says that a worker drains or has stopped. One that has stopped does not come back, and what it may still hold are
    /// leases that it never learned of: they are released.
    fn set_worker_state(&self, worker: &WorkerId, state: WorkerState) -> Result<(), StoreError>;
    /// Says that a worker has another number of slots than when it registered.
    fn set_worker_slots(&self, worker: &WorkerId, slots: WorkerSlots) -> Result<(), StoreError>;
    /// What a worker is to do. Cheap and without a write, so that it can be asked often.
    fn orders(&self, worker: &WorkerId) -> Result<Orders, StoreError>;
    /// Orders workers to stop, and those that come in the place of one that crashed.
    fn stop(&self, stop: &Stop, by: &str) -> Result<(), StoreError>;
    /// All workers that have not stopped.
    fn workers(&self) -> Result<Vec<Worker>, StoreError>;
    /// Whether there is any such worker: what `enqueue` asks each time.
    fn has_worker(&self) -> Result<bool, StoreError>;
    /// The heart: records outcomes, makes due jobs ready, and claims up to `want` new ones.
    fn exchange(&self, exchange: &Exchange<'_>) -> Result<Exchanged, StoreError>;
    /// A heartbeat: lengthens leases. The answers are in the order of the leases.
    ///
    /// The worker names every lease that it knows of. Any other that it holds came with a claim whose commit it never saw
    /// succeed, so it is released; hence a worker must not call this beside an `exchange` of its own.
    fn extend(&self, worker: &WorkerId, leases: &[LeaseRef]) -> Result<Vec<LeaseStatus>, StoreError>;
    /// Takes back every lease of a dead worker: `started` ones are lost, the others released. `None` means that nobody
    /// knows which were started, so all are lost.
    fn reap(&self, worker: &WorkerId, started: Option<&[LeaseRef]>) -> Result<Vec<LeaseRef>, StoreError>;
    /// The same for a worker some of whose commands cannot be killed: their leases stay, and so does the worker, until it is
    /// reaped for good.
    fn reap_others(
        &self,
        worker: &WorkerId,
        started: Option<&[LeaseRef]>,
        stay: &[LeaseRef],
    ) -> Result<Vec<LeaseRef>, StoreError>;
    /// Notes processes that could not be killed. Those of attempts that are over are left out.
    fn note_unkillable(&self, found: &[Unkillable]) -> Result<(), StoreError>;
    /// What was noted of attempts that still run.
    fn unkillable(&self) -> Result<Vec<Unkillable>, StoreError>;

    // Settings

    /// The settings that were set, as text.
    fn settings(&self) -> Result<BTreeMap<SettingKey, String>, StoreError>;
    /// Sets a setting, or unsets it; checked against the others in the same transaction.
    fn set(
        &self,
        key: SettingKey,
        value: Option<&str>,
        by: &str,
    ) -> Result<Result<(), SettingError>, StoreError>;
    /// Unsets what no setting of this program is called. Gives whether it was set.
    fn unset_unknown(&self, key: &str, by: &str) -> Result<bool, StoreError>;
}
