//! A store filled with jobs, and a worker that claims them.

use std::process;
use std::time::Duration;

use anyhow::{Result, ensure};
use domain::job::options::JobOptions;
use domain::job::outcome::Outcome;
use domain::job::{NewJob, Start, Usage};
use domain::values::name::{JobIdSequence, QueueName, WorkerId};
use domain::values::timestamp::Timestamp;
use store::{Exchange, LeaseRef, LeaseStatus, NewWorker, Pause, ServedJobs, Settlement, Store};
use sys::host::Origin;

use crate::Bench;
use crate::output::figure;
use crate::rig::workspace::Home;

const JOBS_PER_TRANSACTION: u32 = 10_000;
const JOBS_PER_MESSAGE: u32 = 1_000_000;
const QUEUES: u32 = 10;
const FAR_FUTURE: Duration = Duration::from_secs(30 * 24 * 3600);

/// The mix of jobs in a filled store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// All ready, in one queue.
    Plain,
    /// All but `ready` jobs are scheduled far in the future, with a higher priority than the ready ones.
    Future { ready: u32 },
    /// Spread over ten queues, nine of them paused.
    Paused,
}

impl Shape {
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Plain => "all ready".to_owned(),
            Self::Future { ready } => {
                format!("all but {} scheduled, with a higher priority", figure::count(ready))
            }
            Self::Paused => "nine of ten queues paused".to_owned(),
        }
    }
}

/// A home whose store was filled and then closed.
pub(crate) fn filled_home(bench: &Bench, name: &str, count: u32, shape: Shape) -> Result<Home> {
    let home = bench.workspace.home(name)?;
    fill(bench, home.open()?.as_ref(), count, shape)?;
    Ok(home)
}

/// A worker that runs no commands: every job succeeds between two exchanges.
pub(crate) struct Worker<'a> {
    store: &'a dyn Store,
    id: WorkerId,
    slots: usize,
    running: Vec<LeaseRef>,
}

impl<'a> Worker<'a> {
    /// A new worker that has claimed its first jobs.
    pub(crate) fn register(store: &'a dyn Store, slots: u32) -> Result<Self> {
        let mut worker = Self::register_idle(store, slots)?;
        worker.exchange()?;
        Ok(worker)
    }

    /// A new worker without jobs.
    pub(crate) fn register_idle(store: &'a dyn Store, slots: u32) -> Result<Self> {
        let id: WorkerId = format!("bench-{:x}", fastrand::u64(..)).parse()?;
        store.register(&NewWorker {
            id: id.clone(),
            host: "bench".to_owned(),
            origin: Origin::default(),
            pid: process::id(),
            supervisor_pid: None,
            served: ServedJobs::All,
            concurrency: slots,
            folder: "/".into(),
            stop_seen: None,
        })?;
        Ok(Self { store, id, slots: slots as usize, running: Vec::new() })
    }

    pub(crate) fn id(&self) -> &WorkerId {
        &self.id
    }

    /// Settles the running jobs and claims one for each slot.
    pub(crate) fn exchange(&mut self) -> Result<()> {
        let settlements: Vec<Settlement> = self.running.drain(..).map(success).collect();
        let request =
            Exchange { worker: &self.id, settlements: &settlements, want: self.slots, want_limited: 0 };
        let exchanged = self.store.exchange(&request)?;
        ensure!(exchanged.stale.is_empty(), "a lease was lost");
        self.running.extend(exchanged.claimed.into_iter().map(|claim| claim.lease));
        ensure!(self.running.len() == self.slots, "the store ran out of ready jobs");
        Ok(())
    }

    /// Extends the leases of the running jobs.
    pub(crate) fn extend(&self) -> Result<()> {
        let leases = self.store.extend(&self.id, &self.running)?;
        ensure!(leases.iter().all(|lease| *lease == LeaseStatus::Held), "a lease was lost");
        Ok(())
    }
}

/// How a command ends that does nothing.
pub(crate) fn success(lease: LeaseRef) -> Settlement {
    Settlement {
        lease,
        outcome: Outcome::Success,
        error: None,
        duration: Duration::from_millis(1),
        ended: None,
        usage: Usage { cpu: Some(Duration::from_millis(1)), max_rss_bytes: Some(1 << 20) },
        log_bytes: 0,
        output: None,
    }
}

/// Adds jobs to an empty store.
pub(crate) fn fill(bench: &Bench, store: &dyn Store, count: u32, shape: Shape) -> Result<()> {
    let mut ids = JobIdSequence::default();
    let far_future = store.now()?.saturating_add(FAR_FUTURE);
    for first in (0..count).step_by(JOBS_PER_TRANSACTION as usize) {
        let chunk = first..count.min(first + JOBS_PER_TRANSACTION);
        let now = store.now()?;
        let jobs: Vec<NewJob> = chunk
            .map(|number| job(&mut ids, now, number, count, shape, far_future))
            .collect::<Result<_>>()?;
        store.enqueue(&jobs)?;
        let stored = first + JOBS_PER_TRANSACTION;
        if stored.is_multiple_of(JOBS_PER_MESSAGE) {
            bench.progress(&format!(
                "stored {} of {} jobs, {}",
                figure::count(stored),
                figure::count(count),
                shape.describe()
            ));
        }
    }
    match shape {
        Shape::Plain | Shape::Future { .. } => Ok(()),
        Shape::Paused => pause_all_but_one(store),
    }
}

fn pause_all_but_one(store: &dyn Store) -> Result<()> {
    let pause = Pause { by: "bench".to_owned(), reason: None };
    for number in 1..QUEUES {
        store.pause_queue(&queue(number)?, &pause)?;
    }
    Ok(())
}

fn job(
    ids: &mut JobIdSequence,
    now: Timestamp,
    number: u32,
    count: u32,
    shape: Shape,
    far_future: Timestamp,
) -> Result<NewJob> {
    let plain = NewJob {
        id: ids.next(now, fastrand::u64(..)),
        command: format!("echo {number}"),
        queue: QueueName::default_queue(),
        priority: 0,
        max_retries: 3,
        timeout: None,
        start: Start::Now,
        depends_on: Vec::new(),
        unique_key: None,
        cwd: Some("/tmp".to_owned()),
        environment: None,
        tags: Vec::new(),
        options: JobOptions::default(),
        stdin: None,
        if_absent: false,
        batch: None,
    };
    Ok(match shape {
        Shape::Future { ready } if number < count - ready => NewJob {
            priority: 100,
            start: Start::At(far_future.saturating_add(Duration::from_millis(u64::from(number)))),
            ..plain
        },
        Shape::Plain | Shape::Future { .. } => plain,
        Shape::Paused => NewJob { queue: queue(number % QUEUES)?, ..plain },
    })
}

fn queue(number: u32) -> Result<QueueName> {
    Ok(format!("queue-{number}").parse()?)
}
