//! Crash tests of the engine: workers and supervisors are killed, stopped, and made to die at every fail-point; then
//! the jobs, processes and files that are left are checked against the invariants.

mod both_killed;
mod checker;
mod containers;
mod containment;
mod crash_loop;
mod doctor;
#[cfg(debug_assertions)] // Released builds have no fail-points.
mod fire;
mod gate;
pub(crate) mod harness;
mod hooks;
pub(crate) mod ledger;
pub(crate) mod living_processes;
pub(crate) mod processes;
#[cfg(debug_assertions)] // Released builds have no fail-points.
mod prune;
pub(crate) mod reused_pids;
#[cfg(debug_assertions)] // Released builds have no fail-points.
mod seams;
mod stopped;
mod supervisor_killed;
mod worker_killed;
