//! What is seen of a command that runs: its bytes as they are, and beside them a few words of ours.

use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd};

use anstyle::Style;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::stdio;

use crate::context::Context;
use crate::render::progress::Bar;
use crate::render::text::printable;
use domain::log::Stream;
use sys::signal::interrupts::Interrupts;

/// A pipe that is ready takes this many bytes without blocking.
const PIPE_BYTES: usize = 4_096;

pub(super) struct Live<'c> {
    context: &'c Context,
    /// What is waited for.
    bar: Bar,
    /// What the command printed last where our words go too did not end its line.
    is_in_line: bool,
}

impl<'c> Live<'c> {
    pub(super) fn new(context: &'c Context) -> Self {
        Self { context, bar: Bar::new(context, "", None), is_in_line: false }
    }

    /// Writes what the command printed, and how much of it before a signal came: then the rest can wait.
    pub(super) fn write(
        &mut self,
        stream: Stream,
        bytes: &[u8],
        interrupts: &Interrupts,
    ) -> io::Result<usize> {
        self.bar.clear();
        let out = self.place_of(stream);
        let mut written = 0;
        while written < bytes.len() && is_ready(out, interrupts)? {
            let end = bytes.len().min(written + PIPE_BYTES);
            match rustix::io::write(out, &bytes[written..end]) {
                Ok(count) => written += count,
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if let (Some(last), true) = (bytes[..written].last(), self.is_seen_with_notes(stream)) {
            self.is_in_line = *last != b'\n';
        }
        Ok(written)
    }

    /// With `--json` standard output is for the job.
    fn place_of(&self, stream: Stream) -> BorrowedFd<'static> {
        match stream {
            Stream::Out if !self.context.json => stdio::stdout(),
            Stream::Out | Stream::Err => stdio::stderr(),
        }
    }

    fn is_seen_with_notes(&self, stream: Stream) -> bool {
        match stream {
            Stream::Out => self.context.json || self.context.person_reads,
            Stream::Err => true,
        }
    }

    /// Shows what is waited for.
    pub(super) fn wait_for(&mut self, what: impl FnOnce() -> String) {
        self.bar.say(what);
    }

    /// Leaves the line to what comes next.
    pub(super) fn clear(&mut self) {
        self.bar.clear();
    }

    /// Something worth knowing.
    pub(super) fn note(&mut self, note: &str) {
        if !self.context.quiet {
            self.break_line();
            let dim = Style::new().dimmed();
            // Where standard error is closed there is nobody left to tell.
            let _ = writeln!(self.context.notes(), "{dim}{}{dim:#}", printable(note));
        }
    }

    /// Something that is worth knowing only to a person who watches.
    pub(super) fn aside(&mut self, note: &str) {
        if self.context.person_watches() {
            self.note(note);
        }
    }

    /// Two things are not said in one line.
    pub(super) fn break_line(&mut self) {
        self.bar.clear();
        if std::mem::take(&mut self.is_in_line) {
            let _ = writeln!(self.context.notes());
        }
    }

    /// Begins a line for a question: the terminal may have shown a key that was pressed.
    pub(super) fn give_way(&mut self) {
        self.is_in_line = true;
        self.break_line();
    }

    /// Whether somebody is there to be asked.
    pub(super) fn can_ask() -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }
}

/// Waits until it can be written to; `false` if a signal came.
fn is_ready(out: impl AsFd, interrupts: &Interrupts) -> io::Result<bool> {
    let mut watched = [PollFd::new(&out, PollFlags::OUT), PollFd::new(interrupts, PollFlags::IN)];
    match poll(&mut watched, None) {
        Ok(_) => Ok(watched[1].revents().is_empty()),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
