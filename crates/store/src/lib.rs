//! The store: few verbs, each of them one transaction.
//!
//! [`Store`] is synchronous and object-safe. It has the verbs of jobs, workers and settings; every other area is a
//! trait in the file of its name. An implementation applies the decisions of [`domain`] and makes none itself.
//! Every implementation passes the same suite, `tests/it/store/`.
//!
//! **Fencing.** A claim raises the attempt number, which never decreases. Every later write of the worker carries the
//! attempt number of its claim; if that is no longer the current one, the write changes nothing and the answer says so.

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
mod rows;
pub mod schedules;
pub mod settings;
pub mod sqlite;
pub mod transfer;
pub mod upkeep;
pub mod verbs;

pub use batches::{Batch, Batches};
pub use error::{EnqueueError, EnqueueRefusal, StoreError};
pub use filter::{JobFilter, Page, PageStart, Phase};
pub use graphs::Graphs;
pub use hooks::*;
pub use queues::{Pause, Queue, QueueUpdate, Queues, Update};
pub use recent_problems::{LastStop, MAX_DEATHS_COUNTED, RecentProblems};
pub use recount::{Contradiction, DerivedData};
pub use schedules::{FireResult, NewSchedule, ScheduleRefusal, Schedules};
pub use upkeep::{
    Backup, Cursor, Duty, EnvironmentGc, Event, EventPage, EventRange, ExplainFacts, ExportScope, Progress,
    Prunable, PruneResult, PruneStep, RestoreError, RestoreSummary, Upkeep,
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
    /// The store's clock, the only source of timestamps.
    fn now(&self) -> Result<Timestamp, StoreError>;

    /// Checkpoints the store so that the next process opens it quickly. Dropping a store does this too.
    fn tidy(&self);

    // Jobs

    /// Stores all of these jobs, or none. The answers are in the order of the jobs.
    fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<EnqueueResult>, EnqueueError>;
    /// The ids among these that are taken.
    fn existing_ids(&self, ids: &[JobId]) -> Result<Vec<JobId>, StoreError>;
    fn find(&self, id: &JobId) -> Result<Option<Job>, StoreError>;
    /// A job with its events and its history.
    fn record(&self, id: &JobId) -> Result<Option<JobRecord>, StoreError>;
    /// The output stored with an attempt, if any.
    fn output(&self, id: &JobId, attempt: u32) -> Result<Option<Vec<u8>>, StoreError>;
    fn list(&self, filter: &JobFilter, page: &Page) -> Result<Vec<Job>, StoreError>;
    /// The jobs that match a filter, from new to old; with `below`, only those with a lower number.
    fn select(&self, filter: &JobFilter, below: Option<u64>, limit: usize)
    -> Result<Vec<JobRef>, StoreError>;
    /// The ids that begin with this prefix, in order.
    fn ids_with_prefix(&self, prefix: &JobId, limit: usize) -> Result<Vec<JobId>, StoreError>;
    /// Changes the first of these jobs, as many as fit into one short transaction. A job that is no longer in the state
    /// in which it was selected is left alone.
    fn change(&self, verb: JobVerb, jobs: &[JobRef], by: &str) -> Result<PartialChange, StoreError>;
    /// As `change`, but by id and in any state. `Cancel` ends jobs, or marks running ones for their workers to end;
    /// `Retry` makes them pending again with fresh retries; `Remove` deletes them with their history.
    fn change_ids(&self, verb: JobVerb, ids: &[JobId], by: &str) -> Result<PartialChange, StoreError>;
    /// Changes all of these, one portion after the other. The answers of this and the next two are in the order of the
    /// ids.
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
    /// Recent problems: jobs that died, schedules that were missed, hooks that fail.
    fn recent_problems(
        &self,
        died_since: Timestamp,
        missed_since: Timestamp,
    ) -> Result<RecentProblems, StoreError>;

    // Workers

    fn register(&self, worker: &NewWorker) -> Result<Registration, StoreError>;
    /// Records that a worker drains or has stopped. A stopped worker does not come back; it may still hold leases whose
    /// claim it never saw commit, and these are released.
    fn set_worker_state(&self, worker: &WorkerId, state: WorkerState) -> Result<(), StoreError>;
    /// Records that a worker's number of slots has changed since it registered.
    fn set_worker_slots(&self, worker: &WorkerId, slots: WorkerSlots) -> Result<(), StoreError>;
    /// The orders for a worker. Cheap and without a write, so that it can be called often.
    fn orders(&self, worker: &WorkerId) -> Result<Orders, StoreError>;
    /// Orders workers to stop, including those that replace a crashed one in the same pool.
    fn stop(&self, stop: &Stop, by: &str) -> Result<(), StoreError>;
    /// All workers that have not stopped.
    fn workers(&self) -> Result<Vec<Worker>, StoreError>;
    /// Whether any worker has not stopped. `enqueue` asks this each time.
    fn has_worker(&self) -> Result<bool, StoreError>;
    /// A worker's turn: records outcomes, makes due jobs ready, and claims up to `want` new ones.
    fn exchange(&self, exchange: &Exchange<'_>) -> Result<ExchangeResult, StoreError>;
    /// A heartbeat: extends leases. The answers are in the order of the leases.
    ///
    /// The worker names every lease that it knows of. The store releases any other lease of this worker, because it
    /// stems from a claim whose commit the worker never saw succeed; hence a worker must not call this concurrently
    /// with an `exchange` of its own.
    fn extend(&self, worker: &WorkerId, leases: &[LeaseRef]) -> Result<Vec<LeaseStatus>, StoreError>;
    /// Takes back every lease of a dead worker: the `started` ones are lost, the others released. `None` means that it
    /// is unknown which were started, so all are lost.
    fn reap(&self, worker: &WorkerId, started: Option<&[LeaseRef]>) -> Result<Vec<LeaseRef>, StoreError>;
    /// As `reap`, but for a worker with commands that cannot be killed: the leases in `stay` remain, and so does the
    /// worker, until it is finally reaped.
    fn reap_except(
        &self,
        worker: &WorkerId,
        started: Option<&[LeaseRef]>,
        stay: &[LeaseRef],
    ) -> Result<Vec<LeaseRef>, StoreError>;
    /// Records processes that could not be killed, except those of attempts that have ended.
    fn record_unkillable(&self, found: &[UnkillableProcess]) -> Result<(), StoreError>;
    /// The recorded unkillable processes of attempts that still run.
    fn unkillable(&self) -> Result<Vec<UnkillableProcess>, StoreError>;

    // Settings

    /// The stored settings, as text.
    fn settings(&self) -> Result<BTreeMap<SettingKey, String>, StoreError>;
    /// Sets or unsets a setting; checked against the other settings in the same transaction.
    fn set(
        &self,
        key: SettingKey,
        value: Option<&str>,
        by: &str,
    ) -> Result<Result<(), SettingError>, StoreError>;
    /// Deletes a stored setting whose key this program does not know; `false` if there is none.
    fn unset_unknown(&self, key: &str, by: &str) -> Result<bool, StoreError>;
}
