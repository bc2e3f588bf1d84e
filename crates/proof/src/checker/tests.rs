//! Each falsification of good evidence violates the right invariant, and good evidence violates none.

mod evidence;
mod hosts;
mod order;

use std::time::Duration;

use evidence::{at, attempt, call, cancel, completed, end, evidence, notification, plan, start, tick};

use super::{Invariant, check, timeline};
use crate::calls::Answer;
use crate::evidence::Evidence;
use crate::ledger::CommandEnd;
use crate::plan::Request;
use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use domain::values::signal::Signal;

/// The invariants that this change of good evidence violates.
#[track_caller]
fn breaks(change: impl FnOnce(&mut Evidence)) -> Vec<Invariant> {
    let mut evidence = evidence();
    assert_eq!(check(&evidence).violations, [], "the unchanged evidence is good");
    change(&mut evidence);
    let mut broken: Vec<Invariant> = check(&evidence).violations.iter().map(|one| one.invariant).collect();
    broken.sort_unstable();
    broken.dedup();
    broken
}

#[test]
fn every_invariant_is_checked() {
    let verdict = check(&evidence());
    for invariant in Invariant::ALL {
        assert!(verdict.checks.get(&invariant).is_some_and(|count| *count > 0), "{invariant}");
    }
}

#[test]
fn a_lost_acknowledged_job_is_detected() {
    let lost = breaks(|evidence| {
        evidence.jobs.retain(|job| job.id() != "b");
        evidence.lines.retain(|line| line.job != "b");
        evidence.notifications.retain(|one| one.about != "b");
        evidence.counted.insert(StateName::Completed, 1);
    });
    assert_eq!(lost, [Invariant::NoneLost]);
}

#[test]
fn an_id_printed_by_a_killed_call_is_an_acknowledgement() {
    let lost = breaks(|evidence| {
        let mut killed = call(Request::Enqueue(vec![plan("x")]), Answer::Unknown);
        evidence.calls.push(killed.clone());
        assert_eq!(check(evidence).violations, [], "without a printed id the outcome is unknown");
        killed.printed.push("x".to_owned());
        evidence.calls.push(killed);
    });
    assert_eq!(lost, [Invariant::NoneLost]);
}

#[test]
fn a_job_with_a_key_is_acknowledged_only_by_its_own_id() {
    let mut with_key = plan("x");
    with_key.unique_key = Some("k".to_owned());
    let mut answered = call(Request::Enqueue(vec![with_key]), Answer::Ok);
    answered.printed = vec!["a".to_owned()];
    assert_eq!(
        breaks(|evidence| evidence.calls.push(answered.clone())),
        [],
        "the key belongs to another job"
    );
    answered.printed = vec!["x".to_owned()];
    assert_eq!(breaks(|evidence| evidence.calls.push(answered)), [Invariant::NoneLost]);
}

#[test]
fn a_refused_job_that_exists_is_detected() {
    let unwanted = breaks(|evidence| {
        evidence.calls.retain(|call| !call.concerns("b"));
        evidence.calls.push(call(Request::Enqueue(vec![plan("b")]), Answer::Failed(5)));
    });
    assert_eq!(unwanted, [Invariant::NoneInvented]);
}

#[test]
fn a_job_that_never_ends_is_detected() {
    let endless = breaks(|evidence| {
        evidence.jobs[1].record.job.life.state = domain::job::life::State::Failed;
        evidence.counted = [(StateName::Completed, 1), (StateName::Failed, 1)].into();
    });
    assert_eq!(endless, [Invariant::Terminal]);
}

