//! A program on a pseudo-terminal, as fast as a terminal can be: its output is only searched for a word.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::rig::spawn::environment;

/// No screen takes this long.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct Terminal {
    child: Child,
    master: File,
    /// What was written since the last key or change of size.
    seen: Vec<u8>,
}

impl Terminal {
    /// Starts a program on a terminal of this size.
    pub(crate) fn start(program: &Path, arguments: &[&OsStr], (columns, rows): (u16, u16)) -> Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = ptsname(&master, Vec::new())?;
        let terminal = File::options().read(true).write(true).open(OsStr::from_bytes(name.as_bytes()))?;
        let master = File::from(master);
        set_size(&master, columns, rows)?;
        let variables = environment()?;
        let variables = variables.iter().filter_map(|variable| variable.to_str().ok()?.split_once('='));
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(variables).env("TERM", "xterm-256color");
        command.stdin(terminal.try_clone()?).stdout(Stdio::from(terminal.try_clone()?)).stderr(terminal);
        Ok(Self { child: command.spawn()?, master, seen: Vec::new() })
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn press(&mut self, keys: &str) -> Result<()> {
        self.seen.clear();
        Ok(self.master.write_all(keys.as_bytes())?)
    }

    /// Gives the terminal another size, which makes the program draw everything anew.
    pub(crate) fn resize(&mut self, columns: u16, rows: u16) -> Result<()> {
        self.seen.clear();
        set_size(&self.master, columns, rows)?;
        Ok(kill_process(self.pid(), Signal::WINCH)?)
    }

    /// Reads until the program has written this.
    pub(crate) fn wait(&mut self, text: &str) -> Result<()> {
        let began = Instant::now();
        while !self.seen.windows(text.len()).any(|part| part == text.as_bytes()) {
            ensure!(self.read(TIMEOUT)?, "the program ended before it showed `{text}`");
            ensure!(began.elapsed() < TIMEOUT, "the program did not show `{text}`");
        }
        Ok(())
    }

    /// Reads everything that arrives within this time.
    pub(crate) fn watch(&mut self, span: Duration) -> Result<()> {
        let began = Instant::now();
        while let Some(left) = span.checked_sub(began.elapsed()) {
            ensure!(self.read(left)?, "the program ended");
            self.seen.clear();
        }
        Ok(())
    }

    /// Reads what is there, or arrives within this time; `false` if the program has ended.
    fn read(&mut self, within: Duration) -> Result<bool> {
        let within = Timespec::try_from(within).context("the time is too long")?;
        if poll(&mut [PollFd::new(&self.master, PollFlags::IN)], Some(&within))? == 0 {
            return Ok(true);
        }
        let mut buffer = [0; 16 << 10];
        // Linux reports as an error that no process has the other end open.
        let count = self.master.read(&mut buffer).unwrap_or(0);
        self.seen.extend_from_slice(&buffer[..count]);
        Ok(count > 0)
    }

    /// Waits for the program to end, and fails unless it exits with 0.
    pub(crate) fn end(mut self) -> Result<()> {
        while self.read(TIMEOUT)? {}
        let status = self.child.wait()?;
        ensure!(status.success(), "the program ended with {status}");
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn set_size(terminal: &File, columns: u16, rows: u16) -> Result<()> {
    Ok(tcsetwinsize(terminal, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?)
}
