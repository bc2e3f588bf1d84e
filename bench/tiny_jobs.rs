//! Very many jobs with the command `true`, and how fast they went.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use queuectl::domain::life::State;
use queuectl::domain::timestamp::Timestamp;
use queuectl::store::{JobFilter, Page, Store};

use crate::workspace::Home;

pub(crate) fn enqueue(home: &Home, count: u32) -> Result<()> {
    let file = home.path().join("jobs.jsonl");
    fs::write(&file, "{\"command\":\"true\"}\n".repeat(count as usize))?;
    let path = file.to_str().context("a plain path")?;
    home.queuectl(&["enqueue", "-q", "--file", path])?.run().context("failed to enqueue a file")?;
    Ok(fs::remove_file(&file)?)
}

/// What came of them.
pub(crate) struct Drained {
    /// From the start of the first attempt to the end of the last, as the store has recorded them: what a pool needs to
    /// start and to end is not in it.
    pub(crate) seconds: f64,
    /// Attempts that failed, which `true` has no reason for. Each waited for its retry, so that the time says nothing.
    pub(crate) failures: f64,
}

/// Fails unless there are so many jobs, all completed.
pub(crate) fn drained(store: &dyn Store, count: u32) -> Result<Drained> {
    let jobs = store.list(&JobFilter::default(), &Page { limit: usize::MAX, after: None })?;
    ensure!(jobs.len() == count as usize, "there are {} jobs instead of {count}", jobs.len());
    let (mut first, mut last) = (Timestamp::MAX, Timestamp::MIN);
    for job in &jobs {
        let State::Completed { finished_at } = job.life.state else {
            bail!("{} is {}", job.id, job.life.state.name().name());
        };
        first = first.min(job.latest.started_at.context("a completed job was started")?);
        last = last.max(finished_at);
    }
    let failures: u32 = jobs.iter().map(|job| job.life.failures).sum();
    let seconds = last.since(first).max(Duration::from_millis(1)).as_secs_f64();
    Ok(Drained { seconds, failures: f64::from(failures) })
}
