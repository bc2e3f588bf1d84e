//! The story of one job, as everybody tells it: for whoever looks into a violation.

use std::fmt::Write as _;

use super::case;
use super::case::Case;
use crate::evidence::Evidence;
use crate::ledger::What;

/// What was asked for, what its commands wrote, and what the store says. Signs of life are left out, but for the last of
/// each process.
pub fn story(evidence: &Evidence, id: &str) -> String {
    let cases = case::cases(evidence);
    let Some(case) = cases.iter().find(|case| case.id == id) else {
        return format!("nothing is known of {id}\n");
    };
    let mut told = String::new();
    // Writing to a string cannot fail.
    let _ = tell(case, &mut told);
    told
}

fn tell(case: &Case<'_>, told: &mut String) -> std::fmt::Result {
    if let Some(plan) = case.plan {
        writeln!(told, "  planned: {plan:?}")?;
    }
    for call in &case.calls {
        writeln!(told, "  {:>12} call    {call}", call.began.as_micros())?;
    }
    for (at, line) in case.lines.iter().enumerate() {
        let is_last = !case.lines[at + 1..].iter().any(|later| later.pid == line.pid);
        if is_last || !matches!(line.what, What::Tick { .. }) {
            writeln!(told, "  {:>12} ledger  {line}", line.at.as_micros())?;
        }
    }
    for attempt in case.history() {
        let ended = attempt.ending.as_ref();
        let ended = ended.map_or_else(
            || "has not ended".to_owned(),
            |ending| format!("ended {}: {}", ending.finished_at, ending.outcome),
        );
        let (number, worker) = (attempt.number, &attempt.worker);
        writeln!(told, "  history: attempt {number} on {worker}, claimed {}, {ended}", attempt.started_at)?;
    }
    if let Some(job) = case.job {
        writeln!(told, "  stored: {:?}", job.record.job.life)?;
    }
    Ok(())
}
