//! Tables and properties of [`super::transition`].

mod properties;
mod table;

use crate::job::life::*;
use crate::settings::Settings;
use crate::values::signal::Signal;
use std::time::Duration;

const NOW: Timestamp = Timestamp::from_millis(1_000_000);
const BOOT: &str = "boot-1";
const OUTCOMES: [Outcome; 8] = [
    Outcome::Success,
    Outcome::Failure { exit_code: 7 },
    Outcome::Signal { signal: Signal::KILL },
    Outcome::Timeout,
    Outcome::SpawnError,
    Outcome::Lost,
    Outcome::Cancelled,
    Outcome::Released,
];
/// The outcomes that use up a retry.
const BAD_OUTCOMES: [Outcome; 4] = [OUTCOMES[1], OUTCOMES[2], OUTCOMES[3], OUTCOMES[4]];

/// The names of the lives that [`start`] builds; those that are not processing come first.
const STARTS: [&str; 13] = [
    "pending",
    "blocked",
    "scheduled",
    "completed",
    "failed",
    "waiting",
    "dead",
    "cancelled",
    "processing",
    "last_try",
    "poisoned",
    "cancelling",
    "paused",
];

/// The life with this name. `last_try` has no retry left, `poisoned` is dead after one more loss, and `cancelling` has a
/// requested cancellation. Each has had one attempt, so that no attempt is stale merely because of its number.
fn start(name: &str) -> Life {
    let life = |state| Life { state, attempts: 1, ..Life::begin(None, 3, 0, NOW) };
    let lease = |cancel_requested| {
        State::Processing(Lease { cancel_requested, ..Lease::new(worker(), NOW, later(30)) })
    };
    let waiting = |life| Life { due_at: Timestamp::from_millis(NOW.as_millis() + 1), ..life };
    match name {
        "pending" => life(State::Pending { blocked_by: 0 }),
        "blocked" => life(State::Pending { blocked_by: 1 }),
        "scheduled" => Life { run_at: Some(later(1)), ..waiting(life(State::Pending { blocked_by: 0 })) },
        "processing" => life(lease(None)),
        "last_try" => Life { failures: 3, ..life(lease(None)) },
        "poisoned" => Life { losses: losses(4, BOOT), ..life(lease(None)) },
        "cancelling" => {
            Life { losses: losses(4, BOOT), failures: 3, ..life(lease(Some(CancelReason::User))) }
        }
        "paused" => {
            let lease = Lease { paused_at: Some(NOW), ..Lease::new(worker(), NOW, later(30)) };
            life(State::Processing(lease))
        }
        "completed" => life(State::Completed { finished_at: NOW }),
        "failed" => life(State::Failed),
        "waiting" => waiting(life(State::Failed)),
        "dead" => life(dead(DeadReason::RetriesExhausted, NOW)),
        "cancelled" => life(cancelled(CancelReason::User, NOW)),
        unknown => panic!("unknown life {unknown}"),
    }
}

/// Every event, once for each outcome, for attempt 1, which every [`start`] has had.
fn events() -> Vec<Event> {
    let mut events = vec![claim_event(), Event::Extend { attempt: 1, until: later(60) }];
    events.extend(OUTCOMES.map(|outcome| settled(1, outcome)));
    events.extend([
        Event::Cancel { signal: None },
        Event::Pause,
        Event::Resume,
        Event::Replace,
        Event::Retry { blocked_by: 0 },
        Event::DependencyMet,
        Event::DependencyFailed,
    ]);
    events
}

fn label(event: &Event) -> String {
    match event {
        Event::Claim { .. } => "claim".to_owned(),
        Event::Extend { .. } => "extend".to_owned(),
        Event::Settle { outcome, .. } => format!("settle_{}", outcome.name()),
        Event::Cancel { .. } => "cancel".to_owned(),
        Event::Pause => "pause".to_owned(),
        Event::Resume => "resume".to_owned(),
        Event::Replace => "replace".to_owned(),
        Event::Retry { .. } => "retry".to_owned(),
        Event::DependencyMet => "dependency_met".to_owned(),
        Event::DependencyFailed => "dependency_failed".to_owned(),
    }
}

fn policy() -> Policy {
    let settings = Settings::default();
    Policy {
        backoff: settings.backoff,
        crash_limit: settings.crash_limit,
        retry: RetryRules::default(),
        roll: 0.5,
    }
}

