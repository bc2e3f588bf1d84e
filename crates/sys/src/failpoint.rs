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
    if let Some(point) = armed::point()
        && point.name == name.to_string()
        && point.condition.is_met()
    {
        point.action.perform();
    }
}

#[cfg(debug_assertions)]
mod armed {
    use std::fs::File;
    use std::path::PathBuf;
    use std::sync::OnceLock;

    use rustix::process::{Signal, getpid, kill_process};

    /// The armed fail-point.
    pub(super) struct Point {
        pub(super) name: String,
        pub(super) condition: Condition,
        pub(super) action: Action,
    }

    impl Point {
        fn parse(variable: &str) -> Self {
            let Some((name, mark)) = variable.split_once('=') else {
                return Self {
                    name: variable.to_owned(),
                    condition: Condition::Always,
                    action: Action::Kill,
                };
            };
            let (action, mark) =
                mark.strip_prefix('!').map_or((Action::Kill, mark), |mark| (Action::Stop, mark));
            Self { name: name.to_owned(), condition: Condition::parse(mark), action }
        }
    }

    /// Which processes it applies to. The first process creates the file.
    pub(super) enum Condition {
        Always,
        First(PathBuf),
        AllButFirst(PathBuf),
    }

    impl Condition {
        fn parse(mark: &str) -> Self {
            mark.strip_prefix('+')
                .map_or_else(|| Self::First(mark.into()), |mark| Self::AllButFirst(mark.into()))
        }

        pub(super) fn is_met(&self) -> bool {
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

    pub(super) enum Action {
        Kill,
        Stop,
    }

    impl Action {
        pub(super) fn perform(&self) {
            match self {
                Self::Kill => {
                    let killed = kill_process(getpid(), Signal::KILL);
                    unreachable!("a process cannot outlive its own SIGKILL: {killed:?}")
                }
                Self::Stop => {
                    // If this fails, the test reports it.
                    let _ = kill_process(getpid(), Signal::STOP);
                }
            }
        }
    }
}
