//! SIGSTOP for twice the lease, then SIGCONT: the process resumes after it was declared dead.

use std::time::Duration;

use fastrand::Rng;
use rustix::process::{Pid, Signal};

use super::Nemesis;
use super::kill::workers_of;
use crate::ProofError;
use crate::plan::Escapes;
use crate::sandbox::{Sandbox, pid};

#[derive(Debug)]
pub struct StopWorker;

impl Nemesis for StopWorker {
    fn name(&self) -> &'static str {
        "stop-worker"
    }

    fn description(&self) -> &'static str {
        "SIGSTOP of a worker for twice its lease"
    }

    fn strike(&mut self, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        let workers: Vec<Pid> = sandbox.workers()?.iter().filter_map(|worker| pid(worker.pid)).collect();
        Ok(random.choice(workers).is_some_and(|worker| stop(sandbox, &[worker])))
    }
}

#[derive(Debug)]
pub struct StopBoth;

impl Nemesis for StopBoth {
    fn name(&self) -> &'static str {
        "stop-both"
    }

    fn description(&self) -> &'static str {
        "SIGSTOP of a supervisor and its workers for twice the lease"
    }

    /// Another pool kills worker and supervisor if both are overdue.
    fn escapes(&self) -> Escapes {
        Escapes::when_all_die()
    }

    fn strike(&mut self, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        let Some(supervisor) = random.choice(sandbox.supervisors()) else {
            return Ok(false);
        };
        let mut stopped = vec![supervisor];
        stopped.extend(workers_of(supervisor, &sandbox.workers()?));
        Ok(stop(sandbox, &stopped))
    }
}

/// Returns whether any process was stopped.
fn stop(sandbox: &Sandbox, processes: &[Pid]) -> bool {
    let stopped = processes.iter().filter(|process| sandbox.signal(**process, Signal::STOP)).count();
    // This sleep is the duration of the fault, not synchronisation.
    std::thread::sleep(if stopped == 0 { Duration::ZERO } else { sandbox.timing.lease * 2 });
    for process in processes {
        sandbox.signal(*process, Signal::CONT);
    }
    stopped > 0
}
