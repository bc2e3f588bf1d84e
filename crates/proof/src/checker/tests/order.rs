//! What schedules, rates, batches and hooks must keep to.

use std::time::Duration;

use super::breaks;
use super::evidence::{attempt, call, completed, end, plan, start, told};
use crate::calls::Answer;
use crate::checker::{Invariant, check};
use crate::evidence::{Evidence, JobEvidence, ScheduleEvidence};
use crate::ledger::How;
use crate::plan::Wish;
use domain::job::Attempt;
use domain::job::life::{DeadReason, State, StateName};
use domain::job::outcome::Outcome;
use domain::job::request::JobRequest;
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

/// Every second from the beginning of time; it was removed after its second moment.
fn schedule() -> ScheduleEvidence {
    let job: JobRequest = serde_json::from_str(r#"{"command":"true"}"#).expect("a job");
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
        pause: None,
    };
    ScheduleEvidence { schedule, job: plan("tick") }
}

/// The job for a moment.
fn occurrence(at: Timestamp) -> JobEvidence {
    let mut job = completed(schedule().schedule.job_id(at, 1).as_str());
    job.record.scheduled_for = Some(at);
    job.record.history = vec![claimed(1, Outcome::Success, at)];
    job
}

fn store(evidence: &mut Evidence, job: JobEvidence) {
    *evidence.counted.entry(job.record.job.life.state.name()).or_default() += 1;
    evidence.told.push(told("success", job.id()));
    evidence.jobs.push(job);
}

fn run(evidence: &mut Evidence, job: JobEvidence, from: u64) {
    evidence.lines.extend([start(job.id(), 1, from), end(job.id(), 1, from + 10, How::Exit(0))]);
    store(evidence, job);
}

/// What this change breaks where a schedule had a run for each of its moments.
#[track_caller]
fn breaks_with_schedule(change: impl FnOnce(&mut Evidence)) -> Vec<Invariant> {
    breaks(|evidence| {
        evidence.schedules.push(schedule());
        run(evidence, occurrence(second(1)), 1_000);
        run(evidence, occurrence(second(2)), 2_000);
        assert_eq!(check(evidence).violations, [], "nothing is wrong before");
        change(evidence);
    })
}

#[test]
fn a_run_that_no_moment_asked_for() {
    let between =
        breaks_with_schedule(|evidence| run(evidence, occurrence(Timestamp::from_millis(3_500)), 3_500));
    assert_eq!(between, [Invariant::Wanted]);
    let before = breaks_with_schedule(|evidence| run(evidence, occurrence(second(0)), 2_500));
    assert_eq!(before, [Invariant::Wanted], "it fires for the first time after a second");
    let twice = breaks_with_schedule(|evidence| {
        let mut second_one = occurrence(second(2));
        second_one.record.job.id = schedule().schedule.job_id(second(2), 2);
        let id = second_one.id().to_owned();
        second_one.nonces = [(1, format!("{id}-1"))].into();
        run(evidence, second_one, 2_500);
    });
    assert_eq!(twice, [Invariant::Wanted]);
    let for_nothing = breaks_with_schedule(|evidence| evidence.jobs[2].record.scheduled_for = None);
    assert_eq!(for_nothing, [Invariant::Wanted]);
    let later = breaks_with_schedule(|evidence| run(evidence, occurrence(second(3)), 3_000));
    assert_eq!(later, [], "between the last look and the removal");
}

/// Takes the first run away, as if it had never been.
fn forget_first(evidence: &mut Evidence) {
    let id = evidence.jobs.remove(2).id().to_owned();
    evidence.lines.retain(|line| line.job != id);
    evidence.told.retain(|one| one.about != id);
    evidence.counted.insert(StateName::Completed, 3);
}

#[test]
fn a_moment_without_a_run_and_a_schedule_that_never_fired() {
    assert_eq!(breaks_with_schedule(forget_first), [Invariant::Kept]);
    let skipped = breaks_with_schedule(|evidence| {
        evidence.schedules[0].schedule.policy.on_overlap = OnOverlap::Skip;
        forget_first(evidence);
    });
    assert_eq!(skipped, [], "of two that come late and together the latter runs");
    let none_ran = breaks(|evidence| {
        let mut fired = schedule();
        fired.schedule.policy.on_overlap = OnOverlap::Skip;
        evidence.schedules.push(fired);
    });
    assert_eq!(none_ran, [Invariant::Kept]);
    let left_out = breaks_with_schedule(|evidence| {
        evidence.schedules[0].schedule.policy.on_overlap = OnOverlap::Skip;
        evidence.schedules[0].schedule.last_at = Some(second(9));
    });
    assert_eq!(left_out, [], "an earlier run may have been in the way of those");
    let silent = breaks(|evidence| {
        let mut silent = schedule();
        silent.schedule.last_at = None;
        evidence.schedules.push(silent);
    });
    assert_eq!(silent, [Invariant::Kept]);
}

