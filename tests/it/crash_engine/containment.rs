//! FAULTS 17 and 24, for processes that can be found by their control group only: they left their session, closed their
//! descriptors and cleared their environment. Where no groups can be made, the documented exceptions are tested instead.

use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use sys::cgroup::{Site, can_contain};

use super::harness::CrashHome;
use super::processes::{is_alive, kill, kill_all, wait, wait_within};
use crate::cli::harness::PROGRAM;

/// Starts a daemon that drops everything and writes its pid to this file.
fn daemon(file: &str) -> String {
    format!(
        "env -i setsid bash -c 'cd /; exec 0<&- 1>&- 2>&- 60>&-; echo $$ > {file}; exec /bin/sleep 600' &"
    )
}

/// The pid in this file.
fn pid_in(crash_home: &CrashHome, file: &str) -> Pid {
    let path = crash_home.home.folder().join(file);
    let read = || std::fs::read_to_string(&path).unwrap_or_default();
    wait(&format!("{file} is written"), || read().ends_with('\n'));
    Pid::from_raw(read().trim().parse().expect("a pid")).expect("a pid")
}

/// A home whose jobs know its folder.
fn home_with(id: &str, script: &str) -> CrashHome {
    let crash_home = CrashHome::new();
    let folder = crash_home.home.folder().display().to_string();
    crash_home.job(id, &script.replace("HERE", &folder));
    crash_home
}

fn has_groups() -> bool {
    match can_contain() {
        Ok(()) => true,
        Err(obstacle) => {
            eprintln!("no groups can be made here: {obstacle}");
            false
        }
    }
}

impl CrashHome {
    /// The groups of all workers that this home ever had: the journal names them.
    pub(crate) fn groups(&self) -> Vec<PathBuf> {
        let Ok(site) = Site::find() else {
            return Vec::new();
        };
        let journal = self.journal();
        let words = journal.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
        let mut groups: Vec<PathBuf> =
            words.filter(|word| word.starts_with("w-")).map(|id| site.folder_of(id)).collect();
        groups.sort();
        groups.dedup();
        groups
    }

    pub(crate) fn assert_no_group_is_left(&self) {
        let left: Vec<PathBuf> = self.groups().into_iter().filter(|group| group.exists()).collect();
        assert_eq!(left, Vec::<PathBuf>::new(), "groups are left");
    }
}

#[test]
fn fault_24_a_daemon_without_any_mark_is_killed_after_worker_and_supervisor_were_killed_at_once() {
    let script = format!("first && {{ {} hang; }}", daemon("HERE/left"));
    let crash_home = home_with("a", &script);
    let pool = crash_home.pool();
    crash_home.runs("a", 1, &[]);
    let left = pid_in(&crash_home, "left");
    let other = crash_home.pool();
    assert!(
        !has_groups() || crash_home.groups().iter().all(|group| group.exists()),
        "each worker has a group"
    );
    crash_home.kill_pool(pool);
    if has_groups() {
        wait_within(Duration::from_secs(10), "the daemon is killed", || !is_alive(left));
    }
    crash_home.finish();
    assert_eq!(crash_home.story("a"), "completed: lost success");
    assert_ne!(other.supervisor, pool.supervisor);
    kill(left, Signal::KILL);
    crash_home.assert_no_group_is_left();
}

#[test]
fn fault_24_the_next_pool_kills_a_daemon_without_any_mark() {
    let script = format!("first && {{ {} hang; }}", daemon("HERE/left"));
    let crash_home = home_with("a", &script);
    let pool = crash_home.pool();
    let left = pid_in(&crash_home, "left");
    crash_home.kill_pool(pool);
    wait("no worker is alive", || crash_home.workers().is_empty());
    assert!(is_alive(left), "no process is there that could kill it");
    crash_home.pool();
    crash_home.finish();
    assert_eq!(is_alive(left), !has_groups());
    kill(left, Signal::KILL);
    crash_home.assert_no_group_is_left();
}

#[cfg(debug_assertions)] // In released builds no guard can be switched off.
#[test]
fn fault_24_without_groups_a_daemon_without_any_mark_is_not_found() {
    let script = format!("first && {{ {} hang; }}", daemon("HERE/left"));
    let crash_home =
        home_with("a", &script).under(vec![("QUEUECTL_WITHOUT".to_owned(), "containment".into())]);
    let pool = crash_home.pool();
    let left = pid_in(&crash_home, "left");
    crash_home.kill_pool(pool);
    crash_home.pool();
    wait("the job has run again", || crash_home.story("a") == "completed: lost success");
    assert!(is_alive(left), "the documented exception");
    kill(left, Signal::KILL);
    wait("it has ended", || !is_alive(left));
    crash_home.finish();
}

#[test]
fn fault_23_the_supervisor_kills_a_daemon_without_any_mark() {
    let script = format!("first && {{ {} hang; }}", daemon("HERE/left"));
    let crash_home = home_with("a", &script);
    let pool = crash_home.pool();
    let left = pid_in(&crash_home, "left");
    crash_home.recovers("a", || kill(crash_home.worker_of(pool), Signal::KILL));
    assert!(!is_alive(left));
    crash_home.finish();
    crash_home.assert_no_group_is_left();
}