fn worker() -> WorkerId {
    "worker-1".parse().expect("valid worker name")
}

fn losses(count: u32, boot: &str) -> Losses {
    Losses { count, boot: Some(boot.to_owned()) }
}

fn later(seconds: u64) -> Timestamp {
    NOW.saturating_add(Duration::from_secs(seconds))
}

fn claim_event() -> Event {
    Event::Claim { worker: worker(), until: later(30) }
}

fn settled(attempt: u32, outcome: Outcome) -> Event {
    settled_in(BOOT, attempt, outcome)
}

fn settled_in(boot: &str, attempt: u32, outcome: Outcome) -> Event {
    Event::Settle { attempt, outcome, boot: boot.to_owned(), loss_context: LossContext::Alone }
}

/// The life after an event that must not be refused.
fn follow(life: &Life, event: Event, now: Timestamp) -> Life {
    let event_label = label(&event);
    match transition(life, event, &policy(), now) {
        Ok(transition) => transition.life,
        Err(refusal) => panic!("{event_label} of {life:?} was refused: {refusal}"),
    }
}

/// One whole attempt: a claim as soon as the job is due, settled at the same time.
fn attempt(life: &Life, outcome: Outcome) -> Life {
    attempt_in(BOOT, life, outcome)
}

fn attempt_in(boot: &str, life: &Life, outcome: Outcome) -> Life {
    let running = follow(life, claim_event(), life.due_at);
    let event = settled_in(boot, running.attempts, outcome);
    follow(&running, event, life.due_at)
}

#[test]
fn the_default_timeline_is_four_attempts_in_fourteen_seconds() {
    let mut life = Life::begin(Some(NOW), Settings::default().max_retries, 0, NOW);
    let mut starts = Vec::new();
    while !life.state.name().is_finished() {
        starts.push(life.due_at.since(NOW).as_secs());
        let just_before = Timestamp::from_millis(life.due_at.as_millis() - 1);
        assert_eq!(
            transition(&life, claim_event(), &policy(), just_before),
            Err(Refusal::NotDue),
            "attempt {} must not start a millisecond early",
            starts.len()
        );
        life = attempt(&life, Outcome::Failure { exit_code: 1 });
    }
    assert_eq!(starts, [0, 2, 6, 14]);
    assert_eq!(life.state, dead(DeadReason::RetriesExhausted, later(14)));
    assert_eq!((life.attempts, life.failures), (4, 4));
}

#[test]
fn an_exit_code_that_is_not_retried_makes_the_job_dead() {
    let rules = RetryRules { retry_on: "1,75".parse().ok(), no_retry_on: "2".parse().ok() };
    let policy = Policy { retry: rules, ..policy() };
    let after = |name: &str, outcome| {
        let life =
            transition(&start(name), settled(1, outcome), &policy, NOW).expect("it is processing").life;
        (life.failures, life.state)
    };
    let code = |exit_code| Outcome::Failure { exit_code };
    for (start, outcome, failures, state) in [
        ("processing", code(1), 1, State::Failed),
        ("processing", code(75), 1, State::Failed),
        ("processing", code(2), 1, dead(DeadReason::NotRetried, NOW)),
        ("processing", code(3), 1, dead(DeadReason::NotRetried, NOW)),
        // The rules apply to exit codes only.
        ("processing", OUTCOMES[2], 1, State::Failed),
        ("processing", Outcome::Timeout, 1, State::Failed),
        ("processing", Outcome::SpawnError, 1, State::Failed),
        ("processing", Outcome::Lost, 0, State::Pending { blocked_by: 0 }),
        ("processing", Outcome::Released, 0, State::Pending { blocked_by: 0 }),
        ("processing", Outcome::Success, 0, State::Completed { finished_at: NOW }),
        ("last_try", code(1), 4, dead(DeadReason::RetriesExhausted, NOW)),
        ("last_try", code(2), 4, dead(DeadReason::RetriesExhausted, NOW)),
        ("cancelling", code(2), 4, cancelled(CancelReason::User, NOW)),
    ] {
        assert_eq!(after(start, outcome), (failures, state), "{start} and {outcome}");
    }
}

