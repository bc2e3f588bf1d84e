//! Finding the group that was delegated to us, and arranging ourselves in it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat, getxattr};

use super::Controllers;
use super::group::{Bounds, Group, write};
use crate::process::user;

/// Where supervisor and workers are.
const LEAF: &str = "queuectl";
/// What the names of the groups of attempts begin with.
const JOB: &str = "queuectl-job-";
/// How systemd marks what it has delegated; only root can read it.
const MARK: &str = "trusted.delegate";
/// Groups that systemd looks after.
const OF_SYSTEMD: [&str; 3] = [".service", ".scope", ".slice"];

/// Why there are no groups to be had.
#[derive(Debug, thiserror::Error)]
pub enum Obstacle {
    #[error("no cgroup v2 is mounted")]
    NotMounted,
    #[error("workers run in the root cgroup")]
    Root,
    #[error("cgroup {} has no controller for memory, cpu or pids", .0.display())]
    NoControllers(PathBuf),
    #[error("cgroup {} is not delegated to this user", .0.display())]
    NotDelegated(PathBuf),
    #[error("cgroup {} has other processes in it too", .0.display())]
    Shared(PathBuf),
    #[error("cgroup {} could not be divided", path.display())]
    Refused { path: PathBuf, source: io::Error },
}

/// The group that was delegated to the pool of this worker, arranged by its supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegated {
    folder: PathBuf,
    enabled: Controllers,
}

impl Delegated {
    pub fn find() -> Result<Self, Obstacle> {
        Self::above(&own()?)
    }

    /// What a worker whose group is this one has.
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

    /// A new group for an attempt; the name is nobody else's.
    pub fn make(&self, name: &str, bounds: Bounds) -> io::Result<Group> {
        Group::make(self.folder.join(format!("{JOB}{name}")), bounds)
    }

    /// Removes groups that were left behind by somebody whose names begin like this. Those that are in use stay.
    pub fn tidy(&self, prefix: &str) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            if name
                .to_str()
                .and_then(|name| name.strip_prefix(JOB))
                .is_some_and(|name| name.starts_with(prefix))
            {
                let _ = write(&entry.path(), "cgroup.kill", "1");
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

/// Divides the group of this process, which is alone in it, so that its children can make groups. To be called once,
/// before there are any.
pub fn settle_in() -> Result<(), Obstacle> {
    let own = own()?;
    // Started by a job of another pool, or a second time: all is arranged, and not ours to change.
    if own.ends_with(LEAF) {
        return Ok(());
    }
    let controllers = check(&own)?;
    let refused = |source| Obstacle::Refused { path: own.clone(), source };
    divide(&own, controllers).map_err(refused)
}

/// What [`settle_in`] would do if this process were a supervisor.
pub fn could_settle_in() -> Result<Controllers, Obstacle> {
    let own = own()?;
    if own.ends_with(LEAF) {
        return Delegated::above(&own).map(|delegated| delegated.enabled);
    }
    check(&own)
}

/// Whether a group may be divided, and by what. Nothing is changed.
pub(super) fn check(own: &Path) -> Result<Controllers, Obstacle> {
    // The root has no such file.
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

/// Others may write only what they were given. Root may write everything, and must look for the mark.
fn is_delegated(own: &Path) -> bool {
    let may_write = |path: &Path| accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok();
    if !(may_write(own) && may_write(&own.join("cgroup.subtree_control"))) {
        return false;
    }
    let name = own.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_of_systemd = OF_SYSTEMD.iter().any(|suffix| name.ends_with(suffix));
    user::number() != user::ROOT || !is_of_systemd || has_mark(own)
}

fn has_mark(own: &Path) -> bool {
    let mut value = [0; 8];
    getxattr(own, MARK, &mut value).is_ok_and(|length| value.starts_with(b"1") && length > 0)
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
        // As it was before.
        let _ = write(own, "cgroup.procs", "0");
        let _ = fs::remove_dir(&leaf);
    }
    enabled
}

/// The folder of the group that this process is in.
fn own() -> Result<PathBuf, Obstacle> {
    let (mounts, groups) = (read(Path::new("/proc/self/mountinfo")), read(Path::new("/proc/self/cgroup")));
    folder(&mounts, &groups).ok_or(Obstacle::NotMounted)
}

/// From what the kernel says of the mounts of a process, and of its groups.
pub(super) fn folder(mounts: &str, groups: &str) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let (root, point) = mounts.lines().find_map(mount)?;
    let below = Path::new(path).strip_prefix(root).ok()?;
    Some(Path::new(point).join(below))
}

/// The part of the hierarchy that is mounted, and where.
fn mount(line: &str) -> Option<(&str, &str)> {
    let (mount, filesystem) = line.split_once(" - ")?;
    filesystem.starts_with("cgroup2 ").then_some(())?;
    let mut fields = mount.split(' ').skip(3);
    Some((fields.next()?, fields.next()?))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
