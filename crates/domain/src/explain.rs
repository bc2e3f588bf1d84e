//! Explains why a job is not running and estimates when it will start, from facts that the caller has collected.

pub mod named_jobs;
pub mod wait_reason;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::job::Job;
use super::job::life::{State, StateName};
use super::queue::rate::Meter;
use super::values::clock::{Clock, TimeFormat};
use super::values::name::JobId;
use super::values::span::{format_seconds, rough_span};
use super::values::timestamp::Timestamp;
use named_jobs::{BusySlot, FailedDependency, all_busy};
use wait_reason::{Pause, QueueLimits, WaitReason, wait_reasons};

/// How long a job waits behind jobs with a higher priority before that is reported.
pub const STARVED_AFTER: Duration = Duration::from_secs(600);

/// The facts about a job, its queue and the workers.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    pub job: Job,
    pub now: Timestamp,
    /// Some of the jobs that it waits for; the job's state has their total number.
    pub waits_for: Vec<(JobId, StateName)>,
    pub queue: QueueFacts,
    /// Jobs that are claimed before it, counted up to a bound: in all queues, and in its own.
    pub ahead: Count,
    pub ahead_in_queue: Count,
    /// How long attempts of its queue take.
    pub durations: Option<Durations>,
    pub workers: WorkerFacts,
    /// Processes of its attempt that could not be killed, each with the reason.
    pub unkillable: Vec<(u32, String)>,
    /// The running jobs that it waits for, the longest first: those in the slots of the workers that serve its queue, if all
    /// slots are busy, or those of its queue, if that is full.
    pub busy_slots: Vec<BusySlot>,
    /// The job on whose account it was cancelled.
    pub failed_dependency: Option<FailedDependency>,
    /// Since when it is due, if a job of its queue with a higher priority was started after that.
    pub overtaken_since: Option<Timestamp>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueFacts {
    pub paused: Option<(Timestamp, Pause)>,
    pub running: u64,
    pub concurrency: Option<u32>,
    pub meter: Option<Meter>,
}

impl QueueFacts {
    /// Whether as many of its jobs run as its limit allows.
    pub fn is_full(&self) -> bool {
        self.concurrency.is_some_and(|limit| self.running >= u64::from(limit))
    }

    fn limits(&self, now: Timestamp) -> QueueLimits {
        QueueLimits {
            paused: self.paused.clone(),
            running: self.running,
            concurrency: self.concurrency,
            next_start_at: self.meter.and_then(|meter| meter.next_token_at(now)),
        }
    }
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

/// The live workers that claim jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerFacts {
    pub all: u64,
    /// Workers that serve its queue but claim no more jobs. The other counts do not include them.
    pub draining: u64,
    /// Workers that serve its queue, and their slots.
    pub serving: u64,
    pub slots: u64,
    pub busy: u64,
}

/// One reason, with a message for people.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reason {
    pub code: Code,
    pub message: String,
    /// When the reason ends, if that is known.
    pub until: Option<Timestamp>,
    /// The jobs that the reason refers to.
    #[serde(serialize_with = "as_objects")]
    pub jobs: Vec<(JobId, StateName)>,
}

fn as_objects<S: Serializer>(jobs: &[(JobId, StateName)], serializer: S) -> Result<S::Ok, S::Error> {
    let job = |(id, state): &(JobId, StateName)| {
        BTreeMap::from([("id", id.to_string()), ("state", state.name().into())])
    };
    serializer.collect_seq(jobs.iter().map(job))
}

