//! Finds the group that was delegated to this pool, and sets it up.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat, getxattr};

use super::Controllers;
use super::group::{Bounds, Group, write};
use crate::process::user;

/// The group of the supervisor and the workers.
const LEAF: &str = "queuectl";
/// The prefix of the groups of attempts.
const JOB_PREFIX: &str = "queuectl-job-";
/// The attribute with which systemd marks a delegated group; only root can read it.
const DELEGATION_MARK: &str = "trusted.delegate";
/// The suffixes of groups that systemd manages.
const SYSTEMD_SUFFIXES: [&str; 3] = [".service", ".scope", ".slice"];

/// Why groups cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Obstacle {
    #[error("cgroup v2 is not mounted")]
    NotMounted,
    #[error("workers run in the root cgroup")]
    Root,
    #[error("cgroup {} has no controller for memory, cpu or pids", .0.display())]
    NoControllers(PathBuf),
    #[error("cgroup {} is not delegated to this user", .0.display())]
    NotDelegated(PathBuf),
    #[error("cgroup {} contains other processes", .0.display())]
    Shared(PathBuf),
    #[error("cgroup {} could not be set up", path.display())]
    Refused { path: PathBuf, source: io::Error },
}

/// The group that was delegated to this worker's pool, as its supervisor has set it up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelegatedGroup {
    folder: PathBuf,
    enabled: Controllers,
}

impl DelegatedGroup {
    pub fn find() -> Result<Self, Obstacle> {
        Self::above(&own()?)
    }

    /// The delegated group of a worker that is in the group `own`.
    pub(super) fn above(own: &Path) -> Result<Self, Obstacle> {
        let folder = own.parent().filter(|_| own.ends_with(LEAF));
        let folder = folder.ok_or_else(|| Obstacle::NotDelegated(own.to_owned()))?;
        let enabled = Controllers::parse(&read(&folder.join("cgroup.subtree_control")));
        if enabled.is_empty() {
            return Err(Obstacle::NoControllers(folder.to_owned()));
        }
        Ok(Self { folder: folder.to_owned(), enabled })
    }

    pub fn enabled(&self) -> Controllers {
        self.enabled
    }

    /// Creates a group for an attempt; the name must be unique.
    pub fn make(&self, name: &str, bounds: Bounds) -> io::Result<Group> {
        Group::make(self.folder.join(format!("{JOB_PREFIX}{name}")), bounds)
    }

    /// Kills and removes leftover groups whose names begin with this prefix. Groups that cannot be emptied stay.
    pub fn remove_stale(&self, prefix: &str) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            if name
                .to_str()
                .and_then(|name| name.strip_prefix(JOB_PREFIX))
                .is_some_and(|name| name.starts_with(prefix))
            {
                let _ = write(&entry.path(), "cgroup.kill", "1");
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

/// Sets up the group of this process, which must be alone in it, so that its children can create groups. To be called
/// once, before there are children.
pub fn prepare() -> Result<(), Obstacle> {
    let own = own()?;
    // Started by a job of another pool, or for a second time: the group is set up, and is not ours to change.
    if own.ends_with(LEAF) {
        return Ok(());
    }
    let controllers = check(&own)?;
    let refused = |source| Obstacle::Refused { path: own.clone(), source };
    divide(&own, controllers).map_err(refused)
}

/// Whether [`prepare`] would succeed if this process were a supervisor.
pub fn can_prepare() -> Result<Controllers, Obstacle> {
    let own = own()?;
    if own.ends_with(LEAF) {
        return DelegatedGroup::above(&own).map(|delegated| delegated.enabled);
    }
    check(&own)
}

/// Whether a group can be set up, and with which controllers. Changes nothing.
pub(super) fn check(own: &Path) -> Result<Controllers, Obstacle> {
    // The root group does not have this file.
    if !own.join("cgroup.events").exists() {
        return Err(Obstacle::Root);
    }
    let controllers = Controllers::parse(&read(&own.join("cgroup.controllers")));
    if controllers.is_empty() {
        return Err(Obstacle::NoControllers(own.to_owned()));
    }
    if !is_delegated(own) {
        return Err(Obstacle::NotDelegated(own.to_owned()));
    }
    let me = std::process::id().to_string();
    if read(&own.join("cgroup.procs")).split_ascii_whitespace().any(|pid| pid != me) {
        return Err(Obstacle::Shared(own.to_owned()));
    }
    Ok(controllers)
}

/// Whether the group was delegated to this user. Other users can write only to delegated groups. Root can write to all of
/// them and must check the mark.
fn is_delegated(own: &Path) -> bool {
    let may_write = |path: &Path| accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok();
    if !(may_write(own) && may_write(&own.join("cgroup.subtree_control"))) {
        return false;
    }
    let name = own.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_of_systemd = SYSTEMD_SUFFIXES.iter().any(|suffix| name.ends_with(suffix));
    user::number() != user::ROOT || !is_of_systemd || has_delegation_mark(own)
}

fn has_delegation_mark(own: &Path) -> bool {
    let mut value = [0; 8];
    getxattr(own, DELEGATION_MARK, &mut value).is_ok_and(|length| value.starts_with(b"1") && length > 0)
}

fn divide(own: &Path, controllers: Controllers) -> io::Result<()> {
    let leaf = own.join(LEAF);
    match fs::create_dir(&leaf) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    write(&leaf, "cgroup.procs", "0")?;
    let enabled = write(own, "cgroup.subtree_control", &controllers.to_enable());
    if enabled.is_err() {
        // Undo the move.
        let _ = write(own, "cgroup.procs", "0");
        let _ = fs::remove_dir(&leaf);
    }
    enabled
}

/// The directory of the group that this process is in.
fn own() -> Result<PathBuf, Obstacle> {
    let (mounts, groups) = (read(Path::new("/proc/self/mountinfo")), read(Path::new("/proc/self/cgroup")));
    folder(&mounts, &groups).ok_or(Obstacle::NotMounted)
}

/// The directory, from the kernel's lists of a process's mounts and groups.
pub(super) fn folder(mounts: &str, groups: &str) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let (root, point) = mounts.lines().find_map(mount)?;
    let below = Path::new(path).strip_prefix(root).ok()?;
    Some(Path::new(point).join(below))
}

/// The part of the hierarchy that is mounted, and its mount point.
fn mount(line: &str) -> Option<(&str, &str)> {
    let (mount, filesystem) = line.split_once(" - ")?;
    filesystem.starts_with("cgroup2 ").then_some(())?;
    let mut fields = mount.split(' ').skip(3);
    Some((fields.next()?, fields.next()?))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