#[test]
fn a_final_state_that_contradicts_the_history_is_detected() {
    use domain::job::life::{CancelReason, DeadReason, State};
    let now = domain::values::timestamp::Timestamp::from_millis(0);
    let ends = |state: State, outcome: Outcome| {
        breaks(move |evidence| {
            evidence.counted = [(StateName::Completed, 1)].into();
            *evidence.counted.entry(state.name()).or_default() += 1;
            if !matches!(state, State::Completed { .. }) {
                evidence.notifications[1] = notification(state.name().name(), "b");
            }
            evidence.jobs[1].record.job.life.state = state;
            evidence.jobs[1].record.history[0] = attempt(1, outcome);
        })
    };
    let dead = |reason| State::Dead { finished_at: now, reason };
    let cancelled = |reason| State::Cancelled { finished_at: now, reason };
    for (state, outcome) in [
        (State::Completed { finished_at: now }, Outcome::Lost),
        (dead(DeadReason::RetriesExhausted), Outcome::Lost),
        (dead(DeadReason::CrashLimit), Outcome::Lost),
        (cancelled(CancelReason::Dependency), Outcome::Lost),
    ] {
        assert_eq!(ends(state.clone(), outcome), [Invariant::Terminal], "{state:?}");
    }
    let unexplained = breaks(|evidence| {
        evidence.counted = [(StateName::Completed, 1), (StateName::Cancelled, 1)].into();
        evidence.jobs[0].record.job.life.state = cancelled(CancelReason::User);
    });
    assert_eq!(unexplained, [Invariant::Terminal]);
}

#[test]
fn a_false_timeout_is_detected() {
    let timed = |asked: Option<Duration>, outcome: Outcome, ran: Duration| {
        breaks(move |evidence| {
            let mut wanted = plan("b");
            wanted.timeout = asked;
            evidence.calls[1] = call(Request::Enqueue(vec![wanted]), Answer::Ok);
            evidence.jobs[1].record.history[0] = attempt(1, outcome);
            let ending = evidence.jobs[1].record.history[0].ending.as_mut().expect("it has ended");
            ending.duration = ran;
            let failed = outcome != Outcome::Success;
            if failed {
                evidence.jobs[1].record.job.life.state = domain::job::life::State::Failed;
                evidence.counted = [(StateName::Completed, 1), (StateName::Failed, 1)].into();
                evidence.notifications.retain(|one| one.about != "b");
            }
        })
    };
    let hour = Duration::from_secs(3600);
    let unreal = [Invariant::Terminal, Invariant::RealOutcome];
    assert_eq!(timed(None, Outcome::Timeout, hour), unreal, "no timeout was requested");
    assert_eq!(timed(Some(hour), Outcome::Timeout, at(20)), unreal, "the timeout had not passed");
    assert_eq!(
        timed(Some(at(20)), Outcome::Success, hour),
        [Invariant::RealOutcome],
        "the timeout had passed"
    );
    assert_eq!(timed(Some(at(20)), Outcome::Success, at(30)), [], "it ended at the timeout");
}

#[test]
fn a_success_without_an_end_and_a_second_success_are_detected() {
    let unreal = breaks(|evidence| evidence.lines.retain(|line| line.job != "b" || line.at < at(225)));
    assert_eq!(unreal, [Invariant::OneSuccess, Invariant::RealOutcome]);
    let second = breaks(|evidence| {
        evidence.jobs[1].record.history.push(attempt(2, Outcome::Success));
        evidence.jobs[1].record.job.life.attempts = 2;
        evidence.jobs[1].nonces.insert(2, "b-2".to_owned());
        evidence.lines.extend([start("b", 2, 900), end("b", 2, 910, CommandEnd::Exit(0))]);
    });
    assert_eq!(second, [Invariant::OneSuccess]);
}

#[test]
fn a_second_success_after_a_retry_is_allowed() {
    let fine = breaks(|evidence| {
        evidence.jobs[1].record.history.push(attempt(2, Outcome::Success));
        evidence.jobs[1].record.job.life.attempts = 2;
        evidence.jobs[1].nonces.insert(2, "b-2".to_owned());
        evidence.lines.extend([start("b", 2, 900), end("b", 2, 910, CommandEnd::Exit(0))]);
        evidence.calls.push(call(Request::Retry("b".to_owned()), Answer::Ok));
    });
    assert_eq!(fine, []);
}

