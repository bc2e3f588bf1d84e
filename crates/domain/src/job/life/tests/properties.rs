//! Invariants that hold after any sequence of events.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{Just, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;
use proptest::strategy::Strategy as Generator;
use proptest::test_runner::TestCaseError;

use crate::job::life::tests::*;

/// An event that names its attempt relative to the current one.
#[derive(Clone, Debug)]
enum Move {
    Claim,
    Extend { attempts_ago: u32 },
    Settle { attempts_ago: u32, outcome: Outcome, boot: &'static str },
    Cancel,
    Pause,
    Resume,
    Retry { blocked_by: u32 },
    DependencyMet,
    DependencyFailed,
}

impl Move {
    fn event(&self, life: &Life, now: Timestamp) -> Event {
        let attempt = |attempts_ago: u32| life.attempts.wrapping_sub(attempts_ago);
        let until = now.saturating_add(Duration::from_secs(30));
        match *self {
            Self::Claim => Event::Claim { worker: worker(), until },
            Self::Extend { attempts_ago } => Event::Extend { attempt: attempt(attempts_ago), until },
            Self::Settle { attempts_ago, outcome, boot } => settled_in(boot, attempt(attempts_ago), outcome),
            Self::Cancel => Event::Cancel { signal: None },
            Self::Pause => Event::Pause,
            Self::Resume => Event::Resume,
            Self::Retry { blocked_by } => Event::Retry { blocked_by },
            Self::DependencyMet => Event::DependencyMet,
            Self::DependencyFailed => Event::DependencyFailed,
        }
    }
}

/// Mostly claims and settlements of the current attempt, so that a sequence makes progress.
fn moves() -> impl Generator<Value = Move> {
    let attempts_ago = || prop_oneof![9 => Just(0), 1 => 1..3_u32];
    let settle = (attempts_ago(), select(&OUTCOMES[..]), select(&["a", "b"][..]))
        .prop_map(|(attempts_ago, outcome, boot)| Move::Settle { attempts_ago, outcome, boot });
    prop_oneof![
        8 => Just(Move::Claim),
        8 => settle,
        1 => attempts_ago().prop_map(|attempts_ago| Move::Extend { attempts_ago }),
        1 => Just(Move::Cancel),
        1 => Just(Move::Pause),
        1 => Just(Move::Resume),
        2 => (0..3_u32).prop_map(|blocked_by| Move::Retry { blocked_by }),
        2 => Just(Move::DependencyMet),
        1 => Just(Move::DependencyFailed),
    ]
}

fn beginnings() -> impl Generator<Value = Life> {
    let run_at = prop_oneof![Just(None), (0..20_u64).prop_map(|seconds| Some(later(seconds)))];
    (run_at, 0..4_u32, 0..3_u32)
        .prop_map(|(run_at, max_retries, blocked_by)| Life::begin(run_at, max_retries, blocked_by, NOW))
}

/// Invariants of every life.
fn check_life(life: &Life, policy: &Policy, now: Timestamp) -> Result<(), TestCaseError> {
    let exhausted = life.failures > life.max_retries;
    let poisoned = life.losses.count >= policy.crash_limit;
    prop_assert!(life.failures <= life.attempts, "more failures than attempts");
    prop_assert!(life.losses.count <= life.attempts, "more losses than attempts");
    prop_assert_eq!(life.losses.count > 0, life.losses.boot.is_some());
    match &life.state {
        State::Dead { finished_at, reason } => {
            prop_assert_eq!(*reason == DeadReason::RetriesExhausted, exhausted);
            prop_assert_eq!(*reason == DeadReason::CrashLimit, poisoned);
            prop_assert!(*finished_at <= now);
        }
        // Its last attempt may have used up the retries before it was cancelled.
        State::Cancelled { finished_at, .. } => prop_assert!(*finished_at <= now),
        State::Completed { finished_at } => {
            prop_assert!(*finished_at <= now);
            prop_assert!(!exhausted && !poisoned);
            prop_assert_eq!(life.losses.count, 0);
        }
        State::Processing(lease) => {
            prop_assert!(!exhausted && !poisoned);
            prop_assert!(lease.started_at <= now && life.due_at <= lease.started_at);
            prop_assert!(life.attempts > 0);
        }
        State::Failed => {
            prop_assert!(!exhausted && !poisoned);
            prop_assert!(life.failures > 0, "failed without a failure");
        }
        State::Pending { .. } => prop_assert!(!exhausted && !poisoned),
    }
    Ok(())
}

/// A claim must succeed or fail as the job's index says.
fn check_wait_index(life: &Life, policy: &Policy, now: Timestamp) -> Result<(), TestCaseError> {
    let claimed = transition(life, Move::Claim.event(life, now), policy, now);
    match life.wait_index(now) {
        WaitIndex::Ready => prop_assert!(claimed.is_ok()),
        WaitIndex::Waiting => prop_assert_eq!(claimed, Err(Refusal::NotDue)),
        WaitIndex::None => prop_assert!(matches!(claimed, Err(Refusal::Blocked | Refusal::WrongState(_)))),
    }
    Ok(())
}

/// The changes that one event may make.
fn check_step(before: &Life, event: &Event, after: &Life) -> Result<(), TestCaseError> {
    prop_assert_eq!(after.run_at, before.run_at);
    prop_assert_eq!(after.max_retries, before.max_retries);
    let (claims, failures) = match event {
        Event::Claim { .. } => (1, before.failures),
        Event::Settle { outcome, .. } if BAD_OUTCOMES.contains(outcome) => (0, before.failures + 1),
        Event::Retry { .. } => (0, 0),
        Event::Settle { .. }
        | Event::Extend { .. }
        | Event::Cancel { .. }
        | Event::Pause
        | Event::Resume
        | Event::Replace
        | Event::DependencyMet
        | Event::DependencyFailed => (0, before.failures),
    };
    prop_assert_eq!(after.attempts, before.attempts + claims);
    prop_assert_eq!(after.failures, failures);
    if after.due_at < before.due_at {
        prop_assert!(matches!(event, Event::Retry { .. }), "only a retry brings the next attempt forward");
    }
    Ok(())
}

proptest! {
    #[test]
    fn no_sequence_of_events_reaches_an_impossible_state(
        beginning in beginnings(),
        moves in vec((0..6_000_u64, moves()), 0..80),
        crash_limit in 1..4_u32,
        roll in 0.0..1.0_f64,
    ) {
        let policy = Policy { crash_limit, roll, ..policy() };
        let mut life = beginning;
        let mut now = NOW;
        for (wait, step) in moves {
            now = now.saturating_add(Duration::from_millis(wait));
            let before = life.clone();
            let event = step.event(&life, now);
            let result = transition(&life, event.clone(), &policy, now);
            prop_assert_eq!(&life, &before, "transition must not change its argument");
            if let Ok(transition) = result {
                prop_assert_eq!(transition.from, before.state.name());
                check_step(&before, &event, &transition.life)?;
                life = transition.life;
            }
            check_life(&life, &policy, now)?;
            check_wait_index(&life, &policy, now)?;
        }
    }

    #[test]
    fn n_retries_are_n_plus_one_attempts(
        max_retries in 0..60_u32,
        endings in vec(select(&BAD_OUTCOMES[..]), 61),
    ) {
        let mut life = Life::begin(None, max_retries, 0, NOW);
        for outcome in endings.into_iter().take(max_retries as usize) {
            life = attempt(&life, outcome);
            prop_assert_eq!(&life.state, &State::Failed);
        }
        life = attempt(&life, Outcome::Timeout);
        prop_assert_eq!(life.state.name(), StateName::Dead);
        prop_assert_eq!(life.attempts, max_retries + 1);
    }

    #[test]
    fn losses_and_releases_use_up_no_retry(
        max_retries in 0..5_u32,
        interruptions in vec((select(&[Outcome::Lost, Outcome::Released][..]), 0..6_u32), 0..40),
    ) {
        // Each interruption has its own boot, so that losses do not add up.
        let mut life = Life::begin(None, max_retries, 0, NOW);
        let mut failures = 0;
        for (number, (outcome, die)) in interruptions.iter().enumerate() {
            let before = life.clone();
            life = attempt_in(&format!("boot-{number}"), &life, *outcome);
            prop_assert_eq!(life.state.name(), StateName::Pending);
            prop_assert_eq!(life.failures, before.failures);
            prop_assert_eq!(life.due_at, before.due_at, "no backoff");
            if *die == 0 && failures < max_retries {
                life = attempt(&life, Outcome::Timeout);
                failures += 1;
            }
        }
        for _ in failures..=max_retries {
            life = attempt(&life, Outcome::Failure { exit_code: 1 });
        }
        let interrupted = u32::try_from(interruptions.len()).expect("at most 40");
        prop_assert_eq!(life.state.name(), StateName::Dead);
        prop_assert_eq!(life.attempts, max_retries + 1 + interrupted);
    }

    #[test]
    fn a_stale_attempt_is_refused_in_every_state(attempts_ago in any::<u32>(), attempts in any::<u32>()) {
        for name in STARTS {
            let life = Life { attempts, ..start(name) };
            if attempts_ago == 0 && life.state.name() == StateName::Processing {
                continue;
            }
            let attempt = attempts.wrapping_sub(attempts_ago);
            for outcome in OUTCOMES {
                let refused = transition(&life, settled(attempt, outcome), &policy(), NOW);
                prop_assert_eq!(refused, Err(Refusal::Stale { attempt }), "{} {}", name, outcome);
            }
        }
    }
}
