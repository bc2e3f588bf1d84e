//! A process that runs beside the benchmark, and ends with it whatever happens.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal};
use sys::process;
use sys::process::{ChildExit, ProcessHandle};

use crate::spawn::Program;

/// Nothing that is waited for takes this long.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long to wait after each of the signals that are sent to end a process. Workers let their jobs finish after the
/// first, ask them to end after the second, and kill them after the third.
const AFTER_EACH_SIGNAL: [Duration; 3] =
    [Duration::from_millis(500), Duration::from_secs(5), Duration::from_secs(5)];

pub(crate) struct Running {
    pid: Pid,
    handle: ProcessHandle,
    is_reaped: bool,
}

impl Running {
    pub(crate) fn start(program: &Program) -> Result<Self> {
        let pid = Pid::from_raw(program.start()?).context("a pid is positive")?;
        let handle = ProcessHandle::open(pid)?;
        Ok(Self { pid, handle, is_reaped: false })
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Waits for it to end by itself, and fails unless it exits with 0.
    pub(crate) fn wait(mut self) -> Result<()> {
        ensure!(self.handle.ends_within(PATIENCE)?, "a process still runs after {PATIENCE:?}");
        self.reap()
    }

    /// Ends it, and fails unless it exits with 0.
    pub(crate) fn stop(mut self) -> Result<()> {
        ensure!(self.is_ended_by(Signal::TERM), "a process does not end");
        self.reap()
    }

    fn is_ended_by(&self, signal: Signal) -> bool {
        AFTER_EACH_SIGNAL.iter().any(|patience| {
            let _ = self.handle.signal(signal);
            self.handle.ends_within(*patience).unwrap_or(false)
        })
    }

    fn reap(&mut self) -> Result<()> {
        let Some(ChildExit { status, .. }) = process::reap(self.pid)? else {
            bail!("a process that has ended cannot be reaped");
        };
        self.is_reaped = true;
        ensure!(status.success(), "a process ended with {status}");
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_reaped {
            return;
        }
        if self.is_ended_by(Signal::TERM) || self.is_ended_by(Signal::KILL) {
            let _ = process::reap(self.pid);
        } else {
            eprintln!("process {} does not end", self.pid);
        }
    }
}

/// Looks again and again, with this pause in between, until something is found.
pub(crate) fn wait_for<T>(
    what: &str,
    pause: Duration,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let give_up = Instant::now() + PATIENCE;
    while Instant::now() < give_up {
        if let Some(found) = look()? {
            return Ok(found);
        }
        thread::sleep(pause);
    }
    bail!("waited {PATIENCE:?} for {what}")
}
