//! Where a worker runs, and how much this process can know about it from here.
//!
//! A pid, a session number or a lock means something only within one boot of one machine, one pid namespace and one copy
//! of a home. Containers break each of these alone: two of them can share a home and have different boot ids (nspawn,
//! LXC), different pid namespaces, different mount paths, or a copy of the same home. [`reach`] is the one place that
//! decides what an observer may believe about a worker:
//!
//! | reach | same | the observer may believe |
//! |---|---|---|
//! | here | machine, boot, home, pid namespace, inode of the lock | pids, sessions and locks |
//! | rebooted | machine and home, but another boot | that a free lock is a dead worker |
//! | elsewhere | anything less | heartbeats only |

use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::Pid;

use super::fs::{liveness_lock, owner_only};
use super::guards;
use super::guards::Guard;
use super::process;

/// The file in the folder of workers that tells one home from another.
pub const HOME_ID: &str = "home-id";

/// A home on a machine that was booted once.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostKey {
    /// Empty where the system has none.
    pub machine_id: String,
    pub boot_id: String,
    pub home_id: String,
}

/// A file, whatever its names are.
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

/// Where a worker was started, as it wrote it down itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    pub key: HostKey,
    /// The pid namespace in which its pids mean something: its inode and when its first process began.
    pub pid_namespace: u64,
    /// The file that its liveness lock is on.
    pub lock: FileId,
}

impl Origin {
    /// That of a worker in this process, whose lock is already held.
    pub fn of_worker(folder: &Path, worker: &str) -> io::Result<Self> {
        let Vantage { machine_id, boot_id, pid_namespace } = Vantage::here()?;
        let lock = liveness_lock::path(folder, worker).metadata()?.into();
        let key = HostKey { machine_id, boot_id, home_id: make_home_id(folder)? };
        Ok(Self { key, pid_namespace, lock })
    }
}

/// Where an observer stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vantage {
    pub machine_id: String,
    pub boot_id: String,
    pub pid_namespace: u64,
}

impl Vantage {
    pub fn here() -> io::Result<Self> {
        Ok(Self {
            // Not every container has one.
            machine_id: fs::read_to_string("/etc/machine-id").unwrap_or_default().trim().to_owned(),
            boot_id: boot_id()?,
            pid_namespace: pid_namespace()?,
        })
    }

    /// Whether this process can see the processes of a worker that was started there.
    pub fn sees_processes_of(&self, origin: &Origin) -> bool {
        self.machine_id == origin.key.machine_id
            && self.boot_id == origin.key.boot_id
            && (self.pid_namespace == origin.pid_namespace || guards::is_off(Guard::Namespaces))
    }
}

/// How much an observer can know about a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Its pids, sessions and locks can be believed.
    Here,
    /// The machine was booted since, unless a lock of the worker is still held: then a container has a boot id of its own.
    Rebooted,
    /// Nothing but its heartbeat can be believed.
    Elsewhere,
}

/// What the observer may believe about a worker that has its files in this folder, as the observer sees it.
pub fn reach(vantage: &Vantage, origin: &Origin, folder: &Path, worker: &str) -> Reach {
    if vantage.sees_processes_of(origin) {
        let has_lock = finds_lock_of(origin, folder, worker) || guards::is_off(Guard::Namespaces);
        return if has_lock { Reach::Here } else { Reach::Elsewhere };
    }
    let is_rebooted = vantage.machine_id == origin.key.machine_id && vantage.boot_id != origin.key.boot_id;
    let is_same_home = || home_id(folder).is_some_and(|home_id| home_id == origin.key.home_id);
    if is_rebooted && is_same_home() { Reach::Rebooted } else { Reach::Elsewhere }
}

/// Whether the lock file that the observer finds is the one that the worker holds, and not one of a copied home.
pub fn finds_lock_of(origin: &Origin, folder: &Path, worker: &str) -> bool {
    liveness_lock::path(folder, worker).metadata().is_ok_and(|meta| FileId::from(meta) == origin.lock)
}

