//! Runs trials from a test.
//!
//! ```ignore
//! Trials::of("kill-worker", || Box::new(KillWorker)).assert_all_hold();
//! ```

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use proof::checker::{Invariant, timeline};
use proof::nemesis::Nemesis;
use proof::plan::Plan;
use proof::sandbox::{Program, Sandbox};
use proof::trial::{TrialLimits, TrialObserver, TrialOutcome, TrialProgress, run_trial};

use crate::cli::harness::PROGRAM;

/// Generous limits, because tests run concurrently on a busy machine; `queuectl selftest` checks the promise itself.
const LIMITS: TrialLimits = TrialLimits {
    notice_within: Duration::from_secs(15),
    max_stall: Duration::from_secs(60),
    up_to_load: 8.0,
};
/// Of a control, which gives up sooner on jobs that never finish.
const LIMITS_OF_CONTROLS: TrialLimits = TrialLimits { max_stall: Duration::from_secs(8), ..LIMITS };
/// How many seeds of each nemesis a test run tries, unless `tests/chaos` asks for more.
const SEEDS: u64 = 2;
/// How many seeds a test tries at most until the nemesis has struck, or a control has turned red.
const MAX_SEEDS: u64 = 12;

/// Creates the nemesis for a sandbox; it may change the environment of the sandbox's processes.
type CreateNemesis = Box<dyn Fn(&mut Sandbox) -> Box<dyn Nemesis> + Sync>;

pub(super) struct Trials {
    /// The name of the test that runs them.
    test: &'static str,
    create: CreateNemesis,
    adjust: fn(&mut Plan),
    program: PathBuf,
    without: Option<&'static str>,
}

impl Trials {
    pub(super) fn of(
        test: &'static str,
        create: impl Fn(&mut Sandbox) -> Box<dyn Nemesis> + Sync + 'static,
    ) -> Self {
        Self { test, create: Box::new(create), adjust: |_| {}, program: PROGRAM.into(), without: None }
    }

    /// Changes every plan.
    pub(super) fn with_plans(self, adjust: fn(&mut Plan)) -> Self {
        Self { adjust, ..self }
    }

    /// Uses a copy of the program.
    pub(super) fn with_program(self, program: PathBuf) -> Self {
        Self { program, ..self }
    }

    /// Disables a guard.
    pub(super) fn without(self, guard: &'static str) -> Self {
        Self { without: Some(guard), ..self }
    }

    /// Runs some trials concurrently, or for as long as `tests/chaos` requests. No invariant may be violated.
    pub(super) fn assert_all_hold(&self) {
        let (first, until) =
            (number_from_env("QUEUECTL_CHAOS_SEED").unwrap_or(1), Instant::now() + requested_time());
        let figures = Mutex::new(Figures::default());
        // A nemesis may find no target in a short trial on a busy machine, and a trial without damage proves nothing.
        let is_unharmed = || figures.lock().expect("no trial panics while it holds the lock").strikes == 0;
        let continues = |seed: u64| {
            seed < first + SEEDS || Instant::now() < until || (seed < first + MAX_SEEDS && is_unharmed())
        };
        std::thread::scope(|scope| {
            for lane in 0..SEEDS {
                let (figures, continues) = (&figures, &continues);
                scope.spawn(move || {
                    let seeds = (first + lane..).step_by(usize::try_from(SEEDS).expect("a few"));
                    for seed in seeds.take_while(|seed| continues(*seed)) {
                        let outcome = self.run(seed);
                        figures.lock().expect("no thread panicked").add(&outcome);
                    }
                });
            }
        });
        let figures = figures.into_inner().expect("no thread panicked");
        println!("{}: {figures:?}", self.test);
        assert!(figures.strikes > 0, "{}: no fault took effect, so the trials prove nothing", self.test);
    }

    /// Runs trials until one of these invariants is violated; other violations do not matter.
    pub(super) fn assert_violates(&self, expected: &[Invariant]) {
        let mut found = Vec::new();
        for seed in 1..=MAX_SEEDS {
            let outcome = self.try_run(seed, LIMITS_OF_CONTROLS).0;
            found.extend(outcome.verdict.violations);
            if let Some(violation) = found.iter().find(|one| expected.contains(&one.invariant)) {
                println!("{}: violated with seed {seed}: {violation}", self.test);
                return;
            }
        }
        panic!("{}: none of {expected:?} was violated with {MAX_SEEDS} seeds, only: {found:#?}", self.test);
    }

    /// One trial without violations.
    fn run(&self, seed: u64) -> TrialOutcome {
        let (outcome, mut sandbox) = self.try_run(seed, LIMITS);
        if outcome.verdict.violations.is_empty() {
            return outcome;
        }
        sandbox.keep();
        let violations = &outcome.verdict.violations;
        let mut jobs: Vec<&String> = violations.iter().filter_map(|one| one.job.as_ref()).collect();
        jobs.dedup();
        let messages = violations.iter().map(ToString::to_string);
        let timelines =
            jobs.into_iter().take(3).map(|job| format!("{job}\n{}", timeline(&outcome.evidence, job)));
        let report: Vec<String> = messages.chain(timelines).collect();
        panic!(
            "{} failed with seed {seed}; its folder was kept: {}\n{}\n\
             to repeat: tests/chaos --only {} --seed {seed} --seconds 1",
            self.test,
            sandbox.folder().display(),
            report.join("\n"),
            self.test
        );
    }

    fn try_run(&self, seed: u64, limits: TrialLimits) -> (TrialOutcome, Sandbox) {
        let program = Program::new(self.program.clone());
        let mut sandbox = Sandbox::new(&std::env::temp_dir(), program).expect("a sandbox");
        if let Some(guard) = self.without {
            sandbox.program.for_workers.push((OsString::from("QUEUECTL_WITHOUT"), OsString::from(guard)));
        }
        let mut nemesis = (self.create)(&mut sandbox);
        let mut plan = Plan::new(seed, nemesis.escapes());
        (self.adjust)(&mut plan);
        let outcome = run_trial(&plan, nemesis.as_mut(), &sandbox, limits, &NoObserver);
        (outcome.unwrap_or_else(|error| panic!("{} with seed {seed}: {error:?}", self.test)), sandbox)
    }
}

/// Totals of all trials.
#[derive(Debug, Default)]
struct Figures {
    trials: u64,
    strikes: u64,
    jobs: usize,
    attempts: usize,
    calls: usize,
    facts: u64,
}

impl Figures {
    fn add(&mut self, outcome: &TrialOutcome) {
        self.trials += 1;
        self.strikes += outcome.strikes;
        self.jobs += outcome.evidence.jobs.len();
        self.attempts += outcome.evidence.jobs.iter().map(|job| job.record.history.len()).sum::<usize>();
        self.calls += outcome.evidence.calls.len();
        self.facts += outcome.verdict.checks.values().sum::<u64>();
    }
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

fn requested_time() -> Duration {
    Duration::from_secs(number_from_env("QUEUECTL_CHAOS_SECONDS").unwrap_or(0))
}
