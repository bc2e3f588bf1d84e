//! I5, I6, I7 and I12: attempts come one after the other, each once, and each speaks for itself.

use super::case::{Case, is_own_doing, is_own_failure};
use super::invariant::Invariant;
use super::verdict::Verdict;
use crate::ledger::{COMMAND, Line, What};
use domain::job::Attempt;
use domain::job::outcome::Outcome;

pub(super) fn check(case: &Case<'_>, verdict: &mut Verdict) {
    check_starts(case, verdict);
    check_overlaps(case, verdict);
    check_numbers(case, verdict);
    for attempt in case.history() {
        check_author(case, attempt, verdict);
    }
    check_order(case, verdict);
}

fn check_starts(case: &Case<'_>, verdict: &mut Verdict) {
    for start in case.starts() {
        let same = case.starts().filter(|line| line.attempt == start.attempt).count();
        verdict.expect(Invariant::StartedOnce, Some(case.id), same == 1, || {
            format!("attempt {} started {same} times", start.attempt)
        });
    }
}

/// Nothing of an attempt may show that it lives when a later one has started.
fn check_overlaps(case: &Case<'_>, verdict: &mut Verdict) {
    let mut newest: Option<&Line> = None;
    // Once for each process is enough, however often it showed that it lived.
    let mut told: Vec<u32> = Vec::new();
    for line in &case.lines {
        let late = newest.filter(|newest| newest.attempt > line.attempt && !told.contains(&line.pid));
        verdict.expect(Invariant::NoOverlap, Some(case.id), late.is_none(), || {
            told.push(line.pid);
            let started = late.map_or(0, |newest| newest.attempt);
            let who = match &line.what {
                What::Tick { who } => who.as_str(),
                What::Start { .. } | What::End { .. } => COMMAND,
            };
            format!("the {who} of attempt {} was alive when attempt {started} had started", line.attempt)
        });
        let is_start = matches!(line.what, What::Start { .. });
        if is_start && newest.is_none_or(|newest| newest.attempt < line.attempt) {
            newest = Some(line);
        }
    }
}

fn check_numbers(case: &Case<'_>, verdict: &mut Verdict) {
    let Some(job) = case.job else {
        return;
    };
    let numbers: Vec<u32> = case.history().iter().map(|attempt| attempt.number).collect();
    let attempts = job.record.job.life.attempts;
    let is_whole = numbers.iter().copied().eq(1..=attempts);
    verdict.expect(Invariant::NoGaps, Some(case.id), is_whole, || {
        format!("it has had {attempts} attempts, and of these there is history: {numbers:?}")
    });
    for start in case.starts() {
        verdict.expect(Invariant::NoGaps, Some(case.id), start.attempt <= attempts, || {
            format!("attempt {} started, and nobody knows of it", start.attempt)
        });
    }
    let failures = case.history().iter().filter_map(|attempt| attempt.ending.as_ref());
    let failures = failures.filter(|ending| is_own_failure(ending)).count() as u64;
    let policy = case.plan.map_or(job.record.job.life.max_retries, |plan| plan.max_retries);
    let allowed = u64::from(policy) + 1;
    verdict.expect(Invariant::NoGaps, Some(case.id), failures <= allowed * (1 + case.retry_count()), || {
        format!("it failed {failures} times, and {allowed} are allowed")
    });
}

/// What is recorded of an attempt was printed by the command of that attempt.
fn check_author(case: &Case<'_>, attempt: &Attempt, verdict: &mut Verdict) {
    let Some(job) = case.job.filter(|_| attempt.ending.as_ref().is_some_and(is_own_doing)) else {
        return;
    };
    let (number, printed) = (attempt.number, job.nonces.get(&attempt.number));
    // On a busy machine the timeout of a command can pass before it has said or printed anything.
    let is_mute = printed.is_none() && was_killed(attempt);
    let Some(start) = case.start_of(number) else {
        return verdict.expect(Invariant::Fenced, Some(case.id), is_mute, || {
            format!("a result of attempt {number} is recorded, and it never started")
        });
    };
    // A spoiled disk can cost its output.
    let is_by_nobody = is_mute || (printed.is_none() && case.may_lose_output);
    verdict.expect(Invariant::Fenced, Some(case.id), is_by_nobody || printed == Some(&start.nonce), || {
        let started = &start.nonce;
        format!("what is recorded of attempt {number} is by {printed:?}, and it was {started} that ran")
    });
    let by = match &start.what {
        What::Start { worker } => worker.as_str(),
        What::Tick { .. } | What::End { .. } => "",
    };
    verdict.expect(Invariant::Fenced, Some(case.id), attempt.worker.as_str() == by, || {
        format!("attempt {number} is recorded as run by {}, and it was {by} that ran it", attempt.worker)
    });
}

fn was_killed(attempt: &Attempt) -> bool {
    attempt.ending.as_ref().is_some_and(|ending| ending.outcome == Outcome::Timeout)
}

/// No attempt was claimed before the one before it was over.
fn check_order(case: &Case<'_>, verdict: &mut Verdict) {
    for pair in case.history().windows(2) {
        let ended = pair[0].ending.is_some();
        verdict.expect(Invariant::Fenced, Some(case.id), ended, || {
            format!("attempt {} was claimed while attempt {} was not over", pair[1].number, pair[0].number)
        });
    }
}
