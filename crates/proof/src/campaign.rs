//! A campaign: many trials, some of them concurrently, for a given time.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::ProofError;
use super::calls::Answer;
use super::checker::{Verdict, timeline};
use super::nemesis;
use super::nemesis::Nemesis;
use super::plan::Plan;
use super::sandbox::{Program, Sandbox, Server, lock};
use super::trial::{TrialLimits, TrialObserver, TrialOutcome, TrialProgress, run_trial};
use domain::text::shell::quote_words;
use store::postgres::Address;
use store::postgres::address::TlsMode;

/// More concurrent trials would only slow each other down.
const MAX_CONCURRENT_TRIALS: usize = 4;
/// A server may allow few connections, and each trial needs about twenty.
const MAX_CONCURRENT_TRIALS_ON_A_SERVER: usize = 2;
/// How often a trial is repeated because the machine was too busy.
const MAX_REPETITIONS: u64 = 3;

#[derive(Clone, Debug)]
pub struct Campaign {
    pub program: Program,
    /// Where the folders of the trials are created.
    pub inside: PathBuf,
    /// The server for queues with several hosts. `None`: queues in files, with one host.
    pub server: Option<Address>,
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
    /// Calls whose outcome their callers do not know.
    pub unknown: u64,
    pub longest_abandoned: Option<Duration>,
    /// The machine was too busy to judge how soon a dead worker is noticed.
    pub is_too_busy: bool,
    pub verdict: Verdict,
    /// The timeline of each job with a violation.
    pub timelines: Vec<String>,
    /// The folder of the trial, which is kept only after a violation.
    pub kept: Option<PathBuf>,
    /// The address of the server, without its password.
    pub store: Option<String>,
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
        let at_least = self.kinds();
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
        let most = match self.server {
            Some(_) => MAX_CONCURRENT_TRIALS_ON_A_SERVER,
            None => MAX_CONCURRENT_TRIALS,
        };
        let thread_count = std::thread::available_parallelism().map_or(1, NonZero::get).min(most);
        let panicked = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..thread_count).map(|_| scope.spawn(work)).collect();
            threads.into_iter().filter_map(|thread| thread.join().err()).count() > 0
        });
        let mut reports = std::mem::take(&mut *lock(&reports));
        let mut error = lock(&error).take();
        if error.is_none() && !panicked {
            let first_free = next.load(Ordering::Relaxed);
            error = self.repeat_while_too_busy(&mut reports, first_free, observer).err();
        }
        reports.sort_by_key(|report: &Report| report.seed.wrapping_sub(self.seed));
        let ended = match error {
            Some(error) => Err(error),
            None if panicked => Err(ProofError::Panicked),
            None => Ok(()),
        };
        (reports, ended)
    }

    /// Repeats a trial, alone, if the machine was too busy in every one that measures how soon a dead worker is noticed.
    fn repeat_while_too_busy(
        &self,
        reports: &mut Vec<Report>,
        first_free: u64,
        observer: &dyn CampaignObserver,
    ) -> Result<(), ProofError> {
        let kinds = self.kinds();
        for repetition in 1..=MAX_REPETITIONS {
            let Some(number) = number_to_repeat(reports, self.seed) else {
                return Ok(());
            };
            // The next free number at which the turn of the same nemesis comes.
            let number = number + (first_free.div_ceil(kinds) + repetition) * kinds;
            match self.run_one(number, observer, &|| false) {
                Ok(report) => reports.push(report),
                Err(ProofError::Interrupted) => return Ok(()),
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    fn run_one(
        &self,
        number: u64,
        observer: &dyn CampaignObserver,
        has_failed: &(dyn Fn() -> bool + Sync),
    ) -> Result<Report, ProofError> {
        let mut nemesis = self.nemesis(number);
        let seed = self.seed.wrapping_add(number);
        let (plan, mut sandbox) = match &self.server {
            None => (Plan::new(seed, nemesis.escapes()), Sandbox::new(&self.inside, self.program.clone())?),
            Some(address) => {
                let server = Server::behind_proxies(address);
                let plan = Plan::for_hosts(seed, nemesis.escapes(), server.hosts.len());
                (plan, Sandbox::on_server(&self.inside, self.program.clone(), server)?)
            }
        };
        let observer = OneTrialObserver { observer, has_failed, trial: number, nemesis: nemesis.name() };
        let outcome = run_trial(&plan, nemesis.as_mut(), &sandbox, self.limits, &observer)?;
        let kept = (!outcome.verdict.violations.is_empty()).then(|| {
            sandbox.keep();
            sandbox.folder().to_owned()
        });
        let store = self.server.as_ref().map(ToString::to_string);
        Ok(Report { store, ..Report::new(seed, nemesis.as_ref(), outcome, kept) })
    }

    /// The nemeses that take turns.
    pub fn nemeses(&self) -> Vec<Box<dyn Nemesis>> {
        match &self.server {
            None => nemesis::for_one_host(),
            Some(address) => nemesis::for_hosts(is_plain(address)),
        }
    }

    /// How many nemeses take turns.
    fn kinds(&self) -> u64 {
        if self.only.is_some() { 1 } else { self.nemeses().len() as u64 }
    }

    fn nemesis(&self, number: u64) -> Box<dyn Nemesis> {
        let mut candidates = self.nemeses();
        if let Some(only) = &self.only {
            candidates.retain(|nemesis| nemesis.name() == only);
        }
        let at = usize::try_from(number % candidates.len() as u64).unwrap_or(0);
        candidates.swap_remove(at)
    }
}

impl Report {
    fn new(seed: u64, nemesis: &dyn Nemesis, outcome: TrialOutcome, kept: Option<PathBuf>) -> Self {
        let TrialOutcome { verdict, evidence, strikes, is_too_busy } = outcome;
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
            unknown: evidence.calls.iter().filter(|call| call.answer == Answer::Unknown).count() as u64,
            longest_abandoned: evidence.abandoned_limit.map(|_| evidence.longest_abandoned),
            is_too_busy,
            verdict,
            timelines,
            kept,
            store: None,
        }
    }

    /// The command that repeats the trial.
    pub fn repeat(&self) -> String {
        let quoted = |store| quote_words(std::slice::from_ref(store));
        let store =
            self.store.as_ref().map_or_else(String::new, |store| format!(" --store {}", quoted(store)));
        format!("queuectl selftest{store} --only {} --seed {} --seconds 0", self.nemesis, self.seed)
    }
}

/// Whether a proxy can be put between a host and the server.
fn is_plain(address: &Address) -> bool {
    address.hosts.first().is_some_and(|host| address.tls(host) == TlsMode::Disable)
}

/// The number of a trial in which the machine was too busy, if no other trial measured what that one was to measure.
fn number_to_repeat(reports: &[Report], seed: u64) -> Option<u64> {
    if reports.iter().any(|report| report.longest_abandoned.is_some()) {
        return None;
    }
    reports.iter().find(|report| report.is_too_busy).map(|report| report.seed.wrapping_sub(seed))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn report(seed: u64, longest_abandoned: Option<Duration>, is_too_busy: bool) -> Report {
        Report {
            seed,
            nemesis: "kill-worker",
            description: "kill -9 of a worker",
            strikes: 1,
            jobs: 1,
            attempts: 1,
            calls: 1,
            unknown: 0,
            longest_abandoned,
            is_too_busy,
            verdict: Verdict::default(),
            timelines: Vec::new(),
            kept: None,
            store: None,
        }
    }

    #[test]
    fn a_trial_is_repeated_only_if_the_machine_was_too_busy_in_all_of_its_kind() {
        let (quiet, busy, other) =
            (report(10, Some(Duration::ZERO), false), report(12, None, true), report(11, None, false));
        assert_eq!(number_to_repeat(&[other.clone(), busy.clone()], 10), Some(2));
        assert_eq!(number_to_repeat(&[quiet, busy], 10), None);
        assert_eq!(number_to_repeat(&[other], 10), None);
    }
}
