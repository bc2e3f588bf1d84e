//! What to do with the job when somebody presses Ctrl-C.

use std::io::Write;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;
use rustix::stdio::stdin;
use rustix::termios::{QueueSelector, tcflush};

use crate::context::Context;
use crate::failure::Failure;
use sys::signal::interrupts::{Interrupts, timespec};

const QUESTION: &str = "[c]ancel the job, [d]etach and let it run, or [w]ait on? [d] ";
/// How often to look whether the question still matters.
const PAUSE: Duration = Duration::from_millis(100);
/// Nobody answers at greater length.
const MAX_ANSWER_BYTES: usize = 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Cancel,
    /// Because of this signal.
    Detach(Signal),
    WaitOn,
}

/// Asks until there is an answer, or until the job `is_over`. A second Ctrl-C detaches, and so does the end of input.
pub(super) fn ask(
    context: &Context,
    interrupts: &Interrupts,
    mut is_over: impl FnMut() -> Result<bool, Failure>,
) -> Result<Answer, Failure> {
    // What was typed before is no answer.
    let _ = tcflush(stdin(), QueueSelector::IFlush);
    loop {
        write!(context.notes(), "{QUESTION}")?;
        let mut typed = Vec::new();
        while !typed.ends_with(b"\n") && typed.len() < MAX_ANSWER_BYTES {
            match listen(interrupts, &mut typed) {
                Heard::Signal(signal) => return end_line(context, Answer::Detach(signal)),
                Heard::End => return end_line(context, Answer::Detach(Signal::INT)),
                Heard::Nothing if is_over()? => return end_line(context, Answer::WaitOn),
                Heard::Nothing | Heard::Typed => {}
            }
        }
        if let Some(answer) = understand(&typed) {
            return Ok(answer);
        }
    }
}

enum Heard {
    Nothing,
    Typed,
    /// Nothing more will be typed.
    End,
    Signal(Signal),
}

fn listen(interrupts: &Interrupts, typed: &mut Vec<u8>) -> Heard {
    let terminal = stdin();
    let mut watched = [PollFd::new(&terminal, PollFlags::IN), PollFd::new(interrupts, PollFlags::IN)];
    // However the sleep ends, what came is looked at.
    let _ = poll(&mut watched, Some(&timespec(PAUSE)));
    if let Some(signal) = interrupts.take() {
        return Heard::Signal(signal);
    }
    if watched[0].revents().is_empty() {
        return Heard::Nothing;
    }
    let mut buffer = [0; 256];
    match rustix::io::read(terminal, &mut buffer) {
        Ok(0) => Heard::End,
        Ok(count) => {
            typed.extend_from_slice(&buffer[..count]);
            Heard::Typed
        }
        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Heard::Nothing,
        Err(_) => Heard::End,
    }
}

/// The question was not answered by a line, so its own is not ended yet.
fn end_line(context: &Context, answer: Answer) -> Result<Answer, Failure> {
    writeln!(context.notes())?;
    Ok(answer)
}

fn understand(typed: &[u8]) -> Option<Answer> {
    match typed.trim_ascii().to_ascii_lowercase().as_slice() {
        b"c" | b"cancel" => Some(Answer::Cancel),
        b"d" | b"detach" | b"" => Some(Answer::Detach(Signal::INT)),
        b"w" | b"wait" | b"wait on" => Some(Answer::WaitOn),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_or_a_word_is_an_answer_and_nothing_means_detach() {
        for (typed, answer) in [
            ("c\n", Some(Answer::Cancel)),
            (" Cancel \n", Some(Answer::Cancel)),
            ("\n", Some(Answer::Detach(Signal::INT))),
            ("d\n", Some(Answer::Detach(Signal::INT))),
            ("W\n", Some(Answer::WaitOn)),
            ("y\n", None),
            ("cc\n", None),
        ] {
            assert_eq!(understand(typed.as_bytes()), answer, "{typed:?}");
        }
    }
}
