//! Places at which a test can make this process die as if by kill -9, or stop as if by kill -STOP.
//!
//! `QUEUECTL_FAILPOINT=NAME=PATH` arms the fail-point of that name. It makes the file `PATH` and dies; where the file is
//! there already it lives on, so that each fires once, however many processes come by. `QUEUECTL_FAILPOINT=NAME` fires
//! each time, `QUEUECTL_FAILPOINT=NAME=+PATH` each time but the first. `QUEUECTL_FAILPOINT=NAME=!PATH` stops it, once.
//! Released builds have none.

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
        point.what.happens();
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
        pub(super) what: What,
    }

    impl Point {
        fn parse(variable: &str) -> Self {
            let Some((name, mark)) = variable.split_once('=') else {
                return Self { name: variable.to_owned(), when: When::Always, what: What::Death };
            };
            let (what, mark) = mark.strip_prefix('!').map_or((What::Death, mark), |mark| (What::Stop, mark));
            Self { name: name.to_owned(), when: When::parse(mark), what }
        }
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
            Some(Point::parse(&variable))
        };
        POINT.get_or_init(read).as_ref()
    }

    pub(super) enum What {
        Death,
        Stop,
    }

    impl What {
        pub(super) fn happens(&self) {
            match self {
                Self::Death => {
                    let killed = kill_process(getpid(), Signal::KILL);
                    unreachable!("a process cannot outlive its own SIGKILL: {killed:?}")
                }
                Self::Stop => {
                    // Where it fails the test will miss it.
                    let _ = kill_process(getpid(), Signal::STOP);
                }
            }
        }
    }
}