#[test]
fn an_attempt_that_starts_twice_is_detected() {
    let twice = breaks(|evidence| evidence.lines.insert(4, start("b", 1, 211)));
    assert_eq!(twice, [Invariant::StartedOnce]);
}

#[test]
fn a_daemon_that_outlives_its_attempt_is_detected() {
    let overlap = breaks(|evidence| evidence.lines.push(tick("a", 1, 800, "daemon")));
    assert_eq!(overlap, [Invariant::NoOverlap]);
}

#[test]
fn an_unrecorded_attempt_and_too_many_attempts_are_detected() {
    let unknown = breaks(|evidence| evidence.lines.push(start("b", 2, 300)));
    assert_eq!(unknown, [Invariant::NoGaps]);
    let gap = breaks(|evidence| evidence.jobs[0].record.job.life.attempts = 3);
    assert_eq!(gap, [Invariant::NoGaps]);
    let too_many = breaks(|evidence| evidence.jobs[0].record.job.life.max_retries = 0);
    assert_eq!(too_many, [], "one failure is always allowed");
    let too_many = breaks(|evidence| {
        let mut wanted = plan("a");
        wanted.max_retries = 0;
        evidence.calls[0] = call(Request::Enqueue(vec![wanted]), Answer::Ok);
        evidence.jobs[0].record.history[1] = attempt(2, Outcome::Failure { exit_code: 3 });
        evidence.lines.retain(|line| line.job != "a" || line.at < at(610));
        evidence.lines.push(end("a", 2, 620, CommandEnd::Exit(3)));
    });
    assert_eq!(too_many, [Invariant::Terminal, Invariant::NoGaps]);
}

#[test]
fn a_false_outcome_is_detected() {
    for wrong in
        [Outcome::Failure { exit_code: 4 }, Outcome::Signal { signal: Signal::KILL }, Outcome::SpawnError]
    {
        let unreal = breaks(|evidence| evidence.jobs[0].record.history[0] = attempt(1, wrong));
        assert_eq!(unreal, [Invariant::RealOutcome], "{wrong}");
    }
}

#[test]
fn an_early_start_is_detected() {
    let soon = |job: &'static str, number: u32, millis: u64| {
        breaks(move |evidence| {
            for line in evidence.lines.iter_mut().filter(|line| line.job == job && line.attempt == number) {
                line.at = at(millis);
            }
        })
    };
    assert_eq!(soon("a", 2, 150), [Invariant::NotTooEarly], "its backoff had not ended");
    let after_release = breaks(|evidence| {
        evidence.jobs[0].record.history.insert(1, attempt(2, Outcome::Released));
        evidence.jobs[0].record.history[2] = attempt(3, Outcome::Success);
        evidence.jobs[0].record.job.life.attempts = 3;
        evidence.jobs[0].nonces = [(1, "a-1".to_owned()), (3, "a-3".to_owned())].into();
        evidence.lines.truncate(5);
        evidence.lines.extend([start("a", 3, 240), end("a", 3, 250, CommandEnd::Exit(0))]);
    });
    assert_eq!(after_release, [Invariant::NotTooEarly], "a released claim does not end the backoff");
    let delayed = breaks(|evidence| {
        let mut wanted = plan("b");
        wanted.delay = Some(Duration::from_secs(1));
        evidence.calls.retain(|call| !call.concerns("b"));
        evidence.calls.push(call(Request::Enqueue(vec![wanted]), Answer::Ok));
    });
    assert_eq!(delayed, [Invariant::NotTooEarly], "its delay had not ended");
    let dependent = breaks(|evidence| {
        let mut wanted = plan("b");
        wanted.depends_on = vec!["a".to_owned()];
        evidence.calls.retain(|call| !call.concerns("b"));
        evidence.calls.push(call(Request::Enqueue(vec![wanted]), Answer::Ok));
    });
    assert_eq!(dependent, [Invariant::NotTooEarly], "its dependency had not succeeded");
    let patient = breaks(|evidence| {
        let mut wanted = plan("b");
        (wanted.depends_on, wanted.runs_anyway) = (vec!["a".to_owned()], true);
        evidence.calls.retain(|call| !call.concerns("b"));
        evidence.calls.push(call(Request::Enqueue(vec![wanted]), Answer::Ok));
    });
    assert_eq!(patient, [Invariant::NotTooEarly], "its dependency had not ended");
}

