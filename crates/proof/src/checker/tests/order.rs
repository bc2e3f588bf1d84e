//! Falsified evidence of schedules, rates, batches and hooks.

use std::time::Duration;

use super::breaks;
use super::evidence::{attempt, call, completed, end, notification, plan, start};
use crate::calls::Answer;
use crate::checker::{Invariant, check};
use crate::evidence::{Evidence, JobEvidence, ScheduleEvidence};
use crate::ledger::CommandEnd;
use crate::plan::Request;
use domain::job::Attempt;
use domain::job::life::{DeadReason, State, StateName};
use domain::job::outcome::Outcome;
use domain::job::spec::JobSpec;
use domain::schedule::{OnMissed, OnOverlap, Policy, Schedule, When};
use domain::values::name::BatchName;
use domain::values::timestamp::Timestamp;
use store::Batch;

fn second(number: i64) -> Timestamp {
    Timestamp::from_millis(number * 1_000)
}

fn claimed(number: u32, outcome: Outcome, at: Timestamp) -> Attempt {
    Attempt { started_at: at, ..attempt(number, outcome) }
}

// Schedules

/// A schedule that fires every second from the epoch and was removed after its second run.
fn schedule() -> ScheduleEvidence {
    let job: JobSpec = serde_json::from_str(r#"{"command":"true"}"#).expect("a job");
    let policy = Policy { on_missed: OnMissed::Once, missed_limit: 1, on_overlap: OnOverlap::Queue };
    let schedule = Schedule {
        name: "tick".parse().expect("a name"),
        when: When::every(Duration::from_secs(1)).expect("a period"),
        job,
        policy,
        created_at: second(0),
        created_by: "me".to_owned(),
        last_at: Some(second(2)),
        next_at: Some(second(3)),
        missed_at: None,
        skipped_at: None,
        paused: None,
    };
    ScheduleEvidence { schedule, job: plan("tick") }
}

/// The job for one time of the schedule.
fn occurrence(at: Timestamp) -> JobEvidence {
    let mut job = completed(schedule().schedule.job_id(at, 1).as_str());
    job.record.scheduled_for = Some(at);
    job.record.history = vec![claimed(1, Outcome::Success, at)];
    job
}

fn store(evidence: &mut Evidence, job: JobEvidence) {
    *evidence.counted.entry(job.record.job.life.state.name()).or_default() += 1;
    evidence.notifications.push(notification("success", job.id()));
    evidence.jobs.push(job);
}

fn run(evidence: &mut Evidence, job: JobEvidence, from: u64) {
    evidence.lines.extend([start(job.id(), 1, from), end(job.id(), 1, from + 10, CommandEnd::Exit(0))]);
    store(evidence, job);
}

/// The invariants that this change violates, if the schedule had a run for each of its times.
#[track_caller]
fn breaks_with_schedule(change: impl FnOnce(&mut Evidence)) -> Vec<Invariant> {
    breaks(|evidence| {
        evidence.schedules.push(schedule());
        run(evidence, occurrence(second(1)), 1_000);
        run(evidence, occurrence(second(2)), 2_000);
        assert_eq!(check(evidence).violations, [], "the unchanged evidence is good");
        change(evidence);
    })
}

#[test]
fn a_run_at_a_wrong_time_is_detected() {
    let between =
        breaks_with_schedule(|evidence| run(evidence, occurrence(Timestamp::from_millis(3_500)), 3_500));
    assert_eq!(between, [Invariant::NoneInvented]);
    let before = breaks_with_schedule(|evidence| run(evidence, occurrence(second(0)), 2_500));
    assert_eq!(before, [Invariant::NoneInvented], "the first run is after one second");
    let twice = breaks_with_schedule(|evidence| {
        let mut second_one = occurrence(second(2));
        second_one.record.job.id = schedule().schedule.job_id(second(2), 2);
        let id = second_one.id().to_owned();
        second_one.nonces = [(1, format!("{id}-1"))].into();
        run(evidence, second_one, 2_500);
    });
    assert_eq!(twice, [Invariant::NoneInvented]);
    let for_nothing = breaks_with_schedule(|evidence| evidence.jobs[2].record.scheduled_for = None);
    assert_eq!(for_nothing, [Invariant::NoneInvented]);
    let later = breaks_with_schedule(|evidence| run(evidence, occurrence(second(3)), 3_000));
    assert_eq!(later, [], "it ran between the last poll and the removal");
}

/// Removes all traces of the first run.
fn remove_first_run(evidence: &mut Evidence) {
    let id = evidence.jobs.remove(2).id().to_owned();
    evidence.lines.retain(|line| line.job != id);
    evidence.notifications.retain(|one| one.about != id);
    evidence.counted.insert(StateName::Completed, 3);
}

#[test]
fn a_missing_run_and_a_schedule_that_never_fired_are_detected() {
    assert_eq!(breaks_with_schedule(remove_first_run), [Invariant::NoneLost]);
    let skipped = breaks_with_schedule(|evidence| {
        evidence.schedules[0].schedule.policy.on_overlap = OnOverlap::Skip;
        remove_first_run(evidence);
    });
    assert_eq!(skipped, [], "of two late runs only the second is enqueued");
    let none_ran = breaks(|evidence| {
        let mut fired = schedule();
        fired.schedule.policy.on_overlap = OnOverlap::Skip;
        evidence.schedules.push(fired);
    });
    assert_eq!(none_ran, [Invariant::NoneLost]);
    let left_out = breaks_with_schedule(|evidence| {
        evidence.schedules[0].schedule.policy.on_overlap = OnOverlap::Skip;
        evidence.schedules[0].schedule.last_at = Some(second(9));
    });
    assert_eq!(left_out, [], "an earlier run may have caused the skips");
    let silent = breaks(|evidence| {
        let mut silent = schedule();
        silent.schedule.last_at = None;
        evidence.schedules.push(silent);
    });
    assert_eq!(silent, [Invariant::NoneLost]);
}

#[test]
fn a_run_that_was_claimed_too_early_is_detected() {
    let early = |evidence: &mut Evidence| {
        evidence.jobs[3].record.history[0].started_at = Timestamp::from_millis(1_999);
    };
    assert_eq!(breaks_with_schedule(early), [Invariant::NotTooEarly]);
    let turned = breaks_with_schedule(|evidence| {
        evidence.is_clock_set = true;
        early(evidence);
    });
    assert_eq!(turned, [], "the clock was changed");
}

#[test]
fn two_concurrent_runs_of_a_schedule_are_detected() {
    let overlap = breaks_with_schedule(|evidence| {
        evidence.concurrency = 2;
        let last = evidence.lines.len() - 1;
        evidence.lines.swap(last - 2, last - 1);
    });
    assert_eq!(overlap, [Invariant::WithinLimits]);
}

// Rates

/// Adds a job of a queue with a rate of two per second, claimed at these times.
fn claims(evidence: &mut Evidence, claims: &[(Outcome, i64)]) {
    let mut paced = completed("p");
    paced.record.job.queue = "paced".parse().expect("a queue");
    paced.record.history = (1..)
        .zip(claims)
        .map(|(number, (outcome, millis))| claimed(number, *outcome, Timestamp::from_millis(*millis)))
        .collect();
    paced.record.job.life.attempts = u32::try_from(claims.len()).expect("a few");
    evidence.rates.insert("paced".to_owned(), "2/s".parse().expect("a rate"));
    evidence.calls.push(call(Request::Enqueue(vec![plan("p")]), Answer::Ok));
    let last = paced.record.job.life.attempts;
    paced.nonces = [(last, format!("p-{last}"))].into();
    evidence.lines.extend([start("p", last, 9_000), end("p", last, 9_010, CommandEnd::Exit(0))]);
    store(evidence, paced);
}

#[test]
fn more_starts_than_a_rate_allows_are_detected() {
    use Outcome::{Lost, Released, Success};
    let paced = |times: &[(Outcome, i64)]| breaks(|evidence| claims(evidence, times));
    assert_eq!(
        paced(&[(Lost, 0), (Lost, 0), (Lost, 0), (Success, 500)]),
        [],
        "three starts, and one for rounding"
    );
    assert_eq!(paced(&[(Lost, 0), (Lost, 0), (Lost, 0), (Success, 499)]), [Invariant::WithinLimits]);
    assert_eq!(paced(&[(Lost, 0), (Released, 0), (Lost, 0), (Released, 0), (Success, 0)]), []);
    let quiet_before = [(Lost, 0), (Lost, 60_000), (Lost, 60_000), (Lost, 60_000), (Success, 60_000)];
    assert_eq!(paced(&quiet_before), [Invariant::WithinLimits], "unused tokens expire");
    let turned = breaks(|evidence| {
        evidence.is_clock_set = true;
        claims(evidence, &quiet_before);
    });
    assert_eq!(turned, []);
}

// Batches

fn in_batch(evidence: &mut Evidence) {
    let name: BatchName = "red".parse().expect("a name");
    evidence.batches.push(Batch {
        name: name.clone(),
        created_at: second(0),
        finished_at: Some(second(0)),
        counts: [(StateName::Completed, 1)].into(),
    });
    evidence.jobs[1].record.job.batch = Some(name);
    let mut wanted = plan("b");
    wanted.batch = Some("red");
    evidence.calls[1] = call(Request::Enqueue(vec![wanted]), Answer::Ok);
    evidence.notifications.push(notification("batch_finished", "red"));
    assert_eq!(check(evidence).violations, [], "the unchanged evidence is good");
}

#[test]
fn wrong_counters_or_a_wrong_finish_time_of_a_batch_are_detected() {
    let breaks_batch = |change: fn(&mut Evidence)| {
        breaks(|evidence| {
            in_batch(evidence);
            change(evidence);
        })
    };
    let miscounted = breaks_batch(|evidence| evidence.batches[0].counts = [(StateName::Completed, 2)].into());
    assert_eq!(miscounted, [Invariant::NothingLeft]);
    let open = breaks_batch(|evidence| evidence.batches[0].finished_at = None);
    assert_eq!(open, [Invariant::NothingLeft]);
    let gone = breaks_batch(|evidence| evidence.batches.clear());
    assert_eq!(gone, [Invariant::NothingLeft]);
    let elsewhere = breaks_batch(|evidence| evidence.jobs[1].record.job.batch = None);
    assert_eq!(elsewhere, [Invariant::NoneInvented, Invariant::NothingLeft]);
    let not_notified = breaks_batch(|evidence| evidence.notifications.retain(|one| one.about != "red"));
    assert_eq!(not_notified, [Invariant::HooksNotified]);
}

// Hooks

#[test]
fn a_missing_delivery_is_detected() {
    let not_notified = breaks(|evidence| evidence.notifications.retain(|one| one.about != "b"));
    assert_eq!(not_notified, [Invariant::HooksNotified]);
    let still_pending = breaks(|evidence| evidence.pending_notifications = 1);
    assert_eq!(still_pending, [Invariant::HooksNotified]);
    let in_a_day = breaks(|evidence| {
        evidence.is_clock_set = true;
        evidence.notifications.clear();
        evidence.pending_notifications = 2;
    });
    assert_eq!(in_a_day, []);
    let wrong_event = breaks(|evidence| {
        let finished_at = second(0);
        evidence.jobs[1].record.job.life.state =
            State::Dead { finished_at, reason: DeadReason::RetriesExhausted };
        evidence.counted = [(StateName::Completed, 1), (StateName::Dead, 1)].into();
    });
    assert!(wrong_event.contains(&Invariant::HooksNotified), "{wrong_event:?}");
}

#[test]
fn a_false_or_changed_delivery_is_detected() {
    let twice = breaks(|evidence| evidence.notifications.push(notification("success", "a")));
    assert_eq!(twice, [], "an identical repetition is allowed");
    let differently = breaks(|evidence| {
        let mut again = notification("success", "a");
        again.text.push('!');
        evidence.notifications.push(again);
    });
    assert_eq!(differently, [Invariant::HooksNotified]);
    let never = breaks(|evidence| evidence.notifications.push(notification("success", "unknown")));
    assert_eq!(never, [Invariant::HooksNotified]);
}
