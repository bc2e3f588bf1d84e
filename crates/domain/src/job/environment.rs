//! The environment in which a job was enqueued, stored so that the command runs as if it had been typed there.

use std::collections::BTreeMap;

/// Variables that differ from one call, shell, terminal or login to the next and that the command does not need: with them
/// there would be an environment per job. They describe the shell and its history, the trace of the caller, its terminal or
/// window, the service that it runs in, and the line given to sudo. Sorted.
///
/// What a command does need stays, even if it differs: SSH_AUTH_SOCK (keys), DISPLAY and XDG_RUNTIME_DIR.
const VOLATILE_NAMES: [&str; 50] = [
    "ALACRITTY_WINDOW_ID",
    "ATUIN_HISTORY_ID",
    "ATUIN_SESSION",
    "BAGGAGE",
    "COLUMNS",
    "DBUS_SESSION_BUS_ADDRESS",
    "GNOME_TERMINAL_SCREEN",
    "GPG_TTY",
    "INVOCATION_ID",
    "ITERM_SESSION_ID",
    "JOURNAL_STREAM",
    "KITTY_PID",
    "KITTY_WINDOW_ID",
    "KONSOLE_DBUS_SESSION",
    "KONSOLE_DBUS_WINDOW",
    "LINES",
    "LISTEN_FDNAMES",
    "LISTEN_FDS",
    "LISTEN_PID",
    "MAINPID",
    "MCFLY_SESSION_ID",
    "NOTIFY_SOCKET",
    "OLDPWD",
    "PWD",
    "SENTRY_BAGGAGE",
    "SENTRY_TRACE",
    "SHELL_SESSION_ID",
    "SHLVL",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "STARSHIP_SESSION_KEY",
    "STY",
    "SUDO_COMMAND",
    "SYSTEMD_EXEC_PID",
    "TERM_SESSION_ID",
    "TMUX",
    "TMUX_PANE",
    "TRACEPARENT",
    "TRACESTATE",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "WEZTERM_PANE",
    "WINDOW",
    "WINDOWID",
    "WT_SESSION",
    "XDG_SESSION_ID",
    "ZELLIJ_PANE_ID",
    "_",
    "_X_AMZN_TRACE_ID",
];
/// Variables in which make passes its job server on: that is gone when the job runs.
const MAKE_FLAGS: [&str; 3] = ["CARGO_MAKEFLAGS", "MAKEFLAGS", "MFLAGS"];
const JOB_SERVER: &str = "--jobserver";
/// The prefix of queuectl's own variables: a job that enqueues another does not pass its own identity on.
const OWN_PREFIX: &str = "QUEUECTL_";
/// The password of a PostgreSQL server, and the file that has it.
const SERVER_PASSWORDS: [&str; 2] = ["PGPASSFILE", "PGPASSWORD"];

/// Variables by name, as bytes: an environment need not be UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<Vec<u8>, Vec<u8>>);

impl Environment {
    /// Keeps the variables that the command may need.
    pub fn capture(variables: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) -> Self {
        Self(variables.into_iter().filter(|(name, value)| !is_volatile(name, value)).collect())
    }

    /// Without the variables that open a PostgreSQL server: for a queue on such a server, where they are most likely the
    /// password of the queue itself.
    #[must_use]
    pub fn without_server_passwords(mut self) -> Self {
        for name in SERVER_PASSWORDS {
            self.0.remove(name.as_bytes());
        }
        self
    }

    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name.as_bytes()).map(Vec::as_slice)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_slice(), value.as_slice()))
    }

    /// `NAME=value` strings, each terminated by a NUL, sorted by name: equal environments give equal bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, value) in self.iter() {
            bytes.extend_from_slice(name);
            bytes.push(b'=');
            bytes.extend_from_slice(value);
            bytes.push(0);
        }
        bytes
    }

    /// Reads what [`Self::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let split = |entry: &[u8]| {
            let equals = entry.iter().position(|byte| *byte == b'=')?;
            Some((entry[..equals].to_vec(), entry[equals + 1..].to_vec()))
        };
        Self(bytes.split(|byte| *byte == 0).filter_map(split).collect())
    }
}

fn is_volatile(name: &[u8], value: &[u8]) -> bool {
    let is_named = |known: &&str| known.as_bytes() == name;
    let has_job_server = || value.windows(JOB_SERVER.len()).any(|part| part == JOB_SERVER.as_bytes());
    name.starts_with(OWN_PREFIX.as_bytes())
        || VOLATILE_NAMES.binary_search_by(|known| known.as_bytes().cmp(name)).is_ok()
        || MAKE_FLAGS.iter().any(is_named) && has_job_server()
}

#[cfg(test)]
mod tests {
    use super::{Environment, VOLATILE_NAMES};

    fn capture(variables: &[(&str, &str)]) -> Environment {
        let bytes = |text: &str| text.as_bytes().to_vec();
        Environment::capture(variables.iter().map(|(name, value)| (bytes(name), bytes(value))))
    }

    #[test]
    fn the_names_are_sorted_so_that_each_can_be_found() {
        assert!(VOLATILE_NAMES.is_sorted());
        let all: Vec<(&str, &str)> = VOLATILE_NAMES.iter().map(|name| (*name, "x")).collect();
        assert_eq!(capture(&all), Environment::default());
    }

    #[test]
    fn what_differs_per_command_is_dropped_and_what_commands_need_is_kept() {
        let kept =
            [("SSH_AUTH_SOCK", "/run/agent"), ("DISPLAY", ":0"), ("MAKEFLAGS", "-j8"), ("SUDO_USER", "ada")];
        let trace = [("TRACEPARENT", "00-1-2-01"), ("TRACESTATE", "a=b"), ("BAGGAGE", "k=v")];
        let make =
            [("MAKEFLAGS", "-j8 --jobserver-auth=fifo:/tmp/GMfifo7"), ("SUDO_COMMAND", "queuectl enqueue")];
        assert_eq!(capture(&[&trace[..], &make, &kept].concat()), capture(&kept));
        assert_eq!(capture(&trace), Environment::default());
    }

    #[test]
    fn passwords_of_a_server_are_kept_unless_the_queue_is_on_one() {
        let captured = capture(&[("PGHOST", "db"), ("PGPASSFILE", "/x"), ("PGPASSWORD", "secret")]);
        assert_eq!(captured.get("PGPASSWORD"), Some(&b"secret"[..]));
        assert_eq!(captured.without_server_passwords(), capture(&[("PGHOST", "db")]));
    }

    #[test]
    fn volatile_and_own_variables_are_dropped_and_the_rest_survives_a_round_trip() {
        let variables =
            [("PATH", "/bin"), ("A", "x=y"), ("EMPTY", ""), ("SHLVL", "3"), ("QUEUECTL_JOB_ID", "a")];
        let captured = Environment::capture(
            variables.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())),
        );
        assert_eq!(captured.to_bytes(), b"A=x=y\0EMPTY=\0PATH=/bin\0");
        assert_eq!(Environment::from_bytes(&captured.to_bytes()), captured);
    }
}