#[test]
fn a_start_before_the_substitute_of_a_dependency_is_detected() {
    let depend_on_holder = |evidence: &mut Evidence| {
        let (mut keyed, mut wanted) = (plan("never-stored"), plan("a"));
        keyed.unique_key = Some("key".to_owned());
        wanted.depends_on = vec![keyed.id.clone()];
        evidence.calls.retain(|call| !call.concerns("a"));
        evidence.calls.push(call(Request::Enqueue(vec![keyed, wanted]), Answer::Ok));
        evidence.jobs[0].record.job.depends_on = vec!["b".parse().expect("an id")];
        evidence.jobs[1].record.job.unique_key = Some("key".to_owned());
    };
    assert_eq!(breaks(depend_on_holder), [Invariant::NotTooEarly], "the holder of the key had not succeeded");
    let after_holder = breaks(|evidence| {
        depend_on_holder(evidence);
        evidence.lines.retain(|line| line.job != "b");
        evidence.lines.splice(..0, [start("b", 1, 50), end("b", 1, 60, CommandEnd::Exit(0))]);
    });
    assert_eq!(after_holder, []);
    let cleared = breaks(|evidence| {
        depend_on_holder(evidence);
        evidence.jobs[0].record.job.depends_on.clear();
    });
    assert_eq!(cleared, [Invariant::NotTooEarly], "its dependency was dropped");
}

