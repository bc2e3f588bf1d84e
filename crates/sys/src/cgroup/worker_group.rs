//! The group of a worker, which contains the groups of its slots.
//!
//! Its name contains the id of the worker, which is never used again. So the directory alone says whose processes it
//! contains, and a process that knows the directory of a dead worker can kill what the worker left.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::fs::statfs;
use rustix::process::Pid;

use super::delegation::{Place, may_write, own, path_in, set_up_above};
use super::group::{Bounds, Group, remove_tree, write};
use super::{Controllers, Obstacle};
use crate::guards;
use crate::guards::Guard;
use crate::process;
use crate::process::cstr_array::CstrArray;
use crate::process::spawn::{Limits, ProcessScope, Spawn, clone3, spawn};

const PREFIX: &str = "queuectl-";
/// The type of a mounted hierarchy, version 2.
const CGROUP2: i64 = 0x6367_7270;

/// How long to wait for killed processes.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// Where a worker that is started by this process, or is this process, makes its group.
#[derive(Debug)]
pub struct Site {
    parent: Place,
    /// The controllers that the groups of slots can use for limits, or why they cannot.
    controllers: Result<Controllers, Obstacle>,
}

/// Whether a worker that is started by this process can run commands in groups. Makes a group, and removes it.
pub fn can_contain() -> Result<(), Obstacle> {
    /// Threads may ask at the same time.
    static PROBES: AtomicU32 = AtomicU32::new(0);
    let number = PROBES.fetch_add(1, Ordering::Relaxed);
    Site::find()?.make(&format!("probe-{}-{number}", std::process::id())).map(drop)
}

impl Site {
    /// Changes nothing.
    pub fn find() -> Result<Self, Obstacle> {
        if guards::is_off(Guard::Containment) {
            return Err(Obstacle::SwitchedOff);
        }
        if !clone3::is_allowed() {
            return Err(Obstacle::NoClone3);
        }
        let own = own()?;
        let (parent, controllers) = match set_up_above(&own) {
            Ok((above, enabled)) => (above, Ok(enabled)),
            Err(obstacle) => (own, Err(obstacle)),
        };
        Ok(Self { controllers, ..Self::below(parent)? })
    }

    pub(super) fn below(parent: Place) -> Result<Self, Obstacle> {
        let folder = &parent.folder;
        // A process enters a group by leave of the nearest group above both that and its own.
        if !(may_write(folder) && may_write(&folder.join("cgroup.procs"))) {
            return Err(Obstacle::NotDelegated(folder.clone()));
        }
        // The root group has neither of these files.
        if folder.join("cgroup.events").exists() && !folder.join("cgroup.kill").exists() {
            return Err(Obstacle::NoKill);
        }
        let controllers = Err(Obstacle::NoControllers(folder.clone()));
        Ok(Self { parent, controllers })
    }

    /// The directory of a worker's group.
    pub fn folder_of(&self, worker: &str) -> PathBuf {
        self.parent.below(&name(worker)).folder
    }

    /// Makes the group of a worker.
    pub fn make(self, worker: &str) -> Result<WorkerGroup, Obstacle> {
        let place = self.parent.below(&name(worker));
        let refused = |source| Obstacle::Refused { path: place.folder.clone(), source };
        fs::create_dir(&place.folder).map_err(refused)?;
        // From here on it is removed on failure.
        let mut group = WorkerGroup { place: place.clone(), controllers: self.controllers };
        if !place.folder.join("cgroup.kill").exists() {
            return Err(Obstacle::NoKill);
        }
        if is_killed_at_start(&group).map_err(refused)? {
            return Err(Obstacle::KillsAtStart);
        }
        if let Ok(enabled) = group.controllers
            && let Err(error) = write(&place.folder, "cgroup.subtree_control", &enabled.to_enable())
        {
            group.controllers = Err(refused(error));
        }
        Ok(group)
    }
}

