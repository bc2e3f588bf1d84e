//! Kills the orphans that dead workers of a pool left, and remembers those that the supervisor cannot kill.
//!
//! The supervisor must not wait for survivors: it has other workers to replace or to stop. It leaves survivors to the
//! reapers of the workers, and remembers which workers were alive when it first saw one: a process becomes a child of
//! the supervisor only when its worker has died, so none of the living workers started it. Nor did a later worker.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use crate::attempt::slot_records::AttemptRecord;
use sys::process;
use sys::process::{Children, ProcessHandle};

/// How long to wait for one killed process before listing children again.
const KILL_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long to wait for all of them. The supervisor does not wait for those that it may not signal.
const ORPHAN_KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// Orphans that could not be killed.
#[derive(Debug, Default)]
pub(crate) struct Survivors {
    seen: HashMap<Pid, Sighting>,
}

/// When a process was first seen, and the workers that were alive then.
#[derive(Debug)]
struct Sighting {
    at: Instant,
    living: HashSet<Pid>,
}

impl Sighting {
    /// Whether this worker, which started at `since`, was already dead when the process was first seen.
    fn is_after(&self, worker: Pid, since: Instant) -> bool {
        since <= self.at && !self.living.contains(&worker)
    }
}

impl Survivors {
    /// Replaces the set of survivors by `left`; `living` are the workers that are alive now.
    pub(crate) fn note(&mut self, left: &[Pid], living: &HashSet<Pid>) {
        self.seen.retain(|pid, _| left.contains(pid));
        for pid in left {
            self.seen.entry(*pid).or_insert_with(|| Sighting { at: Instant::now(), living: living.clone() });
        }
    }

    /// Reaps survivors that have ended since.
    pub(crate) fn reap_ended(&mut self) {
        self.seen.retain(|pid, _| matches!(process::reap(*pid), Ok(None)));
    }

    /// The survivors that this dead worker may have started: the supervisor first saw them after the worker's death, or
    /// they are in a session of its attempts. The worker itself started at `since`.
    pub(crate) fn left_by(&self, worker: Pid, since: Instant, records: &[AttemptRecord]) -> Vec<Pid> {
        let is_its = |(pid, sighting): &(&Pid, &Sighting)| {
            sighting.is_after(worker, since) || records.iter().any(|record| record.has_in_session(**pid))
        };
        self.seen.iter().filter(is_its).map(|(pid, _)| *pid).collect()
    }
}

/// Kills and reaps every child of this process except the spared ones, and the orphans that become children when these
/// die. Returns the children that survived; does not wait for `known` survivors.
pub(crate) fn kill_all(children: &Children, is_spared: impl Fn(Pid) -> bool, known: &Survivors) -> Vec<Pid> {
    let orphans = || {
        let mut orphans = children.list();
        orphans.retain(|pid| !is_spared(*pid));
        orphans
    };
    kill_listed(orphans, known, ORPHAN_KILL_TIMEOUT)
}

fn kill_listed(children: impl Fn() -> Vec<Pid>, known: &Survivors, timeout: Duration) -> Vec<Pid> {
    let began = Instant::now();
    loop {
        let mut orphans = children();
        if orphans.is_empty() {
            return orphans;
        }
        // The children of a process that has just ended appear only in the next list. After the last list nothing is
        // reaped, so that the ended process counts as a survivor in place of its unseen children.
        let is_last = began.elapsed() >= timeout;
        if !is_last {
            let listed = orphans.len();
            orphans.retain(|pid| matches!(process::reap(*pid), Ok(None)));
            if orphans.len() < listed {
                continue;
            }
        }
        // Not reaped yet, so no pid has been reused.
        let is_refused = |pid: Pid| kill_process(pid, Signal::KILL) == Err(Errno::PERM);
        let is_dying = |pid: &&Pid| !is_refused(**pid) && !known.seen.contains_key(*pid);
        let dying: Vec<Pid> = orphans.iter().filter(is_dying).copied().collect();
        match dying.last() {
            Some(last) if !is_last => {
                let _ = ProcessHandle::open(*last).and_then(|handle| handle.ends_within(KILL_POLL_INTERVAL));
            }
            Some(_) | None => return orphans,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(number: i32) -> Pid {
        Pid::from_raw(number).expect("a pid")
    }

    #[test]
    fn a_survivor_is_not_assigned_to_a_worker_that_was_alive_when_it_was_first_seen() {
        let mut survivors = Survivors::default();
        let since = Instant::now();
        survivors.note(&[pid(10)], &HashSet::from([pid(2), pid(3)]));
        let left_by = |survivors: &Survivors, worker| survivors.left_by(pid(worker), since, &[]);
        assert_eq!(left_by(&survivors, 1), [pid(10)]);
        assert_eq!((left_by(&survivors, 2), left_by(&survivors, 3)), (vec![], vec![]));
        survivors.note(&[pid(10), pid(20)], &HashSet::from([pid(3)]));
        assert_eq!((left_by(&survivors, 2), left_by(&survivors, 3)), (vec![pid(20)], vec![]));
        survivors.note(&[pid(20)], &HashSet::new());
        assert_eq!(left_by(&survivors, 1), [pid(20)], "the other survivor has ended");
    }

    #[test]
    #[expect(clippy::zombie_processes, reason = "the function under test reaps them")]
    fn an_endless_chain_of_children_is_not_waited_for() {
        let one_more = || {
            let child = std::process::Command::new("true").spawn().expect("it starts");
            let zombie = pid(child.id().cast_signed());
            let handle = ProcessHandle::open(zombie).expect("it is a child");
            assert!(handle.ends_within(Duration::from_secs(20)).expect("it is waited for"));
            vec![zombie]
        };
        let left = kill_listed(one_more, &Survivors::default(), Duration::from_millis(20));
        assert_eq!(left.len(), 1, "its children are not known yet");
        assert!(matches!(process::reap(left[0]), Ok(Some(_))), "it is not reaped yet");
    }

    #[test]
    fn a_survivor_is_not_assigned_to_a_worker_that_started_after_it_was_seen() {
        let mut survivors = Survivors::default();
        survivors.note(&[pid(10)], &HashSet::new());
        let later = Instant::now() + Duration::from_millis(1);
        assert_eq!(survivors.left_by(pid(1), later, &[]), []);
        survivors.note(&[pid(10)], &HashSet::new());
        assert_eq!(survivors.left_by(pid(1), later, &[]), [], "only the first sighting counts");
    }
}
