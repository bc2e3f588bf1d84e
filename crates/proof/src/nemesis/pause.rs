//! Running jobs that are paused, and workers that die meanwhile.

use std::time::Duration;

use fastrand::Rng;
use rustix::process::{Pid, Signal};

use super::Nemesis;
use crate::ProofError;
use crate::sandbox::{Sandbox, pid};

#[derive(Debug)]
pub struct PauseJobs;

impl Nemesis for PauseJobs {
    fn name(&self) -> &'static str {
        "pause-jobs"
    }

    fn description(&self) -> &'static str {
        "jobs paused and resumed, and kill -9 of their workers meanwhile"
    }

    fn strike(&mut self, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        let paused = sandbox.run(&["-q", "pause", "--state", "processing"])?.status.success();
        // This sleep is the duration of the fault, not synchronisation.
        std::thread::sleep(Duration::from_millis(random.u64(0..400)));
        if random.bool() {
            let workers: Vec<Pid> = sandbox.workers()?.iter().filter_map(|worker| pid(worker.pid)).collect();
            let _ = random.choice(workers).map(|worker| sandbox.signal(worker, Signal::KILL));
        }
        sandbox.run(&["-q", "resume", "--state", "paused"])?;
        Ok(paused)
    }

    fn heal(&mut self, sandbox: &Sandbox) {
        let _ = sandbox.run(&["-q", "resume", "--state", "paused"]);
    }
}
