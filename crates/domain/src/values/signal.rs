//! Signals, stored by number and shown by name.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal(i32);

/// The names on Linux, indexed by number.
const NAMES: [&str; 32] = [
    "",
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

impl Signal {
    pub const KILL: Self = Self(9);
    pub const MAX: i32 = 64;

    /// The signal with this number, if it is valid.
    pub fn from_number(number: i32) -> Option<Self> {
        (1..=Self::MAX).contains(&number).then_some(Self(number))
    }

    pub fn number(self) -> i32 {
        self.0
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match usize::try_from(self.0).ok().and_then(|at| NAMES.get(at)) {
            Some(name) => out.write_str(name),
            None => write!(out, "SIG{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Signal;

    #[test]
    fn signals_are_shown_by_name() {
        let shown = |number| Signal::from_number(number).map(|signal| signal.to_string());
        assert_eq!(shown(9).as_deref(), Some("SIGKILL"));
        assert_eq!(shown(15).as_deref(), Some("SIGTERM"));
        assert_eq!(shown(31).as_deref(), Some("SIGSYS"));
        assert_eq!(shown(40).as_deref(), Some("SIG40"));
        assert_eq!(shown(0), None);
        assert_eq!(shown(65), None);
    }
}
