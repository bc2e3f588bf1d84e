//! Runs the jobs: a supervisor, its workers, and their attempts.
//!
//! ```text
//!   supervisor   one thread: starts workers, watches them, cleans up after them and replaces them
//!     └─ worker   the main thread settles and claims (ledger), one thread per slot runs attempts
//!          └─ attempt   a session of its own, which inherits the lock of its slot
//! ```
//!
//! - `supervisor`, `pool`, `restarts`, `watchdog`: the parent of the workers, how it starts processes, when it replaces a
//!   worker that crashed, and when it kills one that hangs.
//! - `worker`, `duties`: how a worker starts and stops, and its main loop; `wake` is what it sleeps on, `passed` limits
//!   how often it forwards a wake-up.
//! - `ledger`, `pace`, `spawn_backoff`: settling and claiming, how many jobs to prefetch, and the pause after a command
//!   could not be started; `desk` hands claims to slots and collects finished attempts.
//! - `slot`, `attempt`: one attempt, top to bottom; `command`, `program`, `variables` decide what is spawned, `child`
//!   and `pipes` watch it, `limits` restricts it, `capture`, `log_file` and `last_line` keep its output.
//! - `adopted`, `cookie`, `slots`: the orphans of an attempt, and how they are recognised.
//! - `survivor`, `strays`: processes that cannot be killed.
//! - `reaper`, `sweep`, `forget`: recovering the jobs of workers that died together with their supervisor.
//! - `scheduler`: firing schedules.
//! - `news`, `messenger`, `deliver`, `errand`, `post`: delivering events to hooks; `rehearsal` is `hook test`.
//! - `pruner`: deleting old history.
//! - `files`, `journal`: the files in `workers/`, and `worker.log`; `health`: the problem that a worker reports.
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
pub use supervisor::pool::{Pool, UP, open_log, start_detached};
pub use supervisor::run as run_supervisor;
pub use worker::{OpenStore, WorkerExit, WorkerPlan, run as run_worker};
