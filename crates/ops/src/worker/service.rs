//! Workers as a service of the machine: they start at boot, and start again after a crash. The dashboard as a service
//! starts when the first browser connects.
//!
//! `unit` writes the units for systemd, `systemd` talks to systemd, `account` creates the account that jobs run as,
//! `install` puts these together, `state` reads how the service is doing, and `examples` has the same service for other
//! service managers.

pub mod account;
pub mod examples;
pub mod install;
pub mod state;
pub mod systemd;
pub mod unit;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

domain::named_enum! {
    /// Which systemd runs the service.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Scope {
        /// The systemd of this user.
        User = "user",
        /// The systemd of the machine.
        System = "system",
    }
}

domain::named_enum! {
    /// What a service runs.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum ServiceKind {
        #[default]
        Workers = "worker",
        /// Its sockets belong to systemd, which starts it when a client connects.
        Dashboard = "dashboard",
    }
}

/// The name of a unit without its suffix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceName {
    kind: ServiceKind,
    /// One of several services of a kind.
    instance: Option<String>,
}

impl ServiceName {
    const MAX_CHARS: usize = 64;

    /// The same name for a service of this kind.
    #[must_use]
    pub fn of(self, kind: ServiceKind) -> Self {
        Self { kind, ..self }
    }

    pub fn kind(&self) -> ServiceKind {
        self.kind
    }

    /// The name of the unit's file.
    pub fn unit(&self) -> String {
        format!("{self}.service")
    }

    /// The name of the file with the sockets of a dashboard.
    pub(crate) fn socket(&self) -> Option<String> {
        match self.kind {
            ServiceKind::Workers => None,
            ServiceKind::Dashboard => Some(format!("{self}.socket")),
        }
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queuectl-{}", self.kind.name())?;
        self.instance.as_ref().map_or(Ok(()), |instance| write!(f, "-{instance}"))
    }
}

/// The text is not a name of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a name has at most {} letters, digits, `-` and `_`", ServiceName::MAX_CHARS)]
pub struct ServiceNameError;

impl FromStr for ServiceName {
    type Err = ServiceNameError;

    /// `mail` names the unit `queuectl-worker-mail`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let is_name = !text.is_empty() && text.len() <= Self::MAX_CHARS && text.chars().all(is_allowed);
        let named = || Self { kind: ServiceKind::Workers, instance: Some(text.to_owned()) };
        if is_name { Ok(named()) } else { Err(ServiceNameError) }
    }
}

/// A service of workers, or of a dashboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    pub scope: Scope,
    pub name: ServiceName,
    pub program: PathBuf,
    pub home: PathBuf,
    /// The value of `--store`; without it the home says where the queue is.
    pub store: Option<String>,
    /// The queue is on a PostgreSQL server, which may be on another machine.
    pub is_on_server: bool,
    /// The flags of `worker run`.
    pub worker_flags: Vec<String>,
    /// Where a dashboard listens, as its `--listen` takes it.
    pub listen: Vec<String>,
    /// The account that jobs run as, in a sandbox; without one, the user whose systemd it is.
    pub account: Option<String>,
    /// Where jobs may write, besides the home, in that sandbox.
    pub writable: Vec<PathBuf>,
}

impl Service {
    /// The command that runs the service in the foreground. A dashboard listens on the sockets that it is given.
    pub(crate) fn command(&self) -> Result<Vec<String>, ServiceError> {
        let (program, home) = (text(&self.program)?.to_owned(), text(&self.home)?.to_owned());
        let mut words = vec![program, "--home".to_owned(), home];
        if let Some(store) = &self.store {
            words.extend(["--store".to_owned(), store.clone()]);
        }
        match self.name.kind {
            ServiceKind::Workers => {
                words.extend(["worker".to_owned(), "run".to_owned()]);
                words.extend(self.worker_flags.iter().cloned());
            }
            // Quiet: it would write links that log in into the journal.
            ServiceKind::Dashboard => words.extend(["dashboard".to_owned(), "--quiet".to_owned()]),
        }
        Ok(words)
    }

    /// As [`Self::command`], for service managers that open no sockets.
    pub(crate) fn command_that_listens(&self) -> Result<Vec<String>, ServiceError> {
        let mut words = self.command()?;
        if self.name.kind == ServiceKind::Dashboard {
            words.extend(self.listen.iter().flat_map(|address| ["--listen".to_owned(), address.clone()]));
        }
        Ok(words)
    }

    /// What it is, in a sentence.
    pub(crate) fn description(&self) -> &'static str {
        match self.name.kind {
            ServiceKind::Workers => "queuectl workers",
            ServiceKind::Dashboard => "queuectl dashboard",
        }
    }
}

/// Files of service managers are text.
pub(crate) fn text(path: &Path) -> Result<&str, ServiceError> {
    path.to_str().ok_or_else(|| ServiceError::NotText(path.to_owned()))
}

#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error("systemd is not running on this machine")]
    NoSystemd,
    #[error("the service `{0}` is not installed")]
    NotInstalled(ServiceName),
    #[error("only root can change a service of the machine")]
    NotRoot,
    #[error("`{0}` is not UTF-8, so it cannot be named in a unit")]
    NotText(PathBuf),
    #[error("the address of the store has a password, and every user can read a unit")]
    Password,
    #[error("`{0}` is not a directory")]
    NotADirectory(PathBuf),
    #[error(
        "`{0}` is in a directory that the service would not see: with an account, it has a /tmp of its own"
    )]
    HiddenByPrivateTmp(PathBuf),
    #[error("neither XDG_CONFIG_HOME nor HOME is set")]
    NoConfigFolder,
    #[error("there is no account `{0}`, and `useradd` did not create it")]
    NoAccount(String),
    #[error("failed to write `{path}`")]
    CannotWrite {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("failed to run `{command}`")]
    CannotRun {
        command: String,
        #[source]
        source: io::Error,
    },
    #[error("`{command}` failed{}", if said.is_empty() { String::new() } else { format!(" ({said})") })]
    Refused {
        command: String,
        /// The line that says why.
        said: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_the_folder_of_units() {
        assert_eq!(ServiceName::default().unit(), "queuectl-worker.service");
        let named: Result<ServiceName, _> = "mail".parse();
        let named = named.expect("a name");
        assert_eq!((named.unit(), named.socket()), ("queuectl-worker-mail.service".to_owned(), None));
        let dashboard = named.of(ServiceKind::Dashboard);
        assert_eq!(dashboard.unit(), "queuectl-dashboard-mail.service");
        assert_eq!(dashboard.socket().as_deref(), Some("queuectl-dashboard-mail.socket"));
        for text in ["", "../x", "a b", "a@b", "ä", &"a".repeat(65)] {
            assert_eq!(text.parse::<ServiceName>(), Err(ServiceNameError), "{text}");
        }
    }
}
