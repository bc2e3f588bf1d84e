//! Workers as a service of the machine: they start at boot, and start again after a crash.
//!
//! `unit` writes the unit for systemd, `systemd` talks to systemd, `account` creates the account that jobs run as,
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

/// The name of a unit without its suffix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceName(String);

impl ServiceName {
    const PREFIX: &str = "queuectl-worker";
    const MAX_CHARS: usize = 64;

    /// The name of the unit's file.
    pub fn unit(&self) -> String {
        format!("{self}.service")
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for ServiceName {
    fn default() -> Self {
        Self(Self::PREFIX.to_owned())
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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
        if is_name { Ok(Self(format!("{}-{text}", Self::PREFIX))) } else { Err(ServiceNameError) }
    }
}

/// A service that runs workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    pub scope: Scope,
    pub name: ServiceName,
    pub program: PathBuf,
    pub home: PathBuf,
    /// The value of `--store`; without it the home says where the queue is.
    pub store: Option<String>,
    /// The flags of `worker run`.
    pub worker_flags: Vec<String>,
    /// The account that jobs run as, in a sandbox; without one, the user whose systemd it is.
    pub account: Option<String>,
    /// Where jobs may write, besides the home, in that sandbox.
    pub writable: Vec<PathBuf>,
}

impl Service {
    /// The command that runs the workers in the foreground.
    pub(crate) fn command(&self) -> Result<Vec<String>, ServiceError> {
        let (program, home) = (text(&self.program)?.to_owned(), text(&self.home)?.to_owned());
        let mut words = vec![program, "--home".to_owned(), home];
        if let Some(store) = &self.store {
            words.extend(["--store".to_owned(), store.clone()]);
        }
        words.extend(["worker".to_owned(), "run".to_owned()]);
        words.extend(self.worker_flags.iter().cloned());
        Ok(words)
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
        assert_eq!(named.map(|name| name.unit()), Ok("queuectl-worker-mail.service".to_owned()));
        for text in ["", "../x", "a b", "a@b", "ä", &"a".repeat(65)] {
            assert_eq!(text.parse::<ServiceName>(), Err(ServiceNameError), "{text}");
        }
    }
}