/// Whether the kernel kills every process that is started in a new group, as it does if the group of this process was ever
/// killed ([`Group::was_killed`]). Starts a process that ends before it executes a program.
fn is_killed_at_start(worker: &WorkerGroup) -> io::Result<bool> {
    let trial = worker.make("trial", Bounds::default())?;
    let started = spawn(&Spawn {
        program: c"/",
        // The kernel complains about a program without any.
        argv: &[c"/".to_owned()],
        envp: &CstrArray::default(),
        cwd: None,
        scope: ProcessScope::Session,
        descriptors: &[],
        limits: Limits::default(),
        group: Some(trial.as_fd()),
        pid_record: None,
    });
    match started {
        Ok(killed) => {
            killed.handle.ends_within(END_TIMEOUT)?;
            process::reap(killed.pid)?;
            Ok(true)
        }
        // A directory cannot be executed.
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The group of a worker. Dropping it removes the group if no process is left in it.
#[derive(Debug)]
pub struct WorkerGroup {
    place: Place,
    controllers: Result<Controllers, Obstacle>,
}

impl WorkerGroup {
    /// The controllers that limit the groups of slots, or why there are none.
    pub fn controllers(&self) -> Result<Controllers, &Obstacle> {
        self.controllers.as_ref().copied()
    }

    #[cfg(test)]
    pub(super) fn folder_of_slot(&self, name: &str) -> PathBuf {
        self.place.below(name).folder
    }

    /// Makes the group of a slot; the name must be unique within the worker.
    pub fn make(&self, name: &str, bounds: Bounds) -> io::Result<Group> {
        let folder = self.place.below(name).folder;
        match Group::make(&folder, bounds) {
            // Another program has removed the group of the worker while no command ran.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir(&self.place.folder)?;
                if let Ok(enabled) = self.controllers {
                    write(&self.place.folder, "cgroup.subtree_control", &enabled.to_enable())?;
                }
                Group::make(&folder, bounds)
            }
            result => result,
        }
    }

    /// The name of the slot's group in which this process is; `None` if it is in none of this worker's groups.
    pub fn slot_of(&self, pid: Pid) -> Option<String> {
        let groups = fs::read_to_string(format!("/proc/{}/cgroup", pid.as_raw_pid())).ok()?;
        let inner = path_in(&groups)?.strip_prefix(&self.place.path).ok()?;
        Some(inner.components().next()?.as_os_str().to_str()?.to_owned())
    }
}

impl Drop for WorkerGroup {
    fn drop(&mut self) {
        let _ = remove_tree(&self.place.folder);
    }
}

/// Opens the group that this worker, which is dead, made in this directory; `None` if there is none (any more). The
/// caller must know that the worker ran on this boot of this machine.
pub fn open_of_worker(folder: &Path, worker: &str) -> Option<Group> {
    let is_its = folder.file_name().is_some_and(|found| found == name(worker).as_str());
    // In another mount namespace the path may lead to an unrelated directory.
    let is_group = || statfs(folder).is_ok_and(|found| found.f_type == CGROUP2);
    if !is_its || !is_group() {
        return None;
    }
    Group::open(folder.to_owned()).ok()
}

/// The extension of the files that record the directories of groups, in the directory of the workers' files.
const RECORD: &str = "cgroup";

/// The file that records where the group of a worker is.
pub fn record_of_worker(folder: &Path, worker: &str) -> PathBuf {
    folder.join(format!("{worker}.{RECORD}"))
}

/// Kills and removes all groups that are recorded in this directory: for a home that is about to be deleted.
pub fn end_recorded(folder: &Path) {
    let records = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    for record in records.filter(|path| path.extension().is_some_and(|extension| extension == RECORD)) {
        let worker = record.file_stem().and_then(|stem| stem.to_str());
        if let (Some(worker), Ok(recorded)) = (worker, fs::read_to_string(&record))
            && let Some(group) = open_of_worker(Path::new(&recorded), worker)
        {
            group.kill();
            group.empties_within(END_TIMEOUT);
        }
    }
}

fn name(worker: &str) -> String {
    format!("{PREFIX}{worker}")
}
