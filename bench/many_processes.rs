//! Many workers with one slot each, against one worker with as many slots: what it costs that they share a file.

use anyhow::Result;

use crate::Bench;
use crate::figure::count;
use crate::report::{Bar, Report, Unit};
use crate::sample::Sample;
use crate::tiny_jobs::{self, Drained, PoolShape};

const LEAST: f64 = 0.6;
const SLOTS: u32 = 16;
const ONE: PoolShape = PoolShape { workers: 1, slots: SLOTS };
const MANY: PoolShape = PoolShape { workers: SLOTS, slots: 1 };

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let (jobs, rounds) = if bench.quick { (1_000, 3) } else { (3_000, 7) };
    let drain =
        |shape| tiny_jobs::drain_by_pool(bench.workspace.home("many-processes")?, "true", jobs, shape);
    let mut measured: Vec<(Drained, Drained)> = Vec::new();
    for round in 1..=rounds {
        bench.progress(&format!("one worker and many, round {round} of {rounds}"));
        measured.push((drain(ONE)?, drain(MANY)?));
    }

    let sample = |value: fn(&Drained, &Drained) -> f64| {
        measured.iter().map(|(one, many)| value(one, many)).collect::<Sample>()
    };
    let rate = |drained: &Drained| f64::from(jobs) / drained.seconds;
    let rate_of_one: Sample = measured.iter().map(|(one, _)| rate(one)).collect();
    let rate_of_many: Sample = measured.iter().map(|(_, many)| rate(many)).collect();
    report.section(&format!(
        "{} jobs `true`, {SLOTS} workers with one slot, against one with {SLOTS}",
        count(jobs)
    ));
    let ratio = sample(|one, many| one.seconds / many.seconds);
    report.line("rate of many, against one", &ratio, Unit::Ratio, Bar::AtLeast(LEAST));
    let failures = sample(|one, many| one.failures + many.failures);
    report.line("attempts that failed in both", &failures, Unit::Count, Bar::AtMost(0.0));
    report.line("jobs drained by many", &rate_of_many, Unit::PerSecond, Bar::None);
    report.line("jobs drained by one", &rate_of_one, Unit::PerSecond, Bar::None);
    Ok(())
}
