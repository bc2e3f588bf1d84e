//! How the limits of an attempt are kept.
//!
//! Open files and niceness are set before the command runs, and the kernel keeps to them. Memory, processes and processor
//! time are limited by a control group, where one was delegated to the pool. Where not, memory and processes are
//! watched: the slot looks at the tree of its command now and then, and when that is too large kills all of it.
//! Processor time cannot be watched like that, so a job that wants it limited is not started.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use domain::job::limits::{Excess, Limits};
use store::Claim;
use sys::cgroup::{Bounds, Controllers, DelegatedGroup, Group, Obstacle};
use sys::process::spawn;
use sys::process::tree;
use sys::process::tree::Member;

/// The pause between two looks at a command.
pub(crate) const LOOK: Duration = Duration::from_millis(50);
/// How often to look for what was started while others were stopped, before all that was found is killed.
const ROUNDS: usize = 50;

/// What a worker can do about limits: the group it was given, or why it has none.
pub(crate) type Means = Result<DelegatedGroup, Obstacle>;

/// Why an attempt cannot be held to its limits, so that it is not started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unkept {
    #[error("limits.cpu needs a cgroup of the worker's own ({why})")]
    Cpu { why: String },
    #[error("its cgroup could not be made: {0}")]
    Group(io::Error),
}

/// One attempt that has limits.
#[derive(Debug)]
pub(crate) struct Confinement {
    limits: Limits,
    group: Option<(Group, File)>,
    /// What the group takes care of.
    by_group: Controllers,
}

impl Confinement {
    /// `None` for an attempt without limits.
    pub(crate) fn prepare(claim: &Claim, means: &Means, worker: &str) -> Result<Option<Self>, Unkept> {
        let limits = claim.limits;
        if limits.is_none() {
            return Ok(None);
        }
        let enabled = means.as_ref().map_or(Controllers::default(), DelegatedGroup::enabled);
        if limits.cpu.is_some() && !enabled.cpu {
            let why = means.as_ref().err().map_or("without a cpu controller".to_owned(), ToString::to_string);
            return Err(Unkept::Cpu { why });
        }
        let by_group = Controllers {
            memory: enabled.memory && limits.memory.is_some(),
            cpu: enabled.cpu && limits.cpu.is_some(),
            pids: enabled.pids && limits.pids.is_some(),
        };
        let name = format!("{worker}-{}-{}", claim.number, claim.lease.attempt);
        let group = match means {
            Ok(delegated) if by_group != Controllers::default() => {
                Some(make_group(delegated, &name, &limits, by_group).map_err(Unkept::Group)?)
            }
            Ok(_) | Err(_) => None,
        };
        Ok(Some(Self { limits, group, by_group }))
    }

    /// What the command is started with.
    pub(crate) fn at_start(&self) -> spawn::Limits<'_> {
        spawn::Limits {
            open_files: self.limits.open_files,
            nice: self.limits.nice,
            group: self.group.as_ref().map(|(_, entrance)| entrance.as_fd()),
        }
    }

    /// The command leads this session. Where the kernel shares the processor among sessions first, being nice in one's
    /// own changes nothing; so the session is made as nice. It may refuse, and then it has its reasons.
    pub(crate) fn has_started(&self, leader: Pid) {
        if let Some(nice) = self.limits.nice {
            let _ = fs::write(format!("/proc/{}/autogroup", leader.as_raw_pid()), nice.to_string());
        }
    }

    /// Whether a look now and then is needed.
    pub(crate) fn is_watched(&self) -> bool {
        self.limits.pids.is_some() || self.watched_memory().is_some()
    }

    fn watched_memory(&self) -> Option<u64> {
        self.limits.memory.filter(|_| !self.by_group.memory)
    }

    /// Looks at a command; `roots` are its leader and what has lost its parents.
    pub(crate) fn look(&self, roots: impl FnOnce() -> Vec<Pid>) -> Option<Excess> {
        if let (Some(limit), Some((group, _)), true) = (self.limits.pids, &self.group, self.by_group.pids) {
            // Whoever is refused a process may well try for ever.
            if group.ran_out_of_pids() {
                return Some(Excess::Pids(limit));
            }
        }
        let watched_pids = self.limits.pids.filter(|_| !self.by_group.pids);
        if watched_pids.is_none() && self.watched_memory().is_none() {
            return None;
        }
        judge(&tree::of(&roots()), watched_pids, self.watched_memory())
    }

    /// Kills all of a command at once, however quickly it multiplies: what is stopped starts nothing, and what it had
    /// started is found in the next round.
    pub(crate) fn put_down(&self, roots: impl Fn() -> Vec<Pid>) {
        if let Some((group, _)) = &self.group {
            return group.kill();
        }
        let mut stopped: HashSet<(Pid, u64)> = HashSet::new();
        for _ in 0..ROUNDS {
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

    /// Kills all of a command that has a group, also what other rights protect from signals.
    pub(crate) fn kill(&self) {
        if let Some((group, _)) = &self.group {
            group.kill();
        }
    }

    /// The command has ended; whatever may be left of it in its group is killed. Says what the kernel killed it for.
    pub(crate) fn end(self) -> Option<Excess> {
        let (group, _) = self.group?;
        let excess = self.limits.memory.filter(|_| group.ran_out_of_memory()).map(Excess::Memory);
        group.end();
        excess
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

/// Which limit is exceeded, if any is.
fn judge(members: &[Member], pids: Option<u32>, memory: Option<u64>) -> Option<Excess> {
    let tasks: u64 = members.iter().map(|member| u64::from(member.threads)).sum();
    if let Some(limit) = pids.filter(|limit| tasks > u64::from(*limit)) {
        return Some(Excess::Pids(limit));
    }
    memory.filter(|limit| tree::memory_of(members, *limit) > *limit).map(Excess::Memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(threads: u32, resident_bytes: u64) -> Member {
        // Nobody has this pid, so what it shares cannot be told.
        let pid = Pid::from_raw(i32::MAX).expect("a pid");
        Member { pid, parent: None, start_time: 1, threads, resident_bytes }
    }

    #[test]
    fn all_of_a_tree_counts() {
        let tree = [member(2, 3 << 20), member(1, 4 << 20)];
        assert_eq!(judge(&tree, Some(3), Some(7 << 20)), None);
        assert_eq!(judge(&tree, Some(2), Some(7 << 20)), Some(Excess::Pids(2)));
        assert_eq!(judge(&tree, None, Some((7 << 20) - 1)), Some(Excess::Memory((7 << 20) - 1)));
        assert_eq!(judge(&tree, None, None), None);
        assert_eq!(judge(&[], Some(1), Some(1)), None);
    }
}
