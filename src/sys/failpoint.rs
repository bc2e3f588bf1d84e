//! Places at which a test can make this process die as if by kill -9.
//!
//! `QUEUECTL_FAILPOINT=NAME=PATH` arms the fail-point of that name. It makes the file `PATH` and dies; where the file is
//! there already it lives on, so that each fires once, however many processes come by. `QUEUECTL_FAILPOINT=NAME` fires
//! each time. Released builds have none.

use std::fmt;

/// The place of this name is passed.
#[cfg(not(debug_assertions))]
#[inline]
pub fn hit(_name: impl fmt::Display) {}

/// The place of this name is passed.
#[cfg(debug_assertions)]
pub fn hit(name: impl fmt::Display) {
    if let Some((armed, mark)) = armed::point()
        && *armed == name.to_string()
        && mark.as_ref().is_none_or(|mark| std::fs::File::create_new(mark).is_ok())
    {
        armed::die();
    }
}

#[cfg(debug_assertions)]
mod armed {
    use std::path::PathBuf;
    use std::sync::OnceLock;

    use rustix::process::{Signal, getpid, kill_process};

    /// The one that is armed, and its file if it fires once.
    type Point = (String, Option<PathBuf>);

    pub(super) fn point() -> Option<&'static Point> {
        static POINT: OnceLock<Option<Point>> = OnceLock::new();
        let read = || {
            let variable = std::env::var("QUEUECTL_FAILPOINT").ok()?;
            Some(match variable.split_once('=') {
                Some((name, mark)) => (name.to_owned(), Some(mark.into())),
                None => (variable, None),
            })
        };
        POINT.get_or_init(read).as_ref()
    }

    pub(super) fn die() {
        let killed = kill_process(getpid(), Signal::KILL);
        unreachable!("a process cannot outlive its own SIGKILL: {killed:?}")
    }
}
