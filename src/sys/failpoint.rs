//! Places at which a test can make this process die as if by kill -9.
//!
//! `QUEUECTL_FAILPOINT=NAME=PATH` arms the fail-point of that name. It makes the file `PATH` and dies; where the file is
//! there already it lives on, so that each fires once, however many processes come by. `QUEUECTL_FAILPOINT=NAME` fires
//! each time, `QUEUECTL_FAILPOINT=NAME=+PATH` each time but the first. Released builds have none.

use std::fmt;

/// The place of this name is passed.
#[cfg(not(debug_assertions))]
#[inline]
pub fn hit(_name: impl fmt::Display) {}

/// The place of this name is passed.
#[cfg(debug_assertions)]
pub fn hit(name: impl fmt::Display) {
    if let Some(point) = armed::point()
        && point.name == name.to_string()
        && point.when.is_now()
    {
        armed::die();
    }
}

#[cfg(debug_assertions)]
mod armed {
    use std::fs::File;
    use std::path::PathBuf;
    use std::sync::OnceLock;

    use rustix::process::{Signal, getpid, kill_process};

    /// The one that is armed.
    pub(super) struct Point {
        pub(super) name: String,
        pub(super) when: When,
    }

    /// The file is made by the first who comes by.
    pub(super) enum When {
        Always,
        First(PathBuf),
        AllButFirst(PathBuf),
    }

    impl When {
        fn parse(mark: &str) -> Self {
            mark.strip_prefix('+')
                .map_or_else(|| Self::First(mark.into()), |mark| Self::AllButFirst(mark.into()))
        }

        pub(super) fn is_now(&self) -> bool {
            match self {
                Self::Always => true,
                Self::First(mark) => File::create_new(mark).is_ok(),
                Self::AllButFirst(mark) => File::create_new(mark).is_err(),
            }
        }
    }

    pub(super) fn point() -> Option<&'static Point> {
        static POINT: OnceLock<Option<Point>> = OnceLock::new();
        let read = || {
            let variable = std::env::var("QUEUECTL_FAILPOINT").ok()?;
            Some(match variable.split_once('=') {
                Some((name, mark)) => Point { name: name.to_owned(), when: When::parse(mark) },
                None => Point { name: variable, when: When::Always },
            })
        };
        POINT.get_or_init(read).as_ref()
    }

    pub(super) fn die() {
        let killed = kill_process(getpid(), Signal::KILL);
        unreachable!("a process cannot outlive its own SIGKILL: {killed:?}")
    }
}
