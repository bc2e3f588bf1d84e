//! Programs that do what queuectl does, each behind the same small interface, and queuectl as one of them.
//!
//! Each peer works in its own folder, with the settings that suit it best. Every process that is started for it ends
//! with the benchmark, even if that crashes. The durability guarantee of each was verified with `strace`; comments at
//! the facts say how.

mod gate;
mod huey;
mod hyperqueue;
mod job_list;
mod nq;
mod pueue;
mod queuectl;
mod task_spooler;

use std::env;
use std::ffi::OsStr;
use std::iter;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::rig::spawn::Program;
use crate::rig::workspace::Home;

/// How many jobs run at once in a drain.
pub(crate) const SLOTS: u32 = 4;
/// The number of jobs in a long queue.
pub(crate) const LONG_QUEUE_JOBS: u32 = 1_000;

pub(crate) trait Peer {
    fn facts(&self) -> Facts;

    fn version(&self) -> Result<String>;

    /// The seconds that this number of jobs `true` takes in `SLOTS` slots. Peers with a queue enqueue them before the
    /// measurement.
    fn drain(&self, home: Home, jobs: u32) -> Result<f64>;

    /// A queue that does not start its jobs. `None` for a peer without a program that submits a job.
    fn stalled(&self, _home: Home) -> Result<Option<Box<dyn Queue>>> {
        Ok(None)
    }

    /// An empty queue whose jobs start immediately. `None` as for `stalled`.
    fn idle(&self, _home: Home) -> Result<Option<Box<dyn Queue>>> {
        Ok(None)
    }
}

/// A queue that accepts jobs. Dropping it stops the processes that serve it.
pub(crate) trait Queue {
    /// Returns the program that submits this command.
    fn submit(&self, command: &[&str]) -> Result<Program>;

    fn home(&self) -> &Home;

    /// Adds this number of jobs `true` in the fastest way.
    fn fill(&self, jobs: u32) -> Result<()> {
        let submit = self.submit(&["true"])?;
        (0..jobs).try_for_each(|_| submit.run().map(drop))
    }
}

/// Facts about a peer that are not measured.
pub(crate) struct Facts {
    /// The jobs of one drain: enough for about a second.
    pub(crate) drained: u32,
    /// The longest queue that it supports, up to `LONG_QUEUE_JOBS`.
    pub(crate) queued: u32,
    /// Whether a submit returns only after the job was synced to disk.
    pub(crate) is_synced: bool,
    /// What was done with the job when a submit returns.
    pub(crate) acknowledgement: &'static str,
}

/// A peer, or none if it is not installed.
pub(crate) type Find = fn() -> Option<Box<dyn Peer>>;

/// The programs that queuectl is compared with.
pub(crate) const PEERS: [(&str, Find); 7] = [
    ("pueue", pueue::find),
    ("task-spooler", task_spooler::find),
    ("nq", nq::find),
    ("GNU parallel", job_list::find_parallel),
    ("xargs", job_list::find_xargs),
    ("huey", huey::find),
    ("HyperQueue", hyperqueue::find),
];

pub(crate) fn queuectl() -> Box<dyn Peer> {
    Box::new(queuectl::Queuectl)
}

/// The folder into which `bench/peers` installs peers that are not system packages.
pub(crate) fn install_folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("peers")
}

/// The path of a program: the one that `bench/peers` installed, otherwise the first one on the PATH.
fn program(name: &str) -> Option<PathBuf> {
    let ours = [install_folder().join("bin"), install_folder().join("venv/bin")];
    let path = env::var_os("PATH").unwrap_or_default();
    ours.into_iter()
        .chain(env::split_paths(&path))
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

/// A program that runs in the foreground and that the kernel terminates when this process dies.
fn daemon<'a>(arguments: impl IntoIterator<Item = &'a OsStr>) -> Result<Program> {
    let bound = ["setpriv", "--pdeathsig", "TERM"].map(OsStr::new);
    Program::new(bound.into_iter().chain(arguments))
}

/// A program and its arguments as one list.
fn line<'a>(program: &'a Path, arguments: &[&'a str]) -> impl Iterator<Item = &'a OsStr> {
    iter::once(program.as_os_str()).chain(arguments.iter().copied().map(OsStr::new).collect::<Vec<_>>())
}

/// The first word with a digit in the version output of a program.
fn version(program: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).output()?;
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let word = text.split_whitespace().find(|word| word.contains(|letter: char| letter.is_ascii_digit()));
    let version = word.context("the output contains no version")?;
    Ok(version.trim_matches(|letter: char| !letter.is_ascii_digit()).to_owned())
}

fn utf8(path: &Path) -> Result<&str> {
    path.to_str().context("the path is not UTF-8")
}
