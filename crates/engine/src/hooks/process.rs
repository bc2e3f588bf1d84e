//! A hook process: a command that delivers an event to a hook, from its start until its last orphan is dead.
//!
//! It is not an attempt: it has no slot, no record and no lease. Its orphans are recognised in the same way as those of
//! jobs: by group, by session and by cookie.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, OFlags, SeekFrom, fcntl_setfl, memfd_create, seek};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, kill_process_group};

use crate::attempt::command::Invocation;
use crate::attempt::cookie::Cookie;
use crate::attempt::last_line::LastLine;
use crate::attempt::slot_records::RecordLock;
use crate::orphans::containment::SlotGroup;
use crate::orphans::reparented::{OrphanFilter, Orphans, SurvivorPolicy};
use crate::orphans::survivor::KILL_TIMEOUT;
use crate::worker::dispatcher::EventBell;
use sys::process;
use sys::process::spawn::{ChildProcess, Limits, ProcessScope, Spawn, spawn};
use sys::process::{ChildExit, ProcessHandle};
use sys::signal::interrupts::timespec;

/// How much of the output is read at once.
const READ_BYTES: usize = 4 << 10;
/// How long to wait for a killed process before trying to reap it again.
const REAP_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The command of a hook, and its input.
#[derive(Debug)]
pub(crate) struct HookProcess {
    pub(crate) invocation: Invocation,
    /// Its standard input.
    pub(crate) input: Vec<u8>,
    pub(crate) cookie: Cookie,
    /// How long it may take.
    pub(crate) limit: Duration,
}

/// The tools with which the calling thread supervises it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HookSupervision<'a> {
    pub(crate) orphans: &'a Orphans,
    pub(crate) record_lock: Option<&'a RecordLock<'a>>,
    pub(crate) group: Option<&'a SlotGroup<'a>>,
    /// Rings when the delivery must stop.
    pub(crate) stop: &'a EventBell,
}

/// How it ended, and the last line that it printed.
#[derive(Debug)]
pub(crate) struct HookResult {
    pub(crate) ending: Ending,
    pub(crate) last_line: Option<String>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    Ended(ExitStatus),
    TimedOut,
    Stopped,
}

pub(crate) fn run(process: &HookProcess, supervision: HookSupervision<'_>) -> io::Result<HookResult> {
    let input = readable(&process.input)?;
    let (output, end) = pipe_with(PipeFlags::CLOEXEC)?;
    fcntl_setfl(&output, OFlags::NONBLOCK)?;
    let Invocation { program, argv, envp, cwd } = &process.invocation;
    let spawned = spawn(&Spawn {
        program,
        argv,
        envp,
        cwd: Some(cwd),
        scope: ProcessScope::Session,
        limits: Limits::default(),
        group: supervision.group.and_then(SlotGroup::group).map(AsFd::as_fd),
        pid_record: None,
        descriptors: &[(input.as_fd(), 0), (end.as_fd(), 1), (end.as_fd(), 2)],
    })?;
    supervision.orphans.add_leader(spawned.pid);
    // The command's end of the pipe stays open here: the process handle, not the pipe, shows that it has ended.
    let mut last_line = LastLine::default();
    let stopped = wait(&spawned, output.as_fd(), process.limit, supervision.stop, &mut last_line);
    let filter = OrphanFilter {
        leader: spawned.pid,
        cookie: &process.cookie,
        record_lock: supervision.record_lock,
        group: supervision.group,
    };
    // The leader is not reaped yet, so the group id is not reused.
    let _ = kill_process_group(spawned.pid, Signal::KILL);
    let wait = |handle: &ProcessHandle, timeout| handle.ends_within(timeout).map(drop);
    supervision.orphans.kill_all(filter, wait, |_| SurvivorPolicy::Leave);
    read_all(output.as_fd(), &mut last_line);
    let ended = reap(&spawned)?;
    Ok(HookResult { ending: stopped.unwrap_or(Ending::Ended(ended.status)), last_line: last_line.finish() })
}

/// A file in memory: unlike a pipe it takes all of the input at once, so the worker does not wait for the reader.
fn readable(bytes: &[u8]) -> io::Result<OwnedFd> {
    let file = memfd_create("queuectl-event", MemfdFlags::CLOEXEC)?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = &rest[written..];
    }
    seek(&file, SeekFrom::Start(0))?;
    Ok(file)
}

