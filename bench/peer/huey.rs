//! huey with SQLite: a library for Python, so that a process that submits is a Python that starts and imports it.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rusqlite::Connection;

use super::{Acknowledges, Facts, LONG, Peer, Queue, SLOTS, daemon, installed, line, version};
use crate::running::{Running, wait_for};
use crate::spawn::Program;
use crate::workspace::Home;

const LOOK: Duration = Duration::from_millis(5);
/// How often its workers look for tasks, in seconds: as often as is any use.
const DELAY: &str = "0.001";
/// The module that the consumer and those who submit import; the environment says where the database is.
const JOBS: &str = r#"import os
import subprocess

from huey import SqliteHuey

huey = SqliteHuey(filename=os.environ["HUEY_FILE"])


@huey.task()
def run(*command):
    subprocess.run(command, check=True)
"#;

struct Huey {
    python: PathBuf,
    consumer: PathBuf,
}

pub(crate) fn find() -> Option<Box<dyn Peer>> {
    let folder = installed().join("venv/bin");
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
            queued: LONG,
            // strace -f python: pwrite64(…-wal) and fdatasync(…-wal) before exit_group; WAL is its default, and FULL that
            // of SQLite. While a task runs its row is gone already: after kill -9 of the consumer it is lost.
            acknowledges: Acknowledges::Synced(
                "synced: SQLite, WAL, synchronous=full; lost if it dies running",
            ),
        }
    }

    fn version(&self) -> Result<String> {
        version(&self.python, &["-c", "import huey; print(huey.__version__)"])
    }

    /// From the first task that was taken to the last. The last few may still run, which counts for it.
    fn drain(&self, home: Home, jobs: u32) -> Result<f64> {
        let file = self.file(home)?;
        file.fill(jobs)?;
        let database = Connection::open(file.database())?;
        let _consumer = file.consume()?;
        wait_for("a task to be taken", LOOK, || Ok((waiting(&database)? < jobs).then_some(())))?;
        let began = Instant::now();
        wait_for("the tasks to be taken", LOOK, || Ok((waiting(&database)? == 0).then_some(())))?;
        Ok(began.elapsed().as_secs_f64())
    }

    fn held(&self, home: Home) -> Result<Option<Box<dyn Queue>>> {
        Ok(Some(Box::new(self.file(home)?)))
    }

    fn idle(&self, home: Home) -> Result<Option<Box<dyn Queue>>> {
        let file = self.file(home)?;
        let consumer = file.consume()?;
        file.fill(1)?;
        let database = Connection::open(file.database())?;
        wait_for("the consumer to be up", LOOK, || Ok((waiting(&database)? == 0).then_some(())))?;
        Ok(Some(Box::new(Idle { _consumer: consumer, file })))
    }
}

impl Huey {
    fn file(&self, home: Home) -> Result<File> {
        fs::write(home.path().join("jobs.py"), JOBS)?;
        Ok(File { python: self.python.clone(), consumer: self.consumer.clone(), home })
    }
}

/// A database and the module with the task.
struct File {
    python: PathBuf,
    consumer: PathBuf,
    home: Home,
}

impl File {
    fn database(&self) -> PathBuf {
        self.home.path().join("huey.db")
    }

    fn python(&self, script: &str, arguments: &[&str]) -> Result<Program> {
        self.at_home(Program::new(line(&self.python, &[&["-c", script], arguments].concat()))?)
    }

    fn at_home(&self, program: Program) -> Result<Program> {
        program.with("HUEY_FILE", self.database())?.with("PYTHONPATH", self.home.path())
    }

    /// Threads are as quick as processes here.
    fn consume(&self) -> Result<Running> {
        let slots = SLOTS.to_string();
        let arguments =
            ["jobs.huey", "-w", &slots, "-k", "thread", "-d", DELAY, "-m", DELAY, "--no-periodic", "--quiet"];
        Running::start(&self.at_home(daemon(line(&self.consumer, &arguments))?)?)
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
        self.python(script, &[&jobs.to_string()])?.run().context("failed to fill a queue of huey").map(drop)
    }
}

/// The consumer ends before its folder goes.
struct Idle {
    _consumer: Running,
    file: File,
}

impl Queue for Idle {
    fn submit(&self, command: &[&str]) -> Result<Program> {
        self.file.submit(command)
    }

    fn home(&self) -> &Home {
        self.file.home()
    }
}

fn waiting(database: &Connection) -> Result<u32> {
    Ok(database.query_row("select count(*) from task", [], |row| row.get(0))?)
}
