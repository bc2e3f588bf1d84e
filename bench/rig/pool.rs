//! Worker processes in the background.

use std::time::Duration;

use anyhow::{Context, Result};
use domain::job::life::StateName;
use rustix::process::Pid;
use store::Store;

use crate::rig::running::{RunningProcess, wait_for};
use crate::rig::workspace::Home;

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A supervisor with its workers, all registered. Dropping it stops them before it deletes their home.
pub(crate) struct Pool {
    supervisor: RunningProcess,
    pub(crate) store: Box<dyn Store>,
    pub(crate) home: Home,
}

impl Pool {
    pub(crate) fn start(home: Home, workers: usize, slots: u32) -> Result<Self> {
        let (count, concurrency) = (workers.to_string(), slots.to_string());
        let store = home.open()?;
        let run =
            home.queuectl(&["worker", "run", "-q", "--count", &count, "--concurrency", &concurrency])?;
        let pool = Self { supervisor: RunningProcess::start(&run)?, store, home };
        wait_for("the workers to register", POLL_INTERVAL, || {
            Ok((pool.store.workers()?.len() == workers).then_some(()))
        })?;
        Ok(pool)
    }

    pub(crate) fn supervisor(&self) -> Pid {
        self.supervisor.pid()
    }

    /// The pid of one of the workers.
    pub(crate) fn worker(&self) -> Result<Pid> {
        let worker = self.store.workers()?.into_iter().next().context("no worker is registered")?;
        Pid::from_raw(worker.pid.cast_signed()).context("the pid is not positive")
    }

    pub(crate) fn completed(&self) -> Result<u64> {
        let queues = self.store.queues()?;
        Ok(queues.iter().filter_map(|queue| queue.counts.get(&StateName::Completed)).sum())
    }

    pub(crate) fn wait_for_completed(&self, jobs: u32) -> Result<()> {
        let all = u64::from(jobs);
        wait_for("the jobs to be completed", POLL_INTERVAL, || Ok((self.completed()? == all).then_some(())))
    }

    /// Stops the workers and returns their home.
    pub(crate) fn stop(self) -> Result<Home> {
        self.supervisor.stop().context("failed to stop the workers")?;
        Ok(self.home)
    }
}
