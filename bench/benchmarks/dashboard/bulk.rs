//! Changing very many jobs by a filter: through the API compared with the command line, with a worker beside it.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::Bench;
use crate::output::figure::count;
use crate::output::report::{Bar, Report, Unit};
use crate::rig::dashboard::Dashboard;
use crate::rig::filled::Worker;
use crate::rig::sample::Sample;
use crate::rig::spawn::Run;
use crate::rig::usage::resident_megabytes;
use crate::rig::workspace::Home;

const MIN_RATE: f64 = 0.8;
const MAX_MORE_MEGABYTES: f64 = 32.0;
const MAX_CLAIM_RATIO: f64 = 2.0;
/// Of a command that changes all jobs of a tag.
const MAX_COMMAND_MEGABYTES: f64 = 40.0;
const BYTES_PER_MEGABYTE: f64 = 1024.0 * 1024.0;
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Between two turns of the worker beside.
const TURN_INTERVAL: Duration = Duration::from_millis(10);
const TURNS_ALONE: usize = 200;
/// Jobs for the worker beside: more than it can claim meanwhile. They come first.
const JOBS_BESIDE: RangeInclusive<u32> = 5_000..=50_000;

/// One retry of all jobs.
struct Retried {
    seconds: f64,
    turns: Sample,
}

pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let jobs = bench.jobs.unwrap_or(if bench.quick { 100_000 } else { 1_000_000 });
    let rounds = 3;
    let home = bench.workspace.home("dashboard-bulk")?;
    fill(&home, jobs)?;
    let dashboard = Dashboard::start(&home, &[])?;
    let store = home.open()?;
    let mut worker = Worker::register(store.as_ref(), 1)?;
    let mut alone = Sample::default();
    for _ in 0..TURNS_ALONE {
        alone.push(turn(&mut worker)?);
        thread::sleep(TURN_INTERVAL);
    }
    let cancel = home.queuectl(&["cancel", "-q", "--tag", "x", "--yes"])?;
    let retry = ["retry", "-q", "--tag", "x", "--state", "cancelled", "--yes"];
    let (mut rates, mut more) = (Sample::default(), Sample::default());
    let (mut cancelled, mut retried) = (Sample::default(), Sample::default());
    let (mut by_command, mut by_api) = (Sample::default(), Sample::default());
    let mut seconds = Sample::default();
    for round in 1..=rounds {
        bench.progress(&format!("retrying {} jobs, round {round} of {rounds}", count(jobs)));
        cancelled.push(peak_megabytes(&cancel.run()?));
        let mut peak = 0.0;
        let command = retry_beside(&mut worker, || {
            let run = home.queuectl(&retry)?.run()?;
            peak = peak_megabytes(&run);
            Ok(run.wall)
        })?;
        retried.push(peak);
        cancel.run()?;
        let before = resident_megabytes(dashboard.pid())?;
        let mut peak = before;
        let api = retry_beside(&mut worker, || retry_by_api(&dashboard, jobs, &mut peak))?;
        more.push(peak - before);
        rates.push(command.seconds / api.seconds);
        seconds.push(api.seconds);
        by_command.append(command.turns);
        by_api.append(api.turns);
    }
    report.section(&format!("Retrying {} jobs by a filter, through the API and by the command", count(jobs)));
    let rate: Sample = seconds.reciprocals_of(f64::from(jobs));
    report.line("jobs retried through the API", &rate, Unit::PerSecond, Bar::None);
    report.line("rate, relative to the command `retry`", &rates, Unit::Ratio, Bar::AtLeast(MIN_RATE));
    let most = Bar::AtMost(MAX_MORE_MEGABYTES);
    report.line("resident memory of the dashboard: more than before", &more, Unit::Megabytes, most);
    report.line("a worker's turn, alone", &alone, Unit::Milliseconds, Bar::None);
    report.line("a worker's turn beside the command", &by_command, Unit::Milliseconds, Bar::None);
    report.line("a worker's turn beside the action", &by_api, Unit::Milliseconds, Bar::None);
    let beside = Sample::of(by_api.median() / by_command.median());
    let what = "a worker's turn beside the action, relative to beside the command";
    report.line(what, &beside, Unit::Ratio, Bar::AtMost(MAX_CLAIM_RATIO));
    let beside = Sample::of(by_api.median() / alone.median());
    report.line("a worker's turn beside the action, relative to alone", &beside, Unit::Ratio, Bar::None);
    dashboard.stop()?;
    bench.progress(&format!("removing {} jobs", count(jobs)));
    let remove = home.queuectl(&["remove", "-q", "--tag", "x", "--yes"])?.run()?;
    let removed = Sample::of(peak_megabytes(&remove));
    let most = Bar::AtMost(MAX_COMMAND_MEGABYTES);
    for (verb, peaks) in [("cancel", &cancelled), ("retry", &retried), ("remove", &removed)] {
        let what = format!("`{verb} --tag`: peak of resident memory");
        report.line(&what, peaks, Unit::Megabytes, most);
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a size of memory")]
fn peak_megabytes(run: &Run) -> f64 {
    run.max_rss_bytes as f64 / BYTES_PER_MEGABYTE
}

/// Enqueues the jobs from a file that is written piece by piece: the memory of this process would count as that of the
/// programs that it starts.
fn fill(home: &Home, jobs: u32) -> Result<()> {
    let path = home.path().join("jobs.jsonl");
    let mut file = BufWriter::new(File::create(&path)?);
    for _ in 0..jobs {
        file.write_all(b"{\"command\":\"true\",\"tags\":[\"x\"]}\n")?;
    }
    for _ in 0..(jobs / 2).clamp(*JOBS_BESIDE.start(), *JOBS_BESIDE.end()) {
        file.write_all(b"{\"command\":\"true\",\"queue\":\"beside\",\"priority\":10}\n")?;
    }
    drop(file);
    let path = path.to_str().context("the path is not UTF-8")?;
    home.queuectl(&["enqueue", "-q", "--file", path])?.run().context("failed to enqueue a file")?;
    Ok(())
}

/// The milliseconds of one turn.
fn turn(worker: &mut Worker<'_>) -> Result<f64> {
    let began = Instant::now();
    worker.exchange()?;
    Ok(began.elapsed().as_secs_f64() * 1000.0)
}

/// Retries while a worker takes turns.
fn retry_beside(worker: &mut Worker<'_>, retry: impl FnOnce() -> Result<Duration> + Send) -> Result<Retried> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let retrying = scope.spawn(|| {
            let retried = retry();
            is_over.store(true, Ordering::Relaxed);
            retried
        });
        let mut turns = Sample::default();
        while !is_over.load(Ordering::Relaxed) {
            turns.push(turn(worker)?);
            thread::sleep(TURN_INTERVAL);
        }
        let took = retrying.join().expect("the thread does not panic")?;
        Ok(Retried { seconds: took.as_secs_f64(), turns })
    })
}

/// Starts an action and waits for its end, and notes the most memory that the dashboard has meanwhile.
fn retry_by_api(dashboard: &Dashboard, jobs: u32, peak: &mut f64) -> Result<Duration> {
    let mut client = dashboard.client()?;
    let began = Instant::now();
    let started =
        client.post("/api/v1/actions", &json!({ "verb": "retry", "filter": { "state": "cancelled" } }))?;
    let path = started.header("location").context("the action has no place")?.to_owned();
    loop {
        let action: Value = serde_json::from_slice(&client.get(&path)?.body)?;
        *peak = peak.max(resident_megabytes(dashboard.pid())?);
        if action["state"] != "running" {
            ensure!(action["state"] == "finished" && action["done"] == jobs, "{action}");
            return Ok(began.elapsed());
        }
        thread::sleep(POLL_INTERVAL);
    }
}
