//! The store: few verbs, each of them one transaction.
//!
//! [`Store`] is synchronous and object-safe. It applies the decisions of [`domain`] and makes none itself. Few verbs
//! differ between databases; the others are written once, in `rows`, and each area's file lists them as methods of
//! `dyn Store`. Every implementation passes the same suite, `tests/it/store/`.
//!
//! **Fencing.** A claim raises the attempt number, which never decreases. Every later write of the worker carries the
//! attempt number of its claim; if that is no longer the current one, the write changes nothing and the answer says so.

pub mod batches;
pub mod error;
pub mod exchange;
pub mod filter;
pub mod hooks;
pub mod jobs;
pub mod postgres;
pub mod queues;
pub mod recount;
pub mod retention;
mod rows;
pub mod schedules;
pub mod settings;
pub mod sqlite;
pub mod upkeep;
pub mod workers;

pub use batches::{Batch, UnfinishedCount};
pub use error::{EnqueueError, EnqueueRefusal, RefusedJob, Result, StoreError, WriteError};
pub use exchange::*;
pub use filter::{EndReason, JobFilter, Order, Page, PageStart, PageStartError, Phase};
pub use hooks::*;
pub use jobs::*;
pub use queues::{Pause, Queue, QueueMetrics, QueueRemoval, QueueUpdate, Update};
pub use recount::{Contradiction, DerivedData};
pub use rows::keys::*;
pub use rows::transaction::{HotVerb, ReadWork, Verdict, WriteWork};
pub use rows::transfer;
pub use rows::tx::{Effects, Tx};
pub use rows::views::history::HistoryCache;
pub use schedules::{FireResult, NewSchedule, ScheduleEdit, ScheduleRefusal, Upcoming};
pub use upkeep::*;
pub use workers::*;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use domain::settings::Settings;
use domain::values::name::WorkerId;
use domain::values::timestamp::Timestamp;
use sys::process::Holder;

/// The state of a store at a moment, to be compared with another by the same process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreVersion(pub(crate) String);

/// A database that holds a queue. A store implements transactions, the claim of jobs, and what depends on its connection;
/// every other verb is written once, over these transactions, as a method of `dyn Store` in the file of its area.
pub trait Store: Send + Sync + std::fmt::Debug {
    /// The store's clock, the only source of timestamps.
    fn now(&self) -> Result<Timestamp>;
    /// Runs `work` on one snapshot.
    fn read(&self, work: &mut ReadWork<'_>) -> Result<()>;
    /// Runs `work` in one transaction, alone; `verb` names it in fail-points. An error rolls it back.
    fn write(&self, verb: &str, work: &mut WriteWork<'_>) -> Result<Effects>;
    /// Runs `work` at the same time as others, if it needs no rows but its own; otherwise `None`, and it has to run alone.
    fn write_together(&self, _verb: HotVerb<'_>, _work: &mut WriteWork<'_>) -> Result<Option<Effects>> {
        Ok(None)
    }
    /// Makes durable what reads have seen: a commit is visible a moment before it is safe.
    fn secure_reads(&self) -> Result<()>;

    /// Lets a worker listen for work and orders, before it registers: a process that sees the worker can wake it.
    fn listen(&self, worker: &NewWorker) -> Result<Box<dyn Wake>>;
    /// A worker's turn: records outcomes, makes due jobs ready, and claims up to `want` new ones.
    fn exchange(&self, exchange: &Exchange<'_>) -> Result<ExchangeResult>;
    /// The orders for a worker. Cheap and without a write, so that it can be called often.
    fn orders(&self, worker: &WorkerId) -> Result<Orders>;
    /// Whether any worker has not stopped. `enqueue` asks this each time.
    fn has_worker(&self) -> Result<bool>;
    /// Wakes workers after a change that concerns them. A hint only: a worker that misses it sees the change when it
    /// next polls.
    fn announce(&self, notice: Notice<'_>) -> Result<()>;

    /// How often a worker must look by itself.
    fn pace(&self) -> Pace {
        Pace::Polling
    }
    /// Waits from now on no longer than a worker with this lease, or its supervisor, can afford.
    fn bound_waits(&self, _lease: Duration) {}
    /// Waits from now on no longer than this for a lock, and for a server no longer than a worker does: for a caller that
    /// has to answer others.
    fn wait_at_most(&self, lock_timeout: Duration) -> Result<()>;
    /// Whether workers on several machines use this store. Their files and locks are then out of reach of each other, so
    /// they take over leases by the beats alone, end their commands before their leases can be taken over, and keep the
    /// output of attempts in the store.
    ///
    /// SQLite says no: every process that opens its file runs on one kernel, where the lock of a worker shows that it is
    /// alive, and a worker that cannot reach the file is not outlived by one that can.
    fn spans_machines(&self) -> bool {
        false
    }

    /// What this process remembers of the history. Its connections may share one.
    fn history_cache(&self) -> &Arc<HistoryCache>;
    fn share_history_cache(&mut self, cache: Arc<HistoryCache>);

    /// Something that is different after every change by any process. It may also be different without one.
    fn version(&self) -> Result<StoreVersion>;

    /// The defaults of settings in this store.
    fn default_settings(&self) -> Settings {
        Settings::default()
    }
    /// Adopts changed settings that concern this connection.
    fn adopt_settings(&self) -> Result<()>;
    /// The path by which this process reaches a folder of a worker.
    fn reach(&self, folder: &Path) -> PathBuf;
    /// Must be called before log files in this folder are read or written: puts files into place that an interrupted
    /// restore has left. It costs one directory listing.
    fn prepare_logs(&self, logs: &Path) -> Result<()>;
    /// Fails if workers could not use the store as this process has opened it: without a right that they need, or if they
    /// could not listen.
    fn check_fitness_for_workers(&self) -> Result<()> {
        Ok(())
    }
    /// After a newer program has migrated the schema: lets the worker of this store record what it runs, and only that.
    /// `false` if the schema does not allow that.
    fn finish_under_newer_schema(&self) -> Result<bool> {
        Ok(false)
    }
    /// Whether it was opened for reading only and refuses every write.
    fn is_read_only(&self) -> bool {
        false
    }
    /// How many standbys of its server may lack the last commits, where no commit waits for any of them.
    fn lagging_standbys(&self) -> Result<u64> {
        Ok(0)
    }
    /// The process that is writing now, if it runs on this machine and can be found.
    fn writer(&self) -> Option<Holder>;
    /// Leaves the store so that the next process opens it quickly. Dropping a store does this too.
    fn tidy(&self);
}
