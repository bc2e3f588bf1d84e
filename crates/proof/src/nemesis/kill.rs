//! kill -9 of a worker, of a supervisor, or of both at once.

use fastrand::Rng;
use rustix::process::{Pid, Signal};

use super::{Nemesis, Notice};
use crate::ProofError;
use crate::plan::Escapes;
use crate::sandbox::{Sandbox, pid};
use store::Worker;

#[derive(Debug)]
pub struct KillWorker;

impl Nemesis for KillWorker {
    fn name(&self) -> &'static str {
        "kill-worker"
    }

    fn description(&self) -> &'static str {
        "kill -9 of a worker"
    }

    fn notice(&self) -> Notice {
        Notice::AtOnce
    }

    fn strike(&mut self, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        let workers: Vec<Pid> = sandbox.workers()?.iter().filter_map(|worker| pid(worker.pid)).collect();
        Ok(random.choice(workers).is_some_and(|worker| sandbox.signal(worker, Signal::KILL)))
    }
}

#[derive(Debug)]
pub struct KillSupervisor;

impl Nemesis for KillSupervisor {
    fn name(&self) -> &'static str {
        "kill-supervisor"
    }

    fn description(&self) -> &'static str {
        "kill -9 of a supervisor"
    }

    fn strike(&mut self, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        Ok(random
            .choice(sandbox.supervisors())
            .is_some_and(|supervisor| sandbox.signal(supervisor, Signal::KILL)))
    }
}

#[derive(Debug)]
pub struct KillBoth;

impl Nemesis for KillBoth {
    fn name(&self) -> &'static str {
        "kill-both"
    }

    fn description(&self) -> &'static str {
        "kill -9 of a supervisor and its workers at once"
    }

    fn escapes(&self) -> Escapes {
        Escapes::when_all_die()
    }

    fn notice(&self) -> Notice {
        Notice::ByOthers
    }

    fn strike(&mut self, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        let Some(supervisor) = random.choice(sandbox.supervisors()) else {
            return Ok(false);
        };
        let workers = workers_of(supervisor, &sandbox.workers()?);
        // Stop the supervisor first, so that it does not see the workers die.
        sandbox.signal(supervisor, Signal::STOP);
        for worker in workers {
            sandbox.signal(worker, Signal::KILL);
        }
        Ok(sandbox.signal(supervisor, Signal::KILL))
    }
}

/// The workers of one supervisor.
pub(super) fn workers_of(supervisor: Pid, workers: &[Worker]) -> Vec<Pid> {
    let its = workers.iter().filter(|worker| worker.supervisor_pid.and_then(pid) == Some(supervisor));
    its.filter_map(|worker| pid(worker.pid)).collect()
}
