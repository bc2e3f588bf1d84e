//! Runs trials with several hosts.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use proof::ProofError;
use proof::calls::Answer;
use proof::checker::timeline;
use proof::nemesis::Nemesis;
use proof::plan::Plan;
use proof::sandbox::{Program, Sandbox, Server};
use proof::trial::{TrialLimits, TrialObserver, TrialOutcome, TrialProgress, run_trial};

use crate::cli::harness::PROGRAM;

/// Generous limits, because tests run concurrently on a busy machine; `queuectl selftest` checks the promise itself.
const LIMITS: TrialLimits = TrialLimits {
    notice_within: Duration::from_secs(15),
    max_stall: Duration::from_secs(60),
    up_to_load: 8.0,
};
/// How many trials of a long run are under way at once. They mostly wait.
const LANES: usize = 3;
/// How long the faults of a trial last in a long run, and in a test run.
const LONG_STRIKE_TIME: Duration = Duration::from_secs(30);
const SHORT_STRIKE_TIME: Duration = Duration::from_secs(5);
/// How many jobs a short trial begins with, and how many requests each client sends.
const SHORT_JOBS: usize = 10;
const SHORT_ACTIONS: usize = 5;

/// A kind of fault, with the server that it needs.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    /// `None` if this machine does not permit it.
    prepare: Box<dyn Fn(u64) -> Option<Stage> + Sync>,
}

impl Scenario {
    pub(super) fn new(name: &'static str, prepare: impl Fn(u64) -> Option<Stage> + Sync + 'static) -> Self {
        Self { name, prepare: Box::new(prepare) }
    }

    /// `None` if this machine does not permit it.
    fn run(&self, seed: u64, strike_time: Duration, adjust: fn(&mut Plan)) -> Option<Figures> {
        let Some(stage) = (self.prepare)(seed) else {
            println!("SKIPPED: {} is not possible on this machine", self.name);
            return None;
        };
        let mut figures = Figures { trials: 1, ..Figures::default() };
        match stage.with_shape(adjust).run(seed, strike_time, LIMITS) {
            Ok(mut performance) => {
                figures.violations = performance.reports(seed);
                figures.add(&performance.outcome);
            }
            Err(error) => figures.violations.push(format!("seed {seed} could not be judged: {error:?}")),
        }
        Some(figures)
    }
}

/// All that a trial needs.
pub(super) struct Stage {
    pub(super) server: Server,
    /// It owns the processes of the server, if they are for this trial only.
    pub(super) nemesis: Box<dyn Nemesis>,
    adjust: fn(&mut Plan),
    /// Changes the size of the plan.
    shape: fn(&mut Plan),
    /// In the environment of all processes.
    variables: Vec<(OsString, OsString)>,
}

impl Stage {
    pub(super) fn new(server: Server, nemesis: impl Nemesis + 'static) -> Self {
        Self::with(server, Box::new(nemesis))
    }

    pub(super) fn with(server: Server, nemesis: Box<dyn Nemesis>) -> Self {
        Self { server, nemesis, adjust: |_| {}, shape: |_| {}, variables: Vec::new() }
    }

    pub(super) fn with_plans(self, adjust: fn(&mut Plan)) -> Self {
        Self { adjust, ..self }
    }

    fn with_shape(self, shape: fn(&mut Plan)) -> Self {
        Self { shape, ..self }
    }

    /// Disables a guard.
    pub(super) fn without(self, guard: &str) -> Self {
        Self { variables: vec![("QUEUECTL_WITHOUT".into(), guard.into())], ..self }
    }

