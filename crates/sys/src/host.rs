//! Where a worker runs, and what this process can know about it.
//!
//! A pid, a session number or a lock is meaningful only within one boot of one machine, one pid namespace and one copy of a
//! home. Containers can break each of these separately: two of them can share a home and have different boot ids (nspawn,
//! LXC), different pid namespaces, different mount paths, or a copy of the same home. [`reach`] is the only function that
//! decides which facts an observer may trust:
//!
//! | reach | same | the observer may trust |
//! |---|---|---|
//! | here | machine, boot, home, pid namespace, inode of the lock | pids, sessions and locks |
//! | rebooted | machine and home, but another boot | a free lock as proof that the worker is dead |
//! | elsewhere | anything less | heartbeats only |

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::Pid;

use super::fs::{liveness_lock, owner_only, range_lock};
use super::guards;
use super::guards::Guard;
use super::process;

/// The file in the directory of workers that identifies the home.
pub const HOME_ID: &str = "home-id";

/// Identifies a home on one machine during one boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostKey {
    /// Empty if the system has none.
    pub machine_id: String,
    pub boot_id: String,
    pub home_id: String,
}

/// Identifies a file independently of its names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileId {
    pub device: u64,
    pub inode: u64,
}

impl From<Metadata> for FileId {
    fn from(meta: Metadata) -> Self {
        Self { device: meta.dev(), inode: meta.ino() }
    }
}

/// Where a worker was started, as recorded by the worker itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    pub key: HostKey,
    /// The pid namespace of its pids: the namespace's inode and the start time of its first process.
    pub pid_namespace: u64,
    /// The file that its liveness lock is on.
    pub lock: FileId,
}

impl Origin {
    /// The origin of a worker in this process, which must already hold its lock.
    pub fn of_worker(folder: &Path, worker: &str) -> io::Result<Self> {
        let Observer { machine_id, boot_id, pid_namespace } = Observer::here()?;
        let lock = liveness_lock::path(folder, worker).metadata()?.into();
        let key = HostKey { machine_id, boot_id, home_id: make_home_id(folder)? };
        Ok(Self { key, pid_namespace, lock })
    }
}

/// A process that judges workers, by where it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observer {
    pub machine_id: String,
    pub boot_id: String,
    pub pid_namespace: u64,
}

impl Observer {
    pub fn here() -> io::Result<Self> {
        Ok(Self { machine_id: machine_id(), boot_id: boot_id()?, pid_namespace: pid_namespace()? })
    }

    /// Whether this process can see the processes of a worker with this origin.
    pub fn sees_processes_of(&self, origin: &Origin) -> bool {
        self.machine_id == origin.key.machine_id
            && self.boot_id == origin.key.boot_id
            && (self.pid_namespace == origin.pid_namespace || guards::is_off(Guard::Namespaces))
    }
}

/// The facts that an observer can learn about a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Its pids, sessions and locks can be trusted.
    Here,
    /// The machine has been rebooted, unless a lock of the worker is still held: then a container has a boot id of its own.
    Rebooted,
    /// Only its heartbeat can be trusted.
    Elsewhere,
}

/// The facts that the observer may trust about a worker whose files are in `folder`, a path of the observer.
pub fn reach(observer: &Observer, origin: &Origin, folder: &Path, worker: &str) -> Reach {
    if observer.sees_processes_of(origin) {
        let has_lock = finds_lock_of(origin, folder, worker) || guards::is_off(Guard::Namespaces);
        return if has_lock { Reach::Here } else { Reach::Elsewhere };
    }
    let is_rebooted = observer.machine_id == origin.key.machine_id && observer.boot_id != origin.key.boot_id;
    let is_same_home = || home_id(folder).is_some_and(|home_id| home_id == origin.key.home_id);
    if is_rebooted && is_same_home() { Reach::Rebooted } else { Reach::Elsewhere }
}

/// Whether the lock file in this directory is the one that the worker holds, and not one of a copied home.
pub fn finds_lock_of(origin: &Origin, folder: &Path, worker: &str) -> bool {
    liveness_lock::path(folder, worker).metadata().is_ok_and(|meta| FileId::from(meta) == origin.lock)
}

/// In the environment of the processes of `queuectl selftest`: the home of a simulated machine. They take the homes of other
/// simulated machines for homes on other machines, so that one machine can stand for several.
pub const SIMULATED_MACHINE: &str = "QUEUECTL_SIMULATED_MACHINE";

fn simulated_machine() -> Option<PathBuf> {
    std::env::var_os(SIMULATED_MACHINE).map(PathBuf::from)
}

/// The path by which this process reaches a folder of a worker. A simulated machine reaches only its own home.
pub fn reached_folder(folder: &Path) -> PathBuf {
    match simulated_machine() {
        Some(home) if !folder.starts_with(&home) => home.join("out-of-reach"),
        Some(_) | None => folder.to_owned(),
    }
}

/// Empty if the system has none, like some containers. In debug builds `QUEUECTL_MACHINE_ID` lets processes on one machine
/// take each other for those of others.
fn machine_id() -> String {
    if let Some(home) = simulated_machine() {
        return home.display().to_string();
    }
    #[cfg(debug_assertions)]
    if let Ok(id) = std::env::var("QUEUECTL_MACHINE_ID") {
        return id;
    }
    fs::read_to_string("/etc/machine-id").unwrap_or_default().trim().to_owned()
}