/// Waits for the process; `None` when it has ended by itself.
fn wait(
    spawned: &ChildProcess,
    output: BorrowedFd<'_>,
    limit: Duration,
    stop: &EventBell,
    last_line: &mut LastLine,
) -> Option<Ending> {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Some(Ending::TimedOut);
        }
        let (handle, stop) = (spawned.handle.as_fd(), stop.as_fd());
        let mut watched = [handle, stop, output].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        if poll(&mut watched, Some(&timespec(left))).is_err() {
            // Interrupted by a signal: try again.
            continue;
        }
        let [has_ended, is_stopped, speaks] = watched.map(|fd| !fd.revents().is_empty());
        if has_ended {
            return None;
        }
        if is_stopped {
            return Some(Ending::Stopped);
        }
        if speaks {
            read(output, last_line);
        }
    }
}

/// Reads once; returns whether there was any output.
fn read(output: BorrowedFd<'_>, last_line: &mut LastLine) -> bool {
    let mut buffer = [0; READ_BYTES];
    match rustix::io::read(output, &mut buffer) {
        Ok(count) if count > 0 => {
            last_line.take(&buffer[..count]);
            true
        }
        Ok(_) | Err(_) => false,
    }
}

/// Reads the remaining output, after its writers have ended.
fn read_all(output: BorrowedFd<'_>, last_line: &mut LastLine) {
    while read(output, last_line) {}
}

fn reap(spawned: &ChildProcess) -> io::Result<ChildExit> {
    let began = Instant::now();
    loop {
        if let Some(ended) = process::reap(spawned.pid)? {
            return Ok(ended);
        }
        spawned.handle.ends_within(REAP_POLL_INTERVAL)?;
        // No lease depends on it, so the worker gives up: a hook must not keep a worker from stopping.
        if began.elapsed() >= KILL_TIMEOUT {
            return Err(io::Error::other(format!("process {} cannot be killed", spawned.pid.as_raw_pid())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::command::in_shell;
    use crate::attempt::cookie::CookieOwner;
    use std::ffi::CString;
    use sys::process::cstr_array::CstrArray;

    fn hook_process(line: &str, limit: Duration) -> HookProcess {
        let mut envp = CstrArray::default();
        envp.push(&[b"PATH=/usr/bin:/bin"]).expect("no NUL");
        let line = CString::new(line).expect("no NUL");
        let owner = CookieOwner::Delivery { name: "d-1".to_owned() };
        HookProcess {
            invocation: in_shell(line, envp, c"/".to_owned()),
            input: b"an event".to_vec(),
            cookie: Cookie { worker: "w".parse().expect("a name"), owner },
            limit,
        }
    }

    fn run_with(line: &str, limit: Duration, stop: &EventBell) -> HookResult {
        let orphans = Orphans::new().expect("children are listed");
        let supervision = HookSupervision { orphans: &orphans, record_lock: None, group: None, stop };
        run(&hook_process(line, limit), supervision).expect("it runs")
    }

    #[test]
    fn it_reads_the_event_and_its_last_line_is_kept() {
        let stop = EventBell::new().expect("a bell");
        let result = run_with("cat; echo; echo no luck >&2; exit 3", Duration::from_secs(60), &stop);
        let Ending::Ended(status) = result.ending else { panic!("{result:?}") };
        assert_eq!((status.code(), result.last_line.as_deref()), (Some(3), Some("no luck")));
        let result = run_with("cat", Duration::from_secs(60), &stop);
        assert_eq!(result.last_line.as_deref(), Some("an event"));
    }

    #[test]
    fn a_hook_process_that_does_not_end_is_killed_at_its_time_limit() {
        let stop = EventBell::new().expect("a bell");
        let result = run_with("echo here; sleep 600", Duration::from_millis(50), &stop);
        assert!(matches!(result.ending, Ending::TimedOut), "{result:?}");
    }

    #[test]
    fn a_stopped_hook_process_is_killed_at_once() {
        let stop = EventBell::new().expect("a bell");
        stop.ring();
        let result = run_with("sleep 600", Duration::from_secs(600), &stop);
        assert!(matches!(result.ending, Ending::Stopped), "{result:?}");
    }
}
