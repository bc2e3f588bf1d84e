//! How soon a job starts: on an idle worker, on an overloaded worker, and on a busy machine.
//!
//! The command is this program itself, which first writes the current time to a file. The measured time therefore ends
//! when the command runs, and includes its start by the kernel and the linker.

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

use crate::Bench;
use crate::output::plot::{Axis, Kind, LineChart, Series};
use crate::output::report::{Bar, Report, Unit};
use crate::rig::pool::Pool;
use crate::rig::running::wait_for;
use crate::rig::sample::Sample;
use crate::rig::spawn::Program;
use crate::rig::tiny_jobs;

/// The argument that makes this program act as the job; the file to write follows.
pub(crate) const STAMP: &str = "--stamp";
const MAX_MEDIAN_MILLISECONDS: f64 = 5.0;
const MAX_TAIL_MILLISECONDS: f64 = 15.0;
pub(crate) const TAIL_QUANTILE: f64 = 0.99;
const SLOTS: u32 = 4;
/// A backlog that lasts longer than one measurement.
const MIN_BACKLOG: u64 = 5_000;
const BACKLOG_REFILL: u32 = 20_000;
/// The measured jobs run before the backlog.
pub(crate) const PRIORITY: &str = "100";
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Long enough for the worker to go to sleep again.
const PAUSE_MILLISECONDS: std::ops::Range<u64> = 10..40;

/// The load during the measurement.
#[derive(Clone, Copy, Debug)]
enum Load {
    Idle,
    /// The worker has more short jobs of lower priority than it can run.
    Backlog,
    /// The worker is idle, but every core of the machine is busy.
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
    for load in [Load::Idle, Load::Backlog, Load::OtherPrograms] {
        bench.progress(&format!("{count} starts, {}", load.describe()));
        let starts = measure_all(bench, load, count).context("failed to measure a start")?;
        report.section(&format!("Starting a job {count} times, {}", load.describe()));
        lines(report, load, &starts);
        series.push(Series::new(load.name(), starts.after_return.cumulative()));
    }
    let chart = LineChart {
        title: "Time from the return of enqueue to the start of the job".to_owned(),
        across: Axis::new("milliseconds", Kind::Linear),
        upwards: Axis::new("jobs started, per cent", Kind::LinearTo(100.0)),
        series,
    };
    report.plot("start-latency", &chart.title, chart.svg());
    Ok(())
}

fn lines(report: &mut Report, load: Load, starts: &Starts) {
    let (median, tail) = match load {
        Load::Idle => (Bar::AtMost(MAX_MEDIAN_MILLISECONDS), Bar::AtMost(MAX_TAIL_MILLISECONDS)),
        Load::Backlog | Load::OtherPrograms => (Bar::None, Bar::None),
    };
    let unit = Unit::Milliseconds;
    report.line("after `enqueue` returned", &starts.after_return, unit, median);
    report.line(
        "after `enqueue` returned, 99th percentile",
        &starts.after_return.at(TAIL_QUANTILE),
        unit,
        tail,
    );
    report.line("after `enqueue` was called", &starts.after_call, unit, Bar::None);
    report.line(
        "after `enqueue` was called, 99th percentile",
        &starts.after_call.at(TAIL_QUANTILE),
        unit,
        Bar::None,
    );
}

fn measure_all(bench: &Bench, load: Load, count: u32) -> Result<Starts> {
    let pool = Pool::start(bench.workspace.home("start-latency")?, 1, SLOTS)?;
    let starts = match load {
        Load::Idle => measure_each(&pool, count, || Ok(())),
        Load::Backlog => measure_each(&pool, count, || keep_busy(&pool)),
        Load::OtherPrograms => while_all_cores_spin(|| measure_each(&pool, count, || Ok(()))),
    }?;
    // Stops without waiting for the rest of the backlog.
    pool.stop()?;
    Ok(starts)
}

/// The milliseconds of each start after its `enqueue` returned.
pub(crate) fn on_idle_worker(pool: &Pool, count: u32) -> Result<Sample> {
    Ok(measure_each(pool, count, || Ok(()))?.after_return)
}

/// Does not count the first start, which is a warm-up.
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
    if pending < MIN_BACKLOG { tiny_jobs::enqueue(&pool.home, "true", BACKLOG_REFILL) } else { Ok(()) }
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

impl Load {
    fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle worker",
            Self::Backlog => "4 slots, all busy",
            Self::OtherPrograms => "idle worker, busy machine",
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::Idle => "on an idle worker",
            Self::Backlog => "ahead of a backlog that keeps all slots busy",
            Self::OtherPrograms => "on an idle worker while every core is busy",
        }
    }
}

/// When a job was submitted and when it started, as wall-clock time, which all processes share.
pub(crate) struct Start {
    called: Duration,
    returned: Duration,
    started: Duration,
}

impl Start {
    /// Milliseconds from the end of the submitting process. Zero if the job started before that process had ended.
    pub(crate) fn after_return(&self) -> f64 {
        milliseconds_between(self.returned, self.started)
    }

    /// Milliseconds from the start of the submitting process.
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

/// After a pause, runs a program that submits a job which writes this stamp, and waits for the stamp.
pub(crate) fn start_of(submit: &Program, stamp: &Path) -> Result<Start> {
    thread::sleep(Duration::from_millis(fastrand::u64(PAUSE_MILLISECONDS)));
    let called = now()?;
    submit.run()?;
    let returned = now()?;
    let started = wait_for("a job to start", POLL_INTERVAL, || take_stamp(stamp))?;
    Ok(Start { called, returned, started })
}

/// The command of a job that writes this stamp.
pub(crate) fn stamp_command(stamp: &Path) -> Result<[String; 3]> {
    let utf8 = |path: &Path| path.to_str().map(str::to_owned).context("the path is not UTF-8");
    Ok([utf8(&std::env::current_exe()?)?, STAMP.to_owned(), utf8(stamp)?])
}

/// Reads and removes the stamp. `None` if it does not exist or is still empty.
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
    wait_for("a job to be completed", POLL_INTERVAL, || {
        let job = pool.store.find(id)?.context("the job does not exist")?;
        Ok((job.life.state.name() == StateName::Completed).then_some(()))
    })
}

/// The body of the job.
pub(crate) fn write_stamp(path: &Path) -> Result<()> {
    let nanoseconds = now()?.as_nanos();
    Ok(fs::write(path, nanoseconds.to_string())?)
}

fn now() -> Result<Duration> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?)
}

/// Zero if the second is earlier.
fn milliseconds_between(first: Duration, second: Duration) -> f64 {
    second.saturating_sub(first).as_secs_f64() * 1000.0
}
