//! Jobs that wait for each other, in chains, against as many that wait for nobody.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result};

use crate::Bench;
use crate::figure::count;
use crate::report::{Bar, Report, Unit};
use crate::sample::Sample;
use crate::tiny_jobs::{self, Drained};
use crate::workspace::Home;

const LEAST: f64 = 0.8;
const SLOTS: u32 = 4;
/// Each job of a chain but the first waits for the one before it.
const CHAIN: u32 = 10;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let (jobs, rounds) = if bench.quick { (5_000, 3) } else { (100_000, 3) };
    let mut measured: Vec<(Drained, Drained)> = Vec::new();
    for round in 1..=rounds {
        bench.progress(&format!("{jobs} plain jobs and as many in chains, round {round} of {rounds}"));
        measured.push((drain(bench, jobs, 1)?, drain(bench, jobs, CHAIN)?));
    }

    report.section(&format!(
        "{} jobs `true` in chains of {CHAIN}, {SLOTS} slots, against plain ones",
        count(jobs)
    ));
    let ratio: Sample = measured.iter().map(|(plain, chained)| plain.seconds / chained.seconds).collect();
    report.line("rate of a drain of chains, against plain jobs", &ratio, Unit::Ratio, Bar::AtLeast(LEAST));
    let failures: Sample =
        measured.iter().map(|(plain, chained)| plain.failures + chained.failures).collect();
    report.line("attempts that failed in both", &failures, Unit::Count, Bar::AtMost(0.0));
    let rate = |drained: &Drained| f64::from(jobs) / drained.seconds;
    let chained: Sample = measured.iter().map(|(_, chained)| rate(chained)).collect();
    report.line("jobs in chains drained", &chained, Unit::PerSecond, Bar::None);
    let plain: Sample = measured.iter().map(|(plain, _)| rate(plain)).collect();
    report.line("plain jobs drained", &plain, Unit::PerSecond, Bar::None);
    Ok(())
}

/// Drains so many jobs in chains of this length.
fn drain(bench: &Bench, jobs: u32, length: u32) -> Result<Drained> {
    let home = bench.workspace.home("graph")?;
    enqueue(&home, jobs, length)?;
    tiny_jobs::drain_by_slots(&home, SLOTS)?;
    tiny_jobs::drained(&home.open()?, jobs)
}

fn enqueue(home: &Home, jobs: u32, length: u32) -> Result<()> {
    let mut lines = String::new();
    for at in 0..jobs {
        let after =
            if at % length == 0 { String::new() } else { format!(r#","depends_on":["j{}"]"#, at - 1) };
        writeln!(lines, r#"{{"id":"j{at}","command":"true"{after}}}"#)?;
    }
    let file = home.path().join("jobs.jsonl");
    fs::write(&file, lines)?;
    let path = file.to_str().context("a plain path")?;
    home.queuectl(&["enqueue", "-q", "--file", path])?.run().context("failed to enqueue a file")?;
    Ok(fs::remove_file(&file)?)
}
