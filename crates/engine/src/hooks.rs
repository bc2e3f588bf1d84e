//! Hook deliveries: from the outbox of the store to a command or a webhook, and back.
//!
//! The transaction that changes a job also writes a row into the outbox (`deliveries`) for each hook that listens, with the
//! whole event as JSON, so an event exists exactly when its change does. A worker's orders say when a delivery is due.
//!
//! ```text
//!   outbox          claims due deliveries and records results, in one transaction (like `exchange` for jobs)
//!     └─ delivery_pool   a bounded number of threads, one delivery each, next to the slots and never in their way
//!          └─ deliver       turns a delivery into a command, which runs like that of an attempt, and its end into a result
//!               └─ webhook    the program called as `__post`: an HTTP request that can be killed at any moment
//! ```
//!
//! A delivery that is being sent belongs to a worker. When that worker is reaped or retires, or after a minute, the
//! delivery is due again: hooks are notified at least once. The number of a delivery is never reused, so the store cannot
//! take a late result for that of another delivery. `hook_test` sends a sample event at once, for `queuectl hook test`.

pub(crate) mod deliver;
pub(crate) mod delivery_pool;
pub(crate) mod hook_test;
pub(crate) mod outbox;
pub(crate) mod webhook;
