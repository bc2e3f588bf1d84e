//! What must not break the engine: workers and guardians are killed, stopped and made to die at every seam, and what
//! they leave behind is held against the invariants.

mod both_killed;
mod checker;
mod guardian_killed;
mod harness;
mod ledger;
mod worker_killed;