#[test]
fn a_claim_counts_the_attempt_and_takes_the_lease() {
    let life = follow(&Life::begin(None, 3, 0, NOW), claim_event(), later(1));
    assert_eq!(life.attempts, 1);
    assert_eq!(life.state, State::Processing(Lease::new(worker(), later(1), later(30))));
}

#[test]
fn a_claim_waits_for_run_at_to_the_millisecond() {
    let life = Life::begin(Some(later(5)), 3, 0, NOW);
    let early = Timestamp::from_millis(later(5).as_millis() - 1);
    assert_eq!(transition(&life, claim_event(), &policy(), early), Err(Refusal::NotDue));
    assert!(transition(&life, claim_event(), &policy(), later(5)).is_ok());
    let past = Life::begin(Some(Timestamp::EPOCH), 3, 0, NOW);
    assert_eq!(past.due_at, NOW, "a run_at in the past gives no precedence");
}

#[test]
fn extending_changes_only_the_end_of_the_lease() {
    let cancelling = start("cancelling");
    let until = later(60);
    let extended = follow(&cancelling, Event::Extend { attempt: 1, until }, NOW);
    let State::Processing(lease) = &extended.state else { panic!("it is no longer processing") };
    assert_eq!(lease.until, until);
    assert!(lease.cancel_requested.is_some(), "a heartbeat keeps the cancellation");
    assert_eq!(lease.started_at, NOW);
    assert_eq!(with_state(&extended, cancelling.state.clone()), cancelling);
}

#[test]
fn a_stale_attempt_changes_nothing() {
    let life = Life { attempts: 5, ..start("processing") };
    for attempt in [0, 4, 6, u32::MAX] {
        let until = later(60);
        let mut stale = vec![Event::Extend { attempt, until }];
        stale.extend(OUTCOMES.map(|outcome| settled(attempt, outcome)));
        for event in stale {
            let event_label = label(&event);
            assert_eq!(
                transition(&life, event, &policy(), NOW),
                Err(Refusal::Stale { attempt }),
                "{event_label} of attempt {attempt}"
            );
        }
    }
}

#[test]
fn only_a_success_overrides_a_cancellation() {
    for (event, other, reason) in [
        (Event::Cancel { signal: None }, Event::Replace, CancelReason::User),
        (Event::Replace, Event::Cancel { signal: None }, CancelReason::Replaced),
    ] {
        let requested = follow(&start("processing"), event.clone(), NOW);
        for again in [event, other] {
            assert_eq!(requested, follow(&requested, again, later(1)), "a second request changes nothing");
        }
        for outcome in OUTCOMES {
            let expected = if outcome == Outcome::Success {
                State::Completed { finished_at: later(2) }
            } else {
                cancelled(reason, later(2))
            };
            let life = follow(&requested, settled(1, outcome), later(2));
            assert_eq!(life.state, expected, "{outcome}");
        }
    }
}

/// Each row: a running job, how its attempt ends, the state without a requested cancel, and the state with one.
#[test]
fn a_requested_cancel_decides_every_end_but_a_success() {
    use StateName::{Cancelled, Completed, Dead, Failed, Pending};
    for (running, outcome, alone, with_cancel) in [
        ("processing", Outcome::Success, Completed, Completed),
        ("last_try", Outcome::Success, Completed, Completed),
        ("processing", Outcome::Timeout, Failed, Cancelled),
        ("last_try", Outcome::Timeout, Dead, Cancelled),
        ("processing", Outcome::Lost, Pending, Cancelled),
        ("poisoned", Outcome::Lost, Dead, Cancelled),
        ("processing", Outcome::Released, Pending, Cancelled),
        ("processing", Outcome::Cancelled, Cancelled, Cancelled),
    ] {
        let life = start(running);
        let after = |life: &Life| follow(life, settled(1, outcome), later(1)).state.name();
        let asked = follow(&life, Event::Cancel { signal: None }, NOW);
        assert_eq!((after(&life), after(&asked)), (alone, with_cancel), "{running} and {outcome}");
    }
}

