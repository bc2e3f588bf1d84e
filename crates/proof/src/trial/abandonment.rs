//! Measures how long dead workers keep their leases.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::ProofError;
use crate::sandbox::Sandbox;
use domain::job::life::StateName;
use store::{JobFilter, Page, Phase};

#[derive(Debug, Default)]
pub(crate) struct AbandonmentMonitor {
    /// Attempts of dead workers, with the time when each worker was first found dead.
    since: HashMap<String, Instant>,
    pub(crate) longest: Duration,
}

impl AbandonmentMonitor {
    /// Must be called often: an attempt that is abandoned and recovered between two calls is not seen.
    pub(crate) fn observe(&mut self, sandbox: &Sandbox) -> Result<(), ProofError> {
        let Observation { running, live } = match Observation::of(sandbox) {
            // While the server does not answer, no worker can notice anything.
            Err(_) if sandbox.server().is_some() => {
                self.since.clear();
                return Ok(());
            }
            observed => observed?,
        };
        let abandoned: Vec<String> = running
            .into_iter()
            .filter(|(_, worker)| !live.contains(worker))
            .map(|(lease, _)| lease)
            .collect();
        // While no worker is alive to notice, the time does not count.
        self.since.retain(|lease, _| abandoned.contains(lease) && !live.is_empty());
        for lease in abandoned {
            let since = *self.since.entry(lease).or_insert_with(Instant::now);
            self.longest = self.longest.max(since.elapsed());
        }
        Ok(())
    }
}

struct Observation {
    /// The running attempts, each with its worker.
    running: Vec<(String, String)>,
    /// The live workers.
    live: Vec<String>,
}

impl Observation {
    fn of(sandbox: &Sandbox) -> Result<Self, ProofError> {
        let running = running_attempts(sandbox)?;
        // Read the workers last, so that the worker of a job claimed in between is found.
        let live = sandbox.workers()?.iter().map(|worker| worker.id.to_string()).collect();
        Ok(Self { running, live })
    }
}

/// The running attempts, each with its worker.
fn running_attempts(sandbox: &Sandbox) -> Result<Vec<(String, String)>, ProofError> {
    let filter = JobFilter::in_phase(Phase::State(StateName::Processing));
    let everything = Page { limit: usize::MAX, after: None };
    let jobs = sandbox.store().list(&filter, &everything)?;
    let running = jobs.iter().filter_map(|job| {
        let worker = job.life.state.lease()?.worker.to_string();
        Some((format!("{} {}", job.id, job.life.attempts), worker))
    });
    Ok(running.collect())
}
