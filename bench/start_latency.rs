//! How soon a job starts: on a worker that has nothing to do, on one that has too much, and on a busy machine.
//!
//! The command is this program itself, called to write down the time as its first act: what is measured ends when the
//! command really runs, its own start by the kernel and the linker included.

use std::fs;
use std::hint;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use domain::job::life::StateName;
use domain::values::name::JobId;
use store::{Queues, Store};

use crate::plot::{Axis, Kind, LineChart, Series};
use crate::pool::Pool;
use crate::report::{Bar, Report, Unit};
use crate::running::wait_for;
use crate::sample::Sample;
use crate::spawn::Program;
use crate::{Bench, tiny_jobs};

/// The argument with which this program is a job; the file to write follows.
pub(crate) const STAMP: &str = "--stamp";
const MEDIAN_MILLISECONDS: f64 = 5.0;
const TAIL_MILLISECONDS: f64 = 15.0;
const TAIL: f64 = 0.99;
const SLOTS: u32 = 4;
/// Lasts longer than one measurement.
const LEAST_BACKLOG: u64 = 5_000;
const MORE_BACKLOG: u32 = 20_000;
/// Ahead of the backlog.
const PRIORITY: &str = "100";
const LOOK: Duration = Duration::from_millis(1);
/// Long enough for the worker to have gone to sleep again.
const PAUSE_MILLISECONDS: std::ops::Range<u64> = 10..40;

/// What else goes on while a start is measured.
#[derive(Clone, Copy, Debug)]
enum Beside {
    Nothing,
    /// The worker has more short jobs than it can run, which are less urgent.
    Backlog,
    /// The worker has nothing to do, but every core of the machine has.
    OtherPrograms,
}

/// The milliseconds of every start.
#[derive(Default)]
struct Starts {
    after_return: Sample,
    after_call: Sample,
}

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let count = if bench.quick { 50 } else { 300 };
    let mut series = Vec::new();
    for beside in [Beside::Nothing, Beside::Backlog, Beside::OtherPrograms] {
        bench.progress(&format!("{count} starts, {}", beside.describe()));
        let starts = measure_all(bench, beside, count).context("failed to measure a start")?;
        report.section(&format!("Starting a job {count} times, {}", beside.describe()));
        lines(report, beside, &starts);
        series.push(Series::new(beside.name(), starts.after_return.cumulative()));
    }
    let chart = LineChart {
        title: "How soon a job starts after enqueue returned".to_owned(),
        across: Axis::new("milliseconds", Kind::Linear),
        upwards: Axis::new("per cent of the jobs that have started", Kind::LinearTo(100.0)),
        series,
    };
    report.plot("start-latency", &chart.title, chart.svg());
    Ok(())
}

fn lines(report: &mut Report, beside: Beside, starts: &Starts) {
    let (median, tail) = match beside {
        Beside::Nothing => (Bar::AtMost(MEDIAN_MILLISECONDS), Bar::AtMost(TAIL_MILLISECONDS)),
        Beside::Backlog | Beside::OtherPrograms => (Bar::None, Bar::None),
    };
    let unit = Unit::Milliseconds;
    report.line("after `enqueue` returned", &starts.after_return, unit, median);
    report.line("after `enqueue` returned, 99th percentile", &starts.after_return.at(TAIL), unit, tail);
    report.line("after `enqueue` was called", &starts.after_call, unit, Bar::None);
    report.line("after `enqueue` was called, 99th percentile", &starts.after_call.at(TAIL), unit, Bar::None);
}

fn measure_all(bench: &Bench, beside: Beside, count: u32) -> Result<Starts> {
    let pool = Pool::start(bench.workspace.home("start-latency")?, 1, SLOTS)?;
    let starts = match beside {
        Beside::Nothing => measure_each(&pool, count, || Ok(())),
        Beside::Backlog => measure_each(&pool, count, || keep_busy(&pool)),
        Beside::OtherPrograms => while_all_cores_spin(|| measure_each(&pool, count, || Ok(()))),
    }?;
    // What is left of a backlog is not waited for.
    pool.stop()?;
    Ok(starts)
}

