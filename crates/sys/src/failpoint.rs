//! Points at which a test can kill this process as with `kill -9`, or stop it as with `kill -STOP`.
//!
//! `QUEUECTL_FAILPOINT=NAME=PATH` arms the fail-point with that name. The first process that reaches it creates the file
//! `PATH` and dies; if the file exists, nothing happens. With `QUEUECTL_FAILPOINT=NAME` every process dies, with
//! `QUEUECTL_FAILPOINT=NAME=+PATH` every process except the first, and with `QUEUECTL_FAILPOINT=NAME=!PATH` the first one
//! stops. Release builds have no fail-points.

use std::fmt;

/// Called where the process reaches the fail-point with this name.
#[cfg(not(debug_assertions))]
#[inline]
pub fn hit(_name: impl fmt::Display) {}

/// Called where the process reaches the fail-point with this name.
#[cfg(debug_assertions)]
pub fn hit(name: impl fmt::Display) {
    if let Some((armed, mark)) = armed::point()
        && *armed == name.to_string()
    {
        armed::act(mark);
    }
}

#[cfg(debug_assertions)]
mod armed {
    use std::fs::File;
    use std::sync::OnceLock;

    use rustix::process::{Signal, getpid, kill_process};

    /// The name of the armed fail-point and its mark, which is empty if every process dies.
    pub(super) fn point() -> Option<&'static (String, String)> {
        static POINT: OnceLock<Option<(String, String)>> = OnceLock::new();
        let read = || {
            let variable = std::env::var("QUEUECTL_FAILPOINT").ok()?;
            let (name, mark) = variable.split_once('=').unwrap_or((&variable, ""));
            Some((name.to_owned(), mark.to_owned()))
        };
        POINT.get_or_init(read).as_ref()
    }

    /// Kills or stops this process, if the mark is for it.
    pub(super) fn act(mark: &str) {
        let is_first = |path| File::create_new(path).is_ok();
        let (applies, signal) = match mark.split_at_checked(1) {
            None => (true, Signal::KILL),
            Some(("+", path)) => (!is_first(path), Signal::KILL),
            Some(("!", path)) => (is_first(path), Signal::STOP),
            Some(_) => (is_first(mark), Signal::KILL),
        };
        if applies {
            let sent = kill_process(getpid(), signal);
            // If stopping fails, the test reports it.
            assert!(signal == Signal::STOP, "a process cannot outlive its own SIGKILL: {sent:?}");
        }
    }
}
