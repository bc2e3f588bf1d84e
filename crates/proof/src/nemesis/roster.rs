//! The nemeses of `queuectl selftest`.

use super::{
    KillBoth, KillEnqueue, KillSupervisor, KillWorker, Nemesis, PauseJobs, StopBoth, StopWorker, Storm,
};

/// All nemeses that need no special build or privileges.
pub fn all() -> Vec<Box<dyn Nemesis>> {
    vec![
        Box::new(KillWorker),
        Box::new(KillBoth),
        Box::new(KillSupervisor),
        Box::new(KillEnqueue::default()),
        Box::new(StopWorker),
        Box::new(StopBoth),
        Box::new(Storm),
        Box::new(PauseJobs),
    ]
}
