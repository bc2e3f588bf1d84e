//! Jobs in chains of dependencies, compared with as many independent jobs.

use std::fmt::Write as _;

use anyhow::Result;

use crate::Bench;
use crate::output::figure::count;
use crate::output::report::{Bar, Report, Unit};
use crate::rig::sample::Sample;
use crate::rig::tiny_jobs::{self, DrainResult};
use crate::rig::workspace::Home;

const MIN_RATIO: f64 = 0.8;
const SLOTS: u32 = 4;
/// The length of a chain: each job but the first depends on the previous one.
const CHAIN_LENGTH: u32 = 10;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let (jobs, rounds) = if bench.quick { (5_000, 3) } else { (100_000, 3) };
    let mut measured: Vec<(DrainResult, DrainResult)> = Vec::new();
    for round in 1..=rounds {
        bench.progress(&format!("{jobs} plain jobs and as many in chains, round {round} of {rounds}"));
        measured.push((drain(bench, jobs, 1)?, drain(bench, jobs, CHAIN_LENGTH)?));
    }

    report.section(&format!(
        "{} jobs `true` in chains of {CHAIN_LENGTH}, {SLOTS} slots, compared with plain jobs",
        count(jobs)
    ));
    let ratio: Sample = measured.iter().map(|(plain, chained)| plain.seconds / chained.seconds).collect();
    report.line("drain rate of chains, relative to plain jobs", &ratio, Unit::Ratio, Bar::AtLeast(MIN_RATIO));
    let failures: Sample =
        measured.iter().map(|(plain, chained)| plain.failures + chained.failures).collect();
    report.line("failed attempts in both", &failures, Unit::Count, Bar::AtMost(0.0));
    let rate = |drained: &DrainResult| f64::from(jobs) / drained.seconds;
    let chained: Sample = measured.iter().map(|(_, chained)| rate(chained)).collect();
    report.line("jobs in chains drained", &chained, Unit::PerSecond, Bar::None);
    let plain: Sample = measured.iter().map(|(plain, _)| rate(plain)).collect();
    report.line("plain jobs drained", &plain, Unit::PerSecond, Bar::None);
    Ok(())
}

/// Drains this number of jobs, in chains of this length.
fn drain(bench: &Bench, jobs: u32, length: u32) -> Result<DrainResult> {
    let home = bench.workspace.home("graph")?;
    enqueue(&home, jobs, length)?;
    tiny_jobs::drain_by_slots(&home, SLOTS)?;
    tiny_jobs::drain_result(home.open()?.as_ref(), jobs)
}

fn enqueue(home: &Home, jobs: u32, length: u32) -> Result<()> {
    let mut lines = String::new();
    for at in 0..jobs {
        let after =
            if at % length == 0 { String::new() } else { format!(r#","depends_on":["j{}"]"#, at - 1) };
        writeln!(lines, r#"{{"id":"j{at}","command":"true"{after}}}"#)?;
    }
    tiny_jobs::enqueue_lines(home, &lines)
}
