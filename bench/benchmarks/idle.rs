//! The CPU and memory that an idle worker uses.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use domain::schedule::{Policy, When};
use jiff::tz::TimeZone;
use store::NewSchedule;

use crate::Bench;
use crate::output::report::{Bar, Report, Unit};
use crate::rig::pool::Pool;
use crate::rig::sample::Sample;
use crate::rig::tiny_jobs;
use crate::rig::usage::{cpu, resident_megabytes};

const MAX_PERCENT: f64 = 0.1;
const MAX_MEGABYTES: f64 = 8.0;
const SLOTS: u32 = 4;
const WARM_UP_JOBS: u32 = 40;
/// Lets the worker finish its work for the last job before the measurement.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// Schedules that are not due during the measurement.
const SCHEDULES: usize = 1_000;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    measure(bench, report, 0)?;
    measure(bench, report, SCHEDULES)
}

fn measure(bench: &Bench, report: &mut Report, schedules: usize) -> Result<()> {
    let span = Duration::from_secs(if bench.quick { 3 } else { 10 });
    let pool = Pool::start(bench.workspace.home(&format!("idle-{schedules}"))?, 1, SLOTS)?;
    add_schedules(&pool, schedules)?;
    tiny_jobs::enqueue(&pool.home, "true", WARM_UP_JOBS)?;
    pool.wait_for_completed(WARM_UP_JOBS)?;
    thread::sleep(SETTLE_TIME);

    bench.progress("watching an idle worker");
    let (worker, supervisor) = (pool.worker()?, pool.supervisor());
    let (began, before) = (Instant::now(), (cpu(worker)?, cpu(supervisor)?));
    thread::sleep(span);
    let (passed, after) = (began.elapsed(), (cpu(worker)?, cpu(supervisor)?));
    let percent = |before: Duration, after: Duration| {
        Sample::of(100.0 * after.saturating_sub(before).as_secs_f64() / passed.as_secs_f64())
    };
    let (worker_cpu, supervisor_cpu) = (percent(before.0, after.0), percent(before.1, after.1));
    let (worker_rss, supervisor_rss) =
        (Sample::of(resident_megabytes(worker)?), Sample::of(resident_megabytes(supervisor)?));
    pool.stop()?;

    let suffix = if schedules == 0 { String::new() } else { format!(", with {schedules} schedules") };
    report.section(&format!("A worker with {SLOTS} slots, idle for {} s{suffix}", span.as_secs()));
    report.line("worker: share of one core", &worker_cpu, Unit::Percent, Bar::AtMost(MAX_PERCENT));
    report.line("supervisor: share of one core", &supervisor_cpu, Unit::Percent, Bar::None);
    report.line("worker: resident memory", &worker_rss, Unit::Megabytes, Bar::AtMost(MAX_MEGABYTES));
    report.line("supervisor: resident memory", &supervisor_rss, Unit::Megabytes, Bar::None);
    Ok(())
}

fn add_schedules(pool: &Pool, count: usize) -> Result<()> {
    for number in 0..count {
        let schedule = NewSchedule {
            name: format!("schedule-{number}").parse()?,
            when: When::cron("0 3 1 1 *", TimeZone::UTC)?,
            job: serde_json::from_str(r#"{"command":"true","cwd":"/"}"#)?,
            environment: None,
            policy: Policy::new(None, None, None)?,
        };
        pool.store.add_schedule(&schedule, "bench")?;
    }
    Ok(())
}
