//! The long run: very many jobs drained by one worker, while others enqueue and look. Nothing may grow with the time
//! that it takes, neither memory nor the write-ahead log nor the patience that the others need.

mod beside;
mod watch;

use anyhow::Result;

use self::beside::Calls;
use self::watch::Watched;
use crate::figure::count;
use crate::plot::{Axis, Kind, LineChart, Series};
use crate::pool::Pool;
use crate::report::{Bar, Report, Unit};
use crate::sample::Sample;
use crate::{Bench, tiny_jobs};

const SLOTS: u32 = 16;
const MOST_BYTES: f64 = 600.0;
/// What is resident near the end may be so much more than near the beginning.
const MOST_GROWTH: f64 = 1.25;
/// Bounds that nothing comes near unless it grows with the number of jobs.
const MOST_LOG_MEGABYTES: f64 = 64.0;
const MOST_WAIT_MILLISECONDS: f64 = 250.0;
const TAIL: f64 = 0.99;
/// A picture has so many points for each line.
const POINTS: u32 = 120;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let (jobs, step) = if bench.quick { (20_000, 1_000) } else { (1_000_000, 50_000) };
    let home = bench.workspace.home("million")?;
    bench.progress(&format!("enqueuing {} jobs", count(jobs)));
    tiny_jobs::enqueue(&home, "true", jobs)?;

    let pool = Pool::start(home, 1, SLOTS)?;
    let (watched, calls) = beside::while_others_go_on(&pool.home, || watch::drain(bench, &pool, jobs, step))?;
    let stored = jobs + beside::enqueued(&calls)?;
    pool.wait_for_completed(stored)?;
    let home = pool.stop()?;
    let bytes = Sample::of(tiny_jobs::folded_bytes(&home)? / f64::from(stored));

    let jobs = count(jobs);
    report.section(&format!(
        "{jobs} jobs `true` drained with {SLOTS} slots, while others enqueue, list and look"
    ));
    say_how_it_drained(report, &watched, step);
    report.line("database size for each finished job", &bytes, Unit::Bytes, Bar::AtMost(MOST_BYTES));
    for call in &calls {
        let unit = Unit::Milliseconds;
        report.line(&format!("`{}` beside it", call.verb), &call.times(), unit, Bar::None);
        let (tail, most) = (call.times().at(TAIL), Bar::AtMost(MOST_WAIT_MILLISECONDS));
        report.line(&format!("`{}` beside it, 99th percentile", call.verb), &tail, unit, most);
        report.line(&format!("`{}` beside it, at worst", call.verb), &call.times().at(1.0), unit, Bar::None);
    }
    for (name, chart) in charts(&watched, &calls, step) {
        report.plot(name, &chart.title, chart.svg());
    }
    Ok(())
}

fn say_how_it_drained(report: &mut Report, watched: &Watched, step: u32) {
    let rates = watched.rates(step);
    let seconds = Sample::of(watched.seconds());
    report.line("time until they were finished", &seconds, Unit::Seconds, Bar::None);
    report.line(&format!("jobs drained, for every {}", count(step)), &rates, Unit::PerSecond, Bar::None);
    report.line("worker: resident", &watched.memory(), Unit::Megabytes, Bar::None);
    report.line("worker: resident, at most", &watched.memory().at(1.0), Unit::Megabytes, Bar::None);
    let growth = Sample::of(watched.growth());
    report.line(
        "worker: resident in the last fifth, against the second",
        &growth,
        Unit::Ratio,
        Bar::AtMost(MOST_GROWTH),
    );
    let log = watched.log().at(1.0);
    report.line("write-ahead log, at most", &log, Unit::Megabytes, Bar::AtMost(MOST_LOG_MEGABYTES));
}

fn charts(watched: &Watched, calls: &[Calls], step: u32) -> [(&'static str, LineChart); 3] {
    let seconds = || Axis::new("seconds", Kind::Linear);
    let memory = LineChart {
        title: "The long run: memory of the worker, size of the write-ahead log".to_owned(),
        across: seconds(),
        upwards: Axis::new("megabytes", Kind::Linear),
        series: vec![
            Series::new("worker, resident", watched.memory_over_time()),
            Series::new("write-ahead log", watched.log_over_time()),
        ],
    };
    let worst = |call: &Calls| Series::new(call.verb, call.worst_over_time(POINTS));
    let latency = LineChart {
        title: "The long run: what others waited, at worst".to_owned(),
        across: seconds(),
        upwards: Axis::new("milliseconds", Kind::Linear),
        series: calls.iter().map(worst).collect(),
    };
    let rate = LineChart {
        title: format!("The long run: rate of every {} jobs", count(step)),
        across: Axis::new("jobs finished", Kind::Linear),
        upwards: Axis::new("jobs per second", Kind::Linear),
        series: vec![Series::new("true, 16 slots", watched.rates_over_jobs(step))],
    };
    [("long-run-memory", memory), ("long-run-latency", latency), ("long-run-rate", rate)]
}
