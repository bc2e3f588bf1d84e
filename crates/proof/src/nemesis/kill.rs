//! kill -9 of a worker, of a supervisor, of both in one moment.

use fastrand::Rng;
use rustix::process::{Pid, Signal};

use super::Nemesis;
use crate::ProofError;
use crate::plan::Escapes;
use crate::sandbox::{Field, pid};
use store::Worker;

#[derive(Debug)]
pub struct KillWorker;

impl Nemesis for KillWorker {
    fn name(&self) -> &'static str {
        "kill-worker"
    }

    fn does(&self) -> &'static str {
        "kill -9 of a worker"
    }

    fn is_noticed_at_once(&self) -> bool {
        true
    }

    fn strike(&mut self, field: &Field, random: &mut Rng) -> Result<bool, ProofError> {
        let workers: Vec<Pid> = field.workers()?.iter().filter_map(|worker| pid(worker.pid)).collect();
        Ok(random.choice(workers).is_some_and(|worker| field.signal(worker, Signal::KILL)))
    }
}

#[derive(Debug)]
pub struct KillSupervisor;

impl Nemesis for KillSupervisor {
    fn name(&self) -> &'static str {
        "kill-supervisor"
    }

    fn does(&self) -> &'static str {
        "kill -9 of a supervisor"
    }

    fn strike(&mut self, field: &Field, random: &mut Rng) -> Result<bool, ProofError> {
        Ok(random
            .choice(field.supervisors())
            .is_some_and(|supervisor| field.signal(supervisor, Signal::KILL)))
    }
}

#[derive(Debug)]
pub struct KillBoth;

impl Nemesis for KillBoth {
    fn name(&self) -> &'static str {
        "kill-both"
    }

    fn does(&self) -> &'static str {
        "kill -9 of a supervisor and its workers at once"
    }

    fn escapes(&self) -> Escapes {
        Escapes::Findable
    }

    fn is_noticed_at_once(&self) -> bool {
        true
    }

    fn strike(&mut self, field: &Field, random: &mut Rng) -> Result<bool, ProofError> {
        let Some(supervisor) = random.choice(field.supervisors()) else {
            return Ok(false);
        };
        let workers = workers_of(supervisor, &field.workers()?);
        // Stopped first, so that it does not see them die.
        field.signal(supervisor, Signal::STOP);
        for worker in workers {
            field.signal(worker, Signal::KILL);
        }
        Ok(field.signal(supervisor, Signal::KILL))
    }
}

/// The workers of one supervisor.
pub(super) fn workers_of(supervisor: Pid, workers: &[Worker]) -> Vec<Pid> {
    let its = workers.iter().filter(|worker| worker.supervisor_pid.and_then(pid) == Some(supervisor));
    its.filter_map(|worker| pid(worker.pid)).collect()
}
