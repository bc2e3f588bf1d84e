//! The files of groups: in directories that imitate groups, and in a group without controllers where this machine allows
//! creating one.

use std::fs;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::delegation::{Place, check, place, set_up_above};
use crate::cgroup::*;
use crate::process;
use crate::process::spawn::{ChildProcess, GroupError, Limits, ProcessScope, Spawn, own_environment, spawn};

const MOUNTS: &str = "\
24 1 0:22 / /proc rw,relatime - proc proc rw
31 24 0:26 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw
";

#[test]
fn the_directory_of_a_group_is_found() {
    let folder = |mounts: &str, groups: &str| place(mounts, groups).map(|place| place.folder);
    let groups = "9:name=systemd:/\n0::/system.slice/q.service\n";
    let found = place(MOUNTS, groups).expect("it is mounted");
    assert_eq!(found.folder, Path::new("/sys/fs/cgroup/unified/system.slice/q.service"));
    assert_eq!(found.below("a").path, Path::new("/system.slice/q.service/a"));
    assert_eq!(folder(MOUNTS, "0::/\n"), Some(PathBuf::from("/sys/fs/cgroup/unified/")));
    let part = MOUNTS.replace("0:26 / /sys", "0:26 /box /sys");
    assert_eq!(folder(&part, "0::/box/a\n"), Some(PathBuf::from("/sys/fs/cgroup/unified/a")));
    assert_eq!(folder(&part, "0::/other\n"), None, "outside the mounted part");
    assert_eq!(folder(MOUNTS, "4:memory:/\n"), None, "version 1 only");
    assert_eq!(folder("24 1 0:22 / /proc rw - proc proc rw\n", groups), None);
}

#[test]
fn controllers_are_parsed_and_enabled_by_name() {
    let some = Controllers::parse("cpuset cpu io pids hugetlb\n");
    assert_eq!(some, Controllers { memory: false, cpu: true, pids: true });
    assert_eq!(some.to_enable(), "+cpu +pids");
    assert!(Controllers::parse("hugetlb\n").is_empty());
}

