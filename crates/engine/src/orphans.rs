//! Orphans: processes that outlive their attempt or their worker, how they are found, and how they are killed.
//!
//! - `reparented`: the worker is a subreaper, so a process that loses its parent becomes a child of the worker. The slot
//!   kills those of its own attempt when the attempt ends.
//! - `cleanup`: worker and supervisor died together. Another worker of the store finds the orphans by session, lock and
//!   cookie, and kills them before it gives the jobs back.
//! - `containment`: where control groups can be made, each slot has one, and no process of its attempts is missed.
//! - `survivor`: processes that SIGKILL does not end, because they run as another user or wait for a dead disk.
//!   Their lease stays until they have ended.
//!
//! A process belongs to an attempt if it is in the group of the slot, in the session of the attempt's command, holds the lock of the slot's record,
//! or carries the attempt's cookie in its environment. A pid alone proves nothing.

pub(crate) mod cleanup;
pub(crate) mod containment;
pub(crate) mod reparented;
pub(crate) mod survivor;
