//! A child process of the benchmark that never outlives it.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal};
use sys::process;
use sys::process::{ChildExit, ProcessHandle};

use crate::rig::spawn::Program;

/// No wait of a benchmark takes this long.
const WAIT_TIMEOUT: Duration = Duration::from_secs(120);
/// How long to wait after each signal that is sent to stop a process. Workers let their jobs finish after the first
/// signal, terminate them after the second, and kill them after the third.
const SIGNAL_TIMEOUTS: [Duration; 3] =
    [Duration::from_millis(500), Duration::from_secs(5), Duration::from_secs(5)];

pub(crate) struct RunningProcess {
    pid: Pid,
    handle: ProcessHandle,
    is_reaped: bool,
}

impl RunningProcess {
    pub(crate) fn start(program: &Program) -> Result<Self> {
        let pid = Pid::from_raw(program.start()?).context("the pid is not positive")?;
        let handle = ProcessHandle::open(pid)?;
        Ok(Self { pid, handle, is_reaped: false })
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Waits for the process to end by itself, and fails unless it exits with 0.
    pub(crate) fn wait(mut self) -> Result<()> {
        ensure!(self.handle.ends_within(WAIT_TIMEOUT)?, "the process still runs after {WAIT_TIMEOUT:?}");
        self.reap()
    }

    /// Terminates the process, and fails unless it exits with 0.
    pub(crate) fn stop(mut self) -> Result<()> {
        ensure!(self.is_ended_by(Signal::TERM), "the process did not end after SIGTERM");
        self.reap()
    }

    fn is_ended_by(&self, signal: Signal) -> bool {
        SIGNAL_TIMEOUTS.iter().any(|timeout| {
            let _ = self.handle.signal(signal);
            self.handle.ends_within(*timeout).unwrap_or(false)
        })
    }

    fn reap(&mut self) -> Result<()> {
        let Some(ChildExit { status, .. }) = process::reap(self.pid)? else {
            bail!("failed to reap a process that has ended");
        };
        self.is_reaped = true;
        ensure!(status.success(), "the process ended with {status}");
        Ok(())
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        if self.is_reaped {
            return;
        }
        if self.is_ended_by(Signal::TERM) || self.is_ended_by(Signal::KILL) {
            let _ = process::reap(self.pid);
        } else {
            eprintln!("process {} did not end after SIGKILL", self.pid);
        }
    }
}

/// Calls `poll` at this interval until it finds something.
pub(crate) fn wait_for<T>(
    what: &str,
    interval: Duration,
    mut poll: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let give_up = Instant::now() + WAIT_TIMEOUT;
    while Instant::now() < give_up {
        if let Some(found) = poll()? {
            return Ok(found);
        }
        thread::sleep(interval);
    }
    bail!("timed out after {WAIT_TIMEOUT:?} waiting for {what}")
}
