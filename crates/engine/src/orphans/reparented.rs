//! Orphans: processes that commands left and that became children of this worker.
//!
//! A worker is a subreaper, so it becomes the parent of every process that a command leaves, even one in a session of
//! its own. The kernel makes it a child of the main thread, which spawns nothing itself: so that thread's list of
//! children is exactly the list of orphans, and reading it costs a few microseconds where a scan of `/proc` would cost
//! milliseconds.
//!
//! An orphan is assigned to an attempt by the group of its slot. One that is in no group of this worker is assigned by its
//! session, then by its cookie, then by the lock that it inherited. If it has shed all of them, it could belong to any
//! attempt that ran when it was first seen, and is killed when the last of those has ended.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpgid, kill_process};

use super::containment::SlotGroup;
use super::survivor::{KILL_RETRY_INTERVAL, KILL_TIMEOUT, Survivor, survivors};
use crate::attempt::cookie::Cookie;
use crate::attempt::slot_records::RecordLock;
use sys::cgroup::Group;
use sys::process;
use sys::process::{Children, ProcessHandle};

/// How long to wait for one killed process before listing orphans again.
const ORPHAN_WAIT: Duration = Duration::from_millis(100);

/// Signalling and reaping happen under one lock: a pid that one thread has read must not be reaped by another, because
/// the kernel could then reuse it for an unrelated process.
#[derive(Debug)]
pub(crate) struct Orphans {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    children: Children,
    running: HashSet<Pid>,
    possible_leaders: HashMap<Pid, HashSet<Pid>>,
    /// The leader of the attempt that killed an orphan. A survivor stays assigned to that attempt.
    owners: HashMap<Pid, Pid>,
}

/// How to treat processes that survive SIGKILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SurvivorPolicy {
    /// Wait until they have ended.
    Wait,
    Leave,
}

/// Selects the orphans of one attempt or hook process. Its leader is not reaped yet, so its session id is not reused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OrphanFilter<'a> {
    pub(crate) leader: Pid,
    pub(crate) cookie: Cookie<'a>,
    /// `None` if this process runs no attempts.
    pub(crate) record_lock: Option<&'a RecordLock<'a>>,
    /// `None` if it has no group.
    pub(crate) group: Option<&'a SlotGroup<'a>>,
}

impl<'a> OrphanFilter<'a> {
    /// The control group that it was started in.
    pub(crate) fn group(self) -> Option<&'a Group> {
        self.group?.group()
    }
}

/// What is left of an attempt after a round of killing.
enum Left<'a> {
    /// One of its orphans, to wait for.
    Orphan(io::Result<ProcessHandle>),
    /// Only processes that are not children of this worker, or not any more.
    InGroup(&'a Group),
}

impl Orphans {
    pub(crate) fn new() -> io::Result<Self> {
        let (possible_leaders, owners) = (HashMap::new(), HashMap::new());
        let state = State { children: Children::open()?, running: HashSet::new(), possible_leaders, owners };
        Ok(Self { state: Mutex::new(state) })
    }

    pub(crate) fn add_leader(&self, leader: Pid) {
        self.lock().running.insert(leader);
    }

    /// The living orphans of this attempt.
    pub(crate) fn list(&self, filter: OrphanFilter<'_>) -> Vec<Pid> {
        self.lock().living_of(filter)
    }

    /// Sends a signal to every orphan of this attempt that has not had it yet; those in the leader's group have. Returns
    /// `false` if none is left.
    pub(crate) fn signal(
        &self,
        filter: OrphanFilter<'_>,
        signal: Signal,
        signalled: &mut HashSet<Pid>,
    ) -> bool {
        let mut state = self.lock();
        let living = state.living_of(filter);
        for pid in &living {
            if signalled.insert(*pid) && getpgid(Some(*pid)) != Ok(filter.leader) {
                let _ = kill_process(*pid, signal);
                // A stopped process does not handle the signal before SIGCONT.
                let _ = kill_process(*pid, Signal::CONT);
            }
        }
        !living.is_empty()
    }

