//! The wording of the journal's lines.

use std::error::Error;
use std::fmt;
use std::process::ExitStatus;
use std::time::Duration;

use super::Journal;
use domain::job::life::{DeadReason, StateName};
use domain::job::outcome::Outcome;
use domain::values::name::{HookName, JobId, ScheduleName, WorkerId};
use domain::values::span::format_span;
use domain::values::timestamp::Timestamp;
use store::{Claim, LeaseRef, SettledJob, Settlement, UnkillableProcess};

/// An attempt that ended.
#[derive(Clone, Copy, Debug)]
struct AttemptEnd<'a> {
    outcome: Outcome,
    /// The error line, if there is more to say than the outcome.
    error: Option<&'a str>,
    duration: Duration,
    recording: Recording,
}

/// The result that was recorded for the job.
#[derive(Clone, Copy, Debug)]
enum Recording {
    /// The lease was lost, so the result does not count.
    Nothing,
    State {
        state: StateName,
        next_retry_at: Option<Timestamp>,
        dead: Option<DeadReason>,
    },
}

impl Journal {
    pub(crate) fn started(&self, claim: &Claim) {
        self.note(format_args!("start {}: {}", Attempt(&claim.lease), claim.command));
    }

    /// An attempt of this worker was settled.
    pub(crate) fn settled(&self, settlement: &Settlement, settled: &SettledJob) {
        let recording = Recording::State {
            state: settled.state,
            next_retry_at: settled.next_retry_at,
            dead: settled.dead,
        };
        self.ended(settlement, recording);
    }

    /// An attempt of this worker was not settled, because its lease was lost.
    pub(crate) fn stale(&self, settlement: &Settlement) {
        self.ended(settlement, Recording::Nothing);
    }

    fn ended(&self, settlement: &Settlement, recording: Recording) {
        let Settlement { lease, outcome, error, duration, .. } = settlement;
        let ended = AttemptEnd { outcome: *outcome, error: error.as_deref(), duration: *duration, recording };
        self.note(format_args!("end {}: {ended}", Attempt(lease)));
    }

    pub(crate) fn worker_started(&self, slots: usize) {
        let (pid, plural) = (std::process::id(), if slots == 1 { "" } else { "s" });
        self.note(format_args!("worker started: pid {pid}, {slots} slot{plural}"));
    }

    pub(crate) fn worker_draining(&self) {
        self.note(format_args!("worker draining: it claims no more jobs"));
    }

    pub(crate) fn worker_releasing(&self) {
        self.note(format_args!("worker releasing its attempts: they are killed and become pending again"));
    }

    pub(crate) fn worker_stopped(&self) {
        self.note(format_args!("worker stopped"));
    }

    /// A worker ends although commands of these attempts still run.
    pub(crate) fn worker_stopped_with_unkillable(&self, left: &[LeaseRef]) {
        let left: Vec<String> = left.iter().map(|lease| Attempt(lease).to_string()).collect();
        let left = left.join(", ");
        self.note_repeatable(format!(
            "worker stopped with unkillable attempts: {left}; another worker releases them when their processes have ended"
        ));
    }

    /// A process survived SIGKILL.
    pub(crate) fn unkillable(&self, found: &UnkillableProcess) {
        let UnkillableProcess { lease, pid, why, .. } = found;
        self.note_repeatable(format!("process {pid} of {} cannot be killed: {why}", Attempt(lease)));
    }

    pub(crate) fn worker_crashed(&self, worker: &WorkerId, how: ExitStatus) {
        self.note(format_args!("worker {worker} crashed: {how}"));
    }

    pub(crate) fn worker_hung(&self, worker: &WorkerId) {
        self.note(format_args!("worker {worker} hung past the end of its leases: killed"));
    }

    /// The jobs of a dead worker were reaped.
    pub(crate) fn reaped(&self, worker: &WorkerId, what: &str, leases: &[LeaseRef]) {
        let jobs: Vec<&str> = leases.iter().map(|lease| lease.job.as_str()).collect();
        let held = if jobs.is_empty() { "no jobs".to_owned() } else { jobs.join(", ") };
        self.note(format_args!("worker {worker} {what}; it held {held}"));
    }

    /// A schedule enqueued this job.
    pub(crate) fn fired(&self, job: &JobId) {
        self.note(format_args!("schedule fired: {job} enqueued"));
    }

    pub(crate) fn schedule_paused(&self, schedule: &ScheduleName, why: &str) {
        self.note(format_args!("schedule {schedule} paused: {why}"));
    }