#[test]
fn finished_states_have_a_time_and_a_reason() {
    let cases = [
        ("processing", settled(1, Outcome::Success), State::Completed { finished_at: NOW }),
        ("last_try", settled(1, Outcome::Timeout), dead(DeadReason::RetriesExhausted, NOW)),
        ("poisoned", settled(1, Outcome::Lost), dead(DeadReason::CrashLimit, NOW)),
        ("pending", Event::Cancel { signal: None }, cancelled(CancelReason::User, NOW)),
        ("failed", Event::Replace, cancelled(CancelReason::Replaced, NOW)),
        (
            "blocked",
            Event::DependencyFailed,
            State::Cancelled { finished_at: NOW, reason: CancelReason::Dependency },
        ),
    ];
    for (name, event, expected) in cases {
        assert_eq!(follow(&start(name), event, NOW).state, expected, "{name}");
    }
}

#[test]
fn a_retry_resets_failures_and_losses_but_not_attempts() {
    for name in ["failed", "waiting", "dead", "cancelled", "completed"] {
        let before = Life { attempts: 9, failures: 4, losses: losses(3, BOOT), ..start(name) };
        let life = follow(&before, Event::Retry { blocked_by: 2 }, later(7));
        let expected = Life {
            state: State::Pending { blocked_by: 2 },
            due_at: later(7),
            failures: 0,
            losses: Losses::default(),
            ..before
        };
        assert_eq!(life, expected, "{name}");
    }
}

#[test]
fn a_retry_respects_a_run_at_in_the_future() {
    for (run_at, due_at) in [(None, later(7)), (Some(later(3)), later(7)), (Some(later(90)), later(90))] {
        let cancelled = Life { run_at, ..start("cancelled") };
        let life = follow(&cancelled, Event::Retry { blocked_by: 0 }, later(7));
        assert_eq!(life.due_at, due_at, "run_at {run_at:?}");
    }
}

#[test]
fn a_retry_restores_all_retries() {
    let mut life = Life::begin(None, 2, 0, NOW);
    for round in 1..=3 {
        for _ in 0..3 {
            life = attempt(&life, Outcome::SpawnError);
        }
        assert_eq!(life.state.name(), StateName::Dead, "round {round}");
        assert_eq!((life.attempts, life.failures), (round * 3, 3));
        life = follow(&life, Event::Retry { blocked_by: 0 }, later(100));
    }
}

#[test]
fn a_released_job_keeps_its_position_and_a_lost_one_queues_after_those_that_are_due() {
    for (outcome, due_at) in [(Outcome::Released, NOW), (Outcome::Lost, later(50))] {
        let running = follow(&Life::begin(None, 3, 0, NOW), claim_event(), later(5));
        let life = follow(&running, settled(1, outcome), later(50));
        assert_eq!(life.state, State::Pending { blocked_by: 0 }, "{outcome}");
        assert_eq!(life.due_at, due_at, "{outcome} has no backoff");
        assert_eq!(life.wait_index(later(50)), WaitIndex::Ready, "{outcome}");
        assert_eq!((life.attempts, life.failures), (1, 0), "{outcome}");
    }
}

#[test]
fn consecutive_losses_within_one_boot_make_a_job_dead() {
    let mut life = Life::begin(None, 3, 0, NOW);
    for loss in 1..=4 {
        life = attempt(&life, Outcome::Lost);
        assert_eq!(life.state.name(), StateName::Pending, "loss {loss}");
    }
    life = attempt(&life, Outcome::Lost);
    assert_eq!(life.state, dead(DeadReason::CrashLimit, NOW));
    assert_eq!((life.attempts, life.failures), (5, 0));
}

#[test]
fn fault_41_a_loss_shared_with_other_attempts_never_makes_a_job_dead() {
    let lost = Event::Settle {
        attempt: 1,
        outcome: Outcome::Lost,
        boot: BOOT.to_owned(),
        loss_context: LossContext::Others,
    };
    let life = follow(&start("poisoned"), lost.clone(), NOW);
    assert_eq!((life.state.clone(), life.losses.count), (State::Pending { blocked_by: 0 }, 5));
    assert!(life.runs_alone(policy().crash_limit), "the next loss is certainly its own");
    let again = follow(&life, claim_event(), NOW);
    let Life { state, .. } = follow(&again, settled(again.attempts, Outcome::Lost), NOW);
    assert_eq!(state, dead(DeadReason::CrashLimit, NOW));
}

#[test]
fn only_a_job_whose_next_loss_may_make_it_dead_runs_alone() {
    for (count, crash_limit, runs_alone) in
        [(0, 5, false), (3, 5, false), (4, 5, true), (9, 5, true), (0, 1, false), (1, 1, true), (1, 2, true)]
    {
        let life = Life { losses: losses(count, BOOT), ..Life::begin(None, 3, 0, NOW) };
        assert_eq!(life.runs_alone(crash_limit), runs_alone, "{count} losses of {crash_limit}");
    }
}

