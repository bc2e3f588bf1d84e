//! An errand: a command that tells a hook something, from its start until nothing of it is left.
//!
//! It is no attempt: it has no slot, no record and no lease. What it leaves behind is told from what jobs leave behind in
//! the same way: by its session, its cookie and the brand of the thread that started it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, OFlags, SeekFrom, fcntl_setfl, memfd_create, seek};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, kill_process_group};

use crate::attempt::command::Prepared;
use crate::attempt::cookie::Cookie;
use crate::attempt::last_line::LastLine;
use crate::attempt::slot_records::Mark;
use crate::orphans::reparented::{Adopted, Family, Then};
use crate::orphans::survivor::DEATH;
use crate::worker::dispatcher::EventBell;
use sys::process;
use sys::process::brand::Brand;
use sys::process::spawn::{ChildProcess, Limits, ProcessScope, Spawn, spawn};
use sys::process::{ChildExit, ProcessHandle};
use sys::signal::interrupts::timespec;

/// How much of the output is read at once.
const READ_BYTES: usize = 4 << 10;
/// How long to wait for a process that was killed before the next look.
const LOOK: Duration = Duration::from_millis(10);

/// What is to be done.
#[derive(Debug)]
pub(crate) struct Errand {
    pub(crate) prepared: Prepared,
    /// What it reads from its standard input.
    pub(crate) input: Vec<u8>,
    pub(crate) cookie: Cookie,
    /// How long it may take.
    pub(crate) limit: Duration,
}

/// Who watches over it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch<'a> {
    pub(crate) adopted: &'a Adopted,
    pub(crate) mark: Option<&'a Mark<'a>>,
    pub(crate) brand: Option<Brand>,
    /// Rings when there is no more time.
    pub(crate) stop: &'a EventBell,
}

/// How it ended, and the last line that it printed.
#[derive(Debug)]
pub(crate) struct Returned {
    pub(crate) ending: Ending,
    pub(crate) last_line: Option<String>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    Ended(ExitStatus),
    TookTooLong,
    Stopped,
}

pub(crate) fn run(errand: &Errand, watch: Watch<'_>) -> io::Result<Returned> {
    let input = readable(&errand.input)?;
    let (output, end) = pipe_with(PipeFlags::CLOEXEC)?;
    fcntl_setfl(&output, OFlags::NONBLOCK)?;
    let Prepared { program, argv, envp, cwd } = &errand.prepared;
    let spawned = spawn(&Spawn {
        program,
        argv,
        envp,
        cwd: Some(cwd),
        scope: ProcessScope::Session,
        limits: Limits::default(),
        descriptors: &[(input.as_fd(), 0), (end.as_fd(), 1), (end.as_fd(), 2)],
    })?;
    watch.adopted.began(spawned.pid);
    // The command's end stays open here too: that it has ended is told by its handle, not by its pipe.
    let mut last_line = LastLine::default();
    let stopped = wait(&spawned, output.as_fd(), errand.limit, watch.stop, &mut last_line);
    let family = Family { leader: spawned.pid, cookie: &errand.cookie, mark: watch.mark, brand: watch.brand };
    // To its whole group. It is not reaped yet, so the group is its own.
    let _ = kill_process_group(spawned.pid, Signal::KILL);
    let wait = |handle: &ProcessHandle, patience| handle.ends_within(patience).map(drop);
    watch.adopted.end(family, wait, |_| Then::Leave);
    read_all(output.as_fd(), &mut last_line);
    let ended = reap(&spawned)?;
    Ok(Returned { ending: stopped.unwrap_or(Ending::Ended(ended.status)), last_line: last_line.finish() })
}

/// A file in memory: unlike a pipe it takes all there is to read at once, so nobody has to wait for the reader.
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

/// `None` when it has ended by itself.
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
            return Some(Ending::TookTooLong);
        }
        let (handle, stop) = (spawned.handle.as_fd(), stop.as_fd());
        let mut watched = [handle, stop, output].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        if poll(&mut watched, Some(&timespec(left))).is_err() {
            // Interrupted: nothing is known to be ready.
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

/// Whether there was anything.
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

/// What is left, when those who wrote it are dead.
fn read_all(output: BorrowedFd<'_>, last_line: &mut LastLine) {
    while read(output, last_line) {}
}

fn reap(spawned: &ChildProcess) -> io::Result<ChildExit> {
    let began = Instant::now();
    loop {
        if let Some(ended) = process::reap(spawned.pid)? {
            return Ok(ended);
        }
        spawned.handle.ends_within(LOOK)?;
        // No lease depends on it, so it is left alone: a hook must not keep a worker from stopping.
        if began.elapsed() >= DEATH {
            return Err(io::Error::other(format!("process {} cannot be killed", spawned.pid.as_raw_pid())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::command::in_shell;
    use crate::attempt::cookie::Bearer;
    use std::ffi::CString;
    use sys::process::cstr_array::CstrArray;

    fn errand(line: &str, limit: Duration) -> Errand {
        let mut envp = CstrArray::default();
        envp.push(&[b"PATH=/usr/bin:/bin"]).expect("no NUL");
        let line = CString::new(line).expect("no NUL");
        let of = Bearer::Delivery { name: "d-1".to_owned() };
        Errand {
            prepared: in_shell(line, envp, c"/".to_owned()),
            input: b"an event".to_vec(),
            cookie: Cookie { worker: "w".parse().expect("a name"), of },
            limit,
        }
    }

    fn run_with(line: &str, limit: Duration, stop: &EventBell) -> Returned {
        let adopted = Adopted::new().expect("children are listed");
        let watch = Watch { adopted: &adopted, mark: None, brand: None, stop };
        run(&errand(line, limit), watch).expect("it runs")
    }

    #[test]
    fn it_reads_what_it_is_told_and_its_last_words_are_kept() {
        let stop = EventBell::new().expect("a bell");
        let returned = run_with("cat; echo; echo no luck >&2; exit 3", Duration::from_secs(60), &stop);
        let Ending::Ended(status) = returned.ending else { panic!("{returned:?}") };
        assert_eq!((status.code(), returned.last_line.as_deref()), (Some(3), Some("no luck")));
        let returned = run_with("cat", Duration::from_secs(60), &stop);
        assert_eq!(returned.last_line.as_deref(), Some("an event"));
    }

    #[test]
    fn one_that_never_ends_is_killed_when_its_time_is_over() {
        let stop = EventBell::new().expect("a bell");
        let returned = run_with("echo here; sleep 600", Duration::from_millis(50), &stop);
        assert!(matches!(returned.ending, Ending::TookTooLong), "{returned:?}");
    }

    #[test]
    fn one_that_is_stopped_is_killed_at_once() {
        let stop = EventBell::new().expect("a bell");
        stop.ring();
        let returned = run_with("sleep 600", Duration::from_secs(600), &stop);
        assert!(matches!(returned.ending, Ending::Stopped), "{returned:?}");
    }
}
