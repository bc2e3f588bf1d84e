//! What can follow on a command line, for the completion of shells.
//!
//! The scripts in `scripts/` are short: at each TAB they call the hidden verb `__complete` with the words up to the cursor,
//! and show its answer. The answer comes from the same description of the verbs that parses command lines ([`place`]), and
//! from the store ([`stored`]), which is only read. If the store is absent, locked or broken, the names that it would have
//! given are left out: a TAB never creates, waits for or complains about anything.

pub(crate) mod answer;
pub(crate) mod place;
pub(crate) mod shell;
pub(crate) mod stored;
pub(crate) mod subject;

/// A word that can follow, and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) value: String,
    /// May be empty.
    pub(crate) about: String,
}

impl Candidate {
    pub(crate) fn new(value: impl Into<String>, about: impl Into<String>) -> Self {
        Self { value: value.into(), about: about.into() }
    }
}