    /// Kills the orphans of this attempt, and their orphans, until none is left. `wait` waits for one of them up to a
    /// timeout. Processes that survive are passed to `on_survivors` once, which decides what to do about them.
    pub(crate) fn kill_all(
        &self,
        filter: OrphanFilter<'_>,
        mut wait: impl FnMut(&ProcessHandle, Duration) -> io::Result<()>,
        on_survivors: impl Fn(Vec<Survivor>) -> SurvivorPolicy,
    ) {
        self.lock().running.remove(&filter.leader);
        let (began, mut is_reported) = (Instant::now(), false);
        while let Some(left) = self.kill_some(filter) {
            let timeout = if is_reported { KILL_RETRY_INTERVAL } else { ORPHAN_WAIT };
            match left {
                Left::Orphan(handle) => {
                    if handle.and_then(|handle| wait(&handle, timeout)).is_err() {
                        // The process may be out of descriptors.
                        std::thread::sleep(ORPHAN_WAIT);
                    }
                }
                Left::InGroup(group) => _ = group.empties_within(timeout),
            }
            if !is_reported && began.elapsed() >= KILL_TIMEOUT {
                let in_group = filter.group().map(Group::pids).unwrap_or_default();
                let pids: HashSet<Pid> = self.list(filter).into_iter().chain(in_group).collect();
                let living = survivors(pids, began.elapsed());
                is_reported = !living.is_empty();
                if is_reported && on_survivors(living) == SurvivorPolicy::Leave {
                    return;
                }
            }
        }
    }

    /// Reaps orphans that have ended by themselves.
    pub(crate) fn reap_ended(&self) {
        self.lock().living();
    }

    /// Kills the current orphans, and returns what to wait for, if there are any.
    fn kill_some<'a>(&self, filter: OrphanFilter<'a>) -> Option<Left<'a>> {
        let group = filter.group().filter(|group| group.is_populated());
        if let Some(group) = group {
            group.kill();
        }
        let mut state = self.lock();
        let living = state.living_of(filter);
        for pid in &living {
            let _ = kill_process(*pid, Signal::KILL);
            state.owners.insert(*pid, filter.leader);
        }
        living.last().map(|pid| Left::Orphan(ProcessHandle::open(*pid))).or(group.map(Left::InGroup))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn living_of(&mut self, filter: OrphanFilter<'_>) -> Vec<Pid> {
        let living = self.living();
        living.into_iter().filter(|pid| self.belongs(*pid, filter)).collect()
    }

    /// Reaps ended orphans and returns the living ones. The children of an orphan that has just ended appear only in
    /// the next list, so the list is read again until none has ended.
    fn living(&mut self) -> Vec<Pid> {
        loop {
            let listed = self.children.list();
            let is_living = |pid: &&Pid| matches!(process::reap(**pid), Ok(None));
            let living: Vec<Pid> = listed.iter().filter(is_living).copied().collect();
            if living.len() == listed.len() {
                self.possible_leaders.retain(|pid, _| living.contains(pid));
                self.owners.retain(|pid, _| living.contains(pid));
                return living;
            }
        }
    }

    fn belongs(&mut self, pid: Pid, filter: OrphanFilter<'_>) -> bool {
        if let Some(owner) = self.owners.get(&pid) {
            return *owner == filter.leader;
        }
        if let Some(is_ours) = filter.group.and_then(|group| group.has(pid)) {
            return is_ours;
        }
        let session = process::stat(pid).and_then(|stat| Pid::from_raw(stat.session));
        if let Some(leader) =
            session.filter(|leader| *leader == filter.leader || self.running.contains(leader))
        {
            return leader == filter.leader;
        }
        let environment = process::environment(pid);
        if filter.cookie.is_in(&environment) {
            return true;
        }
        // It belongs to another attempt of this worker, which will kill it.
        if filter.cookie.of_worker(&environment) {
            return false;
        }
        if let Some(is_ours) = filter.record_lock.and_then(|record_lock| record_lock.held_by(pid)) {
            return is_ours;
        }
        self.all_candidates_ended(pid, filter.leader)
    }

    fn all_candidates_ended(&mut self, pid: Pid, leader: Pid) -> bool {
        let running = &self.running;
        let possible_leaders = self
            .possible_leaders
            .entry(pid)
            .or_insert_with(|| running.iter().copied().chain([leader]).collect());
        possible_leaders.retain(|other| running.contains(other));
        possible_leaders.is_empty()
    }
}
