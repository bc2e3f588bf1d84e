//! Pausing a running command: all its processes are stopped, and its timeout stands still.
//!
//! The control group of its slot is frozen: no process of the command can avoid that, and none can notice it. A command
//! without a group is stopped with SIGSTOP, process by process.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::limits;
use sys::cgroup::Group;
use sys::process::tree;

/// How the processes of a command are kept from running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// Their group is frozen.
    Frozen,
    /// Each of them has got SIGSTOP.
    Signalled,
}

/// Stops all processes of a command. `roots` lists processes whose descendants are all others.
pub(crate) fn stop(group: Option<&Group>, roots: impl Fn() -> Vec<Pid>) -> Stopped {
    if group.is_some_and(|group| group.freeze().is_ok()) {
        return Stopped::Frozen;
    }
    limits::stop(roots);
    Stopped::Signalled
}

/// Continues all processes of a command. One that had stopped itself before the pause continues, too, unless the group
/// was frozen.
pub(crate) fn resume(stopped: Stopped, group: Option<&Group>, roots: impl Fn() -> Vec<Pid>) {
    match (stopped, group) {
        // If it fails, the group is gone. A group that stays frozen is not used again.
        (Stopped::Frozen, Some(group)) => _ = group.thaw(),
        (Stopped::Frozen, None) => {}
        (Stopped::Signalled, _) => {
            for member in tree::of(&roots()) {
                member.signal(Signal::CONT);
            }
        }
    }
}

/// The time at which a command is ended. It moves on by the time that the command was paused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    at: Option<Instant>,
    paused_at: Option<Instant>,
}

impl Deadline {
    pub(crate) fn new(timeout: Option<Duration>, now: Instant) -> Self {
        Self { at: timeout.and_then(|timeout| now.checked_add(timeout)), paused_at: None }
    }

    /// `None` if there is none, or while it stands still.
    pub(crate) fn at(&self) -> Option<Instant> {
        self.at.filter(|_| self.paused_at.is_none())
    }

    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.at().is_some_and(|at| at <= now)
    }

    pub(crate) fn pause(&mut self, now: Instant) {
        self.paused_at.get_or_insert(now);
    }

    pub(crate) fn resume(&mut self, now: Instant) {
        if let Some(since) = self.paused_at.take() {
            self.at = self.at.and_then(|at| at.checked_add(now.saturating_duration_since(since)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_stands_still_while_its_command_is_paused() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut deadline = Deadline::new(Some(Duration::from_secs(10)), start);
        deadline.pause(after(4));
        deadline.pause(after(5));
        assert_eq!((deadline.at(), deadline.is_over(after(100))), (None, false));
        deadline.resume(after(104));
        deadline.resume(after(105));
        assert_eq!(deadline.at(), Some(after(110)));
        assert!(!deadline.is_over(after(109)) && deadline.is_over(after(110)));
        let mut none = Deadline::new(None, start);
        none.pause(after(1));
        none.resume(after(2));
        assert!(!none.is_over(after(1_000)));
    }
}
