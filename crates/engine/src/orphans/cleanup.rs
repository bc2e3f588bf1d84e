//! Killing the orphans of a worker that died together with its supervisor.
//!
//! The worker's control group, if it had one, contains all of them, unless they had the right to move to another group.
//! These orphans are not children of this process, so it also searches `/proc` in three ways, because a process can escape
//! each of them: by the session of an attempt, by the worker's id in the environment, by the inherited lock of a slot
//! record. It signals a process through a handle that was opened before the last check: so it never signals an
//! unrelated process to which the kernel has given the pid in the meantime.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid};

use super::containment;
use crate::attempt::cookie;
use crate::attempt::slot_records;
use crate::attempt::slot_records::{AttemptRecord, ProcessRecord};
use sys::cgroup::Group;
use sys::process;
use sys::process::{ProcessHandle, Stat};

/// How long to wait for killed processes before searching again.
const KILL_WAIT: Duration = Duration::from_millis(50);
/// A process in the middle of `exec` shows no environment. So no orphan is left only if two searches, with this pause
/// between, find none.
const EXEC_PAUSE: Duration = Duration::from_millis(5);
/// How often to search before leaving the rest to the next round: an unkillable process must not block the worker.
const MAX_ROUNDS: usize = 20;

/// A worker that is dead or about to be killed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeadWorker<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) worker: &'a str,
    pub(crate) records: &'a [AttemptRecord],
    /// The last tick at which the worker can have been alive. In a session whose leader is gone, a process that started
    /// later may be unrelated: the kernel may have reused the session id.
    pub(crate) last_seen_ticks: u64,
}

/// The result of killing the orphans of a worker.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum KillResult {
    /// No orphan is left.
    Clean,
    /// These processes are still alive.
    Survivors(Vec<Pid>),
    /// A process holds a lock of the worker's attempts or is in its control group, but was not found.
    Hidden,
}

/// Kills all orphans of the worker.
pub(crate) fn kill_orphans(dead: DeadWorker<'_>) -> io::Result<KillResult> {
    let group = containment::open(dead.folder, dead.worker);
    let mut sessions = HashSet::new();
    let mut was_empty = false;
    let mut left = Vec::new();
    for _ in 0..MAX_ROUNDS {
        if let Some(group) = &group {
            group.kill();
        }
        let found = find(dead, group.as_ref(), &mut sessions)?;
        if found.is_empty() && was_empty {
            let is_held = slot_records::are_held(dead.folder, dead.worker)?;
            let is_left = is_held || group.is_some_and(|group| group.is_populated());
            return Ok(if is_left { KillResult::Hidden } else { KillResult::Clean });
        }
        was_empty = found.is_empty();
        if was_empty {
            std::thread::sleep(EXEC_PAUSE);
            // A process that is ending is no longer listed, but may still run.
            was_empty = group.as_ref().is_none_or(|group| group.empties_within(KILL_WAIT));
        }
        left = found.iter().map(|(pid, _)| *pid).collect();
        let is_refused = |result: io::Result<()>| {
            result.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
        };
        // Signal all of them first. Only if none may be signalled, another round is pointless.
        let mut dying = found.iter().map(|(_, handle)| handle).collect::<Vec<_>>();
        dying.retain(|handle| !is_refused(handle.signal(Signal::KILL)));
        if dying.is_empty() && !found.is_empty() {
            break;
        }
        let until = Instant::now() + KILL_WAIT;
        for handle in dying {
            handle.ends_within(until.saturating_duration_since(Instant::now()))?;
        }
    }
    Ok(KillResult::Survivors(left))
}

/// A process that may be an orphan of the worker.
struct Candidate {
    pid: Pid,
    stat: Stat,
    names_worker: bool,
}

impl Candidate {
    fn session(&self) -> i32 {
        self.stat.session
    }

    fn is_leader_by_name(&self) -> bool {
        self.names_worker && self.session() == self.pid.as_raw_pid()
    }
}

/// `sessions` are the worker's sessions that earlier rounds found: their leaders are dead by now.
fn find(
    dead: DeadWorker<'_>,
    group: Option<&Group>,
    sessions: &mut HashSet<i32>,
) -> io::Result<Vec<(Pid, ProcessHandle)>> {
    let in_group = group.map(Group::pids).unwrap_or_default();
    // No process can take a lock of a dead worker: if none is held, no descriptors need to be checked.
    let is_locked = slot_records::are_held(dead.folder, dead.worker)?;
    let slots = slot_records::path(dead.folder, dead.worker);
    let others = process::all()?.into_iter().filter(|pid| *pid != getpid());
    let candidates: Vec<Candidate> = others.filter_map(|pid| inspect(dead, pid)).collect();
    // A worker may have died before it recorded the pid of a command. But a process cannot join an existing session: if
    // the leader of a session carries the worker's id, the session began in one of its attempts, and so did all of its
    // members. Only the leader proves that; another process with the id may be in the session of this process's caller.
    sessions
        .extend(candidates.iter().filter(|candidate| candidate.is_leader_by_name()).map(Candidate::session));
    let belongs = |candidate: &&Candidate| {
        candidate.names_worker
            || in_group.contains(&candidate.pid)
            || sessions.contains(&candidate.session())
            || is_in_session(dead, candidate.stat)
            || (is_locked && !process::locks_on(candidate.pid, &slots).is_empty())
    };
    let with_handle = |candidate: &Candidate| {
        open_handle(candidate).map(|handle| handle.map(|handle| (candidate.pid, handle))).transpose()
    };
    candidates.iter().filter(belongs).filter_map(with_handle).collect()
}