/// A directory that imitates a group.
fn group_with(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

#[test]
fn only_a_group_of_our_own_is_set_up() {
    let me = std::process::id().to_string();
    let files = [
        ("cgroup.events", "populated 1\n"),
        ("cgroup.controllers", "memory pids\n"),
        ("cgroup.subtree_control", ""),
        ("cgroup.procs", me.as_str()),
    ];
    let good = group_with(&files);
    assert_eq!(check(good.path()).expect("it is our own"), Controllers::parse("memory pids"));
    let root = group_with(&files[1..]);
    assert!(matches!(check(root.path()), Err(Obstacle::Root)));
    fs::write(good.path().join("cgroup.procs"), format!("{me}\n1\n")).expect("a file");
    assert!(matches!(check(good.path()), Err(Obstacle::Shared(_))));
    fs::write(good.path().join("cgroup.controllers"), "io\n").expect("a file");
    assert!(matches!(check(good.path()), Err(Obstacle::NoControllers(_))));
    let closed = group_with(&files[..2]);
    assert!(matches!(check(closed.path()), Err(Obstacle::NotDelegated(_))));
    // A group of systemd: root could write to it, but systemd has not delegated it.
    let unit = tempfile::Builder::new().suffix(".service").tempdir().expect("a folder");
    for (name, text) in files {
        fs::write(unit.path().join(name), text).expect("a file");
    }
    let is_root = process::user::number() == process::user::ROOT;
    assert_eq!(matches!(check(unit.path()), Err(Obstacle::NotDelegated(_))), is_root);
}

/// A delegated group with these controllers enabled, as a worker finds it.
fn set_up_with(enabled: &str) -> (tempfile::TempDir, Result<(Place, Controllers), Obstacle>) {
    let folder = group_with(&[("cgroup.subtree_control", enabled)]);
    let own = Place { folder: folder.path().join("queuectl"), path: PathBuf::from("/unit/queuectl") };
    let found = set_up_above(&own);
    (folder, found)
}

#[test]
fn a_worker_finds_the_group_that_its_supervisor_set_up() {
    let (folder, found) = set_up_with("memory cpu pids\n");
    let (above, enabled) = found.expect("it is set up");
    assert_eq!(enabled, Controllers { memory: true, cpu: true, pids: true });
    assert_eq!((above.folder.as_path(), above.path.as_path()), (folder.path(), Path::new("/unit")));
    assert!(matches!(set_up_above(&above), Err(Obstacle::NotDelegated(_))));
    assert!(matches!(set_up_with("").1, Err(Obstacle::NoControllers(_))));
}

#[test]
fn limits_are_written_and_exceeded_limits_are_detected() {
    // In a directory that only imitates a group, its files exist only when they are written.
    let above = group_with(&[]);
    let path = above.path().join("slot-0");
    let bounds = Bounds { memory_bytes: Some(512 << 20), cpu_millis: Some(1_500), pids: Some(100) };
    assert!(Group::make(&path, bounds).is_err(), "it has no cgroup.events");
    fs::create_dir(&path).expect("a folder");
    fs::write(path.join("cgroup.events"), "populated 1\nfrozen 0\n").expect("a file");
    let group = Group::open(path.clone()).expect("a group");
    group.limit(bounds).expect("the limits are written");
    for (file, text) in [
        ("memory.max", "536870912"),
        ("memory.swap.max", "0"),
        ("memory.oom.group", "1"),
        ("cpu.max", "150000 100000"),
        ("pids.max", "100"),
    ] {
        assert_eq!(fs::read_to_string(path.join(file)).expect(file), text, "{file}");
    }
    assert!(!group.ran_out_of_memory() && !group.ran_out_of_pids());
    fs::write(path.join("memory.events"), "low 0\noom 1\noom_kill 2\n").expect("a file");
    fs::write(path.join("pids.events"), "max 7\n").expect("a file");
    assert!(group.ran_out_of_memory() && group.ran_out_of_pids());
    assert!(group.is_populated() && !group.empties_within(Duration::ZERO));
    fs::write(path.join("cgroup.events"), "populated 0\nfrozen 0\n").expect("a file");
    assert!(!group.is_populated() && group.empties_within(Duration::ZERO));
    group.kill();
    assert_eq!(fs::read_to_string(path.join("cgroup.kill")).expect("a file"), "1");
}

#[test]
fn only_a_writable_group_contains_others() {
    let site = |files: &[(&str, &str)]| {
        let folder = group_with(files);
        let parent = Place { folder: folder.path().to_owned(), path: PathBuf::from("/unit") };
        (Site::below(parent), folder)
    };
    assert!(site(&[("cgroup.procs", ""), ("cgroup.events", ""), ("cgroup.kill", "")]).0.is_ok());
    assert!(site(&[("cgroup.procs", "")]).0.is_ok(), "the root group has no other files");
    let old = site(&[("cgroup.procs", ""), ("cgroup.events", "")]).0;
    assert!(matches!(old, Err(Obstacle::NoKill)), "{old:?}");
    let closed = site(&[("cgroup.events", ""), ("cgroup.kill", "")]).0;
    assert!(matches!(closed, Err(Obstacle::NotDelegated(_))), "{closed:?}");
}

#[test]
fn a_directory_that_is_not_a_group_of_the_worker_is_not_opened() {
    let above = group_with(&[]);
    let path = above.path().join("queuectl-w-1");
    fs::create_dir(&path).expect("a folder");
    fs::write(path.join("cgroup.events"), "populated 1\n").expect("a file");
    assert!(open_of_worker(&path, "w-1").is_none(), "not in a hierarchy of groups");
    let Some(group) = real_group("names") else { return };
    let folder = group.folder_of_slot("slot-0");
    let folder = folder.parent().expect("that of the worker");
    let worker = format!("test-names-{}", std::process::id());
    assert!(open_of_worker(folder, &worker).is_some());
    assert!(open_of_worker(folder, "test-names").is_none(), "the group of another worker");
}

/// The group of a worker in the machine's hierarchy. `None` where this user cannot make one: then the tests of the files
/// above are all that can be tested.
fn real_group(test: &str) -> Option<WorkerGroup> {
    match Site::find() {
        Ok(site) => Some(site.make(&format!("test-{test}-{}", std::process::id())).expect("a group")),
        Err(obstacle) => {
            let _ = writeln!(std::io::stderr(), "no groups can be made here: {obstacle}");
            None
        }
    }
}

/// Starts a shell in a group.
fn start_in(group: &Group, script: &std::ffi::CStr) -> ChildProcess {
    spawn(&Spawn {
        program: c"/bin/sh",
        argv: &[c"sh".to_owned(), c"-c".to_owned(), script.to_owned()],
        envp: &own_environment().expect("an environment"),
        cwd: None,
        scope: ProcessScope::Session,
        descriptors: &[],
        limits: Limits::default(),
        group: Some(group.as_fd()),
        pid_record: None,
    })
    .expect("it starts")
}

fn reap(child: &ChildProcess) {
    assert!(child.handle.ends_within(Duration::from_secs(20)).expect("a handle"));
    assert!(process::reap(child.pid).expect("a child").is_some());
}

#[test]
fn a_process_starts_in_a_group_and_is_killed_with_it() {
    let Some(worker) = real_group("kill") else { return };
    let (one, other) = (worker.make("slot-0", Bounds::default()), worker.make("slot-1", Bounds::default()));
    let (one, other) = (one.expect("a group"), other.expect("a group"));
    assert!(!one.is_populated());
    let killed = start_in(&one, c"sleep 60 & setsid sleep 60 & wait");
    let kept = start_in(&other, c"exec sleep 60");
    assert_eq!(worker.slot_of(killed.pid).as_deref(), Some("slot-0"));
    assert_eq!(worker.slot_of(kept.pid).as_deref(), Some("slot-1"));
    assert_eq!(worker.slot_of(rustix::process::getpid()), None);
    let began = Instant::now();
    while one.pids().len() < 3 {
        assert!(began.elapsed() < Duration::from_secs(20), "the processes did not start");
        std::thread::yield_now();
    }
    assert!(!one.empties_within(Duration::from_millis(1)));
    one.kill();
    assert!(one.empties_within(Duration::from_secs(20)));
    reap(&killed);
    assert!(other.is_populated(), "the processes of other groups live");
    drop(other);
    let folder = worker.folder_of_slot("slot-1");
    assert!(folder.exists(), "a group with processes is not removed");
    open_slot(&folder).kill();
    reap(&kept);
    // A process may leave groups behind.
    fs::create_dir_all(worker.folder_of_slot("slot-0").join("inner/most")).expect("groups");
    drop(one);
    drop(worker);
    assert!(!folder.parent().expect("that of the worker").exists(), "the group is removed with all in it");
}

#[test]
fn a_group_that_was_removed_is_empty_and_accepts_no_process() {
    let Some(worker) = real_group("removed") else { return };
    let group = worker.make("slot-0", Bounds::default()).expect("a group");
    fs::remove_dir(worker.folder_of_slot("slot-0")).expect("it is empty");
    assert!(!group.is_populated());
    let failure = spawn(&Spawn {
        program: c"/bin/true",
        argv: &[c"true".to_owned()],
        envp: &own_environment().expect("an environment"),
        cwd: None,
        scope: ProcessScope::Session,
        descriptors: &[],
        limits: Limits::default(),
        group: Some(group.as_fd()),
        pid_record: None,
    })
    .expect_err("it has no group");
    fs::remove_dir(worker.folder_of_slot("slot-0").parent().expect("that of the worker"))
        .expect("it is empty");
    worker.make("slot-0", Bounds::default()).expect("the group of the worker is made again");
    assert!(failure.get_ref().and_then(|inner| inner.downcast_ref::<GroupError>()).is_some(), "{failure}");
}

fn open_slot(folder: &Path) -> Group {
    Group::open(folder.to_owned()).expect("a group")
}
