//! Observes a worker and its store while the worker drains a queue.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rustix::process::Pid;

use crate::Bench;
use crate::output::figure::count;
use crate::rig::pool::Pool;
use crate::rig::sample::Sample;
use crate::rig::usage::resident_megabytes;

const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// If no job finishes for this long, the drain has stalled.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// The measurements from the first job to the last.
#[derive(Default)]
pub(super) struct Observations {
    /// The seconds at which each step was finished, the beginning first.
    steps: Vec<f64>,
    samples: Vec<MemorySample>,
}

struct MemorySample {
    seconds: f64,
    resident_megabytes: f64,
    log_megabytes: f64,
}

/// Takes measurements until this number of jobs is finished.
pub(super) fn drain(bench: &Bench, pool: &Pool, jobs: u32, step: u32) -> Result<Observations> {
    let sample_interval = Duration::from_millis(if bench.quick { 200 } else { 1_000 });
    let (worker, log) = (pool.worker()?, pool.home.path().join("queue.db-wal"));
    let (began, mut observed) = (Instant::now(), Observations::default());
    let (mut finished, mut advanced, mut next_sample) = (pool.completed()?, began, began);
    observed.steps.push(0.0);
    let already = finished;
    while finished < u64::from(jobs) {
        thread::sleep(POLL_INTERVAL);
        let now = pool.completed()?;
        if now > finished {
            (finished, advanced) = (now, Instant::now());
        }
        ensure!(advanced.elapsed() < STALL_TIMEOUT, "no job was finished for {STALL_TIMEOUT:?}");
        if Instant::now() >= next_sample {
            next_sample += sample_interval;
            observed.samples.push(take_sample(began, worker, &log)?);
        }
        while finished - already >= u64::from(step) * observed.steps.len() as u64 {
            observed.steps.push(began.elapsed().as_secs_f64());
            bench.progress(&format!("{} of {} jobs finished", count(u32::try_from(finished)?), count(jobs)));
        }
    }
    Ok(observed)
}

fn take_sample(began: Instant, worker: Pid, log: &PathBuf) -> Result<MemorySample> {
    let log_bytes = fs::metadata(log)?.len();
    Ok(MemorySample {
        seconds: began.elapsed().as_secs_f64(),
        resident_megabytes: resident_megabytes(worker)?,
        log_megabytes: f64::from(u32::try_from(log_bytes / 1024)?) / 1024.0,
    })
}

impl Observations {
    pub(super) fn seconds(&self) -> f64 {
        self.steps.last().copied().unwrap_or(f64::NAN)
    }

    /// Jobs per second of each step.
    pub(super) fn rates(&self, step: u32) -> Sample {
        self.rates_over_jobs(step).into_iter().map(|(_, rate)| rate).collect()
    }

    pub(super) fn rates_over_jobs(&self, step: u32) -> Vec<(f64, f64)> {
        let step = f64::from(step);
        let spans = self.steps.windows(2).map(|pair| pair[1] - pair[0]);
        let ends = std::iter::successors(Some(step), |end| Some(end + step));
        ends.zip(spans.map(|span| step / span)).collect()
    }

    pub(super) fn memory(&self) -> Sample {
        self.samples.iter().map(|sample| sample.resident_megabytes).collect()
    }

    pub(super) fn log(&self) -> Sample {
        self.samples.iter().map(|sample| sample.log_megabytes).collect()
    }

    /// The ratio of resident memory in the last fifth of the time to that in the second fifth; the first fifth is
    /// warm-up.
    pub(super) fn growth(&self) -> f64 {
        let fifth = |number: usize| {
            let (begin, end) = (self.samples.len() * number / 5, self.samples.len() * (number + 1) / 5);
            self.samples[begin..end]
                .iter()
                .map(|sample| sample.resident_megabytes)
                .collect::<Sample>()
                .median()
        };
        fifth(4) / fifth(1)
    }

    pub(super) fn memory_over_time(&self) -> Vec<(f64, f64)> {
        self.samples.iter().map(|sample| (sample.seconds, sample.resident_megabytes)).collect()
    }

    pub(super) fn log_over_time(&self) -> Vec<(f64, f64)> {
        self.samples.iter().map(|sample| (sample.seconds, sample.log_megabytes)).collect()
    }
}