/// A number that identifies the pid namespace of this process. The kernel reuses the inodes of namespaces, so the start
/// time of the namespace's first process is included.
fn pid_namespace() -> io::Result<u64> {
    const INODE_BITS: u32 = 32;
    let inode = fs::metadata("/proc/self/ns/pid")?.ino();
    // If other users' processes are hidden, the inode must suffice.
    let began = process::stat(Pid::INIT).map_or(0, |init| init.start_time);
    Ok((began << INODE_BITS) | (inode & u64::from(u32::MAX)))
}

/// Changes with every boot, and differs in containers that have their own.
pub fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// The name of the machine, for people: it can change at any time.
pub fn name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The id of the home that this directory of workers belongs to; `None` if no worker was ever started in it.
pub fn home_id(folder: &Path) -> Option<String> {
    fs::read_to_string(folder.join(HOME_ID)).ok().map(|id| id.trim().to_owned()).filter(|id| !id.is_empty())
}

/// The right to observe the workers of other machines for all workers of a home: a lock on the file of the home's id,
/// held until this value is dropped or its process ends.
#[derive(Debug)]
pub struct ObserverLock {
    _file: File,
}

impl ObserverLock {
    /// `None` if another worker of the home has it.
    pub fn take(folder: &Path) -> io::Result<Option<Self>> {
        let file = File::options().read(true).write(true).open(folder.join(HOME_ID))?;
        Ok(range_lock::take(&file, 0..1)?.then_some(Self { _file: file }))
    }
}

/// The id of the home, created if it is missing. It is synced to disk: a worker that found another id after a reboot would
/// have to wait for a whole lease before it recovered anything.
fn make_home_id(folder: &Path) -> io::Result<String> {
    let path = folder.join(HOME_ID);
    loop {
        if let Some(id) = home_id(folder) {
            return Ok(id);
        }
        let id = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
        // The pid is not unique, because it may also be that of a process in another container.
        let draft = folder.join(format!("{HOME_ID}.{}-{:x}", std::process::id(), fastrand::u64(..)));
        let mut file = owner_only::replace_file(&draft)?;
        file.write_all(id.as_bytes()).and_then(|()| file.sync_all())?;
        match owner_only::rename_to_free(&draft, &path) {
            // Another worker was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && home_id(folder).is_some() => {
                fs::remove_file(&draft)?;
            }
            // The existing file has no id in it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::rename(&draft, &path)?,
            result => result?,
        }
        owner_only::sync_entry(&path)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::liveness_lock::{LivenessLock, Role};

    struct Home {
        folder: tempfile::TempDir,
        origin: Origin,
        _lock: LivenessLock,
    }

    fn home() -> Home {
        let folder = tempfile::tempdir().expect("a folder");
        let lock = LivenessLock::hold(folder.path(), "w", Role::Worker).expect("a lock");
        let origin = Origin::of_worker(folder.path(), "w").expect("an origin");
        Home { folder, origin, _lock: lock }
    }

    fn reach_of(home: &Home, change: impl FnOnce(&mut Origin)) -> Reach {
        let mut origin = home.origin.clone();
        change(&mut origin);
        reach(&Observer::here().expect("an observer"), &origin, home.folder.path(), "w")
    }

    #[test]
    fn a_worker_is_here_only_if_everything_matches() {
        let home = home();
        assert_eq!(reach_of(&home, |_| {}), Reach::Here);
        assert_eq!(reach_of(&home, |origin| origin.pid_namespace += 1), Reach::Elsewhere);
        assert_eq!(reach_of(&home, |origin| origin.lock.inode += 1), Reach::Elsewhere);
        assert_eq!(reach_of(&home, |origin| origin.key.machine_id.push('x')), Reach::Elsewhere);
        assert_eq!(reach_of(&home, |origin| *origin = Origin::default()), Reach::Elsewhere);
    }

    #[test]
    fn a_missing_lock_file_proves_nothing() {
        let home = home();
        fs::remove_file(liveness_lock::path(home.folder.path(), "w")).expect("removed");
        assert_eq!(reach_of(&home, |_| {}), Reach::Elsewhere);
    }

    #[test]
    fn another_boot_counts_as_a_reboot_only_in_the_same_home() {
        let home = home();
        assert_eq!(reach_of(&home, |origin| origin.key.boot_id.push('x')), Reach::Rebooted);
        let in_another_home = |origin: &mut Origin| {
            origin.key.boot_id.push('x');
            origin.key.home_id.push('x');
        };
        assert_eq!(reach_of(&home, in_another_home), Reach::Elsewhere);
    }

    #[test]
    fn one_worker_of_a_home_observes_the_others() {
        let home = home();
        let take = || ObserverLock::take(home.folder.path()).expect("the home has an id");
        let first = take().expect("it is free");
        assert!(take().is_none());
        drop(first);
        assert!(take().is_some());
    }

    #[test]
    fn a_home_keeps_its_id() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(home_id(folder.path()), None);
        let made = make_home_id(folder.path()).expect("an id");
        assert_eq!(make_home_id(folder.path()).expect("the same"), made);
        assert_eq!(folder.path().read_dir().expect("a directory").count(), 1, "no draft is left");
        fs::write(folder.path().join(HOME_ID), "").expect("emptied");
        assert_eq!(home_id(folder.path()), None);
        assert_ne!(make_home_id(folder.path()).expect("a new one"), made);
    }
}
