//! What the jobs of a trial run: a command that writes down what happens to it.
//!
//! It says START, prints its nonce, leaves behind what it was told to, shows every now and then that it lives, says END
//! and ends as it was told. What it leaves behind has shed some of the marks by which queuectl finds it, and does nothing
//! but show that it lives.

use std::ffi::{CString, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use rustix::process::{
    Resource, Rlimit, Signal, getpid, getppid, getrlimit, kill_process, set_parent_process_death_signal,
    setrlimit,
};

use super::ledger::{COMMAND, How, What, Writer, nonce};
use sys::process::cstr_array::CstrArray;
use sys::process::spawn::{
    Limits, ProcessScope, Spawn, keep_descriptors_to_ourselves, own_environment, spawn,
};
use sys::signal::interrupts::Interrupts;

/// How the program is called to be a command of a trial, and what one leaves behind.
pub const ACT: &str = "__act";
pub const LINGER: &str = "__linger";
/// How often a command shows that it lives.
const TICK: Duration = Duration::from_millis(20);
/// What was left behind ends by itself after this time, whatever else fails.
const LONGEST: Duration = Duration::from_secs(120);

/// What one command is to do.
#[derive(Clone, Debug)]
pub struct Act {
    pub ledger: PathBuf,
    pub lives: Duration,
    /// How each attempt ends; all later ones end as the last.
    pub ends: Vec<How>,
    pub escapes: Vec<Escape>,
    /// Whether it goes on when it is asked to end.
    pub is_deaf: bool,
}

/// Who speaks: the attempt, as the environment names it.
#[derive(Clone, Debug)]
pub struct Who {
    pub job: String,
    pub attempt: u32,
    pub worker: String,
}

/// A way to get away from an attempt, by the marks that are shed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// None: it merely runs in the background.
    Child,
    /// The session.
    Daemon,
    /// Session and environment; it still holds the lock.
    Bare,
    /// Session and lock; its environment names the attempt.
    Unlocked,
    /// Environment and lock; it is still in the session.
    Nameless,
    /// All three.
    Naked,
}

impl Escape {
    pub const ALL: [Self; 6] =
        [Self::Child, Self::Daemon, Self::Bare, Self::Unlocked, Self::Nameless, Self::Naked];

    pub fn name(self) -> &'static str {
        match self {
            Self::Child => "child",
            Self::Daemon => "daemon",
            Self::Bare => "bare",
            Self::Unlocked => "unlocked",
            Self::Nameless => "nameless",
            Self::Naked => "naked",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|escape| escape.name() == name)
    }

    fn keeps_session(self) -> bool {
        match self {
            Self::Child | Self::Nameless => true,
            Self::Daemon | Self::Bare | Self::Unlocked | Self::Naked => false,
        }
    }

    fn keeps_environment(self) -> bool {
        match self {
            Self::Child | Self::Daemon | Self::Unlocked => true,
            Self::Bare | Self::Nameless | Self::Naked => false,
        }
    }

    fn keeps_lock(self) -> bool {
        match self {
            Self::Child | Self::Daemon | Self::Bare => true,
            Self::Unlocked | Self::Nameless | Self::Naked => false,
        }
    }
}

/// Does it all. Gives the exit code, unless it ends by a signal.
pub fn act(act: &Act, who: &Who) -> io::Result<ExitCode> {
    lift_file_limit();
    let _deafness = act.is_deaf.then(|| Interrupts::catch(&[Signal::TERM])).transpose()?;
    let nonce = nonce();
    let writer = Writer::new(&act.ledger, &who.job, who.attempt, &nonce);
    writer.write(What::Start { worker: who.worker.clone() })?;
    // Before it leaves anything behind: the nonce is the proof that what is recorded comes from here.
    let mut out = io::stdout();
    writeln!(out, "{nonce}")?;
    out.flush()?;
    leave_behind(act, who, &nonce)?;
    show_life(&writer, COMMAND, act.lives)?;
    let at = usize::try_from(who.attempt.saturating_sub(1)).unwrap_or(usize::MAX);
    let how = act.ends.get(at).or(act.ends.last()).copied().unwrap_or(How::Exit(0));
    writer.write(What::End { how })?;
    end(how)
}

