//! Many workers with one slot each, compared with one worker with as many slots: the cost of sharing the database file.

use anyhow::Result;

use crate::Bench;
use crate::output::figure::count;
use crate::output::report::{Bar, Report, Unit};
use crate::rig::sample::Sample;
use crate::rig::tiny_jobs::{self, DrainResult, PoolShape};

const MIN_RATIO: f64 = 0.6;
const SLOTS: u32 = 16;
const ONE_WORKER: PoolShape = PoolShape { workers: 1, slots: SLOTS };
const MANY_WORKERS: PoolShape = PoolShape { workers: SLOTS, slots: 1 };

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let (jobs, rounds) = if bench.quick { (1_000, 3) } else { (3_000, 7) };
    let drain =
        |shape| tiny_jobs::drain_by_pool(bench.workspace.home("many-processes")?, "true", jobs, shape);
    let mut measured: Vec<(DrainResult, DrainResult)> = Vec::new();
    for round in 1..=rounds {
        bench.progress(&format!("one worker and many, round {round} of {rounds}"));
        measured.push((drain(ONE_WORKER)?, drain(MANY_WORKERS)?));
    }

    let sample = |value: fn(&DrainResult, &DrainResult) -> f64| {
        measured.iter().map(|(one, many)| value(one, many)).collect::<Sample>()
    };
    let rate = |drained: &DrainResult| f64::from(jobs) / drained.seconds;
    let rate_of_one: Sample = measured.iter().map(|(one, _)| rate(one)).collect();
    let rate_of_many: Sample = measured.iter().map(|(_, many)| rate(many)).collect();
    report.section(&format!(
        "{} jobs `true`, {SLOTS} workers with one slot, compared with one worker with {SLOTS}",
        count(jobs)
    ));
    let ratio = sample(|one, many| one.seconds / many.seconds);
    report.line("rate of many workers, relative to one", &ratio, Unit::Ratio, Bar::AtLeast(MIN_RATIO));
    let failures = sample(|one, many| one.failures + many.failures);
    report.line("failed attempts in both", &failures, Unit::Count, Bar::AtMost(0.0));
    report.line("jobs drained by many workers", &rate_of_many, Unit::PerSecond, Bar::None);
    report.line("jobs drained by one worker", &rate_of_one, Unit::PerSecond, Bar::None);
    Ok(())
}
