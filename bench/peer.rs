//! Programs that do what queuectl does, each behind the same few functions, and queuectl as one of them.
//!
//! Each works in a folder of its own, at the settings that serve it best, and everything that is started for it ends with
//! the benchmark, however that ends. What each guarantees was looked up with `strace`; how is said beside it.

mod gate;
mod huey;
mod hyperqueue;
mod nq;
mod parallel;
mod pueue;
mod queuectl;
mod task_spooler;
mod xargs;

use std::env;
use std::ffi::OsStr;
use std::iter;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::spawn::Program;
use crate::workspace::Home;

/// How many jobs run at once in a drain.
pub(crate) const SLOTS: u32 = 4;
/// How many jobs are queued when a queue counts as long.
pub(crate) const LONG: u32 = 1_000;

pub(crate) trait Peer {
    fn facts(&self) -> Facts;

    fn version(&self) -> Result<String>;

    /// The seconds that so many jobs `true` take in `SLOTS` slots. They are queued before, where there is a queue.
    fn drain(&self, home: Home, jobs: u32) -> Result<f64>;

    /// A queue whose jobs wait. None where nothing can be submitted by a process of its own.
    fn held(&self, _home: Home) -> Result<Option<Box<dyn Queue>>> {
        Ok(None)
    }

    /// A queue with nothing in it, whose jobs start at once. None as above.
    fn idle(&self, _home: Home) -> Result<Option<Box<dyn Queue>>> {
        Ok(None)
    }
}

/// A queue that is ready for jobs. What serves it ends when it is dropped.
pub(crate) trait Queue {
    /// The program that submits this command.
    fn submit(&self, command: &[&str]) -> Result<Program>;

    fn home(&self) -> &Home;

    /// Adds so many jobs `true`, in whatever way is quickest.
    fn fill(&self, jobs: u32) -> Result<()> {
        let submit = self.submit(&["true"])?;
        (0..jobs).try_for_each(|_| submit.run().map(drop))
    }
}

/// What does not have to be measured.
pub(crate) struct Facts {
    /// The jobs of one drain: enough for a second or so.
    pub(crate) drained: u32,
    /// What it takes, up to `LONG`.
    pub(crate) queued: u32,
    pub(crate) acknowledges: Acknowledges,
}

/// When a submit says that it is done.
pub(crate) enum Acknowledges {
    /// After the job was synced to the disk; this is how.
    Synced(&'static str),
    /// Before that, if it ever is; this is what was done.
    Unsynced(&'static str),
}

impl Acknowledges {
    pub(crate) fn is_synced(&self) -> bool {
        match self {
            Self::Synced(_) => true,
            Self::Unsynced(_) => false,
        }
    }

    pub(crate) fn text(&self) -> &'static str {
        match self {
            Self::Synced(text) | Self::Unsynced(text) => text,
        }
    }
}

/// A peer, or none if it is not installed.
pub(crate) type Find = fn() -> Option<Box<dyn Peer>>;

/// Whom queuectl is compared with.
pub(crate) const PEERS: [(&str, Find); 7] = [
    ("pueue", pueue::find),
    ("task-spooler", task_spooler::find),
    ("nq", nq::find),
    ("GNU parallel", parallel::find),
    ("xargs", xargs::find),
    ("huey", huey::find),
    ("HyperQueue", hyperqueue::find),
];

pub(crate) fn queuectl() -> Box<dyn Peer> {
    Box::new(queuectl::Queuectl)
}

/// Where `bench/peers` puts what it installs by itself.
fn installed() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("peers")
}

/// The path of a program: what `bench/peers` has installed, else what the caller would start.
fn program(name: &str) -> Option<PathBuf> {
    let ours = [installed().join("bin"), installed().join("venv/bin")];
    let path = env::var_os("PATH").unwrap_or_default();
    ours.into_iter()
        .chain(env::split_paths(&path))
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

/// A program that runs in the foreground and is ended by the kernel when this process dies.
fn daemon<'a>(arguments: impl IntoIterator<Item = &'a OsStr>) -> Result<Program> {
    let bound = ["setpriv", "--pdeathsig", "TERM"].map(OsStr::new);
    Program::new(bound.into_iter().chain(arguments))
}

/// A program and its arguments as one list.
fn line<'a>(program: &'a Path, arguments: &[&'a str]) -> impl Iterator<Item = &'a OsStr> {
    iter::once(program.as_os_str()).chain(arguments.iter().copied().map(OsStr::new).collect::<Vec<_>>())
}

/// The first word with a digit in what a program says about its version.
fn version(program: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).output()?;
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let word = text.split_whitespace().find(|word| word.contains(|letter: char| letter.is_ascii_digit()));
    let version = word.context("a program does not say its version")?;
    Ok(version.trim_matches(|letter: char| !letter.is_ascii_digit()).to_owned())
}

fn plain(path: &Path) -> Result<&str> {
    path.to_str().context("a plain path")
}
