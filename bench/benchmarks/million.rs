//! The long run: one worker drains very many jobs while other processes enqueue, list and ask for the status. Neither
//! memory nor the write-ahead log nor the latency of the other processes may grow over time.

mod beside;
mod watch;

use anyhow::Result;

use self::beside::Calls;
use self::watch::Observations;
use crate::Bench;
use crate::output::figure::count;
use crate::output::plot::{Axis, Kind, LineChart, Series};
use crate::output::report::{Bar, Report, Unit};
use crate::rig::pool::Pool;
use crate::rig::sample::Sample;
use crate::rig::tiny_jobs;

const SLOTS: u32 = 16;
const MAX_BYTES_PER_JOB: f64 = 600.0;
/// Limit for the ratio of resident memory near the end to that near the beginning.
const MAX_GROWTH: f64 = 1.25;
/// Generous limits, reached only by a cost that grows with the number of jobs.
const MAX_LOG_MEGABYTES: f64 = 64.0;
const MAX_LATENCY_MILLISECONDS: f64 = 250.0;
const TAIL_QUANTILE: f64 = 0.99;
/// The number of points per line in a plot.
const POINTS_PER_LINE: u32 = 120;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let (jobs, step) = if bench.quick { (20_000, 1_000) } else { (1_000_000, 50_000) };
    let home = bench.workspace.home("million")?;
    bench.progress(&format!("enqueuing {} jobs", count(jobs)));
    tiny_jobs::enqueue(&home, "true", jobs)?;

    let pool = Pool::start(home, 1, SLOTS)?;
    let (observed, calls) =
        beside::with_concurrent_calls(&pool.home, || watch::drain(bench, &pool, jobs, step))?;
    let stored = jobs + beside::enqueued(&calls)?;
    pool.wait_for_completed(stored)?;
    let home = pool.stop()?;
    let bytes = Sample::of(tiny_jobs::checkpointed_bytes(&home)? / f64::from(stored));

    let jobs = count(jobs);
    report.section(&format!(
        "{jobs} jobs `true` drained with {SLOTS} slots, while other processes call enqueue, list and status"
    ));
    report_drain(report, &observed, step);
    report.line("database size per finished job", &bytes, Unit::Bytes, Bar::AtMost(MAX_BYTES_PER_JOB));
    for call in &calls {
        let unit = Unit::Milliseconds;
        report.line(&format!("`{}` during the drain", call.verb), &call.times(), unit, Bar::None);
        let (tail, most) = (call.times().at(TAIL_QUANTILE), Bar::AtMost(MAX_LATENCY_MILLISECONDS));
        report.line(&format!("`{}` during the drain, 99th percentile", call.verb), &tail, unit, most);
        report.line(
            &format!("`{}` during the drain, maximum", call.verb),
            &call.times().at(1.0),
            unit,
            Bar::None,
        );
    }
    for (name, chart) in charts(&observed, &calls, step) {
        report.plot(name, &chart.title, chart.svg());
    }
    Ok(())
}

fn report_drain(report: &mut Report, observed: &Observations, step: u32) {
    let rates = observed.rates(step);
    let seconds = Sample::of(observed.seconds());
    report.line("time to finish all jobs", &seconds, Unit::Seconds, Bar::None);
    report.line(&format!("jobs drained, in steps of {}", count(step)), &rates, Unit::PerSecond, Bar::None);
    report.line("worker: resident memory", &observed.memory(), Unit::Megabytes, Bar::None);
    report.line("worker: resident memory, maximum", &observed.memory().at(1.0), Unit::Megabytes, Bar::None);
    let growth = Sample::of(observed.growth());
    report.line(
        "worker: resident memory in the last fifth, relative to the second",
        &growth,
        Unit::Ratio,
        Bar::AtMost(MAX_GROWTH),
    );
    let log = observed.log().at(1.0);
    report.line("write-ahead log, maximum", &log, Unit::Megabytes, Bar::AtMost(MAX_LOG_MEGABYTES));
}

fn charts(observed: &Observations, calls: &[Calls], step: u32) -> [(&'static str, LineChart); 3] {
    let seconds = || Axis::new("seconds", Kind::Linear);
    let memory = LineChart {
        title: "The long run: memory of the worker, size of the write-ahead log".to_owned(),
        across: seconds(),
        upwards: Axis::new("megabytes", Kind::Linear),
        series: vec![
            Series::new("worker, resident", observed.memory_over_time()),
            Series::new("write-ahead log", observed.log_over_time()),
        ],
    };
    let worst = |call: &Calls| Series::new(call.verb, call.worst_over_time(POINTS_PER_LINE));
    let latency = LineChart {
        title: "The long run: highest latency of other processes".to_owned(),
        across: seconds(),
        upwards: Axis::new("milliseconds", Kind::Linear),
        series: calls.iter().map(worst).collect(),
    };
    let rate = LineChart {
        title: format!("The long run: rate in steps of {} jobs", count(step)),
        across: Axis::new("jobs finished", Kind::Linear),
        upwards: Axis::new("jobs per second", Kind::Linear),
        series: vec![Series::new("true, 16 slots", observed.rates_over_jobs(step))],
    };
    [("long-run-memory", memory), ("long-run-latency", latency), ("long-run-rate", rate)]
}
