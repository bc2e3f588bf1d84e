//! Pueue: a daemon that keeps its tasks in memory and in a file, and polls them a few times a second.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use serde::Deserialize;

use super::{Facts, LONG_QUEUE_JOBS, Peer, Queue, SLOTS, daemon, line, program, utf8, version};
use crate::rig::running::{RunningProcess, wait_for};
use crate::rig::spawn::Program;
use crate::rig::workspace::Home;

const STARTUP_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Long, because each answer takes the daemon's time.
const COMPLETION_POLL_INTERVAL: Duration = Duration::from_millis(250);

struct Pueue {
    client: PathBuf,
    daemon: PathBuf,
}

pub(crate) fn find() -> Option<Box<dyn Peer>> {
    Some(Box::new(Pueue { client: program("pueue")?, daemon: program("pueued")? }))
}

impl Peer for Pueue {
    fn facts(&self) -> Facts {
        Facts {
            drained: 60,
            queued: LONG_QUEUE_JOBS,
            // strace -f pueued: `add` writes and renames state.json, no sync, then sends `AddedTask`. After kill -9 of
            // the daemon and a new start the task is queued, and the group paused.
            is_synced: false,
            acknowledgement: "written to a file, not synced",
        }
    }

    fn version(&self) -> Result<String> {
        version(&self.client, &["--version"])
    }

    fn drain(&self, home: Home, jobs: u32) -> Result<f64> {
        let daemon = self.serve(home)?;
        daemon.client(&["pause"])?.run()?;
        daemon.fill(jobs)?;
        daemon.client(&["start"])?.run()?;
        wait_for("the tasks to finish", COMPLETION_POLL_INTERVAL, || daemon.seconds_of_all(jobs))
    }

    fn stalled(&self, home: Home) -> Result<Option<Box<dyn Queue>>> {
        let daemon = self.serve(home)?;
        daemon.client(&["pause"])?.run()?;
        Ok(Some(Box::new(daemon)))
    }

    fn idle(&self, home: Home) -> Result<Option<Box<dyn Queue>>> {
        Ok(Some(Box::new(self.serve(home)?)))
    }
}

impl Pueue {
    fn serve(&self, home: Home) -> Result<Daemon> {
        let config = home.path().join("pueue.yml");
        let folder = utf8(home.path())?;
        let shared = format!("pueue_directory: {folder}, runtime_directory: {folder}, use_unix_socket: true");
        fs::write(&config, format!("shared: {{{shared}}}\ndaemon: {{}}\nclient: {{}}\n"))?;
        let program = daemon(line(&self.daemon, &["-c", utf8(&config)?]))?;
        let daemon =
            Daemon { client: self.client.clone(), config, _process: RunningProcess::start(&program)?, home };
        wait_for("pueued to start", STARTUP_POLL_INTERVAL, || Ok(daemon.status().is_ok().then_some(())))?;
        daemon.client(&["parallel", &SLOTS.to_string()])?.run()?;
        Ok(daemon)
    }
}

/// Field order: the daemon stops before its folder is deleted.
struct Daemon {
    client: PathBuf,
    config: PathBuf,
    _process: RunningProcess,
    home: Home,
}

impl Daemon {
    fn client(&self, arguments: &[&str]) -> Result<Program> {
        Program::new(self.client_line(arguments))
    }

    fn client_line<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a OsStr> {
        let before = [self.client.as_os_str(), OsStr::new("-c"), self.config.as_os_str()];
        before.into_iter().chain(arguments.iter().copied().map(OsStr::new)).collect()
    }

    fn status(&self) -> Result<Status> {
        let line = self.client_line(&["status", "--json"]);
        let output = Command::new(line[0]).args(&line[1..]).stderr(Stdio::null()).output()?;
        ensure!(output.status.success(), "pueue status ended with {}", output.status);
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// From the start of the first task to the end of the last, once all are done.
    fn seconds_of_all(&self, jobs: u32) -> Result<Option<f64>> {
        let tasks = self.status()?.tasks;
        let done: Vec<FinishedTask> = tasks.into_values().filter_map(Task::done).collect::<Result<_, _>>()?;
        if done.len() < jobs as usize {
            return Ok(None);
        }
        ensure!(done.iter().all(|done| done.result == "Success"), "a task failed");
        let starts: Vec<Timestamp> = done.iter().map(|done| done.start.parse()).collect::<Result<_, _>>()?;
        let ends: Vec<Timestamp> = done.iter().map(|done| done.end.parse()).collect::<Result<_, _>>()?;
        let first = starts.into_iter().min().context("there are no tasks")?;
        let last = ends.into_iter().max().context("there are no tasks")?;
        Ok(Some(last.duration_since(first).as_secs_f64()))
    }
}

impl Queue for Daemon {
    fn submit(&self, command: &[&str]) -> Result<Program> {
        self.client(&[&["add", "--"], command].concat())
    }

    fn home(&self) -> &Home {
        &self.home
    }
}

#[derive(Deserialize)]
struct Status {
    tasks: BTreeMap<String, Task>,
}

#[derive(Deserialize)]
struct Task {
    status: BTreeMap<String, serde_json::Value>,
}

impl Task {
    fn done(mut self) -> Option<serde_json::Result<FinishedTask>> {
        self.status.remove("Done").map(serde_json::from_value)
    }
}

#[derive(Deserialize)]
struct FinishedTask {
    start: String,
    end: String,
    result: serde_json::Value,
}
