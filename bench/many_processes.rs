//! Many workers with one slot each, against one worker with as many slots: what it costs that they share a file.

use anyhow::Result;
use queuectl::domain::name::QueueName;
use queuectl::store::{Pause, Store};

use crate::Bench;
use crate::pool::Pool;
use crate::report::{Bar, Report, Unit};
use crate::sample::Sample;
use crate::tiny_jobs::{self, Drained};

const LEAST: f64 = 0.6;
const SLOTS: u32 = 16;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let (jobs, rounds) = if bench.quick { (1_000, 3) } else { (3_000, 7) };
    let measure = || Ok((drain(bench, jobs, 1, SLOTS)?, drain(bench, jobs, SLOTS, 1)?));
    let measured: Vec<(Drained, Drained)> = (0..rounds).map(|_| measure()).collect::<Result<_>>()?;

    let sample = |value: fn(&Drained, &Drained) -> f64| {
        measured.iter().map(|(one, many)| value(one, many)).collect::<Sample>()
    };
    let rate = |drained: &Drained| f64::from(jobs) / drained.seconds;
    let rate_of_one: Sample = measured.iter().map(|(one, _)| rate(one)).collect();
    let rate_of_many: Sample = measured.iter().map(|(_, many)| rate(many)).collect();
    Report::section(&format!("{jobs} jobs `true`, {SLOTS} workers with one slot, against one with {SLOTS}"));
    let ratio = sample(|one, many| one.seconds / many.seconds);
    report.line("rate of many, against one", &ratio, Unit::Ratio, Bar::AtLeast(LEAST));
    let failures = sample(|one, many| one.failures + many.failures);
    report.line("attempts that failed in both", &failures, Unit::Count, Bar::AtMost(0.0));
    report.line("jobs drained by many", &rate_of_many, Unit::JobsPerSecond, Bar::None);
    report.line("jobs drained by one", &rate_of_one, Unit::JobsPerSecond, Bar::None);
    Ok(())
}

/// The queue is held back until every worker is up: starting them is not what is measured.
fn drain(bench: &Bench, jobs: u32, workers: u32, slots: u32) -> Result<Drained> {
    let home = bench.workspace.home("many-processes")?;
    let queue = QueueName::default_queue();
    home.open()?.hold(&queue, Some(&Pause { by: "bench".to_owned(), reason: None }))?;
    tiny_jobs::enqueue(&home, jobs)?;
    let pool = Pool::start(home, workers as usize, slots)?;
    pool.store.hold(&queue, None)?;
    pool.wait_for_completed(jobs)?;
    let drained = tiny_jobs::drained(&pool.store, jobs)?;
    pool.stop()?;
    Ok(drained)
}
