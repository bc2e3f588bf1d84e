//! I5, I6, I7 and I12: attempts run one after the other, each once, and each records its own result.

use super::case::{Case, ended_by_command, is_command_failure};
use super::invariant::Invariant;
use super::verdict::Verdict;
use crate::ledger::{COMMAND, LedgerEvent, Line};
use domain::job::Attempt;
use domain::job::outcome::Outcome;

pub(super) fn check(case: &Case<'_>, verdict: &mut Verdict) {
    check_starts(case, verdict);
    check_overlaps(case, verdict);
    count_excused_overlaps(case, verdict);
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

/// No process of an attempt may be alive after a later attempt has started.
fn check_overlaps(case: &Case<'_>, verdict: &mut Verdict) {
    let mut newest: Option<&Line> = None;
    // Report each process once, however many ticks it wrote.
    let mut reported: Vec<u32> = Vec::new();
    for line in &case.lines {
        let late = newest.filter(|newest| newest.attempt > line.attempt && !reported.contains(&line.pid));
        verdict.expect(Invariant::NoOverlap, Some(case.id), late.is_none(), || {
            reported.push(line.pid);
            let started = late.map_or(0, |newest| newest.attempt);
            let who = match &line.event {
                LedgerEvent::Tick { who } => who.as_str(),
                LedgerEvent::Start { .. } | LedgerEvent::End { .. } => COMMAND,
            };
            format!("the {who} of attempt {} was alive after attempt {started} had started", line.attempt)
        });
        let is_start = matches!(line.event, LedgerEvent::Start { .. });
        if is_start && newest.is_none_or(|newest| newest.attempt < line.attempt) {
            newest = Some(line);
        }
    }
}

/// Counts the processes of attempts on stopped hosts that were alive after a later attempt had started.
fn count_excused_overlaps(case: &Case<'_>, verdict: &mut Verdict) {
    let overlaps =
        |line: &&&Line| case.starts().any(|start| start.attempt > line.attempt && start.at <= line.at);
    let mut processes: Vec<u32> = case.excused.iter().filter(overlaps).map(|line| line.pid).collect();
    processes.sort_unstable();
    processes.dedup();
    verdict.excused_overlaps += processes.len() as u64;
}

fn check_numbers(case: &Case<'_>, verdict: &mut Verdict) {
    let Some(job) = case.job else {
        return;
    };
    let numbers: Vec<u32> = case.history().iter().map(|attempt| attempt.number).collect();
    let attempts = job.record.job.life.attempts;
    let is_whole = numbers.iter().copied().eq(1..=attempts);
    verdict.expect(Invariant::NoGaps, Some(case.id), is_whole, || {
        format!("it has had {attempts} attempts, but the history has {numbers:?}")
    });
    for start in case.starts() {
        verdict.expect(Invariant::NoGaps, Some(case.id), start.attempt <= attempts, || {
            format!("attempt {} started but is not recorded", start.attempt)
        });
    }
    let failures = case.history().iter().filter_map(|attempt| attempt.ending.as_ref());
    let failures = failures.filter(|ending| is_command_failure(ending)).count() as u64;
    let policy = case.plan.map_or(job.record.job.life.max_retries, |plan| plan.max_retries);
    let allowed = u64::from(policy) + 1;
    verdict.expect(Invariant::NoGaps, Some(case.id), failures <= allowed * (1 + case.retry_count()), || {
        format!("it failed {failures} times, but only {allowed} are allowed")
    });
}

/// The recorded output of an attempt was printed by the command of that attempt.
fn check_author(case: &Case<'_>, attempt: &Attempt, verdict: &mut Verdict) {
    let Some(job) = case.job.filter(|_| attempt.ending.as_ref().is_some_and(ended_by_command)) else {
        return;
    };
    let (number, printed) = (attempt.number, job.nonces.get(&attempt.number));
    // On a busy machine a command can time out before it has written or printed anything.
    let is_mute = printed.is_none() && was_killed(attempt);
    let Some(start) = case.start_of(number) else {
        return verdict.expect(Invariant::Fenced, Some(case.id), is_mute, || {
            format!("a result of attempt {number} is recorded, but it never started")
        });
    };
    // Output can be lost if the disk fails, or with the commits that a standby had not received.
    let may_lose_output = case.may_lose_output || case.is_in_lost_tail;
    let has_no_output = is_mute || (printed.is_none() && may_lose_output);
    verdict.expect(Invariant::Fenced, Some(case.id), has_no_output || printed == Some(&start.nonce), || {
        let started = &start.nonce;
        format!("the recorded output of attempt {number} is from {printed:?}, but {started} ran")
    });
    let by = match &start.event {
        LedgerEvent::Start { worker } => worker.as_str(),
        LedgerEvent::Tick { .. } | LedgerEvent::End { .. } => "",
    };
    verdict.expect(Invariant::Fenced, Some(case.id), attempt.worker.as_str() == by, || {
        format!("attempt {number} is recorded as run by {}, but {by} ran it", attempt.worker)
    });
}

fn was_killed(attempt: &Attempt) -> bool {
    attempt.ending.as_ref().is_some_and(|ending| ending.outcome == Outcome::Timeout)
}

/// No attempt was claimed before the previous one had ended.
fn check_order(case: &Case<'_>, verdict: &mut Verdict) {
    for pair in case.history().windows(2) {
        let ended = pair[0].ending.is_some();
        verdict.expect(Invariant::Fenced, Some(case.id), ended, || {
            format!("attempt {} was claimed before attempt {} had ended", pair[1].number, pair[0].number)
        });
    }
}
