//! Control groups, version 2: the kernel limits all processes of a group together.
//!
//! ```text
//!   the delegated group     given by systemd to a unit with `Delegate=yes`; contains only supervisor and workers
//!     ├─ queuectl            they move here, because a group whose children have limits must not contain processes itself
//!     └─ queuectl-job-…      one for each attempt with limits, removed after it
//! ```
//!
//! A supervisor tries once, at its start, to set this up ([`prepare`]); its workers check whether it did
//! ([`DelegatedGroup::find`]). Groups of other programs are never changed: if the group contains any other process, it is left as
//! it is.

pub(crate) mod delegation;
mod group;

pub use delegation::{DelegatedGroup, Obstacle, can_prepare, prepare};
pub use group::{Bounds, Group};

/// The controllers that a group can use for limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Controllers {
    pub memory: bool,
    pub cpu: bool,
    pub pids: bool,
}

impl Controllers {
    const NAMES: [&str; 3] = ["memory", "cpu", "pids"];

    /// Parses the kernel's list of names.
    fn parse(list: &str) -> Self {
        let has = |name| list.split_ascii_whitespace().any(|word| word == name);
        let [memory, cpu, pids] = Self::NAMES.map(has);
        Self { memory, cpu, pids }
    }

    fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// In the form that enables them: `+memory +pids`.
    fn to_enable(self) -> String {
        let given = [self.memory, self.cpu, self.pids];
        let names = Self::NAMES.iter().zip(given).filter(|(_, given)| *given);
        names.map(|(name, _)| format!("+{name}")).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests;
