//! Asks what to do with the job when the user presses Ctrl-C.

use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::process::Signal;

use crate::confirm::is_interactive;
use crate::context::Context;
use crate::failure::Failure;
use sys::keyboard::Keyboard;
use sys::signal::interrupts::{Interrupts, timespec};

pub(super) const ABOUT_JOB: &str = "[c]ancel the job (or Ctrl-C again), [d]etach, or keep [w]aiting? [d] ";
pub(super) const ABOUT_JOBS: &str =
    "[c]ancel remaining jobs (or Ctrl-C again), [d]etach, or keep [w]aiting? [d] ";
/// How often to check whether the job has ended meanwhile.
const JOB_POLL_INTERVAL: Duration = Duration::from_millis(100);
const CTRL_D: u8 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Cancel,
    /// Because of this signal.
    Detach(Signal),
    KeepWaiting,
}

/// The terminal of a person who can read a question and answer it.
pub(super) fn terminal() -> Option<OwnedFd> {
    is_interactive().then(|| io::stdin().as_fd().try_clone_to_owned().ok()).flatten()
}

/// As [`terminal`], if standard input is a pipe with other data: `ls | queuectl run --each - gzip`. This is the terminal of
/// standard error, which shells open for reading, too.
pub(super) fn terminal_beside_input() -> Option<OwnedFd> {
    let output = io::stderr();
    let is_readable = fcntl_getfl(&output).is_ok_and(|flags| !flags.contains(OFlags::WRONLY));
    (output.is_terminal() && is_readable).then(|| output.as_fd().try_clone_to_owned().ok()).flatten()
}

/// Asks until the user presses a key that answers, or what the question is about `is_over`. A second Ctrl-C cancels; other
/// signals and the end of input detach, and so does a question that cannot be asked because the shell runs this process in
/// the background.
pub(super) fn ask(
    context: &Context,
    interrupts: &Interrupts,
    terminal: OwnedFd,
    question: &str,
    mut is_over: impl FnMut() -> Result<bool, Failure>,
) -> Result<Answer, Failure> {
    let Some(keyboard) = Keyboard::of_terminal(terminal) else {
        return Ok(Answer::Detach(Signal::INT));
    };
    keyboard.discard_typed();
    write!(context.notes(), "{question}")?;
    loop {
        let mut watched = [PollFd::new(&keyboard, PollFlags::IN), PollFd::new(interrupts, PollFlags::IN)];
        // Signals and keys are checked below, even if polling failed.
        let _ = poll(&mut watched, Some(&timespec(JOB_POLL_INTERVAL)));
        let answer = match interrupts.take() {
            Some(Signal::INT) => Some(Answer::Cancel),
            Some(signal) => Some(Answer::Detach(signal)),
            None if !watched[0].revents().is_empty() => match keyboard.read() {
                Ok(keys) => keys.into_iter().find_map(answer_of_key),
                Err(_) => Some(Answer::Detach(Signal::INT)),
            },
            None => is_over()?.then_some(Answer::KeepWaiting),
        };
        if let Some(answer) = answer {
            writeln!(context.notes())?;
            return Ok(answer);
        }
    }
}

fn answer_of_key(key: u8) -> Option<Answer> {
    match key.to_ascii_lowercase() {
        b'c' => Some(Answer::Cancel),
        b'd' | b'\r' | b'\n' | CTRL_D => Some(Answer::Detach(Signal::INT)),
        b'w' => Some(Answer::KeepWaiting),
        _ => None,
    }
}
