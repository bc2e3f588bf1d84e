//! Processes that lost their parent and became children of ours: what commands left behind.
//!
//! A worker is a subreaper, so whatever a command leaves behind, sessions of its own included, ends up here. The kernel
//! gives it to the main thread, which starts nothing itself: so that thread's list of children is exactly what was
//! adopted, and reading it costs a few microseconds where a scan of `/proc` would cost milliseconds.
//!
//! An orphan belongs to an attempt by its session, then by its cookie, then by the lock that it inherited, then by the
//! brand of its slot. One that has shed all of them, or was never branded, is suspected of all attempts that ran when it
//! was first seen, and is killed when the last of those is over.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpgid, kill_process};

use super::survivor::{AGAIN, DEATH, Survivor, survivors};
use crate::attempt::cookie::Cookie;
use crate::attempt::slot_records::Mark;
use sys::process;
use sys::process::brand::Brand;
use sys::process::{Children, ProcessHandle};

/// How long to wait for one process to be gone before the next look.
const PATIENCE: Duration = Duration::from_millis(100);

/// Signalling and reaping happen under one lock: a pid that one thread has read must not be reaped by another, because
/// it might then be a stranger's.
#[derive(Debug)]
pub(crate) struct Adopted {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    children: Children,
    running: HashSet<Pid>,
    suspects: HashMap<Pid, HashSet<Pid>>,
    /// Orphans that were killed, with the leader of their attempt. A survivor stays assigned to the attempt that killed it.
    owners: HashMap<Pid, Pid>,
}

/// What an attempt does about processes that outlive SIGKILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// It is not over before they have ended.
    Wait,
    Leave,
}

/// An attempt whose orphans are looked for, or a command that tells a hook something. Its leader is not reaped yet, so
/// its session is still its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Family<'a> {
    pub(crate) leader: Pid,
    pub(crate) cookie: &'a Cookie,
    /// `None` where no attempts run.
    pub(crate) mark: Option<&'a Mark<'a>>,
    pub(crate) brand: Option<Brand>,
}

impl Adopted {
    pub(crate) fn new() -> io::Result<Self> {
        let (suspects, owners) = (HashMap::new(), HashMap::new());
        let state = State { children: Children::open()?, running: HashSet::new(), suspects, owners };
        Ok(Self { state: Mutex::new(state) })
    }

    pub(crate) fn began(&self, leader: Pid) {
        self.lock().running.insert(leader);
    }

    /// The orphans of this attempt that live.
    pub(crate) fn orphans_of(&self, family: Family<'_>) -> Vec<Pid> {
        self.lock().living_of(family)
    }

    /// Asks every orphan of this attempt to end that was not asked yet, as those in its leader's group were. `false` if
    /// there is none left.
    pub(crate) fn ask_to_end(&self, family: Family<'_>, asked: &mut HashSet<Pid>) -> bool {
        let mut state = self.lock();
        let living = state.living_of(family);
        for pid in &living {
            if asked.insert(*pid) && getpgid(Some(*pid)) != Ok(family.leader) {
                let _ = kill_process(*pid, Signal::TERM);
                // A stopped process acts on nothing but this.
                let _ = kill_process(*pid, Signal::CONT);
            }
        }
        !living.is_empty()
    }

    /// Kills every orphan of this attempt, and theirs, until there is none; the attempt is over. `wait` waits for one of
    /// them, for this long at most. What does not end soon is told to `outlived` once, which decides what becomes of it.
    pub(crate) fn end(
        &self,
        family: Family<'_>,
        mut wait: impl FnMut(&ProcessHandle, Duration) -> io::Result<()>,
        outlived: impl Fn(Vec<Survivor>) -> Then,
    ) {
        self.lock().running.remove(&family.leader);
        let (began, mut is_told) = (Instant::now(), false);
        while let Some(one) = self.kill_some(family) {
            let patience = if is_told { AGAIN } else { PATIENCE };
            if one.and_then(|handle| wait(&handle, patience)).is_err() {
                // Descriptors are scarce.
                std::thread::sleep(PATIENCE);
            }
            if !is_told && began.elapsed() >= DEATH {
                let living = survivors(&self.orphans_of(family), began.elapsed());
                is_told = !living.is_empty();
                if is_told && outlived(living) == Then::Leave {
                    return;
                }
            }
        }
    }

    /// Reaps orphans that ended by themselves.
    pub(crate) fn reap_ended(&self) {
        self.lock().living();
    }

    /// Kills what is there now. Gives one of them to wait for, if there was any.
    fn kill_some(&self, family: Family<'_>) -> Option<io::Result<ProcessHandle>> {
        let mut state = self.lock();
        let living = state.living_of(family);
        for pid in &living {
            let _ = kill_process(*pid, Signal::KILL);
            state.owners.insert(*pid, family.leader);
        }
        living.last().map(|pid| ProcessHandle::open(*pid))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn living_of(&mut self, family: Family<'_>) -> Vec<Pid> {
        let living = self.living();
        living.into_iter().filter(|pid| self.belongs(*pid, family)).collect()
    }

    /// The orphans that live; those that have ended are reaped on the way. What they left behind in that moment is in
    /// the next list only, so the last one is of those that have not ended.
    fn living(&mut self) -> Vec<Pid> {
        loop {
            let listed = self.children.list();
            let is_living = |pid: &&Pid| matches!(process::reap(**pid), Ok(None));
            let living: Vec<Pid> = listed.iter().filter(is_living).copied().collect();
            if living.len() == listed.len() {
                self.suspects.retain(|pid, _| living.contains(pid));
                self.owners.retain(|pid, _| living.contains(pid));
                return living;
            }
        }
    }

    fn belongs(&mut self, pid: Pid, family: Family<'_>) -> bool {
        if let Some(owner) = self.owners.get(&pid) {
            return *owner == family.leader;
        }
        let session = process::stat(pid).and_then(|stat| Pid::from_raw(stat.session));
        if let Some(leader) =
            session.filter(|leader| *leader == family.leader || self.running.contains(leader))
        {
            return leader == family.leader;
        }
        let environment = process::environment(pid);
        if family.cookie.is_in(&environment) {
            return true;
        }
        // Another attempt's, which will take care of it.
        if family.cookie.of_worker(&environment) {
            return false;
        }
        if let Some(is_ours) = family.mark.and_then(|mark| mark.is_on(pid)) {
            return is_ours;
        }
        // Where this slot's commands bear a brand, those of the others bear theirs. A worker in one of them adds none.
        if let (Some(own), Some(borne)) = (family.brand, Brand::of(pid)) {
            return own == borne;
        }
        self.is_last_suspicion(pid, family.leader)
    }

    fn is_last_suspicion(&mut self, pid: Pid, leader: Pid) -> bool {
        let running = &self.running;
        let suspected =
            self.suspects.entry(pid).or_insert_with(|| running.iter().copied().chain([leader]).collect());
        suspected.retain(|other| running.contains(other));
        suspected.is_empty()
    }
}
