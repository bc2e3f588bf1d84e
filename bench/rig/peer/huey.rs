//! huey with SQLite: a library for Python, so that a submitting process is a Python that imports it.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rusqlite::Connection;

use super::{Facts, LONG_QUEUE_JOBS, Peer, Queue, SLOTS, daemon, install_folder, line, version};
use crate::rig::running::{RunningProcess, wait_for};
use crate::rig::spawn::Program;
use crate::rig::workspace::Home;

const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// How often its workers poll for tasks, in seconds: a shorter delay makes no difference.
const WORKER_POLL_DELAY: &str = "0.001";
/// The module that the consumer and the submitting processes import; an environment variable names the database.
const JOBS: &str = r#"import os
import subprocess

from huey import SqliteHuey

huey = SqliteHuey(filename=os.environ["HUEY_FILE"])


@huey.task()
def run(*command):
    subprocess.run(command, check=True)
"#;

#[derive(Clone)]
struct Huey {
    python: PathBuf,
    consumer: PathBuf,
}

pub(crate) fn find() -> Option<Box<dyn Peer>> {
    let folder = install_folder().join("venv/bin");
    let huey = Huey { python: folder.join("python"), consumer: folder.join("huey_consumer") };
    if !huey.consumer.is_file() {
        return None;
    }
    Some(Box::new(huey))
}

impl Peer for Huey {
    fn facts(&self) -> Facts {
        Facts {
            drained: 1_000,
            queued: LONG_QUEUE_JOBS,
            // strace -f python: pwrite64(…-wal) and fdatasync(…-wal) before exit_group; WAL is its default, and FULL
            // that of SQLite. The row of a running task is already deleted: after kill -9 of the consumer the task is
            // lost.
            is_synced: true,
            acknowledgement: "synced: SQLite, WAL, synchronous=full; a crash loses running tasks",
        }
    }

    fn version(&self) -> Result<String> {
        version(&self.python, &["-c", "import huey; print(huey.__version__)"])
    }

    /// From the first task taken to the last. The last few may still run, which is in huey's favour.
    fn drain(&self, home: Home, jobs: u32) -> Result<f64> {
        let file = self.file(home)?;
        file.fill(jobs)?;
        let database = Connection::open(file.database())?;
        let _consumer = file.consume()?;
        wait_for("a task to be taken", POLL_INTERVAL, || Ok((waiting(&database)? < jobs).then_some(())))?;
        let began = Instant::now();
        wait_for("the tasks to be taken", POLL_INTERVAL, || Ok((waiting(&database)? == 0).then_some(())))?;
        Ok(began.elapsed().as_secs_f64())
    }

    fn stalled(&self, home: Home) -> Result<Option<Box<dyn Queue>>> {
        Ok(Some(Box::new(self.file(home)?)))
    }

    fn idle(&self, home: Home) -> Result<Option<Box<dyn Queue>>> {
        let mut file = self.file(home)?;
        file.consumer = Some(file.consume()?);
        file.fill(1)?;
        let database = Connection::open(file.database())?;
        wait_for("the consumer to start", POLL_INTERVAL, || Ok((waiting(&database)? == 0).then_some(())))?;
        Ok(Some(Box::new(file)))
    }
}

impl Huey {
    fn file(&self, home: Home) -> Result<File> {
        fs::write(home.path().join("jobs.py"), JOBS)?;
        Ok(File { huey: self.clone(), consumer: None, home })
    }
}

/// A database and the module with the task. Field order: the consumer stops before its folder is deleted.
struct File {
    huey: Huey,
    consumer: Option<RunningProcess>,
    home: Home,
}

impl File {
    fn database(&self) -> PathBuf {
        self.home.path().join("huey.db")
    }

    fn python(&self, script: &str, arguments: &[&str]) -> Result<Program> {
        self.at_home(Program::new(line(&self.huey.python, &[&["-c", script], arguments].concat()))?)
    }

    fn at_home(&self, program: Program) -> Result<Program> {
        program.with("HUEY_FILE", self.database())?.with("PYTHONPATH", self.home.path())
    }

    /// Threads are as fast as processes here.
    fn consume(&self) -> Result<RunningProcess> {
        let slots = SLOTS.to_string();
        let arguments = [
            "jobs.huey",
            "-w",
            &slots,
            "-k",
            "thread",
            "-d",
            WORKER_POLL_DELAY,
            "-m",
            WORKER_POLL_DELAY,
            "--no-periodic",
            "--quiet",
        ];
        RunningProcess::start(&self.at_home(daemon(line(&self.huey.consumer, &arguments))?)?)
    }
}

impl Queue for File {
    fn submit(&self, command: &[&str]) -> Result<Program> {
        self.python("import sys, jobs; jobs.run(*sys.argv[1:])", command)
    }

    fn home(&self) -> &Home {
        &self.home
    }

    fn fill(&self, jobs: u32) -> Result<()> {
        let script = "import sys, jobs\nfor _ in range(int(sys.argv[1])): jobs.run('true')";
        self.python(script, &[&jobs.to_string()])?.run().context("failed to fill huey's queue").map(drop)
    }
}

fn waiting(database: &Connection) -> Result<u32> {
    Ok(database.query_row("select count(*) from task", [], |row| row.get(0))?)
}