    /// Runs one trial. Fails if it cannot be judged.
    pub(super) fn run(
        mut self,
        seed: u64,
        strike_time: Duration,
        limits: TrialLimits,
    ) -> Result<Performance, ProofError> {
        let hosts = self.server.hosts.len();
        let mut plan = Plan::for_hosts(seed, self.nemesis.escapes(), hosts);
        plan.strike_time = strike_time;
        (self.shape)(&mut plan);
        (self.adjust)(&mut plan);
        let program = Program {
            for_calls: self.variables.clone(),
            for_workers: self.variables,
            ..Program::new(PROGRAM.into())
        };
        let sandbox = Sandbox::on_server(&std::env::temp_dir(), program, self.server)?;
        let outcome = run_trial(&plan, self.nemesis.as_mut(), &sandbox, limits, &NoObserver)?;
        Ok(Performance { outcome, sandbox, _nemesis: self.nemesis })
    }
}

/// A trial that is over.
pub(super) struct Performance {
    pub(super) outcome: TrialOutcome,
    // Dropped before the nemesis, which may own the server.
    sandbox: Sandbox,
    _nemesis: Box<dyn Nemesis>,
}

impl Performance {
    /// The violations with the history of some of their jobs. If there are any, the files are kept.
    fn reports(&mut self, seed: u64) -> Vec<String> {
        let violations = &self.outcome.verdict.violations;
        if violations.is_empty() {
            return Vec::new();
        }
        self.sandbox.keep();
        let mut jobs: Vec<&String> = violations.iter().filter_map(|one| one.job.as_ref()).collect();
        jobs.dedup();
        let messages = violations.iter().map(|violation| format!("seed {seed}: {violation}"));
        let timelines =
            jobs.into_iter().take(3).map(|job| format!("{job}\n{}", timeline(&self.outcome.evidence, job)));
        let kept = format!("the files are kept in {}", self.sandbox.folder().display());
        messages.chain(timelines).chain([kept]).collect()
    }
}

/// Totals of the trials of a scenario.
#[derive(Debug, Default)]
pub(super) struct Figures {
    trials: u64,
    pub(super) strikes: u64,
    jobs: usize,
    attempts: usize,
    calls: usize,
    unknown: usize,
    facts: u64,
    excused_overlaps: u64,
    lost_in_tails: u64,
    pub(super) violations: Vec<String>,
}

impl Figures {
    fn add(&mut self, outcome: &TrialOutcome) {
        let (evidence, verdict) = (&outcome.evidence, &outcome.verdict);
        self.strikes += outcome.strikes;
        self.jobs += evidence.jobs.len();
        self.attempts += evidence.jobs.iter().map(|job| job.record.history.len()).sum::<usize>();
        self.calls += evidence.calls.len();
        self.unknown += evidence.calls.iter().filter(|call| call.answer == Answer::Unknown).count();
        self.facts += verdict.checks.values().sum::<u64>();
        self.excused_overlaps += verdict.excused_overlaps;
        self.lost_in_tails += verdict.lost_in_tails;
    }

    fn merge(&mut self, other: Self) {
        self.trials += other.trials;
        self.strikes += other.strikes;
        self.jobs += other.jobs;
        self.attempts += other.attempts;
        self.calls += other.calls;
        self.unknown += other.unknown;
        self.facts += other.facts;
        self.excused_overlaps += other.excused_overlaps;
        self.lost_in_tails += other.lost_in_tails;
        self.violations.extend(other.violations);
    }
}

