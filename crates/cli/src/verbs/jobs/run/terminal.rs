//! The terminal while `run` follows a command: the command's output unchanged, interleaved with our notes.

use std::io::{self, Write};
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

pub(super) struct TerminalOutput<'c> {
    context: &'c Context,
    /// Shows what the job waits for.
    bar: Bar,
    /// The command's last output on the stream of our notes did not end with a newline.
    in_line: bool,
}

impl<'c> TerminalOutput<'c> {
    pub(super) fn new(context: &'c Context) -> Self {
        Self { context, bar: Bar::new(context, "", None), in_line: false }
    }

    /// Writes the command's output until a signal arrives; returns how much was written.
    pub(super) fn write(
        &mut self,
        stream: Stream,
        bytes: &[u8],
        interrupts: &Interrupts,
    ) -> io::Result<usize> {
        self.bar.clear();
        let out = self.target_of(stream);
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
            self.in_line = *last != b'\n';
        }
        Ok(written)
    }

    /// With `--json`, standard output is reserved for the job.
    fn target_of(&self, stream: Stream) -> BorrowedFd<'static> {
        match stream {
            Stream::Out if !self.context.json => stdio::stdout(),
            Stream::Out | Stream::Err => stdio::stderr(),
        }
    }

    fn is_seen_with_notes(&self, stream: Stream) -> bool {
        match stream {
            Stream::Out => self.context.json || self.context.stdout_is_terminal,
            Stream::Err => true,
        }
    }

    pub(super) fn wait_for(&mut self, what: impl FnOnce() -> String) {
        self.bar.say(what);
    }

    /// Removes the wait reason from the terminal.
    pub(super) fn clear(&mut self) {
        self.bar.clear();
    }

    /// Prints a note on standard error.
    pub(super) fn note(&mut self, note: &str) {
        if !self.context.quiet {
            self.break_line();
            let dim = Style::new().dimmed();
            // An error here means that standard error is closed.
            let _ = writeln!(self.context.notes(), "{dim}{}{dim:#}", printable(note));
        }
    }

    /// Prints a note only if standard error is a terminal.
    pub(super) fn note_on_terminal(&mut self, note: &str) {
        if self.context.shows_progress() {
            self.note(note);
        }
    }

    /// Ends an unfinished line, so that a note starts on its own line.
    pub(super) fn break_line(&mut self) {
        self.bar.clear();
        if std::mem::take(&mut self.in_line) {
            let _ = writeln!(self.context.notes());
        }
    }

    /// Starts a new line for a question: the terminal may have echoed `^C`.
    pub(super) fn begin_question(&mut self) {
        self.in_line = true;
        self.break_line();
    }
}

/// Waits until `out` is writable; `false` if a signal arrived.
fn is_ready(out: impl AsFd, interrupts: &Interrupts) -> io::Result<bool> {
    let mut watched = [PollFd::new(&out, PollFlags::OUT), PollFd::new(interrupts, PollFlags::IN)];
    match poll(&mut watched, None) {
        Ok(_) => Ok(watched[1].revents().is_empty()),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
