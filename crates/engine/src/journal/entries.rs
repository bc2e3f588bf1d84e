//! What the lines of the journal say.

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
struct Ended<'a> {
    outcome: Outcome,
    /// How it ended and the last thing it said, where there is more to say than the outcome.
    error: Option<&'a str>,
    duration: Duration,
    recorded: Recorded,
}

/// What became of the job.
#[derive(Clone, Copy, Debug)]
enum Recorded {
    /// Nothing: the lease was lost, so the result does not count.
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

    /// An attempt of this worker was recorded.
    pub(crate) fn settled(&self, settlement: &Settlement, settled: &SettledJob) {
        let recorded = Recorded::State {
            state: settled.state,
            next_retry_at: settled.next_retry_at,
            dead: settled.dead,
        };
        self.ended(settlement, recorded);
    }

    /// An attempt of this worker was not recorded, because its lease was lost.
    pub(crate) fn stale(&self, settlement: &Settlement) {
        self.ended(settlement, Recorded::Nothing);
    }

    fn ended(&self, settlement: &Settlement, recorded: Recorded) {
        let Settlement { lease, outcome, error, duration, .. } = settlement;
        let ended = Ended { outcome: *outcome, error: error.as_deref(), duration: *duration, recorded };
        self.note(format_args!("end {}: {ended}", Attempt(lease)));
    }

    pub(crate) fn worker_started(&self, slots: usize) {
        let (pid, plural) = (std::process::id(), if slots == 1 { "" } else { "s" });
        self.note(format_args!("worker started: pid {pid}, {slots} slot{plural}"));
    }

    pub(crate) fn worker_draining(&self) {
        self.note(format_args!("worker draining: it claims nothing more"));
    }

    pub(crate) fn worker_ends_attempts(&self) {
        self.note(format_args!("worker ending what it runs: it is killed and given back"));
    }

    pub(crate) fn worker_stopped(&self) {
        self.note(format_args!("worker stopped"));
    }

    /// A worker ends although commands of these attempts run on.
    pub(crate) fn worker_leaves(&self, left: &[LeaseRef]) {
        let left: Vec<String> = left.iter().map(|lease| Attempt(lease).to_string()).collect();
        let left = left.join(", ");
        self.note_trouble(format!(
            "worker stopped with unkillable attempts: {left}; another worker releases them when their processes have ended"
        ));
    }

    /// A process outlived SIGKILL.
    pub(crate) fn unkillable(&self, found: &UnkillableProcess) {
        let UnkillableProcess { lease, pid, why, .. } = found;
        self.note_trouble(format!("process {pid} of {} cannot be killed: {why}", Attempt(lease)));
    }

    pub(crate) fn worker_crashed(&self, worker: &WorkerId, how: ExitStatus) {
        self.note(format_args!("worker {worker} crashed: {how}"));
    }

    pub(crate) fn worker_hangs(&self, worker: &WorkerId) {
        self.note(format_args!("worker {worker} held its leases past their time: killed"));
    }

    /// The jobs of a worker that died were given back.
    pub(crate) fn reaped(&self, worker: &WorkerId, what: &str, leases: &[LeaseRef]) {
        let jobs: Vec<&str> = leases.iter().map(|lease| lease.job.as_str()).collect();
        let held = if jobs.is_empty() { "nothing".to_owned() } else { jobs.join(", ") };
        self.note(format_args!("worker {worker} {what}; it held {held}"));
    }

    /// A schedule's time had come.
    pub(crate) fn fired(&self, job: &JobId) {
        self.note(format_args!("schedule fired: {job} is enqueued"));
    }

    pub(crate) fn schedule_held(&self, schedule: &ScheduleName, why: &str) {
        self.note(format_args!("schedule {schedule} is held back: {why}"));
    }

    pub(crate) fn cannot_recover(&self, worker: &WorkerId, why: &str) {
        self.note_trouble(format!("the jobs of worker {worker} cannot be given back yet: {why}"));
    }

    pub(crate) fn hook_failed(&self, hook: &HookName, why: &str) {
        self.note_trouble(format!("hook {hook} could not be told: {why}"));
    }

    pub(crate) fn hook_gave_up(&self, hook: &HookName) {
        self.note(format_args!("hook {hook} will not be told of an event any more"));
    }

    pub(crate) fn told_to_stop(&self, gently: bool) {
        let what = if gently { "finish what they run" } else { "end what they run" };
        self.note(format_args!("told to stop: the workers {what}"));
    }

    pub(crate) fn trouble(&self, error: &dyn Error) {
        self.note_trouble(format!("trouble: {}", Chain(error)));
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
        write!(out, " ({})", Took(self.duration))?;
        match self.recorded {
            Recorded::Nothing => out.write_str(", not recorded: its lease was lost"),
            Recorded::State { dead: Some(reason), .. } => write!(out, ", dead: {}", reason.name()),
            Recorded::State { state, next_retry_at, dead: None } => self.fmt_state(out, state, next_retry_at),
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
            (StateName::Pending, _) => out.write_str(", pending again"),
            (StateName::Failed | StateName::Processing | StateName::Cancelled | StateName::Dead, _) => {
                write!(out, ", {}", state.name())
            }
        }
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

/// An error and its causes, in one line.
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
    fn the_end_of_an_attempt_says_how_and_what_follows() {
        let at: Timestamp = "2026-01-31T09:30:00Z".parse().expect("a time");
        let state = |state, next_retry_at| Recorded::State { state, next_retry_at, dead: None };
        let dead =
            |reason| Recorded::State { state: StateName::Dead, next_retry_at: None, dead: Some(reason) };
        let failure = Outcome::Failure { exit_code: 1 };
        for (outcome, error, millis, recorded, text) in [
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
                "exit code 1 (3m20s), dead: retries_exhausted",
            ),
            (Outcome::Lost, None, 7, state(StateName::Pending, None), "its worker died (7ms), pending again"),
            (
                Outcome::Lost,
                None,
                7,
                dead(DeadReason::CrashLimit),
                "its worker died (7ms), dead: crash_limit",
            ),
            (Outcome::Released, None, 0, state(StateName::Pending, None), "released (0ms), pending again"),
            (Outcome::Cancelled, None, 59_999, state(StateName::Cancelled, None), "cancelled (59.9s)"),
            (failure, None, 1_000, state(StateName::Cancelled, None), "exit code 1 (1.0s), cancelled"),
            (
                Outcome::Timeout,
                None,
                60_000,
                Recorded::Nothing,
                "timed out (1m), not recorded: its lease was lost",
            ),
        ] {
            let duration = Duration::from_millis(millis);
            assert_eq!(Ended { outcome, error, duration, recorded }.to_string(), text);
        }
    }
}
