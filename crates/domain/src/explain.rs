//! Why a job does not run now, and when it probably will: decided from facts, without looking anything up.

use std::time::Duration;

use super::job::Job;
use super::job::life::{State, StateName};
use super::queue::rate::Meter;
use super::values::name::JobId;
use super::values::timestamp::Timestamp;

/// What is known about a job and what surrounds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    pub job: Job,
    pub now: Timestamp,
    /// Some of the jobs that it waits for; how many there are in all is in its state.
    pub waits_for: Vec<(JobId, StateName)>,
    pub queue: QueueFacts,
    /// Jobs that are claimed before it, as far as they were counted: all of them, and those of its queue.
    pub ahead: Count,
    pub ahead_in_queue: Count,
    /// How long jobs of its queue take.
    pub durations: Option<Durations>,
    pub workers: WorkerFacts,
    /// Processes of its attempt that could not be killed, and why not.
    pub unkillable: Vec<(u32, String)>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueFacts {
    /// Since when it is paused, by whom, and why.
    pub paused: Option<(Timestamp, String, Option<String>)>,
    pub running: u64,
    pub concurrency: Option<u32>,
    pub meter: Option<Meter>,
}

/// A number that was counted up to a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub least: u64,
    pub is_exact: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Durations {
    pub attempts: u64,
    pub average: Duration,
}

/// The workers that live and start jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerFacts {
    pub all: u64,
    /// Those that serve its queue, finish what they run, and start nothing more; no other number counts them.
    pub draining: u64,
    /// Those that serve its queue, and what they can run at once.
    pub serving: u64,
    pub slots: u64,
    pub busy: u64,
}

/// One thing that is to be said.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    pub code: Code,
    pub message: String,
    /// Until when it holds, where that is known.
    pub until: Option<Timestamp>,
    /// The jobs that it is about.
    pub jobs: Vec<(JobId, StateName)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Scheduled,
    Blocked,
    Backoff,
    QueuePaused,
    QueueFull,
    Rate,
    NoWorker,
    Draining,
    QueueNotServed,
    Behind,
    SlotsBusy,
    Ready,
    Running,
    Cancelling,
    Unkillable,
    Finished,
}

