//! Exceptions across hosts: they excuse exactly what the record of the nemesis explains.

use super::evidence::{at, attempt, call, evidence, plan, start, tick};
use crate::calls::Answer;
use crate::checker::{Invariant, Verdict, check};
use crate::evidence::{Evidence, FrozenHost, LostTail};
use crate::plan::Request;
use domain::job::life::StateName;
use domain::job::outcome::Outcome;

/// The first attempt of `a` was lost, and its command was alive after the second had started.
fn overlapping() -> Evidence {
    let mut evidence = evidence();
    evidence.jobs[0].record.history[0] = attempt(1, Outcome::Lost);
    evidence.lines.retain(|line| !(line.job == "a" && line.attempt == 1));
    evidence.lines.insert(0, start("a", 1, 100));
    evidence.lines.push(tick("a", 1, 610, "command"));
    evidence
}

fn frozen(host: &str, from: u64, to: u64) -> FrozenHost {
    FrozenHost { host: host.to_owned(), from: at(from), to: at(to) }
}

fn overlaps(verdict: &Verdict) -> (bool, u64) {
    (verdict.is_broken(Invariant::NoOverlap), verdict.excused_overlaps)
}

#[test]
fn an_overlap_is_excused_only_while_its_host_was_stopped() {
    let mut evidence = overlapping();
    assert_eq!(overlaps(&check(&evidence)), (true, 0), "no host was stopped");
    evidence.disturbances.frozen = vec![frozen("elsewhere", 150, 605)];
    assert_eq!(overlaps(&check(&evidence)), (true, 0), "another host was stopped");
    evidence.disturbances.frozen = vec![frozen("here", 650, 700)];
    assert_eq!(overlaps(&check(&evidence)), (true, 0), "it was stopped later");
    evidence.disturbances.frozen = vec![frozen("here", 150, 605)];
    assert_eq!(overlaps(&check(&evidence)), (false, 1), "{:?}", check(&evidence).violations);
}

#[test]
fn an_attempt_that_ended_by_itself_is_not_excused() {
    let mut evidence = overlapping();
    evidence.disturbances.frozen = vec![frozen("here", 150, 605)];
    evidence.jobs[0].record.history[0] = attempt(1, Outcome::Failure { exit_code: 3 });
    assert!(check(&evidence).is_broken(Invariant::NoOverlap));
}

#[test]
fn only_jobs_that_were_acknowledged_in_a_lost_tail_may_be_missing() {
    let mut evidence = evidence();
    // It is acknowledged from 10 to 20 ms.
    evidence.calls.push(call(Request::Enqueue(vec![plan("x")]), Answer::Ok));
    assert!(check(&evidence).is_broken(Invariant::NoneLost));
    evidence.disturbances.lost_tails = vec![LostTail { from: at(21), to: at(90) }];
    assert!(check(&evidence).is_broken(Invariant::NoneLost), "it was acknowledged before");
    evidence.disturbances.lost_tails = vec![LostTail { from: at(15), to: at(90) }];
    let verdict = check(&evidence);
    assert_eq!((verdict.is_broken(Invariant::NoneLost), verdict.lost_in_tails), (false, 1));
    // A job that is there must still finish.
    evidence.jobs[1].record.job.life.state = domain::job::life::State::Failed;
    evidence.counted = [(StateName::Completed, 1), (StateName::Failed, 1)].into();
    assert!(check(&evidence).is_broken(Invariant::Terminal));
}