#[test]
fn a_start_after_an_acknowledged_cancel_is_detected() {
    let cancel = |answer| cancel("a", answer, (200, 300));
    assert_eq!(breaks(|evidence| evidence.calls.push(cancel(Answer::Ok))), [Invariant::CancelHolds]);
    assert_eq!(breaks(|evidence| evidence.calls.push(cancel(Answer::Failed(4)))), []);
    let marked = breaks(|evidence| {
        let mut marked = cancel(Answer::Ok);
        marked.printed = vec![r#"[{"id":"a","state":"processing"}]"#.to_owned()];
        evidence.calls.push(marked);
    });
    assert_eq!(marked, [], "it was only marked");
    let revived = breaks(|evidence| {
        let retry = |span: (u64, u64)| {
            let mut retry = call(Request::Retry("a".to_owned()), Answer::Ok);
            (retry.began, retry.ended) = (at(span.0), at(span.1));
            retry
        };
        // The retry that began last was answered first.
        evidence.calls.extend([cancel(Answer::Ok), retry((700, 710)), retry((310, 720))]);
    });
    assert_eq!(revived, []);
}

/// Makes `b` run concurrently with `a`.
fn crowd(evidence: &mut Evidence) {
    evidence.lines.sort_by_key(|line| line.at);
    let (first, rest): (Vec<_>, Vec<_>) = evidence.lines.drain(..).partition(|line| line.job == "b");
    let (starts, others): (Vec<_>, Vec<_>) = first.into_iter().partition(|line| line.at < at(220));
    evidence.lines = starts.into_iter().chain(rest).chain(others).collect();
}

#[test]
fn more_concurrent_attempts_than_slots_are_detected() {
    assert_eq!(breaks(crowd), [Invariant::WithinLimits]);
}

#[test]
fn more_concurrent_attempts_than_a_queue_or_a_key_allows_are_detected() {
    let crowded_with = |change: fn(&mut domain::job::Job)| {
        breaks(|evidence| {
            crowd(evidence);
            evidence.concurrency = 2;
            assert_eq!(check(evidence).violations, [], "two slots allow both");
            evidence.jobs.iter_mut().for_each(|job| change(&mut job.record.job));
        })
    };
    let in_one_queue = crowded_with(|job| job.queue = "narrow".parse().expect("a queue"));
    assert_eq!(in_one_queue, [Invariant::WithinLimits]);
    let under_one_key = crowded_with(|job| job.unique_key = Some("k".to_owned()));
    assert_eq!(under_one_key, [Invariant::WithinLimits]);
}

#[test]
fn a_result_of_another_process_is_detected() {
    let foreign = breaks(|evidence| {
        evidence.jobs[0].nonces.insert(2, "a-1".to_owned());
    });
    assert_eq!(foreign, [Invariant::Fenced]);
    let open = breaks(|evidence| evidence.jobs[0].record.history[0].ending = None);
    assert_eq!(open, [Invariant::Fenced]);
    let unexplained = breaks(|evidence| evidence.jobs[1].nonces.clear());
    assert_eq!(unexplained, [Invariant::Fenced]);
    let spoiled = breaks(|evidence| {
        evidence.jobs[1].nonces.clear();
        evidence.may_lose_output = true;
    });
    assert_eq!(spoiled, []);
    let other_worker = breaks(|evidence| {
        evidence.jobs[1].record.history[0].worker = "x".parse().expect("a worker id");
    });
    assert_eq!(other_worker, [Invariant::Fenced]);
}

#[test]
fn an_attempt_may_time_out_before_it_writes_anything() {
    let timed_out = |printed: Option<&str>| {
        breaks(|evidence| {
            let mut wanted = plan("a");
            wanted.timeout = Some(at(20));
            evidence.calls[0] = call(Request::Enqueue(vec![wanted]), Answer::Ok);
            let mut first = attempt(1, Outcome::Timeout);
            first.ending.as_mut().expect("it has ended").duration = at(20);
            evidence.jobs[0].record.history[0] = first;
            evidence.lines.retain(|line| line.job != "a" || line.attempt != 1);
            evidence.jobs[0].nonces.remove(&1);
            evidence.jobs[0].nonces.extend(printed.map(|nonce| (1, nonce.to_owned())));
        })
    };
    assert_eq!(timed_out(None), []);
    assert_eq!(timed_out(Some("a-1")), [Invariant::Fenced], "output without a start");
}

#[test]
fn surviving_processes_and_wrong_counters_are_detected() {
    let left = breaks(|evidence| evidence.left.push("process 7: sleep 600".to_owned()));
    assert_eq!(left, [Invariant::NothingLeft]);
    let miscounted = breaks(|evidence| _ = evidence.counted.insert(StateName::Completed, 3));
    assert_eq!(miscounted, [Invariant::NothingLeft]);
}

#[test]
fn a_late_notice_and_an_unreported_problem_are_detected() {
    let late = breaks(|evidence| evidence.longest_abandoned = Duration::from_secs(2));
    assert_eq!(late, [Invariant::NoticedSoon]);
    assert_eq!(breaks(|evidence| evidence.problems.clear()), [Invariant::ProblemsReported]);
    let panicked = breaks(|evidence| {
        let mut call = call(Request::Retry("a".to_owned()), Answer::Unknown);
        call.stderr = "thread 'main' panicked at crates/cli/src/verbs/manage/retry.rs:1:1".to_owned();
        evidence.calls.push(call);
    });
    assert_eq!(panicked, [Invariant::ProblemsReported]);
}

#[test]
fn a_timeline_contains_all_sources() {
    let mut evidence = evidence();
    evidence.jobs.push(completed("c"));
    let output = timeline(&evidence, "a");
    for part in ["enqueue of 1 jobs", "START", "exit:3", "attempt 2 on w", "Completed"] {
        assert!(output.contains(part), "{part} is missing: {output}");
    }
    assert_eq!(timeline(&evidence, "unknown"), "no evidence about unknown\n");
}
