//! The files of groups: in directories that imitate groups, and in a group without controllers where this machine allows
//! creating one.

use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::delegation::{check, folder};
use crate::cgroup::*;
use crate::process;
use crate::process::spawn::{Limits, ProcessScope, Spawn, own_environment, spawn};

const MOUNTS: &str = "\
24 1 0:22 / /proc rw,relatime - proc proc rw
31 24 0:26 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw
";

#[test]
fn the_directory_of_a_group_is_found() {
    let groups = "9:name=systemd:/\n0::/system.slice/q.service\n";
    let found = folder(MOUNTS, groups).expect("it is mounted");
    assert_eq!(found, Path::new("/sys/fs/cgroup/unified/system.slice/q.service"));
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
fn delegated(enabled: &str) -> (tempfile::TempDir, Result<DelegatedGroup, Obstacle>) {
    let folder = group_with(&[("cgroup.subtree_control", enabled)]);
    let found = DelegatedGroup::above(&folder.path().join("queuectl"));
    (folder, found)
}

#[test]
fn a_worker_finds_the_group_that_its_supervisor_set_up() {
    let (folder, found) = delegated("memory cpu pids\n");
    assert_eq!(found.expect("it is set up").enabled(), Controllers { memory: true, cpu: true, pids: true });
    assert!(matches!(DelegatedGroup::above(folder.path()), Err(Obstacle::NotDelegated(_))));
    assert!(matches!(delegated("").1, Err(Obstacle::NoControllers(_))));
}

#[test]
fn limits_are_written_and_exceeded_limits_are_detected() {
    let (folder, found) = delegated("memory cpu pids\n");
    let found = found.expect("it is set up");
    let bounds = Bounds { memory_bytes: Some(512 << 20), cpu_millis: Some(1_500), pids: Some(100) };
    let group = found.make("w-1-0", bounds).expect("a group");
    let path = folder.path().join("queuectl-job-w-1-0");
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
    group.kill();
    assert_eq!(fs::read_to_string(path.join("cgroup.kill")).expect("a file"), "1");
    assert!(found.make("w-1-0", bounds).is_err(), "the name is taken");
}

#[test]
fn only_the_leftover_groups_of_a_dead_worker_are_removed() {
    let (folder, found) = delegated("pids\n");
    for name in ["queuectl-job-w-1-0", "queuectl-job-w-2-0", "queuectl", "other"] {
        fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    // In a directory that only imitates a group, the request to kill is a file that stays.
    found.expect("it is set up").remove_stale("w-1-");
    let is_there = |name: &str| folder.path().join(name).exists();
    assert!(folder.path().join("queuectl-job-w-1-0/cgroup.kill").exists());
    assert!(is_there("queuectl-job-w-2-0") && is_there("queuectl") && is_there("other"));
    assert!(!folder.path().join("queuectl-job-w-2-0/cgroup.kill").exists());
}

/// A group in the machine's hierarchy for this test, if it can be created.
fn real_group() -> Option<Group> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let top = folder(&mounts, "0::/")?;
    Group::make(top.join(format!("queuectl-test-{}", std::process::id())), Bounds::default()).ok()
}

#[test]
fn a_process_joins_a_group_and_is_killed_with_it() {
    let Some(group) = real_group() else {
        // It cannot be created here; the tests above cover the files.
        return;
    };
    let procs = group.procs_file().expect("it can be joined");
    let spawned = spawn(&Spawn {
        program: c"/bin/sh",
        argv: &[c"sh".to_owned(), c"-c".to_owned(), c"sleep 60 & setsid sleep 60 & wait".to_owned()],
        envp: &own_environment().expect("an environment"),
        cwd: None,
        scope: ProcessScope::Session,
        descriptors: &[],
        limits: Limits { group: Some(procs.as_fd()), ..Limits::default() },
    })
    .expect("it starts");
    let groups =
        fs::read_to_string(format!("/proc/{}/cgroup", spawned.pid.as_raw_pid())).expect("its groups");
    assert!(groups.contains("/queuectl-test-"), "{groups}");
    // The processes that it starts are in the group as well.
    let members = || member_count(&groups);
    let began = Instant::now();
    while members() < 3 {
        assert!(began.elapsed() < Duration::from_secs(20), "the processes did not start");
        std::thread::yield_now();
    }
    group.kill();
    assert!(spawned.handle.ends_within(Duration::from_secs(20)).expect("a handle"));
    assert!(process::reap(spawned.pid).expect("a child").is_some());
    group.end();
    assert!(!folder_of(&groups).exists(), "the group is removed");
}

fn folder_of(groups: &str) -> PathBuf {
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    folder(&mounts, groups).expect("a directory")
}

fn member_count(groups: &str) -> usize {
    fs::read_to_string(folder_of(groups).join("cgroup.procs")).unwrap_or_default().lines().count()
}
