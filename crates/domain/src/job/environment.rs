//! The environment in which a job was enqueued, kept so that its command runs as if it had been typed there.

use std::collections::BTreeMap;

/// Names that say something about the terminal or the shell that enqueued, not about what the command needs.
const VOLATILE: [&str; 14] = [
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
/// Our own variables: a job that enqueues another does not hand its own identity on.
const OURS: &str = "QUEUECTL_";

/// Variables by name, as bytes: an environment need not be UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<Vec<u8>, Vec<u8>>);

impl Environment {
    /// What to keep of these variables.
    pub fn capture(variables: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) -> Self {
        let kept = |name: &[u8]| {
            !VOLATILE.iter().any(|volatile| volatile.as_bytes() == name) && !name.starts_with(OURS.as_bytes())
        };
        Self(variables.into_iter().filter(|(name, _)| kept(name)).collect())
    }

    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name.as_bytes()).map(Vec::as_slice)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_slice(), value.as_slice()))
    }

    /// `NAME=value` strings, each ended by a NUL, in the order of their names: equal environments give equal bytes.
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
    fn keeps_what_the_command_needs_and_reads_back() {
        let variables =
            [("PATH", "/bin"), ("A", "x=y"), ("EMPTY", ""), ("SHLVL", "3"), ("QUEUECTL_JOB_ID", "a")];
        let captured = Environment::capture(
            variables.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())),
        );
        assert_eq!(captured.to_bytes(), b"A=x=y\0EMPTY=\0PATH=/bin\0");
        assert_eq!(Environment::from_bytes(&captured.to_bytes()), captured);
    }
}
