//! Very many jobs with the same short command, and how fast workers drain them.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use domain::job::life::State;
use domain::values::name::QueueName;
use domain::values::timestamp::Timestamp;
use rusqlite::Connection;
use store::{JobFilter, Page, Pause, Store};

use crate::rig::pool::Pool;
use crate::rig::running::RunningProcess;
use crate::rig::workspace::Home;

pub(crate) fn enqueue(home: &Home, command: &str, count: u32) -> Result<()> {
    let line = serde_json::json!({ "command": command });
    enqueue_lines(home, &format!("{line}\n").repeat(count as usize))
}

/// Enqueues one job per line of JSON.
pub(crate) fn enqueue_lines(home: &Home, lines: &str) -> Result<()> {
    let file = home.path().join("jobs.jsonl");
    fs::write(&file, lines)?;
    let path = file.to_str().context("the path is not UTF-8")?;
    home.queuectl(&["enqueue", "-q", "--file", path])?.run().context("failed to enqueue a file")?;
    Ok(fs::remove_file(&file)?)
}

/// Drains a queue with one worker, and returns the seconds of the whole process.
pub(crate) fn drain_by_slots(home: &Home, slots: u32) -> Result<f64> {
    let slots = slots.to_string();
    let workers = home.queuectl(&["worker", "run", "-q", "--concurrency", &slots, "--until-empty"])?;
    let began = Instant::now();
    RunningProcess::start(&workers)?.wait().context("failed to drain a queue")?;
    Ok(began.elapsed().as_secs_f64())
}

/// Drains a new queue with a pool. The queue is paused until every worker is registered, to exclude their start from
/// the measurement.
pub(crate) fn drain_by_pool(home: Home, command: &str, count: u32, shape: PoolShape) -> Result<DrainResult> {
    let queue = QueueName::default_queue();
    home.open()?.pause_queue(&queue, &Pause { by: "bench".to_owned(), reason: None })?;
    enqueue(&home, command, count)?;
    let pool = Pool::start(home, shape.workers as usize, shape.slots)?;
    pool.store.resume_queue(&queue, "bench")?;
    pool.wait_for_completed(count)?;
    let result = drain_result(pool.store.as_ref(), count)?;
    pool.stop()?;
    Ok(result)
}

/// The number of workers, and of slots per worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolShape {
    pub(crate) workers: u32,
    pub(crate) slots: u32,
}

/// The result of a drain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DrainResult {
    /// From the start of the first attempt to the end of the last, as recorded in the store: the start and stop of the
    /// pool are not included.
    pub(crate) seconds: f64,
    /// Failed attempts. Such a command should never fail, and a failed one waits for its retry, which invalidates the
    /// time.
    pub(crate) failures: f64,
}

/// Fails unless there are `count` jobs, all completed.
pub(crate) fn drain_result(store: &dyn Store, count: u32) -> Result<DrainResult> {
    let jobs = store.list(&JobFilter::default(), &Page { limit: usize::MAX, after: None })?;
    ensure!(jobs.len() == count as usize, "the store has {} jobs instead of {count}", jobs.len());
    let (mut first, mut last) = (Timestamp::MAX, Timestamp::MIN);
    for job in &jobs {
        let State::Completed { finished_at } = job.life.state else {
            bail!("{} is {}", job.id, job.life.state.name().name());
        };
        first = first.min(job.latest.started_at.context("a completed job has no start time")?);
        last = last.max(finished_at);
    }
    let failures: u32 = jobs.iter().map(|job| job.life.failures).sum();
    let seconds = last.since(first).max(Duration::from_millis(1)).as_secs_f64();
    Ok(DrainResult { seconds, failures: f64::from(failures) })
}

/// The size of the database after a full checkpoint. No other process may have it open.
pub(crate) fn checkpointed_bytes(home: &Home) -> Result<f64> {
    let database = Connection::open(home.database())?;
    let is_busy: bool = database.query_row("pragma wal_checkpoint(truncate)", [], |row| row.get(0))?;
    ensure!(!is_busy, "another process still has the database open");
    Ok(f64::from(u32::try_from(fs::metadata(home.database())?.len())?))
}
