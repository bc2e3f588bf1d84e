//! A loop that only starts and reaps a program, several at a time: the upper bound for a pool.

use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Result, ensure};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{WaitOptions, waitpid};
use sys::process::cstr_array::CstrArray;
use sys::process::spawn::{Limits, ProcessScope, Spawn, spawn};

use crate::rig::spawn::{Program, environment};

/// The command that a loop starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    /// The command as a user would type it.
    pub(crate) typed: &'static str,
    words: &'static [&'static str],
    prints: bool,
}

impl Command {
    /// The program that a pool executes for the commands `true` and `/bin/true`.
    pub(crate) const TRUE: Self = Self { typed: "/bin/true", words: &["/bin/true"], prints: false };
    /// The command `true` run by a shell.
    pub(crate) const SHELL_TRUE: Self =
        Self { typed: "sh -c true", words: &["/bin/sh", "-c", "true"], prints: false };
    /// The program that a pool executes for a command that writes to both outputs.
    pub(crate) const SHELL_ECHO: Self = Self {
        typed: "sh -c 'echo hello; echo err >&2'",
        words: &["/bin/sh", "-c", "echo hello; echo err >&2"],
        prints: true,
    };
}

/// The seconds for `count` runs with their output discarded.
pub(crate) fn plain(command: Command, count: u32, at_once: u32) -> Result<f64> {
    in_threads(count, at_once, || {
        let program =
            if command.prints { Program::new(command.words)? } else { Program::silent(command.words)? };
        Ok(move || program.run().map(drop))
    })
}

/// The seconds for `count` runs of `/bin/true`, each in a session of its own and with both outputs read to their end.
pub(crate) fn with_pipes(count: u32, at_once: u32) -> Result<f64> {
    in_threads(count, at_once, || {
        let (program, envp) = (CString::new("/bin/true")?, environment_list()?);
        Ok(move || run_with_pipes(&program, &envp))
    })
}

fn environment_list() -> Result<CstrArray> {
    let mut list = CstrArray::default();
    environment()?.iter().try_for_each(|entry| list.push(&[entry.as_bytes()]))?;
    Ok(list)
}

fn run_with_pipes(program: &CString, envp: &CstrArray) -> Result<()> {
    let (out, out_end) = pipe_with(PipeFlags::CLOEXEC)?;
    let (err, err_end) = pipe_with(PipeFlags::CLOEXEC)?;
    let started = spawn(&Spawn {
        program,
        argv: std::slice::from_ref(program),
        envp,
        cwd: None,
        scope: ProcessScope::Session,
        descriptors: &[(out_end.as_fd(), 1), (err_end.as_fd(), 2)],
        limits: Limits::default(),
        group: None,
        pid_record: None,
    })?;
    drop((out_end, err_end));
    let mut output = Vec::new();
    for pipe in [out, err] {
        File::from(pipe).read_to_end(&mut output)?;
    }
    let ended = waitpid(Some(started.pid), WaitOptions::empty())?;
    ensure!(ended.is_some_and(|(_, status)| status.exit_status() == Some(0)), "{program:?} failed");
    Ok(())
}

/// Each thread makes its own runner and calls it until all threads together have made `count` calls.
fn in_threads<Run: FnMut() -> Result<()>>(
    count: u32,
    threads: u32,
    make: impl Fn() -> Result<Run> + Sync,
) -> Result<f64> {
    let taken = AtomicU32::new(0);
    let work = || -> Result<()> {
        let mut run = make()?;
        while taken.fetch_add(1, Ordering::Relaxed) < count {
            run()?;
        }
        Ok(())
    };
    let began = Instant::now();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("the thread does not panic"))
    })?;
    Ok(began.elapsed().as_secs_f64())
}
