//! Very many jobs with the same short command, and how fast they went.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use domain::job::life::State;
use domain::values::name::QueueName;
use domain::values::timestamp::Timestamp;
use rusqlite::Connection;
use store::{JobFilter, Page, Pause, Queues, Store};

use crate::pool::Pool;
use crate::running::Running;
use crate::workspace::Home;

pub(crate) fn enqueue(home: &Home, command: &str, count: u32) -> Result<()> {
    let file = home.path().join("jobs.jsonl");
    let line = serde_json::json!({ "command": command });
    fs::write(&file, format!("{line}\n").repeat(count as usize))?;
    let path = file.to_str().context("a plain path")?;
    home.queuectl(&["enqueue", "-q", "--file", path])?.run().context("failed to enqueue a file")?;
    Ok(fs::remove_file(&file)?)
}

/// Drains a queue by one worker. The seconds are those of the whole process.
pub(crate) fn drain_by_slots(home: &Home, slots: u32) -> Result<f64> {
    let slots = slots.to_string();
    let workers = home.queuectl(&["worker", "run", "-q", "--concurrency", &slots, "--until-empty"])?;
    let began = Instant::now();
    Running::start(&workers)?.wait().context("failed to drain a queue")?;
    Ok(began.elapsed().as_secs_f64())
}

/// Drains a new queue by a pool. It is held back until every worker is up: starting them is not what is measured.
pub(crate) fn drain_by_pool(home: Home, command: &str, count: u32, shape: PoolShape) -> Result<Drained> {
    let queue = QueueName::default_queue();
    home.open()?.pause_queue(&queue, &Pause { by: "bench".to_owned(), reason: None })?;
    enqueue(&home, command, count)?;
    let pool = Pool::start(home, shape.workers as usize, shape.slots)?;
    pool.store.resume_queue(&queue, "bench")?;
    pool.wait_for_completed(count)?;
    let drained = drained(&pool.store, count)?;
    pool.stop()?;
    Ok(drained)
}

/// So many workers, each with so many slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolShape {
    pub(crate) workers: u32,
    pub(crate) slots: u32,
}

/// What came of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drained {
    /// From the start of the first attempt to the end of the last, as the store has recorded them: what a pool needs to
    /// start and to end is not in it.
    pub(crate) seconds: f64,
    /// Attempts that failed, which such a command has no reason for. Each waited for its retry, so that the time says
    /// nothing.
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

/// The size of the database with all of its write-ahead log folded in. Nobody else may have it open.
pub(crate) fn folded_bytes(home: &Home) -> Result<f64> {
    let database = Connection::open(home.database())?;
    let is_busy: bool = database.query_row("pragma wal_checkpoint(truncate)", [], |row| row.get(0))?;
    ensure!(!is_busy, "somebody still has the database open");
    Ok(f64::from(u32::try_from(fs::metadata(home.database())?.len())?))
}
