//! How soon a job starts on a worker that has nothing to do.
//!
//! The command is this program itself, called to write down the time as its first act: what is measured ends when the
//! command really runs, its own start by the kernel and the linker included.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use queuectl::domain::life::StateName;
use queuectl::domain::name::JobId;
use queuectl::store::Store;

use crate::Bench;
use crate::pool::Pool;
use crate::report::{Bar, Report, Unit};
use crate::running::wait_for;
use crate::sample::Sample;

/// The argument with which this program is a job; the file to write follows.
pub(crate) const STAMP: &str = "--stamp";
const MEDIAN_MILLISECONDS: f64 = 5.0;
const TAIL_MILLISECONDS: f64 = 15.0;
const TAIL: f64 = 0.99;
const LOOK: Duration = Duration::from_millis(1);
/// Long enough for the worker to have gone to sleep again.
const PAUSE_MILLISECONDS: std::ops::Range<u64> = 10..40;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let count = if bench.quick { 50 } else { 300 };
    let pool = Pool::start(bench.workspace.home("start-latency")?, 1, 1)?;
    measure(&pool, 0)?;
    let (mut after_return, mut after_call) = (Sample::default(), Sample::default());
    for number in 1..=count {
        let measured = measure(&pool, number).context("failed to measure a start")?;
        // The command may well start while `enqueue` is still ending.
        after_return.push(milliseconds_between(measured.returned, measured.started));
        after_call.push(milliseconds_between(measured.called, measured.started));
    }
    pool.stop()?;

    Report::section(&format!("Starting a job on an idle worker, {count} times"));
    let unit = Unit::Milliseconds;
    report.line("after `enqueue` returned", &after_return, unit, Bar::AtMost(MEDIAN_MILLISECONDS));
    let tail = after_return.at(TAIL);
    report.line("after `enqueue` returned, 99th percentile", &tail, unit, Bar::AtMost(TAIL_MILLISECONDS));
    report.line("after `enqueue` was called", &after_call, unit, Bar::None);
    let tail = after_call.at(TAIL);
    report.line("after `enqueue` was called, 99th percentile", &tail, unit, Bar::None);
    Ok(())
}

/// Since 1970, by the clock that all processes share.
struct Measured {
    called: Duration,
    returned: Duration,
    started: Duration,
}

fn measure(pool: &Pool, number: u32) -> Result<Measured> {
    thread::sleep(Duration::from_millis(fastrand::u64(PAUSE_MILLISECONDS)));
    let program = std::env::current_exe()?;
    let program = program.to_str().context("a plain path")?;
    let stamp = pool.home.path().join("stamp");
    let stamp_path = stamp.to_str().context("a plain path")?;
    let id = format!("job-{number}");
    let enqueue = pool.home.queuectl(&["enqueue", "-q", "--id", &id, "--", program, STAMP, stamp_path])?;

    let called = now()?;
    enqueue.run()?;
    let returned = now()?;
    wait_for_completed(pool, &id.parse()?)?;
    let nanoseconds: u64 = fs::read_to_string(&stamp)?.parse()?;
    fs::remove_file(&stamp)?;
    Ok(Measured { called, returned, started: Duration::from_nanos(nanoseconds) })
}

fn wait_for_completed(pool: &Pool, id: &JobId) -> Result<()> {
    wait_for("a job to be completed", LOOK, || {
        let job = pool.store.find(id)?.context("the job is gone")?;
        Ok((job.life.state.name() == StateName::Completed).then_some(()))
    })
}

/// What the job does.
pub(crate) fn write_stamp(path: &Path) -> Result<()> {
    let nanoseconds = now()?.as_nanos();
    Ok(fs::write(path, nanoseconds.to_string())?)
}

fn now() -> Result<Duration> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?)
}

/// Zero if the second was the earlier one.
fn milliseconds_between(first: Duration, second: Duration) -> f64 {
    second.saturating_sub(first).as_secs_f64() * 1000.0
}
