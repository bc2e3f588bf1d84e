//! A password, and where one comes from: the URL, `PGPASSWORD`, then the password file, as with libpq.

use std::fmt;

use super::password_file::{self, PasswordFileError};
use super::{Address, Host};

/// A secret that no `Debug` shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

impl Address {
    /// The password for one of the hosts, if there is one. A password file that others can read is not used.
    pub fn password(&self, host: &Host) -> Result<Option<Password>, PasswordFileError> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        if let Some(password) = self.password.clone().or_else(|| variable("PGPASSWORD").map(Password::new)) {
            return Ok(Some(password));
        }
        let home = |home: String| format!("{home}/.pgpass");
        match variable("PGPASSFILE").or_else(|| variable("HOME").map(home)) {
            Some(path) => password_file::find(path.as_ref(), self, host),
            None => Ok(None),
        }
    }
}
