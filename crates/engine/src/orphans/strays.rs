//! What dead workers of a pool left behind and its supervisor cannot kill.
//!
//! The supervisor must not wait for it: others want to be replaced, or told to stop. What it cannot kill it leaves to the
//! reapers of the workers, and remembers which workers lived when it was first seen: whatever a worker starts becomes a
//! child of the supervisor only when that worker has died, so it is none of theirs. Nor did a later worker start it.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use crate::attempt::slot_records::Trace;
use sys::process;
use sys::process::{Children, ProcessHandle};

/// How long to wait for one process to be gone before the next look.
const PATIENCE: Duration = Duration::from_millis(50);
/// How long to wait for all of them. Those that may not be signalled are not waited for.
const DEATH: Duration = Duration::from_secs(5);

/// Processes that could not be killed.
#[derive(Debug, Default)]
pub(crate) struct Strays {
    seen: HashMap<Pid, Sighting>,
}

/// When a process was first seen, and the workers that lived then.
#[derive(Debug)]
struct Sighting {
    at: Instant,
    living: HashSet<Pid>,
}

impl Sighting {
    /// Whether this worker, which started at `since`, was dead when the process was first seen.
    fn is_after(&self, worker: Pid, since: Instant) -> bool {
        since <= self.at && !self.living.contains(&worker)
    }
}

impl Strays {
    /// These are all that could not be killed, and these workers live.
    pub(crate) fn note(&mut self, left: &[Pid], living: &HashSet<Pid>) {
        self.seen.retain(|pid, _| left.contains(pid));
        for pid in left {
            self.seen.entry(*pid).or_insert_with(|| Sighting { at: Instant::now(), living: living.clone() });
        }
    }

    /// Reaps those that have ended since.
    pub(crate) fn reap_ended(&mut self) {
        self.seen.retain(|pid, _| matches!(process::reap(*pid), Ok(None)));
    }

    /// Those that this dead worker may have started: the supervisor saw them only after its death, or they are in a session
    /// of its attempts. The worker itself started at `since`.
    pub(crate) fn left_by(&self, worker: Pid, since: Instant, traces: &[Trace]) -> Vec<Pid> {
        let is_its = |(pid, sighting): &(&Pid, &Sighting)| {
            sighting.is_after(worker, since) || traces.iter().any(|trace| trace.is_leader_of(**pid))
        };
        self.seen.iter().filter(is_its).map(|(pid, _)| *pid).collect()
    }
}

/// Kills and reaps every child of this process but those that are to be spared. When one dies, what it leaves behind
/// becomes a child in its turn. Returns the children that survived. Known survivors are not waited for.
pub(crate) fn kill_all(children: &Children, is_spared: impl Fn(Pid) -> bool, known: &Strays) -> Vec<Pid> {
    let orphans = || {
        let mut orphans = children.list();
        orphans.retain(|pid| !is_spared(*pid));
        orphans
    };
    kill_listed(orphans, known, DEATH)
}

fn kill_listed(children: impl Fn() -> Vec<Pid>, known: &Strays, patience: Duration) -> Vec<Pid> {
    let began = Instant::now();
    loop {
        let mut orphans = children();
        if orphans.is_empty() {
            return orphans;
        }
        // The children of one that has just ended are in the next list only: after the last list none is reaped, so that
        // it counts as a survivor in their place.
        let is_last = began.elapsed() >= patience;
        if !is_last {
            let listed = orphans.len();
            orphans.retain(|pid| matches!(process::reap(*pid), Ok(None)));
            if orphans.len() < listed {
                continue;
            }
        }
        // Not reaped yet, so each pid is still its own.
        let is_refused = |pid: Pid| kill_process(pid, Signal::KILL) == Err(Errno::PERM);
        let is_dying = |pid: &&Pid| !is_refused(**pid) && !known.seen.contains_key(*pid);
        let dying: Vec<Pid> = orphans.iter().filter(is_dying).copied().collect();
        match dying.last() {
            Some(last) if !is_last => {
                let _ = ProcessHandle::open(*last).and_then(|handle| handle.ends_within(PATIENCE));
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
    fn what_cannot_be_killed_is_not_of_a_worker_that_lived_when_it_was_seen() {
        let mut strays = Strays::default();
        let since = Instant::now();
        strays.note(&[pid(10)], &HashSet::from([pid(2), pid(3)]));
        let left_by = |strays: &Strays, worker| strays.left_by(pid(worker), since, &[]);
        assert_eq!(left_by(&strays, 1), [pid(10)]);
        assert_eq!((left_by(&strays, 2), left_by(&strays, 3)), (vec![], vec![]));
        strays.note(&[pid(10), pid(20)], &HashSet::from([pid(3)]));
        assert_eq!((left_by(&strays, 2), left_by(&strays, 3)), (vec![pid(20)], vec![]));
        strays.note(&[pid(20)], &HashSet::new());
        assert_eq!(left_by(&strays, 1), [pid(20)], "the other has ended");
    }

    #[test]
    #[expect(clippy::zombie_processes, reason = "reaping them is what is tested")]
    fn children_that_end_and_leave_others_without_end_are_not_waited_for() {
        let one_more = || {
            let child = std::process::Command::new("true").spawn().expect("it starts");
            let zombie = pid(child.id().cast_signed());
            let handle = ProcessHandle::open(zombie).expect("it is a child");
            assert!(handle.ends_within(Duration::from_secs(20)).expect("it is waited for"));
            vec![zombie]
        };
        let left = kill_listed(one_more, &Strays::default(), Duration::from_millis(20));
        assert_eq!(left.len(), 1, "its children are unknown");
        assert!(matches!(process::reap(left[0]), Ok(Some(_))), "it is not reaped yet");
    }

    #[test]
    fn what_cannot_be_killed_is_not_of_a_worker_that_started_after_it_was_seen() {
        let mut strays = Strays::default();
        strays.note(&[pid(10)], &HashSet::new());
        let later = Instant::now() + Duration::from_millis(1);
        assert_eq!(strays.left_by(pid(1), later, &[]), []);
        strays.note(&[pid(10)], &HashSet::new());
        assert_eq!(strays.left_by(pid(1), later, &[]), [], "only the first look counts");
    }
}
