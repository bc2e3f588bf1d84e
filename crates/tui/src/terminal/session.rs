//! The time during which `top` has the terminal. Whatever ends it, the terminal is as it was before: also after a panic,
//! and while the process is stopped or another program runs on the terminal.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::panic;

use ratatui::Terminal;
use rustix::process::{Signal, getpid, kill_process};

use super::backend::AnsiBackend;
use sys::keyboard::Keyboard;

/// Switches to the alternate screen and hides the cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
/// Also resets attributes: the last frame may have been cut off in the middle.
const LEAVE: &str = "\x1b[0m\x1b[?1006l\x1b[?1000l\x1b[?25h\x1b[?1049l";
/// Reports clicks and the wheel, with positions of any size.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1006h";
const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1000l";

#[derive(Debug)]
pub(crate) struct Session {
    /// `None` while another program has the terminal.
    keyboard: Option<Keyboard>,
    pub(crate) screen: Terminal<AnsiBackend>,
    output: File,
    has_mouse: bool,
}

impl Session {
    /// Takes the terminal of standard input and output; `None` if the shell runs this process in the background.
    pub(crate) fn open(has_mouse: bool) -> io::Result<Option<Self>> {
        let Some(keyboard) = Keyboard::open() else {
            return Ok(None);
        };
        let output: File = io::stdout().as_fd().try_clone_to_owned()?.into();
        restore_before_panic_message(output.try_clone()?);
        let screen = Terminal::new(AnsiBackend::new(output.try_clone()?))?;
        let session = Self { keyboard: Some(keyboard), screen, output, has_mouse };
        session.enter()?;
        Ok(Some(session))
    }

    pub(crate) fn keyboard(&self) -> Option<&Keyboard> {
        self.keyboard.as_ref()
    }

    fn enter(&self) -> io::Result<()> {
        self.write(ENTER)?;
        if self.has_mouse { self.write(MOUSE_ON) } else { Ok(()) }
    }

    pub(crate) fn set_mouse(&mut self, is_on: bool) -> io::Result<()> {
        self.has_mouse = is_on;
        self.write(if is_on { MOUSE_ON } else { MOUSE_OFF })
    }

    pub(crate) fn has_mouse(&self) -> bool {
        self.has_mouse
    }

    /// Stops this process, with the terminal as it was before, until the shell continues it.
    pub(crate) fn suspend(&mut self) -> io::Result<()> {
        self.lend(|| Ok(kill_process(getpid(), Signal::STOP)?))
    }

    /// Lets `work` have the terminal as it was before.
    pub(crate) fn lend<R>(&mut self, work: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        self.write(LEAVE)?;
        drop(self.keyboard.take());
        let result = work();
        self.keyboard = Keyboard::open();
        self.enter()?;
        self.screen.clear()?;
        result
    }

    /// Writes a sequence that is no part of the screen.
    pub(crate) fn write(&self, text: &str) -> io::Result<()> {
        (&self.output).write_all(text.as_bytes())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // An error means that the terminal is gone.
        let _ = self.write(LEAVE);
        // The keyboard restores its modes when it is dropped, right after this.
    }
}

/// The message of a panic belongs on the ordinary screen: on the other one it would vanish with it.
fn restore_before_panic_message(output: File) {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        let _ = (&output).write_all(LEAVE.as_bytes());
        print(panicked);
    }));
}
