//! The thread of one line of the palette. A line may run for minutes, and other orders do not wait for it.

use std::os::fd::OwnedFd;
use std::thread::JoinHandle;
use std::{io, thread};

use rustix::event::{EventfdFlags, eventfd};

use super::command_line::{run, split_words};
use super::{ActionResult, ActorOptions, NOTHING_IS_CHANGED, is_reading};
use crate::data::{Message, Waker};
use domain::text::shell::quote_words;

/// A line that runs. Dropping it ends the line and joins its thread.
#[derive(Debug)]
pub(super) struct RunningLine {
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl RunningLine {
    pub(super) fn start(options: ActorOptions, line: String, waker: Waker) -> io::Result<Self> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let stopped = stop.try_clone()?;
        let work = move || {
            let result = run_line(&options, &line, &stopped).unwrap_or_else(ActionResult::Failed);
            waker.send(Message::LineEnded(result));
        };
        let thread = thread::Builder::new().name("line".to_owned()).spawn(work)?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Asks the process of the line to end.
    pub(super) fn end(&self) {
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
    }
}

impl Drop for RunningLine {
    fn drop(&mut self) {
        self.end();
        if let Some(thread) = self.thread.take() {
            // After a panic the message has been printed.
            let _ = thread.join();
        }
    }
}

fn run_line(options: &ActorOptions, line: &str, stop: &OwnedFd) -> Result<ActionResult, String> {
    let words = split_words(line).ok_or("a quotation mark is not closed")?;
    if options.is_read_only && !is_reading(&words) {
        return Err(NOTHING_IS_CHANGED.to_owned());
    }
    let lines = run(&options.program_flags, &words, stop)?;
    let title = format!("queuectl {}", quote_words(&words));
    let lines = if lines.is_empty() { vec!["(no output)".to_owned()] } else { lines };
    Ok(ActionResult::Text { title, lines })
}
