//! The two pipes that carry a command's output.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};

use super::capture::Capture;
use domain::log::Stream;
use sys::signal::interrupts::timespec;

/// How much is read from a pipe at once: its capacity.
const READ_BYTES: usize = 64 << 10;

thread_local! {
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into());
}

/// Both ends of both pipes. The command's ends stay open here: so a pipe never reaches end of file, and a command that
/// ends wakes the slot once instead of three times. The process handle shows when the command has ended, not its pipes,
/// which orphans may hold.
#[derive(Debug)]
pub(crate) struct Pipes {
    out: Pipe,
    err: Pipe,
}

#[derive(Debug)]
struct Pipe {
    ours: OwnedFd,
    command_end: OwnedFd,
}

impl Pipe {
    fn open() -> io::Result<Self> {
        let (ours, command_end) = pipe_with(PipeFlags::CLOEXEC)?;
        // Only this end: a command expects its own end to block.
        fcntl_setfl(&ours, OFlags::NONBLOCK)?;
        Ok(Self { ours, command_end })
    }

    /// Reads once. A command can open its own output for reading and consume it first: a blocking read would then block
    /// for ever, because the pipe never reaches end of file.
    fn read(&self, stream: Stream, capture: &mut Capture) {
        BUFFER.with_borrow_mut(|buffer| {
            if let Ok(read) = rustix::io::read(&self.ours, &mut buffer[..]) {
                capture.take(stream, &buffer[..read]);
            }
        });
    }
}

impl Pipes {
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self { out: Pipe::open()?, err: Pipe::open()? })
    }

    /// The ends that the command writes to.
    pub(crate) fn command_ends(&self) -> [BorrowedFd<'_>; 2] {
        [self.out.command_end.as_fd(), self.err.command_end.as_fd()]
    }

    /// Sleeps until there is output, one of `others` is ready, or `timeout` expires. Reads the output. Returns which of the
    /// others are ready, and whether there was output.
    pub(crate) fn wait<const N: usize>(
        &self,
        others: [BorrowedFd<'_>; N],
        timeout: Option<Duration>,
        capture: &mut Capture,
    ) -> ([bool; N], bool) {
        let pipes = self.both();
        let watched = others.into_iter().chain(pipes.map(|(_, pipe)| pipe.ours.as_fd()));
        let mut watched: Vec<PollFd<'_>> =
            watched.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        if poll(&mut watched, timeout.map(timespec).as_ref()).is_err() {
            // Interrupted by a signal: nothing is known to be ready.
            return ([false; N], false);
        }
        let is_ready = |at: usize| !watched[at].revents().is_empty();
        let speaking = pipes.into_iter().enumerate().filter(|(at, _)| is_ready(N + at));
        let mut has_output = false;
        for (_, (stream, pipe)) in speaking {
            pipe.read(stream, capture);
            has_output = true;
        }
        (std::array::from_fn(is_ready), has_output)
    }

    /// Reads output until `other` is ready or `timeout` expires. A process that cannot be killed may be blocked in a
    /// write and ends only if its output is read.
    pub(crate) fn read_until_ready(&self, other: BorrowedFd<'_>, timeout: Duration, capture: &mut Capture) {
        let until = Instant::now() + timeout;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let ([is_ready], _) = self.wait([other], Some(left), capture);
            if is_ready || left.is_zero() {
                return;
            }
        }
    }

    /// Reads the remaining output, after its writers have ended.
    pub(crate) fn drain(&self, capture: &mut Capture) {
        while let ([], true) = self.wait([], Some(Duration::ZERO), capture) {}
    }

    fn both(&self) -> [(Stream, &Pipe); 2] {
        [(Stream::Out, &self.out), (Stream::Err, &self.err)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::fcntl_getfl;

    #[test]
    fn reading_an_empty_pipe_does_not_block() {
        let pipes = Pipes::open().expect("pipes");
        let mut capture = Capture::new("/none".into(), 0);
        pipes.out.read(Stream::Out, &mut capture);
        pipes.err.read(Stream::Err, &mut capture);
        assert_eq!(capture.finish().output, None);
        for end in pipes.command_ends() {
            assert!(
                !fcntl_getfl(end).expect("flags").contains(OFlags::NONBLOCK),
                "a command may rely on blocking writes"
            );
        }
    }
}
