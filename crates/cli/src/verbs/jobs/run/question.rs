//! Asks what to do with the job when the user presses Ctrl-C.

use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::process::{Signal, getpgrp};
use rustix::termios::{QueueSelector, tcflush, tcgetpgrp};

use crate::confirm::is_interactive;
use crate::context::Context;
use crate::failure::Failure;
use sys::signal::interrupts::{Interrupts, timespec};

pub(super) const ABOUT_JOB: &str = "[c]ancel the job, [d]etach and let it run, or keep [w]aiting? [d] ";
pub(super) const ABOUT_JOBS: &str =
    "[c]ancel the remaining jobs, [d]etach and let them run, or keep [w]aiting? [d] ";
/// How often to check whether the job has ended meanwhile.
const JOB_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// A longer line is not an answer.
const MAX_ANSWER_BYTES: usize = 1_024;

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
    // In the background, reading would stop this process.
    let is_background = tcgetpgrp(&output).is_ok_and(|group| group != getpgrp());
    let is_ours = output.is_terminal() && is_readable && !is_background;
    is_ours.then(|| output.as_fd().try_clone_to_owned().ok()).flatten()
}

/// Asks until the user answers or what the question is about `is_over`. A second Ctrl-C detaches, and so does the end of input.
pub(super) fn ask(
    context: &Context,
    interrupts: &Interrupts,
    terminal: &OwnedFd,
    question: &str,
    mut is_over: impl FnMut() -> Result<bool, Failure>,
) -> Result<Answer, Failure> {
    // Discard what was typed before the question.
    let _ = tcflush(terminal, QueueSelector::IFlush);
    loop {
        write!(context.notes(), "{question}")?;
        let mut typed = Vec::new();
        while !typed.ends_with(b"\n") && typed.len() < MAX_ANSWER_BYTES {
            match read_input(interrupts, terminal, &mut typed) {
                TerminalInput::Signal(signal) => return end_line(context, Answer::Detach(signal)),
                TerminalInput::End => return end_line(context, Answer::Detach(Signal::INT)),
                TerminalInput::Nothing if is_over()? => return end_line(context, Answer::KeepWaiting),
                TerminalInput::Nothing | TerminalInput::Typed => {}
            }
        }
        if let Some(answer) = parse_answer(&typed) {
            return Ok(answer);
        }
    }
}

enum TerminalInput {
    Nothing,
    Typed,
    /// End of input.
    End,
    Signal(Signal),
}

fn read_input(interrupts: &Interrupts, terminal: &OwnedFd, typed: &mut Vec<u8>) -> TerminalInput {
    let mut watched = [PollFd::new(terminal, PollFlags::IN), PollFd::new(interrupts, PollFlags::IN)];
    // Signals and input are checked below, even if polling failed.
    let _ = poll(&mut watched, Some(&timespec(JOB_POLL_INTERVAL)));
    if let Some(signal) = interrupts.take() {
        return TerminalInput::Signal(signal);
    }
    if watched[0].revents().is_empty() {
        return TerminalInput::Nothing;
    }
    let mut buffer = [0; 256];
    match rustix::io::read(terminal, &mut buffer) {
        Ok(0) => TerminalInput::End,
        Ok(count) => {
            typed.extend_from_slice(&buffer[..count]);
            TerminalInput::Typed
        }
        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => TerminalInput::Nothing,
        Err(_) => TerminalInput::End,
    }
}

/// Ends the line of a question that the user did not answer with Enter.
fn end_line(context: &Context, answer: Answer) -> Result<Answer, Failure> {
    writeln!(context.notes())?;
    Ok(answer)
}

fn parse_answer(typed: &[u8]) -> Option<Answer> {
    match typed.trim_ascii().to_ascii_lowercase().as_slice() {
        b"c" | b"cancel" => Some(Answer::Cancel),
        b"d" | b"detach" | b"" => Some(Answer::Detach(Signal::INT)),
        b"w" | b"wait" | b"wait on" => Some(Answer::KeepWaiting),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_or_a_word_answers_and_an_empty_line_detaches() {
        for (typed, answer) in [
            ("c\n", Some(Answer::Cancel)),
            (" Cancel \n", Some(Answer::Cancel)),
            ("\n", Some(Answer::Detach(Signal::INT))),
            ("d\n", Some(Answer::Detach(Signal::INT))),
            ("W\n", Some(Answer::KeepWaiting)),
            ("y\n", None),
            ("cc\n", None),
        ] {
            assert_eq!(parse_answer(typed.as_bytes()), answer, "{typed:?}");
        }
    }
}
