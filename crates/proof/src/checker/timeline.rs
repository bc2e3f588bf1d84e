//! The timeline of one job from all sources, for investigating a violation.

use std::fmt::Write as _;

use super::case;
use super::case::Case;
use crate::evidence::Evidence;
use crate::ledger::LedgerEvent;

/// The requests, the ledger lines and the stored history of a job. Of the ticks only the last of each process is included.
pub fn timeline(evidence: &Evidence, id: &str) -> String {
    let cases = case::cases(evidence);
    let Some(case) = cases.iter().find(|case| case.id == id) else {
        return format!("no evidence about {id}\n");
    };
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_timeline(case, &mut text);
    text
}

fn write_timeline(case: &Case<'_>, out: &mut String) -> std::fmt::Result {
    if let Some(plan) = case.plan {
        writeln!(out, "  planned: {plan:?}")?;
    }
    for call in &case.calls {
        writeln!(out, "  {:>12} call    {call}", call.began.as_micros())?;
    }
    for (at, line) in case.lines.iter().enumerate() {
        let is_last = !case.lines[at + 1..].iter().any(|later| later.pid == line.pid);
        if is_last || !matches!(line.event, LedgerEvent::Tick { .. }) {
            writeln!(out, "  {:>12} ledger  {line}", line.at.as_micros())?;
        }
    }
    for attempt in case.history() {
        let ended = attempt.ending.as_ref();
        let ended = ended.map_or_else(
            || "has not ended".to_owned(),
            |ending| format!("ended {}: {}", ending.finished_at, ending.outcome),
        );
        let (number, worker) = (attempt.number, &attempt.worker);
        writeln!(out, "  history: attempt {number} on {worker}, claimed {}, {ended}", attempt.started_at)?;
    }
    if let Some(job) = case.job {
        writeln!(out, "  stored: {:?}", job.record.job.life)?;
    }
    Ok(())
}
