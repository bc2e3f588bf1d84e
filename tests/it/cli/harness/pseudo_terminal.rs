//! The program on a pseudo-terminal: its screen and its keyboard.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

use super::background::STEP_TIMEOUT;

/// The output, with its escape sequences, and the exit code.
pub(crate) struct TerminalRun {
    pub(crate) screen: String,
    pub(crate) code: Option<i32>,
    pub(crate) status: ExitStatus,
}

/// Runs a command on a terminal of this many columns, with this input.
pub(crate) fn on_terminal(command: Command, columns: u16, typed: &str) -> TerminalRun {
    let mut terminal = Terminal::start(command, columns, 30);
    terminal.type_in(typed);
    terminal.end()
}

/// A command that runs on a terminal.
pub(crate) struct Terminal {
    child: Child,
    master: File,
    seen: Vec<u8>,
}

impl Terminal {
    /// No echo: typed text could appear in the middle of the program's output.
    pub(crate) fn start(command: Command, columns: u16, rows: u16) -> Self {
        Self::open(command, columns, rows, false)
    }

    /// As a terminal is by default.
    pub(crate) fn with_echo(command: Command, columns: u16, rows: u16) -> Self {
        Self::open(command, columns, rows, true)
    }

    /// The modes that the program has set.
    pub(crate) fn modes(&self) -> LocalModes {
        tcgetattr(&self.master).expect("its modes are known").local_modes
    }

    fn open(mut command: Command, columns: u16, rows: u16, has_echo: bool) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .expect("a pseudo-terminal");
        grantpt(&master).expect("it is ours");
        unlockpt(&master).expect("it is unlocked");
        let master = File::from(master);
        set_size(&master, columns, rows);
        let mut modes = tcgetattr(&master).expect("its modes are known");
        modes.local_modes.set(LocalModes::ECHO, has_echo);
        tcsetattr(&master, OptionalActions::Now, &modes).expect("its modes are set");
        let name =
            ptsname(&master, Vec::new()).expect("it has a name").into_string().expect("its name is text");
        let terminal =
            File::options().read(true).write(true).open(Path::new(&name)).expect("its other end opens");

        let end = || Stdio::from(terminal.try_clone().expect("its other end is shared"));
        command.env("TERM", "xterm-256color").stdin(end()).stdout(end()).stderr(end());
        // Only the program may keep its ends open: when they close, reading ends. Only this process has the other end: when
        // that closes, the program gets SIGHUP.
        Self { child: command.spawn().expect("the program starts"), master, seen: Vec::new() }
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        set_size(&self.master, columns, rows);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it gets the signal");
    }

    /// Presses keys: `\u{3}` is Ctrl-C.
    pub(crate) fn type_in(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).expect("it can be typed on");
    }

    /// Closes the terminal, and waits for the program to end.
    pub(crate) fn hang_up(mut self) -> ExitStatus {
        self.master = File::open("/dev/null").expect("it opens");
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it is a child") {
                return status;
            }
            assert!(began.elapsed() < STEP_TIMEOUT, "the program does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Everything that was written so far.
    pub(crate) fn screen(&self) -> String {
        String::from_utf8_lossy(&self.seen).replace("\r\n", "\n")
    }

    /// Reads until the output so far satisfies the condition.
    #[track_caller]
    pub(crate) fn wait_until(&mut self, wanted: impl Fn(&str) -> bool) {
        let began = Instant::now();
        while !wanted(&self.screen()) {
            assert!(self.read(began), "it ended before: {:?}", self.screen());
        }
    }

    /// Waits until the program is stopped, as by Ctrl-Z.
    pub(crate) fn wait_until_stopped(&self) {
        let stopped = waitpid(Some(Pid::from_child(&self.child)), WaitOptions::UNTRACED);
        let (_, status) = stopped.expect("it can be waited for").expect("it is a child");
        assert!(status.stopped(), "it ended: {status:?}");
    }

    /// Reads more output; `false` if no process has the other end open, which Linux reports as an I/O error.
    #[track_caller]
    fn read(&mut self, began: Instant) -> bool {
        let left = STEP_TIMEOUT.checked_sub(began.elapsed()).unwrap_or_default();
        let left = Timespec::try_from(left).expect("a short time");
        let ready = poll(&mut [PollFd::new(&self.master, PollFlags::IN)], Some(&left));
        assert_ne!(ready, Ok(0), "this was too long in coming: {:?}", self.screen());
        let mut buffer = [0; 4096];
        let Ok(read @ 1..) = self.master.read(&mut buffer) else {
            return false;
        };
        self.seen.extend_from_slice(&buffer[..read]);
        true
    }

    /// Reads until the program has ended.
    pub(crate) fn end(mut self) -> TerminalRun {
        let began = Instant::now();
        while self.read(began) {}
        let status = self.child.wait().expect("the program ends");
        TerminalRun { screen: self.screen(), code: status.code(), status }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A failed test leaves no process behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn set_size(terminal: &File, columns: u16, rows: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("its size is set");
}
