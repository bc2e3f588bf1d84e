//! Finds the group of this process, and sets it up for limits if it was delegated to this pool.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat, getxattr};

use super::Controllers;
use super::group::write;
use crate::process::user;

/// The group of the supervisor and the workers.
const LEAF: &str = "queuectl";
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
    #[error("cgroup {} could not be set up: {source}", path.display())]
    Refused { path: PathBuf, source: io::Error },
    #[error("the kernel has no cgroup.kill")]
    NoKill,
    #[error("the kernel or a sandbox does not allow clone3(2)")]
    NoClone3,
    #[error("the kernel kills every process that is started in a new cgroup here")]
    KillsAtStart,
    #[error("switched off by a test")]
    SwitchedOff,
}

/// A group: its directory, and its path in `/proc/PID/cgroup`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) folder: PathBuf,
    pub(super) path: PathBuf,
}

impl Place {
    pub(super) fn below(&self, name: &str) -> Self {
        Self { folder: self.folder.join(name), path: self.path.join(name) }
    }

    fn above(&self) -> Option<Self> {
        Some(Self { folder: self.folder.parent()?.to_owned(), path: self.path.parent()?.to_owned() })
    }
}

/// The group that a supervisor has set up for a worker in the group `own`, and the controllers that it enabled.
pub(super) fn set_up_above(own: &Place) -> Result<(Place, Controllers), Obstacle> {
    let above = own.above().filter(|_| own.folder.ends_with(LEAF));
    let above = above.ok_or_else(|| Obstacle::NotDelegated(own.folder.clone()))?;
    let enabled = Controllers::parse(&read(&above.folder.join("cgroup.subtree_control")));
    if enabled.is_empty() {
        return Err(Obstacle::NoControllers(above.folder));
    }
    Ok((above, enabled))
}

/// Sets up the group of this process, which must be alone in it, so that its children can create groups. To be called
/// once, before there are children.
pub fn prepare() -> Result<(), Obstacle> {
    let own = own()?.folder;
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
    if own.folder.ends_with(LEAF) {
        return set_up_above(&own).map(|(_, enabled)| enabled);
    }
    check(&own.folder)
}

/// Whether a group can be set up for limits, and with which controllers. Changes nothing.
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
    if !(may_write(own) && may_write(&own.join("cgroup.subtree_control"))) {
        return false;
    }
    let name = own.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_of_systemd = SYSTEMD_SUFFIXES.iter().any(|suffix| name.ends_with(suffix));
    user::number() != user::ROOT || !is_of_systemd || has_delegation_mark(own)
}

pub(super) fn may_write(path: &Path) -> bool {
    accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
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

/// The group that this process is in.
pub(super) fn own() -> Result<Place, Obstacle> {
    let (mounts, groups) = (read(Path::new("/proc/self/mountinfo")), read(Path::new("/proc/self/cgroup")));
    place(&mounts, &groups).ok_or(Obstacle::NotMounted)
}

/// The group, from the kernel's lists of a process's mounts and groups.
pub(super) fn place(mounts: &str, groups: &str) -> Option<Place> {
    let path = path_in(groups)?;
    let (root, point) = mounts.lines().find_map(mount)?;
    let below = path.strip_prefix(root).ok()?;
    Some(Place { folder: Path::new(point).join(below), path: path.to_owned() })
}

/// The path of a process's group, from its list of groups.
pub(super) fn path_in(groups: &str) -> Option<&Path> {
    groups.lines().find_map(|line| line.strip_prefix("0::")).map(Path::new)
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