crate::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Code {
        Scheduled = "scheduled",
        Blocked = "blocked",
        Backoff = "backoff",
        QueuePaused = "queue_paused",
        QueueFull = "queue_full",
        Rate = "rate",
        NoWorker = "no_worker",
        Draining = "draining",
        QueueNotServed = "queue_not_served",
        Behind = "behind",
        Starved = "starved",
        SlotsBusy = "slots_busy",
        SlotsPaused = "slots_paused",
        Ready = "ready",
        Running = "running",
        Paused = "paused",
        Cancelling = "cancelling",
        Unkillable = "unkillable",
        Finished = "finished",
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explanation {
    pub reasons: Vec<Reason>,
    /// When it will probably start if nothing changes; `None` if that cannot be estimated.
    pub probable_start: Option<Timestamp>,
    /// How many past attempts the estimate is based on, if any.
    pub estimated_from: Option<u64>,
    /// There is no estimate because the running jobs already take much longer than usual.
    pub is_overdue: bool,
}

/// The sentences show times in this format.
pub fn explain(facts: &Facts, format: &TimeFormat) -> Explanation {
    let clock = &Clock::new(facts.now, format.clone());
    match &facts.job.life.state {
        State::Pending { .. } | State::Failed => waiting(facts, clock),
        State::Processing(lease) => {
            let running = running(facts, lease.started_at, lease.worker.as_str());
            let mut reasons = vec![running];
            if let Some(since) = lease.paused_at {
                let handle = facts.job.handle();
                let message = format!(
                    "it has been paused since {}; `queuectl resume {handle}` continues it",
                    clock.time(since)
                );
                reasons.push(reason(Code::Paused, message));
            }
            if lease.cancel_requested.is_some() {
                let message = "it has been cancelled; its worker is stopping it".to_owned();
                reasons.push(reason(Code::Cancelling, message));
            }
            reasons.extend(facts.unkillable.iter().map(|(pid, why)| {
                let message = format!(
                    "its process {pid} cannot be killed ({why}): its slot has been replaced, and the attempt ends when \
                     the process exits"
                );
                reason(Code::Unkillable, message)
            }));
            Explanation { reasons, ..Explanation::default() }
        }
        State::Completed { finished_at } => finished(format!("it completed at {}", clock.time(*finished_at))),
        State::Dead { finished_at, reason } => finished(format!(
            "it has been dead since {} ({}); `queuectl retry {}` runs it again",
            clock.time(*finished_at),
            words(reason.name()),
            facts.job.id
        )),
        State::Cancelled { finished_at, reason } => match &facts.failed_dependency {
            Some(dependency) => cancelled_with(dependency, &clock.time(*finished_at)),
            None => finished(format!(
                "it was cancelled at {} ({}); `queuectl retry {}` runs it again",
                clock.time(*finished_at),
                words(reason.name()),
                facts.job.id
            )),
        },
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

fn cancelled_with(dependency: &FailedDependency, finished_at: &str) -> Explanation {
    let message = format!(
        "it was cancelled at {finished_at} because {dependency}; `queuectl retry --with-dependents {}` runs it and its dependents again",
        dependency.handle
    );
    let jobs = vec![(dependency.id.clone(), dependency.state)];
    let reasons = vec![Reason { jobs, ..reason(Code::Finished, message) }];
    Explanation { reasons, ..Explanation::default() }
}

fn running(facts: &Facts, since: Timestamp, worker: &str) -> Reason {
    let attempt = facts.job.life.attempts;
    let usual = facts.durations.map_or_else(String::new, |durations| {
        match (rough_span(durations.average), durations.attempts) {
            (average, 1) => format!("; the last attempt in its queue took {average}"),
            (average, attempts) => {
                format!("; the last {attempts} attempts in its queue took {average} on average")
            }
        }
    });
    let span = rough_span(facts.now.since(since));
    reason(Code::Running, format!("attempt {attempt} has been running for {span} on worker {worker}{usual}"))
}

fn waiting(facts: &Facts, clock: &Clock) -> Explanation {
    let reasons = wait_reasons(&facts.job.life, facts.queue.limits(facts.now), facts.now).unwrap_or_default();
    let is_ready = !reasons.iter().any(WaitReason::is_own);
    let mut reasons: Vec<Reason> =
        reasons.into_iter().map(|reason| put_into_words(facts, reason, clock)).collect();
    reasons.extend(no_worker(facts));
    if is_ready && reasons.is_empty() {
        reasons.extend(capacity_reasons(facts));
    } else if is_ready && reasons.iter().all(|reason| matches!(reason.code, Code::QueueFull | Code::Rate)) {
        reasons.extend(jobs_ahead(facts.ahead_in_queue));
    }
    let (probable_start, estimated_from) = estimate(facts, &reasons);
    let is_overdue = !reasons.iter().any(is_open_ended)
        && facts.durations.is_some_and(|durations| time_to_free_slot(facts, durations.average).is_none());
    Explanation { reasons, probable_start, estimated_from, is_overdue }
}

fn put_into_words(facts: &Facts, wait_reason: WaitReason, clock: &Clock) -> Reason {
    let name = &facts.job.queue;
    let until = |code, at: Timestamp, message: String| {
        let message = format!("{message} at {}", clock.moment(at));
        Reason { until: Some(at), ..reason(code, message) }
    };
    match wait_reason {
        WaitReason::Jobs { count } => {
            let jobs = if count == 1 { "another job".to_owned() } else { format!("{count} other jobs") };
            let message = format!("it waits for {jobs}: {}", format_jobs(&facts.waits_for, count));
            Reason { jobs: facts.waits_for.clone(), ..reason(Code::Blocked, message) }
        }
        WaitReason::Backoff(at) => {
            let failed = times(facts.job.life.failures);
            until(Code::Backoff, at, format!("it has failed {failed} and its next attempt is due"))
        }
        WaitReason::Scheduled(at) => until(Code::Scheduled, at, "it is scheduled to start".to_owned()),
        WaitReason::PausedQueue(since, Pause { by, reason: why }) => {
            let why = why.map_or_else(String::new, |why| format!(" ({why})"));
            let since = clock.time(since);
            let message = format!(
                "its queue `{name}` was paused by {by} at {since}{why}; `queuectl queue resume {name}` resumes it"
            );
            reason(Code::QueuePaused, message)
        }
        WaitReason::FullQueue { running, limit } => {
            let message = format!("its queue `{name}` is full: {running} of {limit} jobs are running");
            reason(Code::QueueFull, message)
        }
        WaitReason::Rate(at) => {
            until(Code::Rate, at, format!("the rate limit of its queue `{name}` allows the next start"))
        }
    }
}

/// The reason why none of the workers takes the job.
fn no_worker(facts: &Facts) -> Option<Reason> {
    let name = &facts.job.queue;
    if facts.workers.serving > 0 {
        return None;
    }
    Some(if facts.workers.draining > 0 {
        let message = format!(
            "all workers that serve its queue `{name}` are draining: they finish their running jobs and claim no more; \
             `queuectl worker start` starts another"
        );
        reason(Code::Draining, message)
    } else if facts.workers.all == 0 {
        reason(Code::NoWorker, "no worker is running; `queuectl worker start` starts one".to_owned())
    } else {
        let message =
            format!("no worker serves its queue `{name}`; `queuectl worker start --queue {name}` starts one");
        reason(Code::QueueNotServed, message)
    })
}

/// Reasons of a job that only waits for its turn: busy slots and the jobs ahead of it.
fn capacity_reasons(facts: &Facts) -> Vec<Reason> {
    let WorkerFacts { slots, busy, .. } = facts.workers;
    let mut reasons = Vec::new();
    if busy >= slots {
        let message = all_busy(slots, &facts.busy_slots, facts.now);
        let jobs = facts.busy_slots.iter().map(|slot| (slot.id.clone(), StateName::Processing)).collect();
        reasons.push(Reason { jobs, ..reason(Code::SlotsBusy, message) });
        reasons.extend(paused_slots(&facts.busy_slots));
    }
    reasons.extend(jobs_ahead(facts.ahead));
    reasons.extend(starvation(facts));
    if reasons.is_empty() {
        reasons.push(reason(Code::Ready, "it is ready and about to start".to_owned()));
    }
    reasons
}

/// Paused jobs keep their slots, and may never end.
fn paused_slots(busy: &[BusySlot]) -> Option<Reason> {
    let paused: Vec<&BusySlot> = busy.iter().filter(|slot| slot.is_paused).collect();
    let first = paused.first()?;
    let message = match paused.len() {
        1 => {
            format!("job {0} is paused and keeps its slot; `queuectl resume {0}` continues it", first.handle)
        }
        count => format!(
            "{count} paused jobs keep their slots; `queuectl list --state paused` shows them, `queuectl resume --state paused` continues them"
        ),
    };
    let jobs = paused.iter().map(|slot| (slot.id.clone(), StateName::Processing)).collect();
    Some(Reason { jobs, ..reason(Code::SlotsPaused, message) })
}

fn jobs_ahead(ahead: Count) -> Option<Reason> {
    let more = if ahead.is_exact { "" } else { "more than " };
    let jobs = if ahead.least == 1 { "job is" } else { "jobs are" };
    let message = format!("{more}{} {jobs} ahead of it", ahead.least);
    (ahead.least > 0).then(|| reason(Code::Behind, message))
}

/// It would have been its turn long ago, but for jobs with a higher priority.
fn starvation(facts: &Facts) -> Option<Reason> {
    let waited = facts.now.since(facts.overtaken_since?);
    let message = format!(
        "jobs with a higher priority have been started before it for {}; `queuectl edit {} --priority N` raises its own",
        format_seconds(waited),
        facts.job.handle()
    );
    (waited >= STARVED_AFTER).then(|| reason(Code::Starved, message))
}

/// Whether the end of this reason is unknown.
fn is_open_ended(reason: &Reason) -> bool {
    match reason.code {
        Code::Blocked
        | Code::QueuePaused
        | Code::NoWorker
        | Code::Draining
        | Code::QueueNotServed
        // Another slot may become free sooner, but it is unknown when.
        | Code::SlotsPaused => true,
        Code::Scheduled
        | Code::Backoff
        | Code::QueueFull
        | Code::Rate
        | Code::Behind
        | Code::Starved
        | Code::SlotsBusy
        | Code::Ready
        | Code::Running
        | Code::Paused
        | Code::Cancelling
        | Code::Unkillable
        | Code::Finished => false,
    }
}

/// The probable start: when every reason with a known end has ended and the jobs ahead have run. A reason without a
/// known end makes the start unknown.
fn estimate(facts: &Facts, reasons: &[Reason]) -> (Option<Timestamp>, Option<u64>) {
    if reasons.iter().any(is_open_ended) {
        return (None, None);
    }
    let ends = reasons.iter().filter(|reason| reason.code != Code::Rate).filter_map(|reason| reason.until);
    let earliest = ends.max().unwrap_or(facts.now);
    let by_rate = facts.queue.meter.map_or(facts.now, |meter| {
        facts.now.saturating_add(meter.time_for(facts.now, facts.ahead_in_queue.least + 1))
    });
    let is_free = facts.workers.busy < facts.workers.slots && !facts.queue.is_full();
    // If a slot is free, the jobs ahead in a rate-limited queue wait for tokens, not for slots.
    let is_limited_by_rate = is_free && facts.queue.meter.is_some() && facts.ahead.is_exact;
    match wait_by_history(facts) {
        _ if is_free && facts.ahead.least == 0 => (Some(earliest.max(by_rate)), None),
        Some((wait, attempts)) => (Some(earliest.saturating_add(wait).max(by_rate)), Some(attempts)),
        None if is_limited_by_rate => (Some(earliest.max(by_rate)), None),
        None => (None, None),
    }
}

/// How long the jobs ahead take, and the number of attempts that the estimate is based on. It assumes that the jobs ahead
/// run one after the other in each slot.
fn wait_by_history(facts: &Facts) -> Option<(Duration, u64)> {
    let slots =
        facts.queue.concurrency.map_or(facts.workers.slots, |limit| facts.workers.slots.min(limit.into()));
    let durations = facts.durations.filter(|_| facts.ahead.is_exact && slots > 0)?;
    let turns = u32::try_from(facts.ahead.least / slots).unwrap_or(u32::MAX);
    let first_free = time_to_free_slot(facts, durations.average)?;
    Some((first_free.saturating_add(durations.average.saturating_mul(turns)), durations.attempts))
}

/// When the first running job will probably end: half of the average if it is unknown since when they run. `None` if all of
/// them already take much longer than usual.
fn time_to_free_slot(facts: &Facts, average: Duration) -> Option<Duration> {
    if facts.busy_slots.is_empty() {
        return Some(average / 2);
    }
    facts.busy_slots.iter().filter_map(|slot| expected_rest(facts.now.since(slot.since), average)).min()
}

/// An attempt that has run for more than this many times the average is unlike the earlier ones.
const MAX_OVERDUE: u32 = 10;

/// How much longer an attempt will probably run. One that has run longer than the average is expected to run as long
/// again; `None` if it has run so long that the average says nothing about it.
pub(crate) fn expected_rest(elapsed: Duration, average: Duration) -> Option<Duration> {
    if elapsed < average {
        return Some(average.saturating_sub(elapsed));
    }
    (elapsed <= average.saturating_mul(MAX_OVERDUE)).then_some(elapsed)
}

/// `a (processing), b (pending), and 3 more`
fn format_jobs(jobs: &[(JobId, StateName)], count: u32) -> String {
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

#[cfg(test)]
mod tests;
