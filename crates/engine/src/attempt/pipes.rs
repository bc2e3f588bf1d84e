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

/// What is read from a pipe at once: all that it can hold.
const READ_BYTES: usize = 64 << 10;

thread_local! {
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into());
}

/// Both ends of both. The command's ends stay open here too: so a pipe never comes to its end, and a command that ends
/// wakes us once instead of three times. When it has ended is told by its handle, not by its pipes, which what it left
/// behind may hold.
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
        // Only this end: a command expects that its own blocks.
        fcntl_setfl(&ours, OFlags::NONBLOCK)?;
        Ok(Self { ours, command_end })
    }

    /// One read of what there is. A command can open its output for reading, and take that away before us: a read that
    /// blocks would then last for ever, because the pipe never comes to its end.
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

    /// What the command writes to.
    pub(crate) fn command_ends(&self) -> [BorrowedFd<'_>; 2] {
        [self.out.command_end.as_fd(), self.err.command_end.as_fd()]
    }

    /// Sleeps until there is output or one of `others` is ready, for this long at most. Output is read; which of the
    /// others are ready is returned.
    pub(crate) fn wait<const N: usize>(
        &self,
        others: [BorrowedFd<'_>; N],
        patience: Option<Duration>,
        capture: &mut Capture,
    ) -> [bool; N] {
        let (ready, _) = self.look(others, patience, capture);
        ready
    }

    /// Reads output until `other` is ready, for this long at most. A process that cannot be killed ends only if it can
    /// write what it has to say.
    pub(crate) fn read_until_ready(&self, other: BorrowedFd<'_>, patience: Duration, capture: &mut Capture) {
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let [is_ready] = self.wait([other], Some(left), capture);
            if is_ready || left.is_zero() {
                return;
            }
        }
    }

    /// Reads what is left, when those who wrote it are dead.
    pub(crate) fn drain(&self, capture: &mut Capture) {
        while let ([], true) = self.look([], Some(Duration::ZERO), capture) {}
    }

    /// The same as `wait`, and whether there was output.
    fn look<const N: usize>(
        &self,
        others: [BorrowedFd<'_>; N],
        patience: Option<Duration>,
        capture: &mut Capture,
    ) -> ([bool; N], bool) {
        let pipes = self.both();
        let watched = others.into_iter().chain(pipes.map(|(_, pipe)| pipe.ours.as_fd()));
        let mut watched: Vec<PollFd<'_>> =
            watched.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        if poll(&mut watched, patience.map(timespec).as_ref()).is_err() {
            // Interrupted: nothing is known to be ready.
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

    fn both(&self) -> [(Stream, &Pipe); 2] {
        [(Stream::Out, &self.out), (Stream::Err, &self.err)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::fcntl_getfl;

    #[test]
    fn what_somebody_else_has_read_is_not_waited_for() {
        let pipes = Pipes::open().expect("pipes");
        let mut capture = Capture::new("/none".into(), 0);
        pipes.out.read(Stream::Out, &mut capture);
        pipes.err.read(Stream::Err, &mut capture);
        assert_eq!(capture.finish().output, None);
        for end in pipes.command_ends() {
            assert!(
                !fcntl_getfl(end).expect("flags").contains(OFlags::NONBLOCK),
                "a command may rely on that"
            );
        }
    }
}
