//! Control groups, version 2: the kernel holds all processes of a group to its limits together.
//!
//! ```text
//!   the delegated group     what systemd gives a unit with `Delegate=yes`: supervisor and workers, nobody else
//!     ├─ queuectl            where they go, because a group whose children have limits may hold no process itself
//!     └─ queuectl-job-…      one for each attempt with limits, gone with it
//! ```
//!
//! A supervisor tries once, when it starts, to arrange this ([`settle_in`]); its workers find it arranged or not
//! ([`Delegated::find`]). Groups of others are never touched: if anybody else is in the group, it is left as it is.

mod group;
mod place;

pub use group::{Bounds, Group};
pub use place::{Delegated, Obstacle, could_settle_in, settle_in};

/// What can be limited by groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Controllers {
    pub memory: bool,
    pub cpu: bool,
    pub pids: bool,
}

impl Controllers {
    const NAMES: [&str; 3] = ["memory", "cpu", "pids"];

    /// From a list of names, as the kernel writes it.
    fn parse(list: &str) -> Self {
        let has = |name| list.split_ascii_whitespace().any(|word| word == name);
        let [memory, cpu, pids] = Self::NAMES.map(has);
        Self { memory, cpu, pids }
    }

    fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// As the kernel wants to be told to enable them: `+memory +pids`
    fn to_enable(self) -> String {
        let given = [self.memory, self.cpu, self.pids];
        let names = Self::NAMES.iter().zip(given).filter(|(_, given)| *given);
        names.map(|(name, _)| format!("+{name}")).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests;
