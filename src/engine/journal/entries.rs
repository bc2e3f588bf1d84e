//! What the lines of the journal say.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use super::Journal;
use crate::domain::life::{DeadReason, StateName};
use crate::domain::name::WorkerId;
use crate::domain::outcome::Outcome;
use crate::domain::span::format_span;
use crate::domain::timestamp::Timestamp;
use crate::store::LeaseRef;

/// An attempt that ended.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Ended<'a> {
    pub(in crate::engine) lease: &'a LeaseRef,
    pub(in crate::engine) outcome: Outcome,
    /// How it ended and the last thing it said, where there is more to say than the outcome.
    pub(in crate::engine) error: Option<&'a str>,
    /// Unknown when the attempt outlived its worker.
    pub(in crate::engine) duration: Option<Duration>,
    pub(in crate::engine) recorded: Recorded,
}

/// What became of the job.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) enum Recorded {
    /// Nothing: the lease was lost, so the result does not count.
    Nothing,
    State {
        state: StateName,
        next_retry_at: Option<Timestamp>,
    },
}

impl Journal {
    pub(in crate::engine) fn attempt_started(&mut self, now: Timestamp, lease: &LeaseRef, command: &str) {
        self.note(now, format_args!("start {}: {command}", Attempt(lease)));
    }

    pub(in crate::engine) fn attempt_ended(&mut self, now: Timestamp, ended: &Ended<'_>) {
        self.note(now, format_args!("end {}: {ended}", Attempt(ended.lease)));
    }

    pub(in crate::engine) fn worker_started(&mut self, now: Timestamp, pid: u32, slots: u32) {
        self.note(
            now,
            format_args!("worker started: pid {pid}, {slots} {}", if slots == 1 { "slot" } else { "slots" }),
        );
    }

    pub(in crate::engine) fn worker_draining(&mut self, now: Timestamp, why: &str) {
        self.note(now, format_args!("worker draining: {why}"));
    }

    pub(in crate::engine) fn worker_stopped(&mut self, now: Timestamp) {
        self.note(now, format_args!("worker stopped"));
    }

    pub(in crate::engine) fn worker_crashed(&mut self, now: Timestamp, worker: &WorkerId, how: &str) {
        self.note(now, format_args!("worker {worker} crashed: {how}"));
    }

    pub(in crate::engine) fn worker_restarted(
        &mut self,
        now: Timestamp,
        crashed: &WorkerId,
        replacement: &WorkerId,
    ) {
        self.note(now, format_args!("worker {crashed} restarted as {replacement}"));
    }

    pub(in crate::engine) fn worker_given_up(&mut self, now: Timestamp, worker: &WorkerId, crashes: u32) {
        self.note(now, format_args!("worker {worker} given up after {crashes} crashes in a row"));
    }

    /// `doing` is what was tried: `claim jobs`.
    pub(in crate::engine) fn store_failed(&mut self, now: Timestamp, doing: &str, error: &dyn Error) {
        self.note(now, format_args!("failed to {doing}: {}", Chain(error)));
    }
}

struct Attempt<'a>(&'a LeaseRef);

impl fmt::Display for Attempt<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} attempt {}", self.0.job, self.0.attempt)
    }
}

impl fmt::Display for Ended<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.error, self.outcome) {
            (Some(error), _) => out.write_str(error)?,
            (None, Outcome::Success) => out.write_str("completed")?,
            (None, outcome) => write!(out, "{outcome}")?,
        }
        if let Some(duration) = self.duration {
            write!(out, " ({})", Took(duration))?;
        }
        match self.recorded {
            Recorded::Nothing => out.write_str(", not recorded: its lease was lost"),
            Recorded::State { state, next_retry_at } => self.fmt_state(out, state, next_retry_at),
        }
    }
}

impl Ended<'_> {
    /// What the outcome does not say already.
    fn fmt_state(
        &self,
        out: &mut fmt::Formatter<'_>,
        state: StateName,
        next_retry_at: Option<Timestamp>,
    ) -> fmt::Result {
        match (state, next_retry_at) {
            (StateName::Completed, _) => Ok(()),
            (StateName::Cancelled, _) if self.outcome == Outcome::Cancelled => Ok(()),
            (StateName::Failed, Some(at)) => write!(out, ", retry at {at}"),
            (StateName::Dead, _) => write!(out, ", dead: {}", self.dead_reason().name()),
            (StateName::Pending, _) => out.write_str(", pending again"),
            (StateName::Failed | StateName::Processing | StateName::Cancelled, _) => {
                write!(out, ", {}", state.name())
            }
        }
    }

    /// Losses have a limit of their own; everything else that kills a job is a failure too many.
    fn dead_reason(&self) -> DeadReason {
        if self.outcome == Outcome::Lost { DeadReason::CrashLimit } else { DeadReason::RetriesExhausted }
    }
}

/// A duration with as much detail as anybody reads: `34ms`, `1.2s`, `3m20s`.
struct Took(Duration);

impl fmt::Display for Took {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_secs() {
            0 => write!(out, "{}ms", self.0.as_millis()),
            1..60 => write!(out, "{}.{}s", self.0.as_secs(), self.0.subsec_millis() / 100),
            seconds => out.write_str(&format_span(Duration::from_secs(seconds))),
        }
    }
}

/// An error with its causes.
struct Chain<'a>(&'a dyn Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(out, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_attempt_says_how_and_what_follows() {
        let at: Timestamp = "2026-01-31T09:30:00Z".parse().expect("a time");
        let lease = LeaseRef { job: "job1".parse().expect("an id"), attempt: 2 };
        let state = |state, next_retry_at| Recorded::State { state, next_retry_at };
        let failure = Outcome::Failure { exit_code: 1 };
        for (outcome, error, millis, recorded, text) in [
            (Outcome::Success, None, Some(1_290), state(StateName::Completed, None), "completed (1.2s)"),
            (
                failure,
                Some("exit code 1: no such file"),
                Some(34),
                state(StateName::Failed, Some(at)),
                "exit code 1: no such file (34ms), retry at 2026-01-31T09:30:00.000Z",
            ),
            (
                failure,
                None,
                Some(200_500),
                state(StateName::Dead, None),
                "exit code 1 (3m20s), dead: retries_exhausted",
            ),
            (Outcome::Lost, None, None, state(StateName::Pending, None), "its worker died, pending again"),
            (Outcome::Lost, None, None, state(StateName::Dead, None), "its worker died, dead: crash_limit"),
            (
                Outcome::Released,
                None,
                Some(0),
                state(StateName::Pending, None),
                "released (0ms), pending again",
            ),
            (Outcome::Cancelled, None, Some(59_999), state(StateName::Cancelled, None), "cancelled (59.9s)"),
            (failure, None, Some(1_000), state(StateName::Cancelled, None), "exit code 1 (1.0s), cancelled"),
            (
                Outcome::Timeout,
                None,
                Some(60_000),
                Recorded::Nothing,
                "timed out (1m), not recorded: its lease was lost",
            ),
        ] {
            let duration = millis.map(Duration::from_millis);
            assert_eq!(Ended { lease: &lease, outcome, error, duration, recorded }.to_string(), text);
        }
    }
}
