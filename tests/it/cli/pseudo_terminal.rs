//! The program on a terminal: what a person sees, and what a person types.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

/// What was on the screen, with its escape sequences, and the exit code.
pub(crate) struct Seen {
    pub(crate) screen: String,
    pub(crate) code: Option<i32>,
}

/// Runs a command on a terminal of this many columns and types this.
pub(crate) fn on_terminal(mut command: Command, columns: u16, typed: &str) -> Seen {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&master).expect("it is ours");
    unlockpt(&master).expect("it is unlocked");
    let size = Winsize { ws_row: 30, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&master, size).expect("its size is set");
    // What is typed is not shown: it could stand in the middle of what the program says.
    let mut modes = tcgetattr(&master).expect("its modes are known");
    modes.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&master, OptionalActions::Now, &modes).expect("its modes are set");
    let name = ptsname(&master, Vec::new()).expect("it has a name").into_string().expect("its name is text");
    let terminal =
        File::options().read(true).write(true).open(Path::new(&name)).expect("its other end opens");

    let end = || Stdio::from(terminal.try_clone().expect("its other end is shared"));
    command.env("TERM", "xterm-256color").stdin(end()).stdout(end()).stderr(end());
    let mut child = command.spawn().expect("the program starts");
    // Only the program's own ends may stay open: when they close, reading ends.
    drop(command);
    drop(terminal);
    let mut master = File::from(master);
    master.write_all(typed.as_bytes()).expect("it can be typed on");
    let screen = read_to_hangup(&mut master);
    Seen { screen, code: child.wait().expect("the program ends").code() }
}

/// Reads until nobody has the other end open, which Linux reports as an IO error.
fn read_to_hangup(master: &mut File) -> String {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = master.read(&mut buffer) {
        seen.extend_from_slice(&buffer[..read]);
    }
    String::from_utf8(seen).expect("the screen is text").replace("\r\n", "\n")
}
