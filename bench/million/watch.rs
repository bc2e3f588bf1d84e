//! What a worker and its store look like while a queue is drained.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rustix::process::Pid;

use crate::Bench;
use crate::figure::count;
use crate::pool::Pool;
use crate::sample::Sample;
use crate::usage::resident_megabytes;

const LOOK: Duration = Duration::from_millis(50);
/// Nothing finished for so long means that nothing will.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was seen from the first job to the last.
#[derive(Default)]
pub(super) struct Watched {
    /// The seconds at which each step was finished, the beginning first.
    steps: Vec<f64>,
    looks: Vec<Look>,
}

struct Look {
    seconds: f64,
    resident_megabytes: f64,
    log_megabytes: f64,
}

/// Looks on until so many jobs are finished.
pub(super) fn drain(bench: &Bench, pool: &Pool, jobs: u32, step: u32) -> Result<Watched> {
    let between_looks = Duration::from_millis(if bench.quick { 200 } else { 1_000 });
    let (worker, log) = (pool.worker()?, pool.home.path().join("queue.db-wal"));
    let (began, mut watched) = (Instant::now(), Watched::default());
    let (mut finished, mut advanced, mut next_look) = (pool.completed()?, began, began);
    watched.steps.push(0.0);
    let already = finished;
    while finished < u64::from(jobs) {
        thread::sleep(LOOK);
        let now = pool.completed()?;
        if now > finished {
            (finished, advanced) = (now, Instant::now());
        }
        ensure!(advanced.elapsed() < PATIENCE, "no job was finished for {PATIENCE:?}");
        if Instant::now() >= next_look {
            next_look += between_looks;
            watched.looks.push(look(began, worker, &log)?);
        }
        while finished - already >= u64::from(step) * watched.steps.len() as u64 {
            watched.steps.push(began.elapsed().as_secs_f64());
            bench.progress(&format!(
                "{} of {} jobs are finished",
                count(u32::try_from(finished)?),
                count(jobs)
            ));
        }
    }
    Ok(watched)
}

fn look(began: Instant, worker: Pid, log: &PathBuf) -> Result<Look> {
    let log_bytes = fs::metadata(log)?.len();
    Ok(Look {
        seconds: began.elapsed().as_secs_f64(),
        resident_megabytes: resident_megabytes(worker)?,
        log_megabytes: f64::from(u32::try_from(log_bytes / 1024)?) / 1024.0,
    })
}

impl Watched {
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
        self.looks.iter().map(|look| look.resident_megabytes).collect()
    }

    pub(super) fn log(&self) -> Sample {
        self.looks.iter().map(|look| look.log_megabytes).collect()
    }

    /// What was resident in the last fifth of the time over what it was in the second: the first warms up.
    pub(super) fn growth(&self) -> f64 {
        let fifth = |number: usize| {
            let (begin, end) = (self.looks.len() * number / 5, self.looks.len() * (number + 1) / 5);
            self.looks[begin..end].iter().map(|look| look.resident_megabytes).collect::<Sample>().median()
        };
        fifth(4) / fifth(1)
    }

    pub(super) fn memory_over_time(&self) -> Vec<(f64, f64)> {
        self.looks.iter().map(|look| (look.seconds, look.resident_megabytes)).collect()
    }

    pub(super) fn log_over_time(&self) -> Vec<(f64, f64)> {
        self.looks.iter().map(|look| (look.seconds, look.log_megabytes)).collect()
    }
}
