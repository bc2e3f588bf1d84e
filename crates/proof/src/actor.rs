//! The command of the jobs in a trial, which records its events in the ledger.
//!
//! It writes START, prints its nonce, starts the requested escapees, writes a TICK at intervals, writes END and exits as
//! requested. An escapee has shed some of the marks by which queuectl finds orphans; it only writes ticks.

use std::ffi::{CString, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{
    Resource, Rlimit, Signal, getpid, getppid, getrlimit, kill_process, set_parent_process_death_signal,
    setrlimit,
};

use super::ledger::{COMMAND, CommandEnd, LedgerEvent, Writer, nonce};
use sys::process::cstr_array::CstrArray;
use sys::process::spawn::{
    Limits, ProcessScope, Spawn, keep_descriptors_to_ourselves, own_environment, spawn,
};
use sys::program::ExitCode;
use sys::signal::interrupts::Interrupts;

/// The hidden verbs that run the command of a trial and its escapees.
pub const ACT: &str = "__act";
pub const LINGER: &str = "__linger";
/// How often a command writes a tick.
const TICK_INTERVAL: Duration = Duration::from_millis(20);
/// An escapee exits by itself after this time, even if it was never killed.
const MAX_LINGER_TIME: Duration = Duration::from_secs(120);

/// How a command behaves.
#[derive(Clone, Debug)]
pub struct CommandSpec {
    pub ledger: PathBuf,
    pub lives: Duration,
    /// How each attempt ends; all later ones end as the last.
    pub ends: Vec<CommandEnd>,
    pub escapes: Vec<Escape>,
    /// Whether it ignores SIGTERM.
    pub ignores_sigterm: bool,
}

/// The attempt that the command belongs to, from its environment.
#[derive(Clone, Debug)]
pub struct AttemptRef {
    pub job: String,
    pub attempt: u32,
    pub worker: String,
    /// The host on which it runs.
    pub host: String,
}

domain::named_enum! {
    /// A way for a process to escape from its attempt, named by the marks that it sheds.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Escape {
        /// No marks: it merely runs in the background.
        Child = "child",
        /// The session.
        Daemon = "daemon",
        /// Session and environment; it still holds the lock.
        Bare = "bare",
        /// Session and lock; its environment names the attempt.
        Unlocked = "unlocked",
        /// Environment and lock; it is still in the session.
        Nameless = "nameless",
        /// All three.
        Naked = "naked",
    }
}

impl Escape {
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

/// Runs the command. Returns the exit code, unless it ends by a signal.
pub fn act(act: &CommandSpec, who: &AttemptRef) -> io::Result<ExitCode> {
    raise_file_size_limit();
    let _ignored = act.ignores_sigterm.then(|| Interrupts::catch(&[Signal::TERM])).transpose()?;
    let nonce = nonce();
    let writer = Writer::new(&act.ledger, who, &nonce);
    writer.write(LedgerEvent::Start { worker: who.worker.clone() })?;
    // Print the nonce before starting escapees: it proves that the recorded output comes from this process.
    let mut out = io::stdout();
    writeln!(out, "{nonce}")?;
    out.flush()?;
    start_escapees(act, who, &nonce)?;
    write_ticks(&writer, COMMAND, act.lives)?;
    let at = usize::try_from(who.attempt.saturating_sub(1)).unwrap_or(usize::MAX);
    let how = act.ends.get(at).or(act.ends.last()).copied().unwrap_or(CommandEnd::Exit(0));
    writer.write(LedgerEvent::End { how })?;
    end_process(how)
}

/// Raises the file size limit, because the ledger must not be subject to a limit that a nemesis set for a worker.
fn raise_file_size_limit() {
    let limit = getrlimit(Resource::Fsize);
    // If this fails, the first line that exceeds the limit reports it.
    let _ = setrlimit(Resource::Fsize, Rlimit { current: limit.maximum, ..limit });
}

/// Executes this program with other arguments, and with SIGTERM on the death of the parent: the workers of a trial must not
/// outlive the process that runs it.
pub fn become_tied(parent: u32, words: &[OsString]) -> io::Error {
    if let Err(error) = set_parent_process_death_signal(Some(Signal::TERM)) {
        return error.into();
    }
    if getppid().map(|pid| pid.as_raw_pid().cast_unsigned()) != Some(parent) {
        return io::Error::other("the parent process has exited");
    }
    Command::new("/proc/self/exe").args(words).exec()
}

fn end_process(how: CommandEnd) -> io::Result<ExitCode> {
    match how {
        CommandEnd::Exit(code) => Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))),
        CommandEnd::Signal(signal) => {
            let named = Signal::from_named_raw(signal.number());
            kill_process(getpid(), named.ok_or(io::ErrorKind::InvalidInput)?)?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Writes ticks for this long.
fn write_ticks(writer: &Writer, who: &str, length: Duration) -> io::Result<()> {
    let until = Instant::now() + length;
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        // This sleep is the simulated work, not synchronisation.
        std::thread::sleep(left.min(TICK_INTERVAL));
        writer.write(LedgerEvent::Tick { who: who.to_owned() })?;
    }
    Ok(())
}

/// Runs an escapee: writes ticks until it is killed.
pub fn linger(ledger: &Path, who: &AttemptRef, name: &str, nonce: &str) -> io::Result<ExitCode> {
    let _ignored = Interrupts::catch(&[Signal::TERM, Signal::HUP])?;
    write_ticks(&Writer::new(ledger, who, nonce), name, MAX_LINGER_TIME)?;
    Ok(ExitCode::SUCCESS)
}

/// Starts the escapees. Those that keep the lock come first, because it cannot be regained after it was closed.
fn start_escapees(act: &CommandSpec, who: &AttemptRef, nonce: &str) -> io::Result<()> {
    let start = |escape: &Escape| start_escapee(*escape, &act.ledger, who, nonce);
    let (locked, unlocked): (Vec<Escape>, Vec<Escape>) =
        act.escapes.iter().partition(|escape| escape.keeps_lock());
    locked.iter().try_for_each(start)?;
    if !unlocked.is_empty() {
        keep_descriptors_to_ourselves()?;
    }
    unlocked.iter().try_for_each(start)
}

fn start_escapee(escape: Escape, ledger: &Path, who: &AttemptRef, nonce: &str) -> io::Result<()> {
    let attempt = who.attempt.to_string();
    let words: [&OsString; 7] = [
        &"queuectl".into(),
        &LINGER.into(),
        &ledger.as_os_str().to_owned(),
        &(&who.host).into(),
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
        group: None,
        pid_record: None,
    })?;
    Ok(())
}
