//! queuectl, measured like a peer.

use anyhow::{Result, ensure};

use super::{Facts, LONG_QUEUE_JOBS, Peer, Queue, SLOTS};
use crate::rig::pool::Pool;
use crate::rig::spawn::Program;
use crate::rig::tiny_jobs;
use crate::rig::workspace::Home;

pub(crate) struct Queuectl;

impl Peer for Queuectl {
    fn facts(&self) -> Facts {
        Facts {
            drained: 2_000,
            queued: LONG_QUEUE_JOBS,
            // strace enqueue: pwrite64(queue.db-wal), fdatasync(queue.db-wal), then the id is written.
            is_synced: true,
            acknowledgement: "synced: SQLite, WAL, synchronous=full",
        }
    }

    fn version(&self) -> Result<String> {
        Ok(env!("CARGO_PKG_VERSION").to_owned())
    }

    /// Includes starting and stopping the pool, to queuectl's disadvantage: the daemons of peers are started before the
    /// measurement.
    fn drain(&self, home: Home, jobs: u32) -> Result<f64> {
        tiny_jobs::enqueue(&home, "true", jobs)?;
        let seconds = tiny_jobs::drain_by_slots(&home, SLOTS)?;
        let failures = tiny_jobs::drain_result(home.open()?.as_ref(), jobs)?.failures;
        ensure!(failures == 0.0, "{failures} attempts of `true` failed");
        Ok(seconds)
    }

    /// Without a worker: enqueuing does not need one.
    fn stalled(&self, home: Home) -> Result<Option<Box<dyn Queue>>> {
        Ok(Some(Box::new(Stalled { home })))
    }

    fn idle(&self, home: Home) -> Result<Option<Box<dyn Queue>>> {
        Ok(Some(Box::new(Idle { pool: Pool::start(home, 1, SLOTS)? })))
    }
}

struct Stalled {
    home: Home,
}

impl Queue for Stalled {
    fn submit(&self, command: &[&str]) -> Result<Program> {
        enqueue(&self.home, command)
    }

    fn home(&self) -> &Home {
        &self.home
    }

    fn fill(&self, jobs: u32) -> Result<()> {
        tiny_jobs::enqueue(&self.home, "true", jobs)
    }
}

struct Idle {
    pool: Pool,
}

impl Queue for Idle {
    fn submit(&self, command: &[&str]) -> Result<Program> {
        enqueue(&self.pool.home, command)
    }

    fn home(&self) -> &Home {
        &self.pool.home
    }
}

fn enqueue(home: &Home, command: &[&str]) -> Result<Program> {
    home.queuectl(&[&["enqueue", "-q", "--"], command].concat())
}
