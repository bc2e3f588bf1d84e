//! The environment in which a job was enqueued, stored so that the command runs as if it had been typed there.

use std::collections::BTreeMap;

/// Variables that describe the enqueuing terminal or shell and that the command does not need.
const VOLATILE_NAMES: [&str; 14] = [
    "_",
    "COLUMNS",
    "DBUS_SESSION_BUS_ADDRESS",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "LINES",
    "OLDPWD",
    "PWD",
    "SHLVL",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "TERM_SESSION_ID",
    "WINDOWID",
];
/// The prefix of queuectl's own variables: a job that enqueues another does not pass its own identity on.
const OWN_PREFIX: &str = "QUEUECTL_";

/// Variables by name, as bytes: an environment need not be UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<Vec<u8>, Vec<u8>>);

impl Environment {
    /// Keeps the variables that the command may need.
    pub fn capture(variables: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) -> Self {
        let is_kept = |name: &[u8]| {
            !VOLATILE_NAMES.iter().any(|volatile| volatile.as_bytes() == name)
                && !name.starts_with(OWN_PREFIX.as_bytes())
        };
        Self(variables.into_iter().filter(|(name, _)| is_kept(name)).collect())
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

#[cfg(test)]
mod tests {
    use super::Environment;

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
