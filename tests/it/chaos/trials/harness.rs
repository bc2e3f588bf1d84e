//! Holding trials from a test.
//!
//! ```ignore
//! Trials::of("kill-worker", || Box::new(KillWorker)).all_hold();
//! ```

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use proof::checker::{Invariant, story};
use proof::nemesis::Nemesis;
use proof::plan::Plan;
use proof::sandbox::{Field, Program};
use proof::trial::{Audience, Held, News, Terms, hold};

use crate::cli::harness::PROGRAM;

/// Tests run beside each other on a busy machine; the promise itself is `queuectl selftest`'s business.
const TERMS: Terms = Terms { notice_within: Duration::from_secs(15), up_to_load: 8.0 };
/// How many seeds of each nemesis every run of the tests tries.
const SEEDS: u64 = 2;
/// How many seeds a test tries at most until the nemesis has struck, or a control has turned red.
const MAX_SEEDS: u64 = 12;

/// Makes a nemesis for a field; it may equip the field's processes.
type Summon = Box<dyn Fn(&mut Field) -> Box<dyn Nemesis> + Sync>;

pub(super) struct Trials {
    /// The name of the test that holds them.
    test: &'static str,
    summon: Summon,
    adjust: fn(&mut Plan),
    program: PathBuf,
    without: Option<&'static str>,
}

impl Trials {
    pub(super) fn of(
        test: &'static str,
        summon: impl Fn(&mut Field) -> Box<dyn Nemesis> + Sync + 'static,
    ) -> Self {
        Self { test, summon: Box::new(summon), adjust: |_| {}, program: PROGRAM.into(), without: None }
    }

    /// Changes every plan.
    pub(super) fn with_plans(self, adjust: fn(&mut Plan)) -> Self {
        Self { adjust, ..self }
    }

    /// Runs a copy of the program.
    pub(super) fn with_program(self, program: PathBuf) -> Self {
        Self { program, ..self }
    }

    /// Takes a guard away.
    pub(super) fn without(self, guard: &'static str) -> Self {
        Self { without: Some(guard), ..self }
    }

    /// Some trials beside each other; for as long as `tests/chaos` asks, if it does. No invariant may be violated.
    pub(super) fn all_hold(&self) {
        let (first, until) = (asked("QUEUECTL_CHAOS_SEED").unwrap_or(1), Instant::now() + asked_time());
        let figures = Mutex::new(Figures::default());
        // A nemesis may find no target in a short trial on a busy machine, and a trial without damage proves nothing.
        let is_unharmed = || figures.lock().expect("no trial panics while it holds the lock").strikes == 0;
        let goes_on = |seed: u64| {
            seed < first + SEEDS || Instant::now() < until || (seed < first + MAX_SEEDS && is_unharmed())
        };
        std::thread::scope(|scope| {
            for lane in 0..SEEDS {
                let (figures, goes_on) = (&figures, &goes_on);
                scope.spawn(move || {
                    let seeds = (first + lane..).step_by(usize::try_from(SEEDS).expect("a few"));
                    for seed in seeds.take_while(|seed| goes_on(*seed)) {
                        let held = self.hold(seed);
                        figures.lock().expect("nobody panics with it").add(&held);
                    }
                });
            }
        });
        let figures = figures.into_inner().expect("nobody panics with it");
        println!("{}: {figures:?}", self.test);
        assert!(figures.strikes > 0, "{}: there was no damage: it proves nothing", self.test);
    }

    /// Holds trials until one of these invariants is violated; what else is violated does not matter.
    pub(super) fn turn_red(&self, expected: &[Invariant]) {
        let mut found = Vec::new();
        for seed in 1..=MAX_SEEDS {
            let held = self.try_hold(seed).0;
            found.extend(held.verdict.violations);
            if let Some(violation) = found.iter().find(|one| expected.contains(&one.invariant)) {
                println!("{}: red with seed {seed}: {violation}", self.test);
                return;
            }
        }
        panic!(
            "{}: {MAX_SEEDS} seeds and none of {expected:?} was violated; these were: {found:#?}",
            self.test
        );
    }

    /// One trial in which nothing may be violated.
    fn hold(&self, seed: u64) -> Held {
        let (held, mut field) = self.try_hold(seed);
        if held.verdict.violations.is_empty() {
            return held;
        }
        field.keep();
        let violations = &held.verdict.violations;
        let mut jobs: Vec<&String> = violations.iter().filter_map(|one| one.job.as_ref()).collect();
        jobs.dedup();
        let said = violations.iter().map(ToString::to_string);
        let stories = jobs.into_iter().take(3).map(|job| format!("{job}\n{}", story(&held.evidence, job)));
        let told: Vec<String> = said.chain(stories).collect();
        panic!(
            "{} is broken with seed {seed}; everything is kept in {}\n{}\n\
             to try the same again: tests/chaos --only {} --seed {seed} --seconds 1",
            self.test,
            field.folder().display(),
            told.join("\n"),
            self.test
        );
    }

    fn try_hold(&self, seed: u64) -> (Held, Field) {
        let program = Program::new(self.program.clone());
        let mut field = Field::new(&std::env::temp_dir(), program).expect("a field");
        if let Some(guard) = self.without {
            field.equip_workers([(OsString::from("QUEUECTL_WITHOUT"), OsString::from(guard))]);
        }
        let mut nemesis = (self.summon)(&mut field);
        let mut plan = Plan::new(seed, nemesis.escapes());
        (self.adjust)(&mut plan);
        let held = hold(&plan, nemesis.as_mut(), &field, TERMS, &Nobody);
        (held.unwrap_or_else(|error| panic!("{} with seed {seed}: {error:?}", self.test)), field)
    }
}

/// What was done in all.
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
    fn add(&mut self, held: &Held) {
        self.trials += 1;
        self.strikes += held.strikes;
        self.jobs += held.evidence.jobs.len();
        self.attempts += held.evidence.jobs.iter().map(|job| job.record.history.len()).sum::<usize>();
        self.calls += held.evidence.calls.len();
        self.facts += held.verdict.looked_at.values().sum::<u64>();
    }
}

struct Nobody;

impl Audience for Nobody {
    fn told(&self, _news: &News) {}

    fn has_enough(&self) -> bool {
        false
    }
}

fn asked(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

fn asked_time() -> Duration {
    Duration::from_secs(asked("QUEUECTL_CHAOS_SECONDS").unwrap_or(0))
}