    pub(crate) fn cannot_recover(&self, worker: &WorkerId, why: &str) {
        self.note_repeatable(format!("the jobs of worker {worker} cannot be released yet: {why}"));
    }

    pub(crate) fn hook_failed(&self, hook: &HookName, why: &str) {
        self.note_repeatable(format!("hook {hook} failed: {why}"));
    }

    pub(crate) fn hook_gave_up(&self, hook: &HookName) {
        self.note(format_args!("hook {hook} failed for the last time for an event: it will not be retried"));
    }

    pub(crate) fn stop_requested(&self, gently: bool) {
        let what = if gently { "finish" } else { "release" };
        self.note(format_args!("stop requested: the workers {what} their attempts"));
    }

    pub(crate) fn error(&self, error: &dyn Error) {
        self.note_repeatable(format!("error: {}", Chain(error)));
    }
}

struct Attempt<'a>(&'a LeaseRef);

impl fmt::Display for Attempt<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} attempt {}", self.0.job, self.0.attempt)
    }
}

impl fmt::Display for AttemptEnd<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.error, self.outcome) {
            (Some(error), _) => out.write_str(error)?,
            (None, Outcome::Success) => out.write_str("completed")?,
            (None, outcome) => write!(out, "{outcome}")?,
        }
        write!(out, " ({})", Elapsed(self.duration))?;
        match self.recording {
            Recording::Nothing => out.write_str(", not recording: its lease was lost"),
            Recording::State { dead: Some(reason), .. } => {
                write!(out, ", dead: {}", reason.name().replace('_', " "))
            }
            Recording::State { state, next_retry_at, dead: None } => {
                self.fmt_state(out, state, next_retry_at)
            }
        }
    }
}

impl AttemptEnd<'_> {
    /// The new state, unless the outcome already implies it.
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
            (StateName::Pending, _) => out.write_str(", pending again"),
            (StateName::Failed | StateName::Processing | StateName::Cancelled | StateName::Dead, _) => {
                write!(out, ", {}", state.name())
            }
        }
    }
}

/// A duration in short form: `34ms`, `1.2s`, `3m20s`.
struct Elapsed(Duration);

impl fmt::Display for Elapsed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_secs() {
            0 => write!(out, "{}ms", self.0.as_millis()),
            1..60 => write!(out, "{}.{}s", self.0.as_secs(), self.0.subsec_millis() / 100),
            seconds => out.write_str(&format_span(Duration::from_secs(seconds))),
        }
    }
}

/// An error and its causes, on one line.
pub(crate) struct Chain<'a>(pub(crate) &'a dyn Error);

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
    fn the_line_for_an_ended_attempt_has_its_outcome_and_the_new_state() {
        let at: Timestamp = "2026-01-31T09:30:00Z".parse().expect("a time");
        let state = |state, next_retry_at| Recording::State { state, next_retry_at, dead: None };
        let dead =
            |reason| Recording::State { state: StateName::Dead, next_retry_at: None, dead: Some(reason) };
        let failure = Outcome::Failure { exit_code: 1 };
        for (outcome, error, millis, recording, text) in [
            (Outcome::Success, None, 1_290, state(StateName::Completed, None), "completed (1.2s)"),
            (
                failure,
                Some("exit code 1: no such file"),
                34,
                state(StateName::Failed, Some(at)),
                "exit code 1: no such file (34ms), retry at 2026-01-31T09:30:00.000Z",
            ),
            (
                failure,
                None,
                200_500,
                dead(DeadReason::RetriesExhausted),
                "exit code 1 (3m20s), dead: retries exhausted",
            ),
            (Outcome::Lost, None, 7, state(StateName::Pending, None), "its worker died (7ms), pending again"),
            (
                Outcome::Lost,
                None,
                7,
                dead(DeadReason::CrashLimit),
                "its worker died (7ms), dead: crash limit",
            ),
            (Outcome::Released, None, 0, state(StateName::Pending, None), "released (0ms), pending again"),
            (Outcome::Cancelled, None, 59_999, state(StateName::Cancelled, None), "cancelled (59.9s)"),
            (failure, None, 1_000, state(StateName::Cancelled, None), "exit code 1 (1.0s), cancelled"),
            (
                Outcome::Timeout,
                None,
                60_000,
                Recording::Nothing,
                "timed out (1m), not recording: its lease was lost",
            ),
        ] {
            let duration = Duration::from_millis(millis);
            assert_eq!(AttemptEnd { outcome, error, duration, recording }.to_string(), text);
        }
    }
}
