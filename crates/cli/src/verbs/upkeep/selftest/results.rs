//! The results of a campaign: the damage done, each promise and whether it held, and every violation with its history.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::table::{Cell, Table};
use crate::render::text::{grouped, printable};
use proof::campaign::{Campaign, Report};
use proof::checker::Verdict;
use proof::plan::Timing;
use proof::promise::Promise;

/// Prints the results. Returns whether every promise held.
pub(super) fn show(context: &Context, campaign: &Campaign, reports: &[Report]) -> Result<bool, Failure> {
    let sum = Sum::of(campaign, reports);
    context.print(&sum, |out| sum.write(out, context.width()))?;
    if !context.json {
        print_violations(context, reports)?;
    }
    Ok(sum.ok)
}

#[derive(Serialize)]
struct Sum {
    ok: bool,
    seed: u64,
    trials: usize,
    jobs: u64,
    attempts: u64,
    calls: u64,
    unknown: u64,
    excused_overlaps: u64,
    damage: Vec<FaultCount>,
    promises: Vec<PromiseResult>,
    violations: Vec<ViolationJson>,
}

#[derive(Serialize)]
struct FaultCount {
    kind: &'static str,
    what: &'static str,
    trials: u64,
    strikes: u64,
}

#[derive(Serialize)]
struct PromiseResult {
    promise: Promise,
    facts: u64,
    /// `None` if it was not tested, or the machine was too busy to measure it.
    held: Option<bool>,
    /// It was tested, but the machine was too busy to tell.
    too_busy: bool,
    /// A measurement, if the promise has one.
    measured: Option<String>,
}

#[derive(Serialize)]
struct ViolationJson {
    invariant: &'static str,
    says: &'static str,
    job: Option<String>,
    what: String,
    repeat: String,
    kept: Option<String>,
}

impl Sum {
    fn of(campaign: &Campaign, reports: &[Report]) -> Self {
        let mut verdict = Verdict::default();
        for report in reports {
            verdict.merge(report.verdict.clone());
        }
        let promises: Vec<PromiseResult> =
            Promise::ALL.map(|promise| PromiseResult::of(promise, &verdict, campaign, reports)).into();
        Self {
            ok: !reports.is_empty() && verdict.violations.is_empty(),
            seed: campaign.seed,
            trials: reports.len(),
            jobs: reports.iter().map(|report| report.jobs).sum(),
            attempts: reports.iter().map(|report| report.attempts).sum(),
            calls: reports.iter().map(|report| report.calls).sum(),
            unknown: reports.iter().map(|report| report.unknown).sum(),
            excused_overlaps: verdict.excused_overlaps,
            damage: count_faults(reports),
            promises,
            violations: reports.iter().flat_map(violations).collect(),
        }
    }

    fn write(&self, out: &mut dyn Write, width: usize) -> std::io::Result<()> {
        let mut done = Table::new(&["STRIKES", "TRIALS", "FAULT"]).with_numbers(&["STRIKES", "TRIALS"]);
        for damage in &self.damage {
            done.row(vec![grouped(damage.strikes).into(), grouped(damage.trials).into(), damage.what.into()]);
        }
        done.write(out, width)?;
        writeln!(out)?;
        let mut held = Table::new(&["HELD", "FACTS", "PROMISE"]).with_numbers(&["FACTS"]);
        for promise in &self.promises {
            held.row(promise.row());
        }
        held.write(out, width)?;
        let Self { trials, jobs, attempts, calls, unknown, excused_overlaps, seed, .. } = self;
        let (jobs, attempts, calls) = (grouped(*jobs), grouped(*attempts), grouped(*calls));
        let trials = counted_trials(*trials as u64);
        writeln!(
            out,
            "\n{trials} with seed {seed}: {jobs} jobs, {attempts} attempts, {calls} calls, {unknown} with unknown outcome."
        )?;
        if *excused_overlaps > 0 {
            writeln!(
                out,
                "{excused_overlaps} commands of stopped hosts overlapped with the next attempt when they continued, \
                 which queuectl cannot prevent."
            )?;
        }
        Ok(())
    }
}

impl PromiseResult {
    fn of(promise: Promise, verdict: &Verdict, campaign: &Campaign, reports: &[Report]) -> Self {
        let invariants = promise.invariants();
        let longest = reports.iter().filter_map(|report| report.longest_abandoned).max();
        let facts = invariants.iter().filter_map(|one| verdict.checks.get(one)).sum();
        let is_kept = !invariants.iter().any(|invariant| verdict.is_broken(*invariant));
        Self {
            promise,
            facts,
            held: (facts > 0).then_some(is_kept),
            too_busy: facts == 0
                && promise == Promise::NoticedSoon
                && reports.iter().any(|report| report.is_too_busy),
            measured: longest
                .filter(|_| promise == Promise::NoticedSoon)
                .map(|longest| describe_longest(longest, campaign)),
        }
    }

    fn row(&self) -> Vec<Cell> {
        let held = match self.held {
            None if self.too_busy => Cell::styled("too busy to tell", AnsiColor::Yellow.on_default()),
            None => Cell::styled("untested", Style::new().dimmed()),
            Some(true) => Cell::styled("yes", AnsiColor::Green.on_default()),
            Some(false) => Cell::styled("NO", AnsiColor::Red.on_default().bold()),
        };
        let measured = self.measured.as_deref().map_or_else(String::new, |measured| format!(" ({measured})"));
        vec![held, grouped(self.facts).into(), format!("{}{measured}", self.promise.name()).into()]
    }
}

