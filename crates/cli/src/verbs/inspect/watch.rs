//! `queuectl status --watch`: redraws the screen of a terminal; in a pipe, prints one report after the other.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;

use crate::context::{Context, Size, catch, write_json_line};
use crate::failure::Failure;
use crate::render::frame::compose;
use crate::render::screen::Screen;
use domain::values::clock::TimeFormat;
use domain::values::span::format_span;
use ops::json::SnapshotJson;
use ops::status::watch::{Snapshot, Watch};
use sys::keyboard::Keyboard;
use sys::signal::interrupts::{Interrupts, timespec};

/// Shows the status repeatedly until a signal arrives, the user presses q, or the reader closes the output.
pub(crate) fn run(interval: Duration, context: &Context) -> Result<(), Failure> {
    if context.quiet {
        return Err(Failure::usage("--watch cannot be combined with --quiet"));
    }
    let home = context.location()?.home;
    let mut watch = Watch::new(context.store()?, &home, context.time_format());
    let title = format!("{}, every {}", home.display(), format_span(interval));
    let mut window = Window::open(context, title)?;
    let began = Instant::now();
    loop {
        let view = watch.snapshot(began.elapsed())?;
        window.show(&view)?;
        match window.pause(interval, &view)? {
            Pause::Over => {}
            Pause::Ended => return Ok(()),
            Pause::EndedBy(signal) => window.end_by(signal),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pause {
    Over,
    /// The user or the reader of the output ended the command.
    Ended,
    EndedBy(Signal),
}

/// The screen or stream that the status is shown on.
struct Window<'a> {
    context: &'a Context,
    title: String,
    format: TimeFormat,
    /// The keys that the user presses, if the window is the whole screen. Restored before the screen.
    keyboard: Option<Keyboard>,
    screen: Option<Screen>,
    interrupts: Interrupts,
    shown_before: bool,
}

impl<'a> Window<'a> {
    fn open(context: &'a Context, title: String) -> Result<Self, Failure> {
        let is_whole_screen = context.stdout_is_terminal && !context.json && supports_cursor_movement();
        let mut signals = vec![Signal::INT, Signal::TERM, Signal::HUP];
        if is_whole_screen {
            signals.extend([Signal::TSTP, Signal::WINCH]);
        }
        // Caught before entering the screen: no signal may end this process without restoring the terminal.
        let interrupts = catch(&signals)?;
        let screen = is_whole_screen.then(|| Screen::enter(context.has_colors())).transpose()?;
        let keyboard = is_whole_screen.then(Keyboard::open).flatten();
        let title = if keyboard.is_some() { format!("{title}, q quits") } else { title };
        let format = context.time_format();
        Ok(Self { context, title, format, screen, keyboard, interrupts, shown_before: false })
    }

    /// Restores the terminal, and ends this process with the signal.
    fn end_by(self, signal: Signal) -> ! {
        let Self { keyboard, screen, interrupts, .. } = self;
        drop(keyboard);
        drop(screen);
        interrupts.end_by(signal)
    }

    fn show(&mut self, view: &Snapshot) -> Result<(), Failure> {
        if let Some(screen) = &self.screen {
            return Ok(screen.draw(&compose(view, &self.title, screen.size(), &self.format))?);
        }
        let mut out = self.context.out();
        if self.context.json {
            write_json_line(&mut out, &SnapshotJson::from(view))?;
            return Ok(out.flush()?);
        }
        if self.shown_before {
            writeln!(out)?;
        }
        self.shown_before = true;
        let endless = Size { columns: usize::MAX, rows: usize::MAX };
        for line in compose(view, &self.title, endless, &self.format) {
            writeln!(out, "{line}")?;
        }
        Ok(out.flush()?)
    }

    /// Waits until the next refresh. A resized window is redrawn at once.
    fn pause(&mut self, interval: Duration, view: &Snapshot) -> Result<Pause, Failure> {
        let began = Instant::now();
        loop {
            let left = interval.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Ok(Pause::Over);
            }
            if self.sleep(left) == Pause::Ended {
                return Ok(Pause::Ended);
            }
            match (self.interrupts.take(), &self.screen) {
                (None, _) => {}
                (Some(Signal::WINCH), _) => self.show(view)?,
                (Some(Signal::TSTP), Some(screen)) => {
                    // Dropping it restores the terminal for the shell.
                    drop(self.keyboard.take());
                    screen.suspend()?;
                    self.keyboard = Keyboard::open();
                    return Ok(Pause::Over);
                }
                // Ctrl-C is how people quit.
                (Some(Signal::INT), _) => return Ok(Pause::Ended),
                (Some(signal), _) => return Ok(Pause::EndedBy(signal)),
            }
        }
    }

    /// Sleeps until a signal arrives, the user presses a key, or the reader closes the output.
    fn sleep(&mut self, length: Duration) -> Pause {
        let stdout = io::stdout();
        let mut descriptors =
            vec![PollFd::new(&stdout, PollFlags::empty()), PollFd::new(&self.interrupts, PollFlags::IN)];
        descriptors.extend(self.keyboard.as_ref().map(|keyboard| PollFd::new(keyboard, PollFlags::IN)));
        // An interrupted sleep is only shorter.
        let _ = poll(&mut descriptors, Some(&timespec(length)));
        let reader_left = descriptors[0].revents().intersects(PollFlags::ERR | PollFlags::HUP);
        let has_keys = descriptors.get(2).is_some_and(|keyboard| !keyboard.revents().is_empty());
        drop(descriptors);
        if reader_left || has_keys && self.is_quit_key_pressed() { Pause::Ended } else { Pause::Over }
    }

    fn is_quit_key_pressed(&mut self) -> bool {
        match self.keyboard.as_ref().map(Keyboard::read) {
            Some(Ok(keys)) => keys.iter().any(|key| matches!(key, b'q' | b'Q')),
            // A keyboard that is gone would always be ready.
            Some(Err(_)) => {
                self.keyboard = None;
                false
            }
            None => false,
        }
    }
}

/// Whether the terminal supports cursor movement.
fn supports_cursor_movement() -> bool {
    std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb")
}