fn inspect(dead: DeadWorker<'_>, pid: Pid) -> Option<Candidate> {
    let stat = process::stat(pid).filter(|stat| !stat.is_zombie)?;
    let names_worker = cookie::names_worker(&process::environment(pid), dead.worker);
    Some(Candidate { pid, stat, names_worker })
}

/// A handle to this very process, checked before and after opening; `None` if it has ended.
fn open_handle(candidate: &Candidate) -> io::Result<Option<ProcessHandle>> {
    let is_there =
        || process::stat(candidate.pid).is_some_and(|now| now.start_time == candidate.stat.start_time);
    match ProcessHandle::open(candidate.pid) {
        Ok(handle) => Ok(is_there().then_some(handle)),
        Err(error) if is_there() => Err(error),
        Err(_) => Ok(None),
    }
}

fn is_in_session(dead: DeadWorker<'_>, stat: Stat) -> bool {
    let sessions = dead.records.iter().filter_map(|record| record.process.as_ref());
    sessions.filter(|started| started.pid.as_raw_pid() == stat.session).any(|started| {
        match process::stat(started.pid) {
            Some(leader) => matches_start(started, leader),
            // The kernel does not reuse a session id while the session has members.
            None => (started.ticks.start..=dead.last_seen_ticks).contains(&stat.start_time),
        }
    })
}

fn matches_start(started: &ProcessRecord, stat: Stat) -> bool {
    started.ticks.contains(&stat.start_time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::{Child, Command, Stdio};
    use store::LeaseRef;

    /// An unrelated process that leads its own session and sleeps.
    fn start_sleeper(variables: &[(&str, &str)]) -> Child {
        let mut command = Command::new("setsid");
        command.args(["sleep", "60"]).envs(variables.iter().copied());
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let is_asleep =
            || fs::read(format!("/proc/{}/cmdline", child.id())).is_ok_and(|line| line.starts_with(b"sleep"));
        let began = Instant::now();
        while !is_asleep() {
            assert!(began.elapsed() < Duration::from_secs(20), "it never executes sleep");
            std::thread::yield_now();
        }
        child
    }

    fn is_alive(child: &mut Child) -> bool {
        child.try_wait().expect("a child").is_none()
    }

    fn record(pid: u32, ticks: std::ops::Range<u64>) -> AttemptRecord {
        let pid = Pid::from_raw(pid.cast_signed()).expect("a pid");
        let lease = LeaseRef { job: "job".parse().expect("an id"), attempt: 1 };
        AttemptRecord { lease, process: Some(ProcessRecord { pid, ticks }) }
    }

    /// Each test uses its own worker id: the tests run in parallel and see each other's processes.
    fn is_clean_after_kill(folder: &Path, worker: &str, records: &[AttemptRecord]) -> bool {
        let dead = DeadWorker { folder, worker, records, last_seen_ticks: u64::MAX };
        kill_orphans(dead).expect("/proc can be read") == KillResult::Clean
    }

    #[test]
    fn an_unrelated_process_with_a_recorded_pid_is_not_killed() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut child = start_sleeper(&[]);
        let long_ago = record(child.id(), 0..1);
        assert!(is_clean_after_kill(folder.path(), "dead-worker-2", &[long_ago]));
        assert!(is_alive(&mut child), "it was started at a different time");
        child.kill().expect("killed");
        child.wait().expect("reaped");
    }

    #[test]
    fn a_session_is_recognised_only_by_its_leader() {
        let candidate = |pid: i32, session: i32| Candidate {
            pid: Pid::from_raw(pid).expect("a pid"),
            stat: Stat { session, ..process::stat(getpid()).expect("it is alive") },
            names_worker: true,
        };
        assert!(candidate(7, 7).is_leader_by_name());
        assert!(!candidate(8, 7).is_leader_by_name());
    }

    #[test]
    fn a_process_with_the_id_of_the_worker_is_killed() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut other = start_sleeper(&[("QUEUECTL_WORKER_ID", "dead-worker-10")]);
        let mut child = start_sleeper(&[("QUEUECTL_WORKER_ID", "dead-worker-1")]);
        let reaper = std::thread::spawn(move || child.wait().expect("reaped"));
        assert!(is_clean_after_kill(folder.path(), "dead-worker-1", &[]));
        reaper.join().expect("it was killed");
        assert!(is_alive(&mut other), "a longer id belongs to another worker");
        other.kill().expect("killed");
        other.wait().expect("reaped");
    }
}