pub(super) type Results = Vec<(&'static str, Figures)>;

/// Runs a short trial of each scenario, all at once.
pub(super) fn run_each_once(scenarios: &[Scenario]) -> Results {
    let figures: Vec<Option<Figures>> = std::thread::scope(|scope| {
        let run = |scenario: &'_ Scenario| scenario.run(first_seed(), SHORT_STRIKE_TIME, shorten);
        let running: Vec<_> = scenarios.iter().map(|scenario| scope.spawn(move || run(scenario))).collect();
        running.into_iter().map(|thread| thread.join().expect("no trial panics")).collect()
    });
    named(scenarios, figures)
}

fn shorten(plan: &mut Plan) {
    // Still longer than a lease.
    let longest = plan.timing.lease * 5 / 4;
    plan.each_job(|job| job.lives = job.lives.min(longest));
    plan.jobs.truncate(SHORT_JOBS);
    for client in &mut plan.clients {
        client.truncate(SHORT_ACTIONS);
    }
}

/// Runs trials for this long, and each scenario at least once. The scenario with the fewest strikes is next.
pub(super) fn long_run(scenarios: &[Scenario], seconds: u64) -> Results {
    let until = Instant::now() + Duration::from_secs(seconds);
    let figures = scenarios.iter().map(|_| Some(Figures::default())).collect();
    let board = Mutex::new(Board { figures, ..Board::default() });
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                loop {
                    let next = lock(&board).next(until);
                    let Some((at, seed)) = next else { return };
                    let done = scenarios[at].run(seed, LONG_STRIKE_TIME, |_| {});
                    let mut board = lock(&board);
                    board.note(at, done);
                    println!("{} seed {seed}: {:?}", scenarios[at].name, board.figures[at]);
                }
            });
        }
    });
    named(scenarios, board.into_inner().expect("no thread panicked").figures)
}

/// Without the scenarios that this machine does not permit.
fn named(scenarios: &[Scenario], figures: Vec<Option<Figures>>) -> Results {
    let results = scenarios.iter().map(|scenario| scenario.name).zip(figures);
    results.filter_map(|(name, figures)| Some((name, figures?))).collect()
}

fn lock(board: &Mutex<Board>) -> MutexGuard<'_, Board> {
    board.lock().expect("no thread panics while it holds the lock")
}

/// Which trials of a long run are done.
#[derive(Debug, Default)]
struct Board {
    /// `None` for a scenario that this machine does not permit.
    figures: Vec<Option<Figures>>,
    running: Vec<usize>,
    trials: u64,
}

impl Board {
    fn next(&mut self, until: Instant) -> Option<(usize, u64)> {
        let is_over = Instant::now() >= until;
        let free = self.figures.iter().enumerate().filter(|(at, _)| !self.running.contains(at));
        let open = free.filter_map(|(at, figures)| Some((at, figures.as_ref()?)));
        let due = open.filter(|(_, figures)| !is_over || figures.trials == 0);
        let (at, _) = due.min_by_key(|(_, figures)| (figures.trials > 0, figures.strikes))?;
        self.running.push(at);
        self.trials += 1;
        Some((at, first_seed() + self.trials - 1))
    }

    fn note(&mut self, at: usize, done: Option<Figures>) {
        self.running.retain(|running| *running != at);
        match (&mut self.figures[at], done) {
            (Some(figures), Some(done)) => figures.merge(done),
            (figures, None) => *figures = None,
            (None, Some(_)) => {}
        }
    }
}

/// One row for each scenario, as in `docs/reliability.md`.
pub(super) fn table(results: &Results) -> String {
    let mut text =
        "| nemesis | trials | strikes | jobs | attempts | calls | unknown | facts | excused overlaps \
                    | lost in tails | violations |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
            .to_owned();
    for (name, figures) in results {
        let Figures { trials, strikes, jobs, attempts, calls, unknown, facts, .. } = figures;
        let (excused, lost, violations) =
            (figures.excused_overlaps, figures.lost_in_tails, figures.violations.len());
        let _ = writeln!(
            text,
            "| {name} | {trials} | {strikes} | {jobs} | {attempts} | {calls} | {unknown} | {facts} | {excused} \
             | {lost} | {violations} |"
        );
    }
    text
}

struct NoObserver;

impl TrialObserver for NoObserver {
    fn report(&self, _progress: &TrialProgress) {}

    fn is_interrupted(&self) -> bool {
        false
    }
}

fn number_from_env(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

pub(super) fn requested_seconds() -> Option<u64> {
    number_from_env("QUEUECTL_CHAOS_HOST_SECONDS")
}

fn first_seed() -> u64 {
    number_from_env("QUEUECTL_CHAOS_SEED").unwrap_or(1)
}
