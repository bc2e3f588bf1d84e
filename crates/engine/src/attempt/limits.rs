//! Enforcing the limits of an attempt.
//!
//! Open files and niceness are set before the command runs, and the kernel enforces them. A control group limits
//! memory, processes and processor time, if one was delegated to the pool. Otherwise the slot checks memory and
//! processes itself: it measures the process tree of its command periodically, and kills all of it when it is too
//! large. Processor time cannot be enforced like that, so a job with `limits.cpu` is not started.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use domain::job::limits::{ExceededLimit, Limits};
use store::Claim;
use sys::cgroup::{Bounds, Controllers, DelegatedGroup, Group, Obstacle};
use sys::process::spawn;
use sys::process::tree;
use sys::process::tree::Member;

/// The pause between two checks of a command.
pub(crate) const LIMIT_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// How often to search for processes that were started while others were being stopped, before killing all of them.
const MAX_STOP_ROUNDS: usize = 50;

/// The control group that was delegated to the worker, or why there is none.
pub(crate) type Delegation = Result<DelegatedGroup, Obstacle>;

/// Why the limits of an attempt cannot be enforced, so that it is not started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LimitError {
    #[error("limits.cpu needs a delegated cgroup ({why})")]
    Cpu { why: String },
    #[error("failed to create its cgroup: {0}")]
    Group(io::Error),
}

/// The limits of one attempt, and their enforcement.
#[derive(Debug)]
pub(crate) struct AttemptLimits {
    limits: Limits,
    group: Option<(Group, File)>,
    /// The limits that the group enforces.
    by_group: Controllers,
}

impl AttemptLimits {
    /// `None` for an attempt without limits.
    pub(crate) fn prepare(
        claim: &Claim,
        delegation: &Delegation,
        worker: &str,
    ) -> Result<Option<Self>, LimitError> {
        let limits = claim.limits;
        if limits.is_none() {
            return Ok(None);
        }
        let enabled = delegation.as_ref().map_or(Controllers::default(), DelegatedGroup::enabled);
        if limits.cpu.is_some() && !enabled.cpu {
            let why =
                delegation.as_ref().err().map_or("it has no cpu controller".to_owned(), ToString::to_string);
            return Err(LimitError::Cpu { why });
        }
        let by_group = Controllers {
            memory: enabled.memory && limits.memory.is_some(),
            cpu: enabled.cpu && limits.cpu.is_some(),
            pids: enabled.pids && limits.pids.is_some(),
        };
        let name = format!("{worker}-{}-{}", claim.number, claim.lease.attempt);
        let group = match delegation {
            Ok(delegated) if by_group != Controllers::default() => {
                Some(make_group(delegated, &name, &limits, by_group).map_err(LimitError::Group)?)
            }
            Ok(_) | Err(_) => None,
        };
        Ok(Some(Self { limits, group, by_group }))
    }

    /// The limits to apply when spawning the command.
    pub(crate) fn at_start(&self) -> spawn::Limits<'_> {
        spawn::Limits {
            open_files: self.limits.open_files,
            nice: self.limits.nice,
            group: self.group.as_ref().map(|(_, entrance)| entrance.as_fd()),
        }
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
    pub(crate) fn exceeded(&self, roots: impl FnOnce() -> Vec<Pid>) -> Option<ExceededLimit> {
        if let (Some(limit), Some((group, _)), true) = (self.limits.pids, &self.group, self.by_group.pids) {
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

    /// Kills all processes of a command, however quickly it forks: a stopped process starts nothing, and the next round
    /// finds what it had started before.
    pub(crate) fn stop_and_kill(&self, roots: impl Fn() -> Vec<Pid>) {
        if let Some((group, _)) = &self.group {
            return group.kill();
        }
        let mut stopped: HashSet<(Pid, u64)> = HashSet::new();
        for _ in 0..MAX_STOP_ROUNDS {
            let mut members = tree::of(&roots());
            members.retain(|member| stopped.insert((member.pid, member.start_time)));
            if members.is_empty() {
                break;
            }
            for member in &members {
                member.signal(Signal::STOP);
            }
        }
        for member in tree::of(&roots()) {
            member.signal(Signal::KILL);
        }
    }

    /// Kills all processes in the command's group, if it has one, including those that this user may not signal.
    pub(crate) fn kill(&self) {
        if let Some((group, _)) = &self.group {
            group.kill();
        }
    }

    /// Kills the remaining processes in the group after the command has ended. Returns the limit for which the kernel
    /// killed it.
    pub(crate) fn end(self) -> Option<ExceededLimit> {
        let (group, _) = self.group?;
        let exceeded = self.limits.memory.filter(|_| group.ran_out_of_memory()).map(ExceededLimit::Memory);
        group.end();
        exceeded
    }
}

fn make_group(
    delegated: &DelegatedGroup,
    name: &str,
    limits: &Limits,
    by_group: Controllers,
) -> io::Result<(Group, File)> {
    let bounds = Bounds {
        memory_bytes: limits.memory.filter(|_| by_group.memory),
        cpu_millis: limits.cpu.filter(|_| by_group.cpu).map(|cpu| cpu.millis),
        pids: limits.pids.filter(|_| by_group.pids),
    };
    let group = delegated.make(name, bounds)?;
    let entrance = group.procs_file()?;
    Ok((group, entrance))
}

/// The limit that is exceeded, if any.
fn judge(members: &[Member], pids: Option<u32>, memory: Option<u64>) -> Option<ExceededLimit> {
    let tasks: u64 = members.iter().map(|member| u64::from(member.threads)).sum();
    if let Some(limit) = pids.filter(|limit| tasks > u64::from(*limit)) {
        return Some(ExceededLimit::Pids(limit));
    }
    memory.filter(|limit| tree::memory_of(members, *limit) > *limit).map(ExceededLimit::Memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(threads: u32, resident_bytes: u64) -> Member {
        // No process has this pid, so its shared memory cannot be read.
        let pid = Pid::from_raw(i32::MAX).expect("a pid");
        Member { pid, parent: None, start_time: 1, threads, resident_bytes }
    }

    #[test]
    fn all_processes_of_a_tree_are_counted() {
        let tree = [member(2, 3 << 20), member(1, 4 << 20)];
        assert_eq!(judge(&tree, Some(3), Some(7 << 20)), None);
        assert_eq!(judge(&tree, Some(2), Some(7 << 20)), Some(ExceededLimit::Pids(2)));
        assert_eq!(judge(&tree, None, Some((7 << 20) - 1)), Some(ExceededLimit::Memory((7 << 20) - 1)));
        assert_eq!(judge(&tree, None, None), None);
        assert_eq!(judge(&[], Some(1), Some(1)), None);
    }
}
