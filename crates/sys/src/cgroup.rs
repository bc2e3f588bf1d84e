//! Control groups, version 2: the kernel knows which processes a group contains, whatever they do, kills all of them at
//! once, and can limit them together.
//!
//! ```text
//!   the group of the pool    any group in which this user can create others
//!     ├─ queuectl             only if it was delegated with controllers: supervisor and workers move here, because a
//!     │                       group whose children have limits must not contain processes itself
//!     └─ queuectl-WORKER      made by a worker and removed with it ([`Site`], [`WorkerGroup`])
//!          ├─ slot-0          every command starts in the group of its slot ([`Group`])
//!          └─ hook-0          and every hook process in that of its lane
//! ```
//!
//! A worker inside a command is in the group of that command's slot, and so are the groups that it makes: they are killed
//! together with the command.
//!
//! A supervisor tries once, at its start, to set up limits ([`prepare`]). Groups of other programs are never changed: if the
//! group of the pool contains any other process, no controllers are enabled in it.

pub(crate) mod delegation;
mod group;
mod worker_group;

pub use delegation::{Obstacle, can_prepare, prepare};
pub use group::{Bounds, Group};
pub use worker_group::{Site, WorkerGroup, can_contain, end_recorded, open_of_worker, record_of_worker};

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