#[test]
fn losses_in_different_boots_do_not_add_up() {
    let mut life = Life::begin(None, 3, 0, NOW);
    for boot in ["a", "b", "c"].into_iter().cycle().take(30) {
        life = attempt_in(boot, &life, Outcome::Lost);
        assert_eq!(life.losses, losses(1, boot));
        assert_eq!(life.state.name(), StateName::Pending);
    }
}

#[test]
fn every_outcome_of_the_command_resets_the_losses() {
    let nearly_dead = Life { max_retries: 9, ..start("poisoned") };
    let count_after = |outcome| follow(&nearly_dead, settled(1, outcome), NOW).losses.count;
    for outcome in OUTCOMES {
        let expected = match outcome {
            Outcome::Success
            | Outcome::Failure { .. }
            | Outcome::Signal { .. }
            | Outcome::Timeout
            | Outcome::SpawnError => 0,
            Outcome::Lost => 5,
            Outcome::Cancelled | Outcome::Released => 4,
        };
        assert_eq!(count_after(outcome), expected, "{outcome}");
    }
}

#[test]
fn a_blocked_job_becomes_due_when_the_last_dependency_ends() {
    for (run_at, due_at) in [(None, later(20)), (Some(later(60)), later(60))] {
        let blocked = Life::begin(run_at, 3, 2, NOW);
        let one_left = follow(&blocked, Event::DependencyMet, later(10));
        assert_eq!(one_left.state, State::Pending { blocked_by: 1 });
        assert_eq!(one_left.due_at, blocked.due_at, "still blocked");
        assert_eq!(one_left.wait_index(later(99)), WaitIndex::None);
        let free = follow(&one_left, Event::DependencyMet, later(20));
        assert_eq!(free.state, State::Pending { blocked_by: 0 });
        assert_eq!(free.due_at, due_at, "run_at {run_at:?}");
    }
}

#[test]
fn only_jobs_that_can_be_claimed_now_or_later_are_in_an_index() {
    for (name, expected) in [
        ("pending", WaitIndex::Ready),
        ("blocked", WaitIndex::None),
        ("scheduled", WaitIndex::Waiting),
        ("processing", WaitIndex::None),
        ("completed", WaitIndex::None),
        ("failed", WaitIndex::Ready),
        ("waiting", WaitIndex::Waiting),
        ("dead", WaitIndex::None),
        ("cancelled", WaitIndex::None),
    ] {
        assert_eq!(start(name).wait_index(NOW), expected, "{name}");
    }
}

#[test]
fn a_ready_job_stays_ready_when_the_clock_is_set_back() {
    let earlier = Timestamp::from_millis(NOW.as_millis() - 86_400_000);
    let plain = Life::begin(None, 3, 0, NOW);
    assert_eq!(plain.wait_index(earlier), WaitIndex::Ready);
    let timed = Life::begin(Some(NOW), 3, 0, NOW);
    assert_eq!(timed.wait_index(earlier), WaitIndex::Waiting, "the user requested that time");
}

#[test]
fn a_pause_lasts_until_it_is_resumed_or_the_job_is_cancelled() {
    let running = start("processing");
    let paused = follow(&running, Event::Pause, later(1));
    assert_eq!(paused.state.paused_at(), Some(later(1)));
    assert_eq!(follow(&paused, Event::Pause, later(2)), paused, "it is paused since the first request");
    assert_eq!(
        follow(&paused, Event::Extend { attempt: 1, until: later(60) }, later(2)).state.paused_at(),
        Some(later(1)),
        "a heartbeat keeps the pause"
    );
    assert_eq!(follow(&paused, Event::Resume, later(2)), running);
    assert_eq!(follow(&running, Event::Resume, later(2)), running);
    let cancelled = follow(&paused, Event::Cancel { signal: None }, later(2));
    assert_eq!(cancelled.state.paused_at(), None, "the command continues, to handle the signal");
    let again = follow(&follow(&paused, settled(1, Outcome::Lost), later(2)), claim_event(), later(3));
    assert_eq!(again.state.paused_at(), None, "a pause ends with its attempt");
}
