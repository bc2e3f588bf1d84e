//! The measurements. Each is a loop of a fixed length, so that a slow machine or store does not take longer than a fast one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::bare;
use super::bare::Rate;
use super::failed;
use super::results::Figure;
use super::scratch::Scratch;
use crate::failure::Failure;
use domain::text::shell::quote_words;
use sys::signal::interrupts::timespec;

pub(super) struct Bench<'a> {
    pub(super) scratch: &'a Scratch,
    pub(super) lasts: Duration,
    pub(super) cores: u32,
}

type Measure = fn(&Bench<'_>) -> Result<Vec<Figure>, Failure>;

/// In the order in which they run.
pub(super) const MEASUREMENTS: [(&str, Measure); 4] = [
    ("one enqueue", one_enqueue),
    ("many jobs from a file", bulk),
    ("short jobs", drain),
    ("the start of a job", start_latency),
];

/// The queue that workers serve, and the one of jobs that are only enqueued.
pub(super) const SERVED: &str = "served";
const UNSERVED: &str = "unserved";
/// The slots of the pools whose rate is measured, besides the number of cores.
const SLOTS: [u32; 2] = [1, 4];
/// Jobs of the first, small file, and at most of the file that is measured.
const FIRST_LINES: u32 = 2_000;
const MAX_LINES: u32 = 200_000;
/// Jobs that each pool runs, at least and at most.
const MIN_JOBS: u32 = 50;
const MAX_JOBS: u32 = 20_000;
/// How many jobs for a pool one file has: after each, the time may be over.
const JOBS_PER_FILE: u32 = 500;
/// How many starts are measured at most.
const MAX_STARTS: usize = 100;
/// A job that does not start in this time never will.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(10);

fn one_enqueue(bench: &Bench<'_>) -> Result<Vec<Figure>, Failure> {
    // The first one creates the queue.
    enqueue_true(bench)?;
    let times = repeat(bench.lasts, usize::MAX, || enqueue_true(bench))?;
    let mut limit = median(repeat(bench.lasts / 4, usize::MAX, || io_step(bare::run_true()))?);
    let mut limit_of = "start a process";
    if bench.scratch.kind() == "sqlite" {
        let path = bench.scratch.home().join("synced");
        let mut file = File::create(&path).map_err(|error| failed("create a file", error))?;
        limit += median(repeat(bench.lasts / 4, usize::MAX, || io_step(bare::sync_page(&mut file)))?);
        limit_of = "start a process and sync a page";
    }
    Ok(vec![Figure::time("one enqueue", median(times), limit, limit_of)])
}

fn enqueue_true(bench: &Bench<'_>) -> Result<(), Failure> {
    bench.scratch.run(&["enqueue", "-q", "--queue", UNSERVED, "--", "true"])
}

fn bulk(bench: &Bench<'_>) -> Result<Vec<Figure>, Failure> {
    let trial = enqueue_file(bench, UNSERVED, FIRST_LINES)?;
    let (count, rate) = if trial.took >= bench.lasts {
        (FIRST_LINES, trial)
    } else {
        let count = within(trial.per_second() * bench.lasts.as_secs_f64(), FIRST_LINES, MAX_LINES);
        (count, enqueue_file(bench, UNSERVED, count)?)
    };
    let copy = bench.scratch.home().join("copy");
    let took = bare::write_and_sync(&copy, lines(UNSERVED, count).as_bytes());
    let took = took.map_err(|error| failed("write a file", error))?;
    let limit = Rate { count: count.into(), took };
    Ok(vec![Figure::rate("jobs from a file", rate, limit, "write and sync the same bytes")])
}

/// Enqueues this many jobs from a file.
fn enqueue_file(bench: &Bench<'_>, queue: &str, count: u32) -> Result<Rate, Failure> {
    let file = bench.scratch.home().join("jobs.jsonl");
    fs::write(&file, lines(queue, count)).map_err(|error| failed("write a file", error))?;
    let began = Instant::now();
    bench.scratch.run(&["enqueue", "-q", "--file", text(&file)?])?;
    Ok(Rate { count: count.into(), took: began.elapsed() })
}

/// Commands and flags are text.
fn text(path: &Path) -> Result<&str, Failure> {
    path.to_str().ok_or_else(|| failed("name a file", "the home is not UTF-8"))
}

fn lines(queue: &str, count: u32) -> String {
    let line = format!("{{\"command\":\"true\",\"queue\":\"{queue}\"}}\n");
    line.repeat(usize::try_from(count).unwrap_or(usize::MAX))
}

fn drain(bench: &Bench<'_>) -> Result<Vec<Figure>, Failure> {
    let mut slots: Vec<u32> = SLOTS.into_iter().chain([bench.cores]).collect();
    slots.sort_unstable();
    slots.dedup();
    slots.into_iter().map(|slots| drain_with(bench, slots)).collect()
}

fn drain_with(bench: &Bench<'_>, slots: u32) -> Result<Figure, Failure> {
    let limit = bare::processes(bench.lasts / 2, slots).map_err(|error| failed("start processes", error))?;
    let most = within(limit.per_second() * bench.lasts.as_secs_f64(), MIN_JOBS, MAX_JOBS);
    // A queue of its own: what is left of it disturbs no other measurement.
    let queue = format!("drained-{slots}");
    fill(bench, &queue, most)?;
    let began = Instant::now();
    bench.scratch.drain(&queue, slots, bench.lasts * 2)?;
    let took = began.elapsed();
    let rate = Rate { count: bench.scratch.completed(&queue)?, took };
    let name = format!("short jobs, {slots} slot{}", if slots == 1 { "" } else { "s" });
    Ok(Figure::rate(&name, rate, limit, "start and reap the processes"))
}

/// Enqueues up to this many jobs, as long as that does not take too long.
fn fill(bench: &Bench<'_>, queue: &str, most: u32) -> Result<(), Failure> {
    let (began, mut left) = (Instant::now(), most);
    while left > 0 && (left == most || began.elapsed() < bench.lasts) {
        let count = left.min(JOBS_PER_FILE);
        enqueue_file(bench, queue, count)?;
        left -= count;
    }
    Ok(())
}

/// From the call of `enqueue` until the command runs on an idle worker.
fn start_latency(bench: &Bench<'_>) -> Result<Vec<Figure>, Failure> {
    let path = bench.scratch.home().join("started");
    let mut pipe = Pipe::create(&path).map_err(|error| failed("create a pipe", error))?;
    // On a server, a job does not start in the directory of its caller.
    let script = &format!("echo > {}", quote_words(&[text(&path)?.to_owned()]));
    let worker = bench.scratch.worker()?;
    let mut start = || {
        bench.scratch.run(&["enqueue", "-q", "--queue", SERVED, "-c", script])?;
        pipe.wait()
    };
    // The first one waits until the worker is up.
    start()?;
    let mut times = repeat(bench.lasts * 2, MAX_STARTS, start)?;
    drop(worker);
    let bare = || {
        io_step(bare::run_true())?;
        let started = bare::quiet("sh").args(["-c", script]).spawn();
        let mut shell = started.map_err(|error| failed("start a shell", error))?;
        pipe.wait()?;
        io_step(shell.wait().map(|_| ()))
    };
    let limit = median(repeat(bench.lasts / 2, MAX_STARTS, bare)?);
    times.sort_unstable();
    let tail = times[times.len() * 95 / 100];
    let limit_of = "start the two processes";
    Ok(vec![
        Figure::time("start of a job", median(times), limit, limit_of),
        Figure::time("start of a job, 95 %", tail, limit, limit_of),
    ])
}

/// A pipe with a name, into which a job writes a line.
struct Pipe(File);

impl Pipe {
    fn create(path: &Path) -> io::Result<Self> {
        mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0)?;
        // Open for writing too, so that reading does not end when a job closes it.
        OpenOptions::new().read(true).write(true).open(path).map(Self)
    }

    fn wait(&mut self) -> Result<(), Failure> {
        let mut watched = [PollFd::new(&self.0, PollFlags::IN)];
        if poll(&mut watched, Some(&timespec(START_TIMEOUT))) == Ok(0) {
            return Err(failed("start a job", "it has not started in time"));
        }
        io_step(self.0.read(&mut [0; 16]).map(|_| ()))
    }
}

