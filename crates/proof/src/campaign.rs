//! Trials one after the other, and some beside each other, for as long as one likes; and what came of all of them.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::ProofError;
use super::checker::{Verdict, story};
use super::nemesis;
use super::nemesis::Nemesis;
use super::plan::Plan;
use super::sandbox::{Field, Program};
use super::trial::{Audience, Held, News, Terms, hold};

/// More beside each other would only be in each other's way.
const MAX_BESIDE: usize = 4;

#[derive(Clone, Debug)]
pub struct Campaign {
    pub program: Program,
    /// Where the folders of the trials are made.
    pub inside: PathBuf,
    /// The seed of the first trial; each further one has the next.
    pub seed: u64,
    /// No trial is begun after this time.
    pub lasts: Duration,
    /// The name of the only nemesis to try; else all take turns.
    pub only: Option<String>,
    pub terms: Terms,
}

/// What came of one trial.
#[derive(Clone, Debug)]
pub struct Report {
    pub seed: u64,
    pub nemesis: &'static str,
    pub does: &'static str,
    pub strikes: u64,
    pub jobs: u64,
    pub attempts: u64,
    pub calls: u64,
    pub longest_abandoned: Option<Duration>,
    pub verdict: Verdict,
    /// Each job that a violation is about, as everybody tells it.
    pub stories: Vec<String>,
    /// Where everything is that it left; kept only where something was violated.
    pub kept: Option<PathBuf>,
}

/// Who follows a campaign.
pub trait Spectator: Sync {
    /// Something happened in the trial of this number.
    fn told(&self, trial: u64, nemesis: &'static str, news: &News);
    fn has_enough(&self) -> bool;
}

impl Campaign {
    /// Holds trials until the time is up; at least one, and with all of them at least one of each. An error ends it, and
    /// so does a spectator who has enough: then there is what there is.
    pub fn run(&self, spectator: &dyn Spectator) -> (Vec<Report>, Result<(), ProofError>) {
        let at_least = if self.only.is_some() { 1 } else { nemesis::all().len() as u64 };
        let (began, next) = (Instant::now(), AtomicU64::new(0));
        let (reports, error) = (Mutex::new(Vec::new()), Mutex::new(None));
        let has_failed = || lock(&error).is_some();
        let work = || loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let is_over = began.elapsed() >= self.lasts && number >= at_least;
            if is_over || spectator.has_enough() || has_failed() {
                return;
            }
            let house = House { spectator, has_failed: &has_failed };
            match self.hold_one(number, &house) {
                Ok(report) => lock(&reports).push(report),
                // Because somebody has enough, or because another trial failed.
                Err(ProofError::Interrupted) => return,
                Err(failure) => _ = lock(&error).get_or_insert(failure),
            }
        };
        let beside = std::thread::available_parallelism().map_or(1, NonZero::get).min(MAX_BESIDE);
        let panicked = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..beside).map(|_| scope.spawn(work)).collect();
            threads.into_iter().filter_map(|thread| thread.join().err()).count() > 0
        });
        let mut reports = reports.into_inner().unwrap_or_else(PoisonError::into_inner);
        reports.sort_by_key(|report: &Report| report.seed.wrapping_sub(self.seed));
        let error = error.into_inner().unwrap_or_else(PoisonError::into_inner);
        let ended = match error {
            Some(error) => Err(error),
            None if panicked => Err(ProofError::Panicked),
            None => Ok(()),
        };
        (reports, ended)
    }

    fn hold_one(&self, number: u64, house: &House<'_>) -> Result<Report, ProofError> {
        let mut nemesis = self.nemesis(number);
        let seed = self.seed.wrapping_add(number);
        let plan = Plan::new(seed, nemesis.escapes());
        let mut field = Field::new(&self.inside, self.program.clone())?;
        let audience = Seat { house, trial: number, nemesis: nemesis.name() };
        let held = hold(&plan, nemesis.as_mut(), &field, self.terms, &audience)?;
        let kept = (!held.verdict.violations.is_empty()).then(|| {
            field.keep();
            field.folder().to_owned()
        });
        Ok(Report::new(seed, nemesis.as_ref(), held, kept))
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
    fn new(seed: u64, nemesis: &dyn Nemesis, held: Held, kept: Option<PathBuf>) -> Self {
        let Held { verdict, evidence, strikes } = held;
        let mut jobs: Vec<&str> = verdict.violations.iter().filter_map(|one| one.job.as_deref()).collect();
        jobs.sort_unstable();
        jobs.dedup();
        let stories = jobs.iter().map(|job| format!("{job}\n{}", story(&evidence, job))).collect();
        Self {
            seed,
            nemesis: nemesis.name(),
            does: nemesis.does(),
            strikes,
            jobs: evidence.jobs.len() as u64,
            attempts: evidence.jobs.iter().map(|job| job.record.history.len() as u64).sum(),
            calls: evidence.calls.len() as u64,
            longest_abandoned: evidence.abandoned_limit.map(|_| evidence.longest_abandoned),
            verdict,
            stories,
            kept,
        }
    }

    /// What to type to try the same again.
    pub fn repeat(&self) -> String {
        format!("queuectl selftest --only {} --seed {} --seconds 0", self.nemesis, self.seed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the trials of a campaign have in common.
struct House<'a> {
    spectator: &'a dyn Spectator,
    /// Whether another trial ended in an error.
    has_failed: &'a (dyn Fn() -> bool + Sync),
}

/// Tells the spectator which trial the news is from.
struct Seat<'a> {
    house: &'a House<'a>,
    trial: u64,
    nemesis: &'static str,
}

impl Audience for Seat<'_> {
    fn told(&self, news: &News) {
        self.house.spectator.told(self.trial, self.nemesis, news);
    }

    fn has_enough(&self) -> bool {
        self.house.spectator.has_enough() || (self.house.has_failed)()
    }
}