/// The ledger is no part of what is tried: a limit that a nemesis has set for a worker is none for it.
fn lift_file_limit() {
    let limit = getrlimit(Resource::Fsize);
    // Where it cannot be lifted, the first line that does not fit will tell.
    let _ = setrlimit(Resource::Fsize, Rlimit { current: limit.maximum, ..limit });
}

/// Becomes this program with other arguments, and is asked to end when whoever started it does: workers of a trial must
/// not outlive the one who holds it.
pub fn become_tied(parent: u32, words: &[OsString]) -> io::Error {
    if let Err(error) = set_parent_process_death_signal(Some(Signal::TERM)) {
        return error.into();
    }
    if getppid().map(|pid| pid.as_raw_pid().cast_unsigned()) != Some(parent) {
        return io::Error::other("whoever started it has gone");
    }
    Command::new("/proc/self/exe").args(words).exec()
}

fn end(how: How) -> io::Result<ExitCode> {
    match how {
        How::Exit(code) => Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))),
        How::Signal(signal) => {
            let named = Signal::from_named_raw(signal.number());
            kill_process(getpid(), named.ok_or(io::ErrorKind::InvalidInput)?)?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Shows that something lives, for so long.
fn show_life(writer: &Writer, who: &str, length: Duration) -> io::Result<()> {
    let until = Instant::now() + length;
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        // Not to wait for anything: this is what the command does.
        std::thread::sleep(left.min(TICK));
        writer.write(What::Tick { who: who.to_owned() })?;
    }
    Ok(())
}

/// What was left behind: it shows that it lives until it is killed.
pub fn linger(ledger: &Path, who: &Who, name: &str, nonce: &str) -> io::Result<ExitCode> {
    let _deafness = Interrupts::catch(&[Signal::TERM, Signal::HUP])?;
    show_life(&Writer::new(ledger, &who.job, who.attempt, nonce), name, LONGEST)?;
    Ok(ExitCode::SUCCESS)
}

/// Those that keep the lock come first: there is no way to take it back when it was given up.
fn leave_behind(act: &Act, who: &Who, nonce: &str) -> io::Result<()> {
    let start = |escape: &Escape| start_escapee(*escape, &act.ledger, who, nonce);
    let (locked, unlocked): (Vec<Escape>, Vec<Escape>) =
        act.escapes.iter().partition(|escape| escape.keeps_lock());
    locked.iter().try_for_each(start)?;
    if !unlocked.is_empty() {
        keep_descriptors_to_ourselves()?;
    }
    unlocked.iter().try_for_each(start)
}

fn start_escapee(escape: Escape, ledger: &Path, who: &Who, nonce: &str) -> io::Result<()> {
    let attempt = who.attempt.to_string();
    let words: [&OsString; 6] = [
        &"queuectl".into(),
        &LINGER.into(),
        &ledger.as_os_str().to_owned(),
        &(&who.job).into(),
        &attempt.into(),
        &escape.name().into(),
    ];
    let mut argv = words.iter().map(|word| CString::new(word.as_bytes())).collect::<Result<Vec<_>, _>>()?;
    argv.push(CString::new(nonce)?);
    let envp = if escape.keeps_environment() { own_environment()? } else { CstrArray::default() };
    spawn(&Spawn {
        program: c"/proc/self/exe",
        argv: &argv,
        envp: &envp,
        cwd: None,
        scope: if escape.keeps_session() { ProcessScope::Group } else { ProcessScope::Session },
        descriptors: &[],
        limits: Limits::default(),
    })?;
    Ok(())
}