impl Code {
    pub fn name(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Blocked => "blocked",
            Self::Backoff => "backoff",
            Self::QueuePaused => "queue_paused",
            Self::QueueFull => "queue_full",
            Self::Rate => "rate",
            Self::NoWorker => "no_worker",
            Self::Draining => "draining",
            Self::QueueNotServed => "queue_not_served",
            Self::Behind => "behind",
            Self::SlotsBusy => "slots_busy",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Cancelling => "cancelling",
            Self::Unkillable => "unkillable",
            Self::Finished => "finished",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explanation {
    pub reasons: Vec<Reason>,
    /// When it will probably start, if nothing changes; `None` where nobody can tell.
    pub probable_start: Option<Timestamp>,
    /// From how many attempts that was guessed, where it was.
    pub guessed_from: Option<u64>,
}

pub fn explain(facts: &Facts) -> Explanation {
    match &facts.job.life.state {
        State::Pending { .. } | State::Failed => waiting(facts),
        State::Processing(lease) => {
            let running = running(facts, lease.started_at, lease.worker.as_str());
            let mut reasons = vec![running];
            if lease.cancel_requested.is_some() {
                let message = "somebody has cancelled it; its worker is ending it".to_owned();
                reasons.push(reason(Code::Cancelling, message));
            }
            reasons.extend(facts.unkillable.iter().map(|(pid, why)| {
                let message = format!(
                    "its process {pid} cannot be killed ({why}): its slot was replaced, and the attempt is over when \
                     the process has ended"
                );
                reason(Code::Unkillable, message)
            }));
            Explanation { reasons, ..Explanation::default() }
        }
        State::Completed { finished_at } => finished(format!("it completed at {finished_at}")),
        State::Dead { finished_at, reason } => finished(format!(
            "it is dead since {finished_at} ({}); `queuectl retry` runs it again",
            words(reason.name())
        )),
        State::Cancelled { finished_at, reason } => finished(format!(
            "it was cancelled at {finished_at} ({}); `queuectl retry` runs it again",
            words(reason.name())
        )),
    }
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}

fn reason(code: Code, message: String) -> Reason {
    Reason { code, message, until: None, jobs: Vec::new() }
}

fn finished(message: String) -> Explanation {
    Explanation { reasons: vec![reason(Code::Finished, message)], ..Explanation::default() }
}

fn running(facts: &Facts, since: Timestamp, worker: &str) -> Reason {
    let attempt = facts.job.life.attempts;
    let usual = facts.durations.map_or_else(String::new, |durations| {
        match (told(durations.average), durations.attempts) {
            (average, 1) => format!("; the latest of its queue took {average}"),
            (average, attempts) => format!("; the latest {attempts} of its queue took {average} on average"),
        }
    });
    let span = told(facts.now.since(since));
    reason(Code::Running, format!("attempt {attempt} has been running for {span} on worker {worker}{usual}"))
}

fn waiting(facts: &Facts) -> Explanation {
    let own = own_reasons(facts);
    let outer = outer_reasons(facts);
    let is_ready = own.is_empty();
    let mut reasons: Vec<Reason> = own.into_iter().chain(outer).collect();
    if is_ready && reasons.is_empty() {
        reasons.extend(line_reasons(facts));
    } else if is_ready && reasons.iter().all(|reason| matches!(reason.code, Code::QueueFull | Code::Rate)) {
        reasons.extend(behind(facts.ahead_in_queue));
    }
    let (probable_start, guessed_from) = guess(facts, &reasons);
    Explanation { reasons, probable_start, guessed_from }
}

/// What lies in the job itself.
fn own_reasons(facts: &Facts) -> Vec<Reason> {
    let (life, now) = (&facts.job.life, facts.now);
    let mut reasons = Vec::new();
    match life.state {
        State::Pending { blocked_by } if blocked_by > 0 => {
            let jobs =
                if blocked_by == 1 { "another job".to_owned() } else { format!("{blocked_by} other jobs") };
            let message = format!("it waits for {jobs}: {}", named(&facts.waits_for, blocked_by));
            reasons.push(Reason { jobs: facts.waits_for.clone(), ..reason(Code::Blocked, message) });
        }
        State::Failed if life.due_at > now => {
            let (span, at) = (told(life.due_at.since(now)), life.due_at);
            let message = format!(
                "it has failed {} and waits until {at} before its next attempt (in {span})",
                times(life.failures)
            );
            reasons.push(Reason { until: Some(at), ..reason(Code::Backoff, message) });
        }
        State::Pending { .. }
        | State::Processing(_)
        | State::Completed { .. }
        | State::Failed
        | State::Dead { .. }
        | State::Cancelled { .. } => {}
    }
    if let (State::Pending { .. }, Some(at)) = (&life.state, life.run_at.filter(|at| *at > now)) {
        let message = format!("it is not to start before {at} (in {})", told(at.since(now)));
        reasons.push(Reason { until: Some(at), ..reason(Code::Scheduled, message) });
    }
    reasons
}

/// What lies in its queue and the workers.
fn outer_reasons(facts: &Facts) -> Vec<Reason> {
    let (queue, name, now) = (&facts.queue, &facts.job.queue, facts.now);
    let mut reasons = Vec::new();
    if let Some((since, by, why)) = &queue.paused {
        let why = why.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
        let message = format!(
            "its queue `{name}` was paused by {by} at {since}{why}; `queuectl queue resume {name}` lets it go on"
        );
        reasons.push(reason(Code::QueuePaused, message));
    }
    if let Some(limit) = queue.concurrency.filter(|limit| queue.running >= u64::from(*limit)) {
        let message = format!("its queue `{name}` is full: {} of {limit} jobs are running", queue.running);
        reasons.push(reason(Code::QueueFull, message));
    }
    if let Some(at) = queue.meter.and_then(|meter| meter.next_token_at(now)) {
        let message = format!(
            "the rate of its queue `{name}` lets the next job start at {at} (in {})",
            told(at.since(now))
        );
        reasons.push(Reason { until: Some(at), ..reason(Code::Rate, message) });
    }
    if facts.workers.serving == 0 && facts.workers.draining > 0 {
        let message = format!(
            "all workers that serve its queue `{name}` are draining: they finish what they run and start nothing \
             more; `queuectl worker start` starts another"
        );
        reasons.push(reason(Code::Draining, message));
    } else if facts.workers.all == 0 {
        reasons.push(reason(
            Code::NoWorker,
            "no worker is running; `queuectl worker start` starts one".to_owned(),
        ));
    } else if facts.workers.serving == 0 {
        let message =
            format!("no worker serves its queue `{name}`; `queuectl worker start --queue {name}` starts one");
        reasons.push(reason(Code::QueueNotServed, message));
    }
    reasons
}

/// Nothing holds it but those before it.
fn line_reasons(facts: &Facts) -> Vec<Reason> {
    let WorkerFacts { slots, busy, .. } = facts.workers;
    let mut reasons = Vec::new();
    if busy >= slots {
        let slots = if slots == 1 { "the one slot is".to_owned() } else { format!("all {slots} slots are") };
        reasons.push(reason(Code::SlotsBusy, format!("{slots} busy")));
    }
    reasons.extend(behind(facts.ahead));
    if reasons.is_empty() {
        reasons.push(reason(Code::Ready, "nothing holds it: it is about to start".to_owned()));
    }
    reasons
}

fn behind(ahead: Count) -> Option<Reason> {
    let more = if ahead.is_exact { "" } else { "more than " };
    let jobs = if ahead.least == 1 { "job is" } else { "jobs are" };
    let message = format!("{more}{} {jobs} before it in the line", ahead.least);
    (ahead.least > 0).then(|| reason(Code::Behind, message))
}

/// When all that has an end has ended, and the jobs before it have had their turn. What has no end in sight cannot be
/// guessed at.
fn guess(facts: &Facts, reasons: &[Reason]) -> (Option<Timestamp>, Option<u64>) {
    let is_open = |reason: &Reason| match reason.code {
        Code::Blocked | Code::QueuePaused | Code::NoWorker | Code::Draining | Code::QueueNotServed => true,
        Code::Scheduled
        | Code::Backoff
        | Code::QueueFull
        | Code::Rate
        | Code::Behind
        | Code::SlotsBusy
        | Code::Ready
        | Code::Running
        | Code::Cancelling
        | Code::Unkillable
        | Code::Finished => false,
    };
    if reasons.iter().any(is_open) {
        return (None, None);
    }
    let ends = reasons.iter().filter(|reason| reason.code != Code::Rate).filter_map(|reason| reason.until);
    let earliest = ends.max().unwrap_or(facts.now);
    let by_rate = facts.queue.meter.map_or(facts.now, |meter| {
        facts.now.saturating_add(meter.time_for(facts.now, facts.ahead_in_queue.least + 1))
    });
    let is_free = facts.workers.busy < facts.workers.slots && !is_full(facts);
    // Where a slot is free, those before it in a queue with a rate wait for that.
    let is_told_by_rate = is_free && facts.queue.meter.is_some() && facts.ahead.is_exact;
    match wait_by_history(facts) {
        _ if is_free && facts.ahead.least == 0 => (Some(earliest.max(by_rate)), None),
        Some((wait, attempts)) => (Some(earliest.saturating_add(wait).max(by_rate)), Some(attempts)),
        None if is_told_by_rate => (Some(earliest.max(by_rate)), None),
        None => (None, None),
    }
}

/// How long those before it take, and from how many attempts that is known. Those that run are half done on average, and
/// those before it come one after the other in each slot.
fn wait_by_history(facts: &Facts) -> Option<(Duration, u64)> {
    let slots =
        facts.queue.concurrency.map_or(facts.workers.slots, |limit| facts.workers.slots.min(limit.into()));
    let durations = facts.durations.filter(|_| facts.ahead.is_exact && slots > 0)?;
    let turns = u32::try_from(facts.ahead.least / slots).unwrap_or(u32::MAX);
    Some((durations.average / 2 + durations.average.saturating_mul(turns), durations.attempts))
}

fn is_full(facts: &Facts) -> bool {
    facts.queue.concurrency.is_some_and(|limit| facts.queue.running >= u64::from(limit))
}

/// `a (processing), b (pending), and 3 more`
fn named(jobs: &[(JobId, StateName)], count: u32) -> String {
    let mut names: Vec<String> = jobs.iter().map(|(id, state)| format!("{id} ({})", state.name())).collect();
    let more = usize::try_from(count).unwrap_or(usize::MAX).saturating_sub(jobs.len());
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}

fn times(count: u32) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// A duration as precise as anybody wants it: `3h20m`, `45s`, `300ms`.
fn told(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0 => format!("{}ms", span.subsec_millis()),
        1..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{}s", seconds / 60, seconds % 60),
        _ => format!("{}h{}m", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests;
