//! HyperQueue as its Python package provides it: server and worker in one process, and no program that submits.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{Facts, Peer, SLOTS, daemon, install_folder, line, utf8, version};
use crate::benchmarks::start_latency::{stamp_command, take_stamp};
use crate::rig::running::RunningProcess;
use crate::rig::workspace::Home;

/// Arguments: folder, jobs, slots, and a command that runs before the jobs and one after them. The worker starts when
/// all jobs are queued.
const DRAIN: &str = r#"import sys
from hyperqueue import Job
from hyperqueue.cluster import LocalCluster, WorkerConfig

folder, jobs, slots = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
first, last = sys.argv[4:7], sys.argv[7:10]
silent = {"stdout": None, "stderr": None}
with LocalCluster(folder) as cluster:
    client = cluster.client()
    job = Job(folder)
    before = job.program(first, **silent)
    tasks = [job.program(["true"], deps=[before], **silent) for _ in range(jobs)]
    job.program(last, deps=tasks, **silent)
    submitted = client.submit(job)
    cluster.start_worker(WorkerConfig(cores=slots))
    client.wait_for_jobs([submitted])
"#;

struct HyperQueue {
    python: PathBuf,
}

pub(crate) fn find() -> Option<Box<dyn Peer>> {
    let python = install_folder().join("venv/bin/python");
    let hyperqueue = HyperQueue { python };
    if !hyperqueue.python.is_file() || hyperqueue.version().is_err() {
        return None;
    }
    Some(Box::new(hyperqueue))
}

impl Peer for HyperQueue {
    fn facts(&self) -> Facts {
        Facts {
            drained: 1_000,
            queued: 0,
            // strace -f python of a whole drain: no fsync, fdatasync or sync; it prints an empty journal path.
            is_synced: false,
            acknowledgement: "in memory, as the package starts it",
        }
    }

    fn version(&self) -> Result<String> {
        let script = "from importlib.metadata import version; print(version('hyperqueue'))";
        version(&self.python, &["-c", script])
    }

    /// Measured by the stamps of the first and the last task: `wait_for_jobs` polls only once a second.
    fn drain(&self, home: Home, jobs: u32) -> Result<f64> {
        let (first, last) = (home.path().join("first"), home.path().join("last"));
        let (before, after) = (stamp_command(&first)?, stamp_command(&last)?);
        let (jobs, slots) = (jobs.to_string(), SLOTS.to_string());
        let mut arguments = vec!["-c", DRAIN, utf8(home.path())?, &jobs, &slots];
        arguments.extend(before.iter().chain(&after).map(String::as_str));
        RunningProcess::start(&daemon(line(&self.python, &arguments))?.with("TMPDIR", home.path())?)?
            .wait()?;
        let began = take_stamp(&first)?.context("the first task left no stamp")?;
        let ended = take_stamp(&last)?.context("the last task left no stamp")?;
        Ok(ended.saturating_sub(began).as_secs_f64())
    }
}
