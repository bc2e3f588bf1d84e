//! The two pipes that carry a command's output.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};

use super::capture::Capture;
use crate::domain::log::Stream;
use crate::sys::interrupts::timespec;

/// What is read from a pipe at once: all that it can hold.
const READ_BYTES: usize = 64 << 10;

thread_local! {
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into());
}

/// Our ends; one that has come to its end is gone.
#[derive(Debug)]
pub(super) struct Pipes {
    out: Option<OwnedFd>,
    err: Option<OwnedFd>,
}

/// The command's ends.
#[derive(Debug)]
pub(super) struct CommandEnds {
    pub(super) out: OwnedFd,
    pub(super) err: OwnedFd,
}

impl Pipes {
    pub(super) fn open() -> io::Result<(Self, CommandEnds)> {
        let (out, command_out) = pipe_with(PipeFlags::CLOEXEC)?;
        let (err, command_err) = pipe_with(PipeFlags::CLOEXEC)?;
        let ends = CommandEnds { out: command_out, err: command_err };
        Ok((Self { out: Some(out), err: Some(err) }, ends))
    }

    /// Sleeps until there is output or one of `others` is ready, for this long at most. Output is read; which of the
    /// others are ready is returned.
    pub(super) fn wait<const N: usize>(
        &mut self,
        others: [BorrowedFd<'_>; N],
        patience: Option<Duration>,
        capture: &mut Capture,
    ) -> [bool; N] {
        let pipes: Vec<(Stream, &OwnedFd)> = self.open_ones().collect();
        let descriptors = others.iter().copied().chain(pipes.iter().map(|(_, pipe)| pipe.as_fd()));
        let mut watched: Vec<PollFd<'_>> =
            descriptors.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        if poll(&mut watched, patience.map(timespec).as_ref()).is_err() {
            // Interrupted: nothing is known to be ready.
            return [false; N];
        }
        let ready: Vec<bool> = watched.iter().map(|one| !one.revents().is_empty()).collect();
        let streams: Vec<Stream> = pipes.iter().map(|(stream, _)| *stream).collect();
        let pipes_before = streams.len();
        for (stream, _) in streams.into_iter().zip(&ready[N..]).filter(|(_, is_ready)| **is_ready) {
            self.read(stream, capture);
        }
        if self.open_ones().count() < pipes_before {
            // The end of its output is most often the end of the command, which is not over in the same instant. Whoever
            // looks again at once wakes up three times for each command instead of once.
            std::thread::yield_now();
        }
        std::array::from_fn(|at| ready[at])
    }

    /// Reads what is left, when those who wrote it are dead.
    pub(super) fn drain(&mut self, capture: &mut Capture) {
        while let Some(stream) = self.readable() {
            self.read(stream, capture);
        }
    }

    fn readable(&self) -> Option<Stream> {
        let is_ready = |pipe: &OwnedFd| {
            let mut watched = [PollFd::new(pipe, PollFlags::IN)];
            poll(&mut watched, Some(&timespec(Duration::ZERO))).is_ok_and(|count| count > 0)
        };
        self.open_ones().find(|(_, pipe)| is_ready(pipe)).map(|(stream, _)| stream)
    }

    fn open_ones(&self) -> impl Iterator<Item = (Stream, &OwnedFd)> {
        let out = self.out.iter().map(|pipe| (Stream::Out, pipe));
        out.chain(self.err.iter().map(|pipe| (Stream::Err, pipe)))
    }

    /// One read, which does not block because there is something to read; at its end a pipe is let go.
    fn read(&mut self, stream: Stream, capture: &mut Capture) {
        let pipe = match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        };
        let Some(open) = pipe.take() else {
            return;
        };
        *pipe = BUFFER.with_borrow_mut(|buffer| match rustix::io::read(&open, &mut buffer[..]) {
            Ok(read @ 1..) => {
                capture.take(stream, &buffer[..read]);
                Some(open)
            }
            Err(rustix::io::Errno::INTR) => Some(open),
            Ok(0) | Err(_) => None,
        });
    }
}
