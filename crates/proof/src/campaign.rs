//! A campaign: many trials, some of them concurrently, for a given time.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::ProofError;
use super::checker::{Verdict, timeline};
use super::nemesis;
use super::nemesis::Nemesis;
use super::plan::Plan;
use super::sandbox::{Program, Sandbox, lock};
use super::trial::{TrialLimits, TrialObserver, TrialOutcome, TrialProgress, run_trial};

/// More concurrent trials would only slow each other down.
const MAX_CONCURRENT_TRIALS: usize = 4;

#[derive(Clone, Debug)]
pub struct Campaign {
    pub program: Program,
    /// Where the folders of the trials are created.
    pub inside: PathBuf,
    /// The seed of the first trial; each later trial uses the next number.
    pub seed: u64,
    /// No trial starts after this time.
    pub lasts: Duration,
    /// The name of the only nemesis to use; `None`: all take turns.
    pub only: Option<String>,
    pub limits: TrialLimits,
}

/// The result of one trial.
#[derive(Clone, Debug)]
pub struct Report {
    pub seed: u64,
    pub nemesis: &'static str,
    pub description: &'static str,
    pub strikes: u64,
    pub jobs: u64,
    pub attempts: u64,
    pub calls: u64,
    pub longest_abandoned: Option<Duration>,
    pub verdict: Verdict,
    /// The timeline of each job with a violation.
    pub timelines: Vec<String>,
    /// The folder of the trial, which is kept only after a violation.
    pub kept: Option<PathBuf>,
}

/// Receives the progress of a campaign.
pub trait CampaignObserver: Sync {
    /// Trial number `trial` made progress.
    fn report(&self, trial: u64, nemesis: &'static str, progress: &TrialProgress);
    fn is_interrupted(&self) -> bool;
}

impl Campaign {
    /// Runs trials until the time is up: at least one, or at least one per nemesis if all take turns. An error or an
    /// interruption ends the campaign early; the finished reports are returned in any case.
    pub fn run(&self, observer: &dyn CampaignObserver) -> (Vec<Report>, Result<(), ProofError>) {
        let at_least = if self.only.is_some() { 1 } else { nemesis::all().len() as u64 };
        let (began, next) = (Instant::now(), AtomicU64::new(0));
        let (reports, error) = (Mutex::new(Vec::new()), Mutex::new(None));
        let has_failed = || lock(&error).is_some();
        let work = || loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let is_over = began.elapsed() >= self.lasts && number >= at_least;
            if is_over || observer.is_interrupted() || has_failed() {
                return;
            }
            match self.run_one(number, observer, &has_failed) {
                Ok(report) => lock(&reports).push(report),
                // The campaign was interrupted, or another trial failed.
                Err(ProofError::Interrupted) => return,
                Err(failure) => _ = lock(&error).get_or_insert(failure),
            }
        };
        let thread_count =
            std::thread::available_parallelism().map_or(1, NonZero::get).min(MAX_CONCURRENT_TRIALS);
        let panicked = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..thread_count).map(|_| scope.spawn(work)).collect();
            threads.into_iter().filter_map(|thread| thread.join().err()).count() > 0
        });
        let mut reports = std::mem::take(&mut *lock(&reports));
        reports.sort_by_key(|report: &Report| report.seed.wrapping_sub(self.seed));
        let ended = match lock(&error).take() {
            Some(error) => Err(error),
            None if panicked => Err(ProofError::Panicked),
            None => Ok(()),
        };
        (reports, ended)
    }

    fn run_one(
        &self,
        number: u64,
        observer: &dyn CampaignObserver,
        has_failed: &(dyn Fn() -> bool + Sync),
    ) -> Result<Report, ProofError> {
        let mut nemesis = self.nemesis(number);
        let seed = self.seed.wrapping_add(number);
        let plan = Plan::new(seed, nemesis.escapes());
        let mut sandbox = Sandbox::new(&self.inside, self.program.clone())?;
        let observer = OneTrialObserver { observer, has_failed, trial: number, nemesis: nemesis.name() };
        let outcome = run_trial(&plan, nemesis.as_mut(), &sandbox, self.limits, &observer)?;
        let kept = (!outcome.verdict.violations.is_empty()).then(|| {
            sandbox.keep();
            sandbox.folder().to_owned()
        });
        Ok(Report::new(seed, nemesis.as_ref(), outcome, kept))
    }

    fn nemesis(&self, number: u64) -> Box<dyn Nemesis> {
        let mut candidates = nemesis::all();
        if let Some(only) = &self.only {
            candidates.retain(|nemesis| nemesis.name() == only);
        }
        let at = usize::try_from(number % candidates.len() as u64).unwrap_or(0);
        candidates.swap_remove(at)
    }
}

impl Report {
    fn new(seed: u64, nemesis: &dyn Nemesis, outcome: TrialOutcome, kept: Option<PathBuf>) -> Self {
        let TrialOutcome { verdict, evidence, strikes } = outcome;
        let mut jobs: Vec<&str> = verdict.violations.iter().filter_map(|one| one.job.as_deref()).collect();
        jobs.sort_unstable();
        jobs.dedup();
        let timelines = jobs.iter().map(|job| format!("{job}\n{}", timeline(&evidence, job))).collect();
        Self {
            seed,
            nemesis: nemesis.name(),
            description: nemesis.description(),
            strikes,
            jobs: evidence.jobs.len() as u64,
            attempts: evidence.jobs.iter().map(|job| job.record.history.len() as u64).sum(),
            calls: evidence.calls.len() as u64,
            longest_abandoned: evidence.abandoned_limit.map(|_| evidence.longest_abandoned),
            verdict,
            timelines,
            kept,
        }
    }

    /// The command that repeats the trial.
    pub fn repeat(&self) -> String {
        format!("queuectl selftest --only {} --seed {} --seconds 0", self.nemesis, self.seed)
    }
}

/// Tells the observer which trial the progress is from.
struct OneTrialObserver<'a> {
    observer: &'a dyn CampaignObserver,
    /// Whether another trial ended with an error.
    has_failed: &'a (dyn Fn() -> bool + Sync),
    trial: u64,
    nemesis: &'static str,
}

impl TrialObserver for OneTrialObserver<'_> {
    fn report(&self, progress: &TrialProgress) {
        self.observer.report(self.trial, self.nemesis, progress);
    }

    fn is_interrupted(&self) -> bool {
        self.observer.is_interrupted() || (self.has_failed)()
    }
}
