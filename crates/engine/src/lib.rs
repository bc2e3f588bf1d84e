//! What runs the jobs: a supervisor, its workers, and their attempts.
//!
//! ```text
//!   supervisor   one thread: starts, watches, cleans up after and replaces workers
//!     └─ worker   one thread keeps the books (ledger), one thread per slot runs attempts
//!          └─ attempt   a session of its own, which inherits the lock of its slot
//! ```
//!
//! - `supervisor`, `pool`, `restarts`, `watchdog`: the parent of workers, how processes are started, when one that crashed is
//!   replaced, and when one of them hangs.
//! - `worker`, `duties`: how a worker begins and ends, and what it does in between; `wake` is what it sleeps on, `passed`
//!   what it left to others.
//! - `ledger`, `pace`, `spawn_backoff`: what is recorded and claimed in each turn; `desk` is where ledger and slots meet.
//! - `slot`, `attempt`: one attempt, top to bottom; `command`, `program`, `variables` say what is started, `child` and
//!   `pipes` watch it, `limits` says what it may use, `capture`, `log_file` and `last_line` keep what it prints.
//! - `adopted`, `cookie`, `slots`: what an attempt leaves behind, and how it is known.
//! - `survivor`, `strays`: processes that cannot be killed.
//! - `reaper`, `sweep`, `forget`: recovering what workers left when they died with their supervisor.
//! - `scheduler`: enqueuing what schedules are for.
//! - `news`, `messenger`, `deliver`, `errand`, `post`: telling hooks what happened; `rehearsal` does so for show.
//! - `pruner`: forgetting what is old.
//! - `files`, `journal`: what is kept in `workers/` and in `worker.log`; `health`: what is in a worker's way.
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
pub use hooks::hook_test::rehearse;
pub use hooks::webhook::{Envelope, PostError, post};
pub use supervisor::pool::{Pool, READY_DESCRIPTOR, UP, open_log, start_detached};
pub use supervisor::run as run_supervisor;
pub use worker::{Farewell, OpenStore, WorkerPlan, run as run_worker};
