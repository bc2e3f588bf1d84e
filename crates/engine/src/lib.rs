//! Runs the jobs: a supervisor, its workers, and their attempts.
//!
//! ```text
//!   supervisor   one thread: starts workers, watches them, cleans up after them and replaces them
//!     └─ worker   the main thread settles and claims (ledger), one thread per slot runs attempts
//!          └─ attempt   a session of its own, which inherits the lock of its slot
//! ```
//!
//! - `supervisor/`: starts workers, restarts one that crashed, kills one that hangs, cleans up after one that died.
//! - `worker/`: the main loop of a worker. `ledger` settles and claims in one transaction, `dispatcher` hands claimed jobs
//!   to slots, `prefetch` decides how far to claim ahead, `wake` is what the worker sleeps on.
//! - `attempt/`: one attempt, top to bottom: what is spawned, watched, limited, captured, and how it is recognised.
//! - `orphans/`: processes that outlive their attempt or their worker.
//! - `duties/`: the background work that any worker does for all: reaper, scheduler, pruner, sampler.
//! - `hooks/`: delivering events to hooks.
//! - `journal/`: `worker.log`.
//!
//! # When something dies
//!
//! | what dies | who notices | what follows |
//! |---|---|---|
//! | a command | its slot | the slot kills its orphans and submits the outcome to the ledger |
//! | a worker | its supervisor, at once | it kills every process it inherited, reaps the jobs, then starts another worker |
//! | a supervisor | its workers, by a signal from the kernel | they drain and exit |
//! | both | any other worker of the store, within half a second, or the next that is started | it finds orphans by session, cookie and lock, kills them, then reaps the jobs |
//! | the machine | the next worker: the boot id has changed and no lock is held | it reaps the jobs |
//! | a command that SIGKILL does not end | its slot, after a second | the process is recorded as unkillable, another slot takes its place, and the lease stays until the process has ended |
//! | another container on this home | a worker here: no lock is visibly held, and the heartbeat stood still for a lease | it reaps the jobs and signals no process |
//! | a worker that hangs | its supervisor, when the lease has run out; another worker if the supervisor hangs too | it is killed first, because it may hold the gate, and then treated as dead |
//!
//! Nothing here prints.

pub mod attempt;
mod duties;
mod error;
mod hooks;
mod journal;
mod orphans;
mod supervisor;
mod worker;

pub use duties::forget::forget;
pub use error::EngineError;
pub use hooks::hook_test::test_hook;
pub use hooks::webhook::{PostError, Request, post};
pub use journal::attempts::{AttemptChange, AttemptEvent, AttemptFilter, AttemptJournal};
pub use supervisor::pool::{Pool, SecretAddress, UP, open_log, start_detached};
pub use supervisor::run as run_supervisor;
pub use worker::{OpenStore, WorkerExit, WorkerPlan, run as run_worker};
