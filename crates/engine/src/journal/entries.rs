//! The lines of the journal that several places note, or that need some formatting.

use std::error::Error;
use std::iter::successors;
use std::time::Duration;

use super::Journal;
use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use domain::values::name::WorkerId;
use domain::values::span::format_span;
use store::{Claim, LeaseRef, SettledJob, Settlement, UnkillableProcess};

impl Journal {
    pub(crate) fn started(&self, claim: &Claim) {
        self.lines().name_by_number(&claim.lease.job, claim.number);
        self.note(format_args!("start {}: {}", attempt(&claim.lease), claim.command));
    }

    /// An attempt of this worker ended; without `settled` its lease was lost, so the result does not count.
    pub(crate) fn ended(&self, settlement: &Settlement, settled: Option<&SettledJob>) {
        self.note(format_args!("end {}: {}", attempt(&settlement.lease), end(settlement, settled)));
        self.lines().forget_number(&settlement.lease.job);
    }

    pub(crate) fn worker_started(&self, slots: usize) {
        let (pid, plural) = (std::process::id(), if slots == 1 { "" } else { "s" });
        self.note(format_args!("worker started: pid {pid}, {slots} slot{plural}"));
    }

    /// A worker ends although commands of these attempts still run.
    pub(crate) fn worker_stopped_with_unkillable(&self, left: &[LeaseRef]) {
        let left: Vec<String> = left.iter().map(attempt).collect();
        let left = left.join(", ");
        self.note_repeatable(format!(
            "worker stopped with unkillable attempts: {left}; another worker releases them when their processes have ended"
        ));
    }

    /// A process survived SIGKILL.
    pub(crate) fn unkillable(&self, found: &UnkillableProcess) {
        let UnkillableProcess { lease, pid, why, .. } = found;
        self.note_repeatable(format!("process {pid} of {} cannot be killed: {why}", attempt(lease)));
    }

    /// The jobs of a dead worker were reaped.
    pub(crate) fn reaped(&self, worker: &WorkerId, what: &str, leases: &[LeaseRef]) {
        let jobs: Vec<&str> = leases.iter().map(|lease| lease.job.as_str()).collect();
        let held = if jobs.is_empty() { "no jobs".to_owned() } else { jobs.join(", ") };
        self.note(format_args!("worker {worker} {what}; it held {held}"));
    }

    pub(crate) fn cannot_recover(&self, worker: &WorkerId, why: &str) {
        self.note_repeatable(format!("the jobs of worker {worker} cannot be released yet: {why}"));
    }

    pub(crate) fn error(&self, error: &dyn Error) {
        self.note_repeatable(format!("error: {}", chain(error)));
    }
}

fn attempt(lease: &LeaseRef) -> String {
    format!("{} attempt {}", lease.job, lease.attempt)
}

/// The result of an attempt, how long it took, and the new state of the job unless the outcome already implies it.
fn end(settlement: &Settlement, settled: Option<&SettledJob>) -> String {
    let outcome = settlement.outcome;
    let result = match &settlement.error {
        Some(error) => error.clone(),
        None if outcome == Outcome::Success => "completed".to_owned(),
        None => outcome.to_string(),
    };
    let recorded = match settled.map(|settled| (settled.state, settled.next_retry_at, settled.dead)) {
        None => ", not recording: its lease was lost".to_owned(),
        Some((_, _, Some(reason))) => format!(", dead: {}", reason.name().replace('_', " ")),
        Some((StateName::Completed, ..)) => String::new(),
        Some((StateName::Cancelled, ..)) if outcome == Outcome::Cancelled => String::new(),
        Some((StateName::Failed, Some(at), _)) => format!(", retry at {at}"),
        Some((StateName::Pending, ..)) => ", pending again".to_owned(),
        Some((
            state @ (StateName::Failed | StateName::Processing | StateName::Cancelled | StateName::Dead),
            ..,
        )) => {
            format!(", {}", state.name())
        }
    };
    format!("{result} ({}){recorded}", elapsed(settlement.duration))
}

/// A duration in short form: `34ms`, `1.2s`, `3m20s`.
fn elapsed(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{}ms", duration.as_millis()),
        seconds @ 1..60 => format!("{seconds}.{}s", duration.subsec_millis() / 100),
        seconds => format_span(Duration::from_secs(seconds)),
    }
}

/// An error and its causes, on one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let causes = successors(Some(error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::job::life::DeadReason;
    use domain::values::timestamp::Timestamp;

    #[test]
    fn the_line_for_an_ended_attempt_has_its_outcome_and_the_new_state() {
        let at: Timestamp = "2026-01-31T09:30:00Z".parse().expect("a time");
        let lease = LeaseRef { job: "a".parse().expect("an id"), attempt: 1 };
        let state = |state, next_retry_at| {
            Some(SettledJob { lease: lease.clone(), state, next_retry_at, dead: None })
        };
        let dead = |reason| {
            let lease = lease.clone();
            Some(SettledJob { lease, state: StateName::Dead, next_retry_at: None, dead: Some(reason) })
        };
        let failure = Outcome::Failure { exit_code: 1 };
        for (outcome, error, millis, settled, text) in [
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
            (Outcome::Timeout, None, 60_000, None, "timed out (1m), not recording: its lease was lost"),
        ] {
            let settlement = Settlement {
                outcome,
                error: error.map(str::to_owned),
                duration: Duration::from_millis(millis),
                ..Settlement::never_started(lease.clone())
            };
            assert_eq!(end(&settlement, settled.as_ref()), text);
        }
    }
}
