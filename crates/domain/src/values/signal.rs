//! Signals, stored by number and shown by name.

use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signal(i32);

/// The signals that people send to end a program.
pub const USUAL: [&str; 7] = ["HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "KILL"];

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignalError {
    #[error("unknown signal; the usual ones are {}, and a number from 1 to {} is accepted too", USUAL.join(", "), NAMES.len() - 1)]
    Unknown,
    #[error(
        "{0} stops or continues a process, and does not end it; use `queuectl pause` or `queuectl resume`"
    )]
    NotAnEnd(Signal),
}

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
    pub const TERM: Self = Self(15);
    pub const MAX: i32 = 64;

    /// The signal with this number, if it is valid.
    pub fn from_number(number: i32) -> Option<Self> {
        (1..=Self::MAX).contains(&number).then_some(Self(number))
    }

    pub fn number(self) -> i32 {
        self.0
    }

    /// Reads a signal that ends a program unless the program handles it.
    pub fn parse_end(typed: &str) -> Result<Self, SignalError> {
        let signal: Self = typed.parse()?;
        let is_end =
            !matches!(signal.to_string().as_str(), "SIGSTOP" | "SIGTSTP" | "SIGTTIN" | "SIGTTOU" | "SIGCONT");
        if is_end { Ok(signal) } else { Err(SignalError::NotAnEnd(signal)) }
    }
}

impl FromStr for Signal {
    type Err = SignalError;

    /// A number, or a name in any case, with or without `SIG`.
    fn from_str(typed: &str) -> Result<Self, SignalError> {
        if let Ok(number) = typed.parse() {
            let is_named = usize::try_from(number).is_ok_and(|number| number < NAMES.len());
            return Self::from_number(number).filter(|_| is_named).ok_or(SignalError::Unknown);
        }
        let upper = typed.to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        let is_named = |known: &str| known.strip_prefix("SIG") == Some(name);
        let at = NAMES.iter().position(|known| is_named(known)).ok_or(SignalError::Unknown)?;
        i32::try_from(at).ok().and_then(Self::from_number).ok_or(SignalError::Unknown)
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
    use super::{Signal, SignalError};

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

    #[test]
    fn signals_are_read_by_name_and_number() {
        for (typed, number) in
            [("USR1", 10), ("SIGUSR1", 10), ("sigusr1", 10), ("Int", 2), ("9", 9), ("31", 31)]
        {
            assert_eq!(typed.parse().map(Signal::number), Ok(number), "{typed}");
        }
        for typed in ["", "SIG", "0", "32", "-1", "9.0", "USR3", " INT", "SIGSIGINT"] {
            assert_eq!(typed.parse::<Signal>(), Err(SignalError::Unknown), "{typed}");
        }
        assert_eq!(Signal::parse_end("term"), Ok(Signal::TERM));
        for typed in ["STOP", "19", "CONT", "TSTP", "TTIN", "TTOU"] {
            assert!(matches!(Signal::parse_end(typed), Err(SignalError::NotAnEnd(_))), "{typed}");
        }
    }
}