fn io_step(result: io::Result<()>) -> Result<(), Failure> {
    result.map_err(|error| failed("measure the limit", error))
}

/// How long each call took, for calls during this time; at least one.
fn repeat(
    lasts: Duration,
    most: usize,
    mut call: impl FnMut() -> Result<(), Failure>,
) -> Result<Vec<Duration>, Failure> {
    let (began, mut times) = (Instant::now(), Vec::new());
    while times.is_empty() || times.len() < most && began.elapsed() < lasts {
        let called = Instant::now();
        call()?;
        times.push(called.elapsed());
    }
    Ok(times)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number is between the limits"
)]
fn within(number: f64, least: u32, most: u32) -> u32 {
    number.clamp(f64::from(least), f64::from(most)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_bounded_by_time_and_by_count_and_call_at_least_once() {
        assert_eq!(repeat(Duration::ZERO, usize::MAX, || Ok(())).expect("no failure").len(), 1);
        assert_eq!(repeat(Duration::from_secs(60), 3, || Ok(())).expect("no failure").len(), 3);
    }

    #[test]
    fn the_number_of_jobs_stays_within_its_limits() {
        assert_eq!([0.0, 70.4, 1e9, f64::INFINITY].map(|number| within(number, 50, 100)), [50, 70, 100, 100]);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        let times = [3, 1, 2].map(Duration::from_secs);
        assert_eq!(median(times.to_vec()), Duration::from_secs(2));
        assert_eq!(median(Vec::new()), Duration::ZERO);
    }
}