/// A number for the pid namespace of this process. The kernel gives the inode of a namespace that is gone to the next one, so
/// the start of the namespace's first process is a part of it.
fn pid_namespace() -> io::Result<u64> {
    const INODE_BITS: u32 = 32;
    let inode = fs::metadata("/proc/self/ns/pid")?.ino();
    // Where other users' processes are hidden, the inode has to do.
    let began = process::stat(Pid::INIT).map_or(0, |init| init.start_time);
    Ok((began << INODE_BITS) | (inode & u64::from(u32::MAX)))
}

/// Changes with every boot, and in containers that have one of their own.
pub fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// The name of the machine, for people: it can change at any time.
pub fn name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The id of the home that this folder of workers belongs to. `None` where no worker was ever started in it.
pub fn home_id(folder: &Path) -> Option<String> {
    fs::read_to_string(folder.join(HOME_ID)).ok().map(|id| id.trim().to_owned()).filter(|id| !id.is_empty())
}

/// The same, made where it is missing. It survives a power cut: a worker that finds another one after a reboot would have
/// to wait for a whole lease before it recovered anything.
fn make_home_id(folder: &Path) -> io::Result<String> {
    let path = folder.join(HOME_ID);
    loop {
        if let Some(id) = home_id(folder) {
            return Ok(id);
        }
        let id = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
        // A pid alone may be that of a process in another container.
        let draft = folder.join(format!("{HOME_ID}.{}-{:x}", std::process::id(), fastrand::u64(..)));
        let mut file = owner_only::replace_file(&draft)?;
        file.write_all(id.as_bytes()).and_then(|()| file.sync_all())?;
        match owner_only::rename_to_free(&draft, &path) {
            // Another worker was quicker.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && home_id(folder).is_some() => {
                fs::remove_file(&draft)?;
            }
            // A file without an id in it is of no use.
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
        reach(&Vantage::here().expect("a vantage"), &origin, home.folder.path(), "w")
    }

    #[test]
    fn a_worker_is_here_only_where_everything_is_the_same() {
        let home = home();
        assert_eq!(reach_of(&home, |_| {}), Reach::Here);
        assert_eq!(reach_of(&home, |origin| origin.pid_namespace += 1), Reach::Elsewhere);
        assert_eq!(reach_of(&home, |origin| origin.lock.inode += 1), Reach::Elsewhere);
        assert_eq!(reach_of(&home, |origin| origin.key.machine_id.push('x')), Reach::Elsewhere);
        assert_eq!(reach_of(&home, |origin| *origin = Origin::default()), Reach::Elsewhere);
    }

    #[test]
    fn a_lock_file_that_is_gone_proves_nothing() {
        let home = home();
        fs::remove_file(liveness_lock::path(home.folder.path(), "w")).expect("removed");
        assert_eq!(reach_of(&home, |_| {}), Reach::Elsewhere);
    }

    #[test]
    fn another_boot_of_this_machine_counts_in_the_same_home_only() {
        let home = home();
        assert_eq!(reach_of(&home, |origin| origin.key.boot_id.push('x')), Reach::Rebooted);
        let in_another_home = |origin: &mut Origin| {
            origin.key.boot_id.push('x');
            origin.key.home_id.push('x');
        };
        assert_eq!(reach_of(&home, in_another_home), Reach::Elsewhere);
    }

    #[test]
    fn a_home_keeps_its_id() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(home_id(folder.path()), None);
        let made = make_home_id(folder.path()).expect("an id");
        assert_eq!(make_home_id(folder.path()).expect("the same"), made);
        assert_eq!(folder.path().read_dir().expect("a folder").count(), 1, "no draft is left");
        fs::write(folder.path().join(HOME_ID), "").expect("emptied");
        assert_eq!(home_id(folder.path()), None);
        assert_ne!(make_home_id(folder.path()).expect("a new one"), made);
    }
}
