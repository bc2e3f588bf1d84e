//! Containment: every command runs in the control group of its slot, and without rights over other groups cannot leave it.
//!
//! The group says whether a process of an attempt is left, and kills all of them at once. A worker makes a group for itself,
//! and in it one for each slot. It records the directory in `workers/ID.cgroup` *before* it makes the group, so that other
//! processes find and remove the group when worker and supervisor have died.
//!
//! Where a worker cannot make groups, orphans are found by session, lock and cookie only. These three are searched in any
//! case: a process with rights over other groups can move to one of them (`systemd-run --scope`, `su -`).

use std::fs;
use std::io;
use std::io::Write;
use std::path::{Path, PathBuf};

use rustix::process::Pid;

use sys::cgroup;
use sys::cgroup::{Bounds, Group, Obstacle, Site, WorkerGroup};
use sys::fs::owner_only;

/// The group of this worker, or why it has none.
pub(crate) type Containment = Result<WorkerGroup, Obstacle>;

/// Makes the group of this worker. Fails only if it cannot be recorded.
pub(crate) fn make(folder: &Path, worker: &str) -> io::Result<Containment> {
    let site = match Site::find() {
        Ok(site) => site,
        Err(obstacle) => return Ok(Err(obstacle)),
    };
    let record = cgroup::record_of_worker(folder, worker);
    let mut file = owner_only::replace_file(&record)?;
    file.write_all(site.folder_of(worker).as_os_str().as_encoded_bytes())?;
    Ok(site.make(worker).inspect_err(|_| _ = fs::remove_file(&record)))
}

/// The group that a dead worker left; `None` if there is none. The worker must have run on this boot of this machine.
pub(crate) fn open(folder: &Path, worker: &str) -> Option<Group> {
    let recorded = fs::read_to_string(cgroup::record_of_worker(folder, worker)).map(PathBuf::from);
    // Of a home that was deleted no record is left; but a worker has the same site as its supervisor.
    let found = recorded.ok().or_else(|| Some(Site::find().ok()?.folder_of(worker)))?;
    cgroup::open_of_worker(&found, worker)
}

/// Removes the group of a worker that has ended, and its record. Returns `false` if a process is left in it.
pub(crate) fn remove(folder: &Path, worker: &str) -> bool {
    let record = cgroup::record_of_worker(folder, worker);
    let Ok(recorded) = fs::read_to_string(&record) else {
        return true;
    };
    drop(open(folder, worker));
    if Path::new(&recorded).exists() {
        return false;
    }
    let _ = fs::remove_file(record);
    true
}

/// The group of one slot, or of one hook process. It is kept for the next attempt.
#[derive(Debug)]
pub(crate) struct SlotGroup<'a> {
    worker: &'a WorkerGroup,
    name: String,
    group: Option<Group>,
    is_limited: bool,
}

impl<'a> SlotGroup<'a> {
    /// `None` if this worker cannot make groups. The name must be unique within the worker.
    pub(crate) fn of(containment: &'a Containment, name: String) -> Option<Self> {
        let worker = containment.as_ref().ok()?;
        Some(Self { worker, name, group: None, is_limited: false })
    }

    /// Makes the group, unless it is there and can be used again.
    pub(crate) fn prepare(&mut self, bounds: Bounds) -> io::Result<()> {
        // An attempt with limits needs a new one, because the kernel counts what earlier attempts used.
        let is_limited = self.is_limited || bounds != Bounds::default();
        if is_limited || self.group.as_ref().is_none_or(|group| group.was_killed() || group.is_frozen()) {
            self.renew(bounds)?;
        }
        Ok(())
    }

    /// Makes the group again: its directory was removed by another program, or divided by a command.
    pub(crate) fn renew(&mut self, bounds: Bounds) -> io::Result<()> {
        // First, because the new one has the same name.
        self.release();
        self.group = Some(self.worker.make(&self.name, bounds)?);
        self.is_limited = bounds != Bounds::default();
        Ok(())
    }

    /// Removes the group.
    pub(crate) fn release(&mut self) {
        self.group = None;
    }

    pub(crate) fn group(&self) -> Option<&Group> {
        self.group.as_ref()
    }

    /// Whether a process is in this group; `None` if it is in no group of this worker.
    pub(crate) fn has(&self, pid: Pid) -> Option<bool> {
        self.worker.slot_of(pid).map(|slot| slot == self.name)
    }
}
