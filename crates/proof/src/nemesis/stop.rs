//! SIGSTOP for twice the lease, then SIGCONT: a process that sleeps through its own funeral.

use std::time::Duration;

use fastrand::Rng;
use rustix::process::{Pid, Signal};

use super::Nemesis;
use super::kill::workers_of;
use crate::ProofError;
use crate::plan::{Escapes, LEASE};
use crate::sandbox::{Field, pid};

#[derive(Debug)]
pub struct StopWorker;

impl Nemesis for StopWorker {
    fn name(&self) -> &'static str {
        "stop-worker"
    }

    fn does(&self) -> &'static str {
        "SIGSTOP of a worker for twice its lease"
    }

    fn strike(&mut self, field: &Field, random: &mut Rng) -> Result<bool, ProofError> {
        let workers: Vec<Pid> = field.workers()?.iter().filter_map(|worker| pid(worker.pid)).collect();
        Ok(random.choice(workers).is_some_and(|worker| stop(field, &[worker])))
    }
}

#[derive(Debug)]
pub struct StopBoth;

impl Nemesis for StopBoth {
    fn name(&self) -> &'static str {
        "stop-both"
    }

    fn does(&self) -> &'static str {
        "SIGSTOP of a supervisor and its workers for twice the lease"
    }

    /// Another pool kills worker and supervisor where both are overdue.
    fn escapes(&self) -> Escapes {
        Escapes::Findable
    }

    fn strike(&mut self, field: &Field, random: &mut Rng) -> Result<bool, ProofError> {
        let Some(supervisor) = random.choice(field.supervisors()) else {
            return Ok(false);
        };
        let mut stopped = vec![supervisor];
        stopped.extend(workers_of(supervisor, &field.workers()?));
        Ok(stop(field, &stopped))
    }
}

/// Gives whether any was stopped.
fn stop(field: &Field, processes: &[Pid]) -> bool {
    let stopped = processes.iter().filter(|process| field.signal(**process, Signal::STOP)).count();
    // Not to wait for anything: this is how long the fault lasts.
    std::thread::sleep(if stopped == 0 { Duration::ZERO } else { LEASE * 2 });
    for process in processes {
        field.signal(*process, Signal::CONT);
    }
    stopped > 0
}