/// `1 trial`, `2 trials`
pub(super) fn counted_trials(count: u64) -> String {
    format!("{} {}", grouped(count), if count == 1 { "trial" } else { "trials" })
}

/// On a server, other hosts may have to notice: after its lease and a heartbeat.
fn describe_longest(longest: Duration, campaign: &Campaign) -> String {
    let longest = longest.as_millis();
    if campaign.server.is_none() {
        return format!("{longest} ms at most");
    }
    let Timing { lease, heartbeat, .. } = Timing::ON_A_SERVER;
    let by_others = (lease + heartbeat).as_millis();
    format!("by other hosts after its lease and a heartbeat, {by_others} ms; {longest} ms at most")
}

fn count_faults(reports: &[Report]) -> Vec<FaultCount> {
    let mut kinds: BTreeMap<&str, FaultCount> = BTreeMap::new();
    for report in reports {
        let new = FaultCount { kind: report.nemesis, what: report.description, trials: 0, strikes: 0 };
        let kind = kinds.entry(report.nemesis).or_insert(new);
        kind.trials += 1;
        kind.strikes += report.strikes;
    }
    kinds.into_values().collect()
}

fn violations(report: &Report) -> impl Iterator<Item = ViolationJson> {
    report.verdict.violations.iter().map(|violation| ViolationJson {
        invariant: violation.invariant.name(),
        says: violation.invariant.description(),
        job: violation.job.clone(),
        what: violation.what.clone(),
        repeat: report.repeat(),
        kept: report.kept.as_ref().map(|path| path.display().to_string()),
    })
}

/// Prints each violation, the history of its job, and the command that repeats the trial.
fn print_violations(context: &Context, reports: &[Report]) -> Result<(), Failure> {
    let mut out = context.notes();
    let red = AnsiColor::Red.on_default().bold();
    for report in reports.iter().filter(|report| !report.verdict.violations.is_empty()) {
        for violation in &report.verdict.violations {
            writeln!(out, "{red}violated:{red:#} {}", printable(&violation.to_string()))?;
        }
        for line in report.timelines.iter().flat_map(|timeline| timeline.lines()) {
            writeln!(out, "{}", printable(line))?;
        }
        if let Some(kept) = &report.kept {
            writeln!(out, "its files are kept in {}", kept.display())?;
        }
        writeln!(out, "to repeat this trial: {}", report.repeat())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proof::checker::{Invariant, Violation};
    use proof::sandbox::Program;
    use proof::trial::TrialLimits;

    fn broken() -> Report {
        let violation = Violation {
            invariant: Invariant::NoOverlap,
            job: Some("j7".to_owned()),
            what: "the daemon of attempt 1 was alive".to_owned(),
        };
        let checks = [(Invariant::NoOverlap, 12), (Invariant::NoneLost, 3)].into();
        Report {
            seed: 8,
            nemesis: "kill-worker",
            description: "kill -9 of a worker",
            strikes: 2,
            jobs: 5,
            attempts: 6,
            calls: 7,
            unknown: 0,
            longest_abandoned: None,
            is_too_busy: false,
            verdict: Verdict { checks, violations: vec![violation], ..Verdict::default() },
            timelines: vec!["j7\n  history".to_owned()],
            kept: Some("/tmp/kept".into()),
            store: None,
        }
    }

    fn sum(reports: &[Report]) -> Sum {
        let campaign = Campaign {
            program: Program::new("queuectl".into()),
            inside: "/tmp".into(),
            seed: 7,
            lasts: Duration::ZERO,
            only: None,
            server: None,
            limits: TrialLimits {
                notice_within: Duration::from_secs(1),
                max_stall: Duration::from_secs(60),
                up_to_load: 2.0,
            },
        };
        Sum::of(&campaign, reports)
    }

    #[test]
    fn a_broken_promise_is_reported_with_the_command_that_repeats_it() {
        let sum = sum(&[broken()]);
        assert!(!sum.ok);
        let violation = &sum.violations[0];
        assert_eq!((violation.invariant, violation.job.as_deref()), ("I6", Some("j7")));
        assert_eq!(violation.repeat, "queuectl selftest --only kill-worker --seed 8 --seconds 0");
        let mut out = Vec::new();
        sum.write(&mut anstream::StripStream::new(&mut out), 80).expect("writing to a Vec does not fail");
        let text = String::from_utf8(out).expect("text");
        assert!(text.contains("NO           12  two attempts of one job never overlap"), "{text}");
        assert!(text.contains("yes           3  an acknowledged job is never lost"), "{text}");
        assert!(text.contains("untested      0  an attempt starts at most once"), "{text}");
    }

    #[test]
    fn a_machine_that_is_too_busy_is_no_untested_promise() {
        let sum = sum(&[Report { is_too_busy: true, verdict: Verdict::default(), ..broken() }]);
        let mut out = Vec::new();
        sum.write(&mut anstream::StripStream::new(&mut out), 80).expect("writing to a Vec does not fail");
        let text = String::from_utf8(out).expect("text");
        assert!(
            text.contains("too busy to tell      0  a dead worker is noticed in under a second"),
            "{text}"
        );
        assert!(text.contains("untested              0  an acknowledged job is never lost"), "{text}");
        assert!(text.contains("\n1 trial with seed 7: "), "{text}");
    }

    #[test]
    fn a_campaign_without_trials_is_not_ok() {
        assert!(!sum(&[]).ok);
    }
}