#[test]
fn a_run_that_was_claimed_before_its_moment() {
    let early = |evidence: &mut Evidence| {
        evidence.jobs[3].record.history[0].started_at = Timestamp::from_millis(1_999);
    };
    assert_eq!(breaks_with_schedule(early), [Invariant::InTime]);
    let turned = breaks_with_schedule(|evidence| {
        evidence.is_clock_turned = true;
        early(evidence);
    });
    assert_eq!(turned, [], "nobody knows what time it was");
}

#[test]
fn two_runs_of_a_schedule_at_once() {
    let overlap = breaks_with_schedule(|evidence| {
        evidence.concurrency = 2;
        let last = evidence.lines.len() - 1;
        evidence.lines.swap(last - 2, last - 1);
    });
    assert_eq!(overlap, [Invariant::WithinLimits]);
}

// Rates

/// Lets a job of a queue with a rate of two in a second be claimed at these times.
fn claims(evidence: &mut Evidence, claims: &[(Outcome, i64)]) {
    let mut paced = completed("p");
    paced.record.job.queue = "paced".parse().expect("a queue");
    paced.record.history = (1..)
        .zip(claims)
        .map(|(number, (outcome, millis))| claimed(number, *outcome, Timestamp::from_millis(*millis)))
        .collect();
    paced.record.job.life.attempts = u32::try_from(claims.len()).expect("a few");
    evidence.rates.insert("paced".to_owned(), "2/s".parse().expect("a rate"));
    evidence.calls.push(call(Wish::Enqueue(vec![plan("p")]), Answer::Ok));
    let last = paced.record.job.life.attempts;
    paced.nonces = [(last, format!("p-{last}"))].into();
    evidence.lines.extend([start("p", last, 9_000), end("p", last, 9_010, How::Exit(0))]);
    store(evidence, paced);
}

#[test]
fn more_starts_than_a_rate_allows() {
    use Outcome::{Lost, Released, Success};
    let paced = |times: &[(Outcome, i64)]| breaks(|evidence| claims(evidence, times));
    assert_eq!(paced(&[(Lost, 0), (Lost, 0), (Lost, 0), (Success, 500)]), [], "three, and one for rounding");
    assert_eq!(paced(&[(Lost, 0), (Lost, 0), (Lost, 0), (Success, 499)]), [Invariant::WithinLimits]);
    assert_eq!(paced(&[(Lost, 0), (Released, 0), (Lost, 0), (Released, 0), (Success, 0)]), []);
    let quiet_before = [(Lost, 0), (Lost, 60_000), (Lost, 60_000), (Lost, 60_000), (Success, 60_000)];
    assert_eq!(paced(&quiet_before), [Invariant::WithinLimits], "what was not used is lost");
    let turned = breaks(|evidence| {
        evidence.is_clock_turned = true;
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
    evidence.calls[1] = call(Wish::Enqueue(vec![wanted]), Answer::Ok);
    evidence.told.push(told("batch_finished", "red"));
    assert_eq!(check(evidence).violations, [], "nothing is wrong before");
}

#[test]
fn a_batch_that_counts_wrong_or_does_not_know_that_it_is_finished() {
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
    assert_eq!(elsewhere, [Invariant::Wanted, Invariant::NothingLeft]);
    let untold = breaks_batch(|evidence| evidence.told.retain(|one| one.about != "red"));
    assert_eq!(untold, [Invariant::Heard]);
}

// Hooks

#[test]
fn something_that_a_hook_was_not_told() {
    let untold = breaks(|evidence| evidence.told.retain(|one| one.about != "b"));
    assert_eq!(untold, [Invariant::Heard]);
    let still_to_be_told = breaks(|evidence| evidence.to_be_told = 1);
    assert_eq!(still_to_be_told, [Invariant::Heard]);
    let in_a_day = breaks(|evidence| {
        evidence.is_clock_turned = true;
        evidence.told.clear();
        evidence.to_be_told = 2;
    });
    assert_eq!(in_a_day, []);
    let told_the_wrong_thing = breaks(|evidence| {
        let finished_at = second(0);
        evidence.jobs[1].record.job.life.state =
            State::Dead { finished_at, reason: DeadReason::RetriesExhausted };
        evidence.counted = [(StateName::Completed, 1), (StateName::Dead, 1)].into();
    });
    assert!(told_the_wrong_thing.contains(&Invariant::Heard), "{told_the_wrong_thing:?}");
}

#[test]
fn something_that_a_hook_was_told_and_is_not_so() {
    let twice = breaks(|evidence| evidence.told.push(told("success", "a")));
    assert_eq!(twice, [], "the same again is fine");
    let differently = breaks(|evidence| {
        let mut again = told("success", "a");
        again.text.push('!');
        evidence.told.push(again);
    });
    assert_eq!(differently, [Invariant::Heard]);
    let never = breaks(|evidence| evidence.told.push(told("success", "nobody")));
    assert_eq!(never, [Invariant::Heard]);
}
