//! Enforcing the limits of an attempt.
//!
//! Open files and niceness are set before the command runs, and the kernel enforces them. The control group of the slot
//! limits memory, processes and processor time, if it has controllers. Otherwise the slot checks memory and
//! processes itself: it measures the process tree of its command periodically, and kills all of it when it is too
//! large. Processor time cannot be enforced like that, so a job with `limits.cpu` is not started.

use std::collections::HashSet;
use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::command::SpawnProblem;
use crate::orphans::containment::Containment;
use domain::job::limits::{ExceededLimit, Limits};
use store::Claim;
use sys::cgroup::{Bounds, Controllers, Group, WorkerGroup};
use sys::process::spawn;
use sys::process::tree;
use sys::process::tree::Member;

/// The pause between two checks of a command.
pub(crate) const LIMIT_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// How often to search for processes that were started while others were being stopped, before killing all of them.
const MAX_STOP_ROUNDS: usize = 50;

/// The limits of one attempt, and their enforcement.
#[derive(Debug)]
pub(crate) struct AttemptLimits {
    limits: Limits,
    /// The limits that the group enforces.
    by_group: Controllers,
}

impl AttemptLimits {
    /// `None` for an attempt without limits.
    pub(crate) fn prepare(claim: &Claim, containment: &Containment) -> Result<Option<Self>, SpawnProblem> {
        let limits = claim.limits;
        if limits.is_none() {
            return Ok(None);
        }
        let controllers = containment.as_ref().and_then(WorkerGroup::controllers);
        let enabled = controllers.unwrap_or_default();
        if limits.cpu.is_some() && !enabled.cpu {
            let why = controllers.err().map_or("it has no cpu controller".to_owned(), ToString::to_string);
            return Err(SpawnProblem::CpuLimit { why });
        }
        let by_group = Controllers {
            memory: enabled.memory && limits.memory.is_some(),
            cpu: enabled.cpu && limits.cpu.is_some(),
            pids: enabled.pids && limits.pids.is_some(),
        };
        Ok(Some(Self { limits, by_group }))
    }

    /// The limits of the command's group.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds {
            memory_bytes: self.limits.memory.filter(|_| self.by_group.memory),
            cpu_millis: self.limits.cpu.filter(|_| self.by_group.cpu).map(|cpu| cpu.millis),
            pids: self.limits.pids.filter(|_| self.by_group.pids),
        }
    }

    /// The limits to apply when spawning the command.
    pub(crate) fn at_start(&self) -> spawn::Limits {
        spawn::Limits { open_files: self.limits.open_files, nice: self.limits.nice }
    }

    /// Called after the command, which leads this session, was started. With autogrouping the kernel shares the
    /// processor among sessions first, so niceness within a session has no effect; the whole session gets the same
    /// niceness. An error is ignored: the kernel may not allow it.
    pub(crate) fn has_started(&self, leader: Pid) {
        if let Some(nice) = self.limits.nice {
            let _ = fs::write(format!("/proc/{}/autogroup", leader.as_raw_pid()), nice.to_string());
        }
    }

    /// Whether the slot must check the command periodically.
    pub(crate) fn is_watched(&self) -> bool {
        self.limits.pids.is_some() || self.watched_memory().is_some()
    }

    fn watched_memory(&self) -> Option<u64> {
        self.limits.memory.filter(|_| !self.by_group.memory)
    }

    /// The limit that the command exceeds, if any; `roots` are its leader and its orphans.
    pub(crate) fn exceeded(
        &self,
        group: Option<&Group>,
        roots: impl FnOnce() -> Vec<Pid>,
    ) -> Option<ExceededLimit> {
        if let (Some(limit), Some(group), true) = (self.limits.pids, group, self.by_group.pids) {
            // A command that may not fork may well retry for ever.
            if group.ran_out_of_pids() {
                return Some(ExceededLimit::Pids(limit));
            }
        }
        let watched_pids = self.limits.pids.filter(|_| !self.by_group.pids);
        if watched_pids.is_none() && self.watched_memory().is_none() {
            return None;
        }
        judge(&tree::of(&roots()), watched_pids, self.watched_memory())
    }

    /// The limit for which the kernel killed the command.
    pub(crate) fn exceeded_by(&self, group: &Group) -> Option<ExceededLimit> {
        let limit = self.limits.memory.filter(|_| self.by_group.memory && group.ran_out_of_memory());
        limit.map(ExceededLimit::Memory)
    }
}

/// Kills all processes of a command that has no group, however quickly it forks: a stopped process starts nothing, and
/// the next round finds what it had started before.
pub(crate) fn stop_and_kill(roots: impl Fn() -> Vec<Pid>) {
    stop(&roots);
    for member in tree::of(&roots()) {
        member.signal(Signal::KILL);
    }
}

/// Stops these processes and all their descendants.
pub(crate) fn stop(roots: impl Fn() -> Vec<Pid>) {
    let mut stopped: HashSet<(Pid, u64)> = HashSet::new();
    for _ in 0..MAX_STOP_ROUNDS {
        let mut members = tree::of(&roots());
        members.retain(|member| stopped.insert((member.pid, member.stat.start_time)));
        if members.is_empty() {
            break;
        }
        for member in &members {
            member.signal(Signal::STOP);
        }
    }
}

/// The limit that is exceeded, if any.
fn judge(members: &[Member], pids: Option<u32>, memory: Option<u64>) -> Option<ExceededLimit> {
    let tasks: u64 = members.iter().map(|member| u64::from(member.stat.threads)).sum();
    if let Some(limit) = pids.filter(|limit| tasks > u64::from(*limit)) {
        return Some(ExceededLimit::Pids(limit));
    }
    memory.filter(|limit| tree::memory_of(members, *limit) > *limit).map(ExceededLimit::Memory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::process::Stat;

    fn member(threads: u32, resident_pages: u64) -> Member {
        // No process has this pid, so its shared memory cannot be read.
        let pid = Pid::from_raw(i32::MAX).expect("a pid");
        let stat = Stat {
            is_zombie: false,
            is_stopped: false,
            parent: 0,
            session: 0,
            threads,
            start_time: 1,
            resident_pages,
        };
        Member { pid, stat }
    }

    #[test]
    fn all_processes_of_a_tree_are_counted() {
        let tree = [member(2, 3), member(1, 4)];
        let seven_pages = tree::memory_of(&tree, u64::MAX);
        assert_eq!(judge(&tree, Some(3), Some(seven_pages)), None);
        assert_eq!(judge(&tree, Some(2), Some(seven_pages)), Some(ExceededLimit::Pids(2)));
        assert_eq!(judge(&tree, None, Some(seven_pages - 1)), Some(ExceededLimit::Memory(seven_pages - 1)));
        assert_eq!(judge(&tree, None, None), None);
        assert_eq!(judge(&[], Some(1), Some(1)), None);
    }
}
