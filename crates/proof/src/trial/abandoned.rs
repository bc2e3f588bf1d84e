//! How long jobs stay in the hands of workers that are dead.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::ProofError;
use crate::sandbox::Field;
use domain::job::life::State;
use store::{JobFilter, Page, Phase};

#[derive(Debug, Default)]
pub(crate) struct Abandoned {
    /// Attempts, and since when nobody has seen their workers alive.
    since: HashMap<String, Instant>,
    pub(crate) longest: Duration,
}

impl Abandoned {
    /// To be called often: what is abandoned and taken back between two looks is not seen.
    pub(crate) fn look(&mut self, field: &Field) -> Result<(), ProofError> {
        let held = held(field)?;
        // Read last: a job that was claimed in between must find its worker.
        let live: Vec<String> = field.workers()?.iter().map(|worker| worker.id.to_string()).collect();
        let abandoned: Vec<String> =
            held.into_iter().filter(|(_, worker)| !live.contains(worker)).map(|(lease, _)| lease).collect();
        // Where nobody is left to notice, the time begins with the next who is.
        self.since.retain(|lease, _| abandoned.contains(lease) && !live.is_empty());
        for lease in abandoned {
            let since = *self.since.entry(lease).or_insert_with(Instant::now);
            self.longest = self.longest.max(since.elapsed());
        }
        Ok(())
    }
}

/// Attempts that run, each with its worker.
fn held(field: &Field) -> Result<Vec<(String, String)>, ProofError> {
    let filter = JobFilter::in_phase(Phase::State(domain::job::life::StateName::Processing));
    let everything = Page { limit: usize::MAX, after: None };
    let jobs = field.store().list(&filter, &everything)?;
    let held = jobs.into_iter().filter_map(|job| match job.life.state {
        State::Processing(lease) => {
            Some((format!("{} {}", job.id, job.life.attempts), lease.worker.to_string()))
        }
        State::Pending { .. }
        | State::Completed { .. }
        | State::Failed
        | State::Dead { .. }
        | State::Cancelled { .. } => None,
    });
    Ok(held.collect())
}