/// The first start is not counted.
fn measure_each(pool: &Pool, count: u32, prepare: impl Fn() -> Result<()>) -> Result<Starts> {
    let mut starts = Starts::default();
    for number in 0..=count {
        prepare()?;
        let measured = measure(pool, number)?;
        if number > 0 {
            starts.after_return.push(measured.after_return());
            starts.after_call.push(measured.after_call());
        }
    }
    Ok(starts)
}

fn keep_busy(pool: &Pool) -> Result<()> {
    let queues = pool.store.queues()?;
    let pending: u64 = queues.iter().filter_map(|queue| queue.counts.get(&StateName::Pending)).sum();
    if pending < LEAST_BACKLOG { tiny_jobs::enqueue(&pool.home, "true", MORE_BACKLOG) } else { Ok(()) }
}

fn while_all_cores_spin<T>(measure: impl FnOnce() -> Result<T>) -> Result<T> {
    let cores = thread::available_parallelism()?.get();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    hint::spin_loop();
                }
            });
        }
        let measured = measure();
        is_over.store(true, Ordering::Relaxed);
        measured
    })
}

impl Beside {
    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "idle worker",
            Self::Backlog => "4 slots, all busy",
            Self::OtherPrograms => "idle worker, busy machine",
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::Nothing => "on an idle worker",
            Self::Backlog => "ahead of a backlog that keeps all slots busy",
            Self::OtherPrograms => "on an idle worker while every core is busy",
        }
    }
}

/// When a job was submitted, and when it started. Since 1970, by the clock that all processes share.
pub(crate) struct Start {
    called: Duration,
    returned: Duration,
    started: Duration,
}

impl Start {
    /// Milliseconds from the end of the process that submitted it. Zero if the job was faster, as it may well be while
    /// that process is still ending.
    pub(crate) fn after_return(&self) -> f64 {
        milliseconds_between(self.returned, self.started)
    }

    /// Milliseconds from the start of that process.
    pub(crate) fn after_call(&self) -> f64 {
        milliseconds_between(self.called, self.started)
    }
}

fn measure(pool: &Pool, number: u32) -> Result<Start> {
    let stamp = pool.home.path().join("stamp");
    let command = stamp_command(&stamp)?;
    let id = format!("job-{number}");
    let mut arguments = vec!["enqueue", "-q", "--id", &id, "--priority", PRIORITY, "--"];
    arguments.extend(command.iter().map(String::as_str));
    let enqueue = pool.home.queuectl(&arguments)?;
    let measured = start_of(&enqueue, &stamp)?;
    wait_for_completed(pool, &id.parse()?)?;
    Ok(measured)
}

/// Runs a program that submits a job that writes this stamp, after a pause, and waits for the stamp.
pub(crate) fn start_of(submit: &Program, stamp: &Path) -> Result<Start> {
    thread::sleep(Duration::from_millis(fastrand::u64(PAUSE_MILLISECONDS)));
    let called = now()?;
    submit.run()?;
    let returned = now()?;
    let started = wait_for("a job to start", LOOK, || take_stamp(stamp))?;
    Ok(Start { called, returned, started })
}

/// The command of a job that writes this stamp.
pub(crate) fn stamp_command(stamp: &Path) -> Result<[String; 3]> {
    let plain = |path: &Path| path.to_str().map(str::to_owned).context("a plain path");
    Ok([plain(&std::env::current_exe()?)?, STAMP.to_owned(), plain(stamp)?])
}

/// When the job started, and the stamp is gone; none if it is not there or not written yet.
pub(crate) fn take_stamp(stamp: &Path) -> Result<Option<Duration>> {
    let text = match fs::read_to_string(stamp) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        result => result?,
    };
    if text.is_empty() {
        return Ok(None);
    }
    fs::remove_file(stamp)?;
    Ok(Some(Duration::from_nanos(text.parse()?)))
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