#[test]
fn fault_17_of_two_slots_only_the_daemon_of_the_ended_attempt_is_killed() {
    // In released builds no guard can be switched off.
    for guard in if cfg!(debug_assertions) { &["", "containment"][..] } else { &[""] } {
        let crash_home = CrashHome::new().under(vec![("QUEUECTL_WITHOUT".to_owned(), guard.into())]);
        let folder = crash_home.home.folder().display().to_string();
        let script = |name: &str| {
            let daemon = daemon(&format!("{folder}/{name}"));
            format!("{daemon} until_there {name}; until_there go-{name}")
        };
        crash_home.job("ends", &script("one"));
        crash_home.job("stays", &script("two"));
        crash_home.pool_of(&["--concurrency", "2"]);
        let (one, two) = (pid_in(&crash_home, "one"), pid_in(&crash_home, "two"));
        crash_home.put("go-one");
        wait("the first job ends", || crash_home.story("ends") == "completed: success");
        let is_contained = guard.is_empty() && has_groups();
        assert_eq!(is_alive(one), !is_contained, "without {guard:?}");
        assert!(is_alive(two), "its job still runs");
        crash_home.put("go-two");
        wait("the second job ends", || crash_home.story("stays") == "completed: success");
        assert!(!is_alive(one) && !is_alive(two), "no other attempt runs");
        crash_home.finish();
        crash_home.assert_no_group_is_left();
    }
}

#[test]
fn fault_17_a_bomb_of_daemons_without_any_mark_is_killed_with_its_attempt() {
    if !has_groups() {
        return; // Without a group or a limit it is killed one by one, which takes as long as it can fork.
    }
    let crash_home = CrashHome::new();
    let folder = crash_home.home.folder().display().to_string();
    // Each process replaces itself by a new one in a new session, up to a number that the machine can bear.
    crash_home.home.file(
        "bomb.sh",
        format!(
            "exec 0<&- 1>&- 2>&- 60>&-; n=$1; echo $n > {folder}/fuse; [ $n -gt 4000 ] && exit
                  env -i setsid bash {folder}/bomb.sh $((n+1)) & exit"
        ),
    );
    crash_home.job("bomb", &format!("env -i setsid bash {folder}/bomb.sh 0 & until_there fuse"));
    crash_home.pool();
    wait("the job ends", || crash_home.story("bomb") == "completed: success");
    let fuse = || std::fs::read_to_string(crash_home.home.folder().join("fuse")).unwrap_or_default();
    let last = fuse();
    crash_home.job("after", "sleep 0.3");
    crash_home.finish();
    assert_eq!(fuse(), last, "it forked after its attempt had ended");
    crash_home.assert_no_group_is_left();
}

#[test]
fn fault_17_the_groups_of_a_worker_inside_a_job_are_removed_with_it() {
    let inner = CrashHome::new();
    let folder = inner.home.folder().display().to_string();
    inner.job("in", &format!("{} until_there never", daemon(&format!("{folder}/left"))));
    let crash_home = CrashHome::new();
    let start = format!("{PROGRAM} --home {} worker start", inner.home.path().display());
    crash_home.job("nests", &format!("{start}; until_there go"));
    crash_home.pool();
    let left = pid_in(&inner, "left");
    let workers: Vec<Pid> = inner.workers().iter().map(|worker| super::processes::pid(worker.pid)).collect();
    let supervisors: Vec<Pid> = inner
        .workers()
        .iter()
        .filter_map(|worker| worker.supervisor_pid)
        .map(super::processes::pid)
        .collect();
    kill_all(&supervisors, Signal::KILL);
    kill_all(&workers, Signal::KILL);
    assert!(is_alive(left), "its outer job still runs");
    if has_groups() {
        let groups =
            std::fs::read_to_string(format!("/proc/{}/cgroup", left.as_raw_pid())).expect("its groups");
        let outer = crash_home.workers()[0].id.to_string();
        let path = groups.lines().find_map(|line| line.strip_prefix("0::")).expect("version 2");
        assert!(path.contains(&format!("queuectl-{outer}/slot-0/queuectl-w-")), "{path}");
    }
    crash_home.put("go");
    wait("the outer job ends", || crash_home.story("nests") == "completed: success");
    assert!(!is_alive(left));
    crash_home.finish();
    crash_home.assert_no_group_is_left();
}

#[test]
fn a_slot_whose_group_was_removed_makes_it_again() {
    if !has_groups() {
        return; // There is nothing to remove.
    }
    let crash_home = CrashHome::new();
    crash_home.job("a", "true");
    crash_home.pool();
    wait("a has ended", || crash_home.story("a") == "completed: success");
    let group = crash_home.groups().into_iter().find(|group| group.exists()).expect("that of the worker");
    std::fs::remove_dir(group.join("slot-0")).expect("the group is empty");
    crash_home.job("b", "true");
    wait("b has ended", || crash_home.story("b") == "completed: success");
    crash_home.finish();
    crash_home.assert_no_group_is_left();
}
