//! Killing what a worker left behind, when neither it nor its supervisor is there to do so.
//!
//! Nothing of it is a child of ours, so it is looked for in `/proc`, in three ways, because each can be escaped from: by
//! the session of an attempt, by the worker's name in the environment, by the lock of the slot that it inherited. What
//! is found is signalled through a handle that was opened before the last look: a pid that was given to a stranger in
//! the meantime is never signalled.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid};

use crate::attempt::cookie;
use crate::attempt::slot_records;
use crate::attempt::slot_records::{Started, Trace};
use domain::values::name::WorkerId;
use store::Worker;
use sys::process;
use sys::process::{ProcessHandle, Stat};

/// How long to wait for the killed processes to be gone before the next look.
const PATIENCE: Duration = Duration::from_millis(50);
/// A process that is just becoming another program has no environment to show. Nobody is left only if that is so twice,
/// with this pause between.
const EXEC_PAUSE: Duration = Duration::from_millis(5);
/// How often to look again before it is left to the next round: what cannot be killed must not stop the worker.
const ROUNDS: usize = 20;
/// How often to sweep while a process lives that is known to be unkillable: a sweep reads all of `/proc`, and would only
/// find that process again.
const SWEEP_AGAIN: Duration = Duration::from_secs(10);

/// A worker that is dead, or about to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remains<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) worker: &'a str,
    pub(crate) traces: &'a [Trace],
    /// The last tick at which the worker is known to have lived: what was started later in a session whose leader is
    /// gone may be a stranger's, who was given its number.
    pub(crate) last_seen_ticks: u64,
}

/// When each dead worker was swept after last.
#[derive(Debug, Default)]
pub(crate) struct Sweeps {
    last: HashMap<WorkerId, Instant>,
}

impl Sweeps {
    /// Forgets the workers that are gone.
    pub(crate) fn keep(&mut self, workers: &[Worker]) {
        self.last.retain(|id, _| workers.iter().any(|worker| worker.id == *id));
    }

    /// Whether to sweep after this worker now; if so, that counts as done. `is_stuck`: a process of it that is known to be
    /// unkillable still lives.
    pub(crate) fn begin(&mut self, worker: &WorkerId, is_stuck: bool, now: Instant) -> bool {
        let is_recent = |last: &Instant| now.duration_since(*last) < SWEEP_AGAIN;
        let is_due = !is_stuck || !self.last.get(worker).is_some_and(is_recent);
        if is_due {
            self.last.insert(worker.clone(), now);
        }
        is_due
    }
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Swept {
    /// Nothing is left.
    Clean,
    /// These processes are still there.
    Left(Vec<Pid>),
    /// Something holds a lock of the worker's attempts and cannot be found.
    Hidden,
}

/// Kills all of it.
pub(crate) fn sweep(remains: Remains<'_>) -> io::Result<Swept> {
    let mut sessions = HashSet::new();
    let mut was_empty = false;
    let mut left = Vec::new();
    for _ in 0..ROUNDS {
        let found = find(remains, &mut sessions)?;
        if found.is_empty() && was_empty {
            let is_held = slot_records::are_held(remains.folder, remains.worker)?;
            return Ok(if is_held { Swept::Hidden } else { Swept::Clean });
        }
        was_empty = found.is_empty();
        if was_empty {
            std::thread::sleep(EXEC_PAUSE);
        }
        left = found.iter().map(|(pid, _)| *pid).collect();
        let is_refused = |result: io::Result<()>| {
            result.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
        };
        // All of them, whatever is refused: only what may not be signalled is not worth another round.
        let mut dying = found.iter().map(|(_, handle)| handle).collect::<Vec<_>>();
        dying.retain(|handle| !is_refused(handle.signal(Signal::KILL)));
        if dying.is_empty() && !found.is_empty() {
            break;
        }
        let until = Instant::now() + PATIENCE;
        for handle in dying {
            handle.ends_within(until.saturating_duration_since(Instant::now()))?;
        }
    }
    Ok(Swept::Left(left))
}

/// A process that was looked at.
struct Seen {
    pid: Pid,
    stat: Stat,
    names_worker: bool,
}

impl Seen {
    fn session(&self) -> i32 {
        self.stat.session
    }

    fn is_leader_by_name(&self) -> bool {
        self.names_worker && self.session() == self.pid.as_raw_pid()
    }
}

/// `sessions` are those that were found to be the worker's in earlier rounds: their leaders are dead by now.
fn find(remains: Remains<'_>, sessions: &mut HashSet<i32>) -> io::Result<Vec<(Pid, ProcessHandle)>> {
    // Nobody can take a lock of the dead: where none is held, nobody's descriptors need be looked at.
    let is_locked = slot_records::are_held(remains.folder, remains.worker)?;
    let slots = slot_records::path(remains.folder, remains.worker);
    let others = process::all()?.into_iter().filter(|pid| *pid != getpid());
    let seen: Vec<Seen> = others.filter_map(|pid| look(remains, pid)).collect();
    // A worker may have died before it wrote down which process it had started. But a session is never joined, only
    // begun: one whose leader carries the worker's name began in one of its attempts, and so did all who are in it. The
    // leader alone speaks for it; anybody else who carries the name may be in the session of whoever started us.
    sessions.extend(seen.iter().filter(|seen| seen.is_leader_by_name()).map(Seen::session));
    let belongs = |seen: &&Seen| {
        seen.names_worker
            || sessions.contains(&seen.session())
            || is_in_session(remains, seen.stat)
            || (is_locked && !process::locks_on(seen.pid, &slots).is_empty())
    };
    let held =
        |seen: &Seen| take_hold(seen).map(|handle| handle.map(|handle| (seen.pid, handle))).transpose();
    seen.iter().filter(belongs).filter_map(held).collect()
}

fn look(remains: Remains<'_>, pid: Pid) -> Option<Seen> {
    let stat = process::stat(pid).filter(|stat| !stat.is_zombie)?;
    let names_worker = cookie::names_worker(&process::environment(pid), remains.worker);
    Some(Seen { pid, stat, names_worker })
}

/// A handle to the process that was seen: it is there before and after the handle was opened. `None`: it is gone.
fn take_hold(seen: &Seen) -> io::Result<Option<ProcessHandle>> {
    let is_there = || process::stat(seen.pid).is_some_and(|now| now.start_time == seen.stat.start_time);
    match ProcessHandle::open(seen.pid) {
        Ok(handle) => Ok(is_there().then_some(handle)),
        Err(error) if is_there() => Err(error),
        Err(_) => Ok(None),
    }
}

fn is_in_session(remains: Remains<'_>, stat: Stat) -> bool {
    let sessions = remains.traces.iter().filter_map(|trace| trace.process.as_ref());
    sessions.filter(|started| started.pid.as_raw_pid() == stat.session).any(|started| {
        match process::stat(started.pid) {
            Some(leader) => is_it(started, leader),
            // The number of a session is not given away while anybody is in it.
            None => (started.ticks.start..=remains.last_seen_ticks).contains(&stat.start_time),
        }
    })
}

fn is_it(started: &Started, stat: Stat) -> bool {
    started.ticks.contains(&stat.start_time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::{Child, Command, Stdio};
    use store::LeaseRef;

    /// A process that leads a session of its own and waits to be killed.
    fn stranger(variables: &[(&str, &str)]) -> Child {
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
            assert!(began.elapsed() < Duration::from_secs(20), "it does not become what it is to be");
            std::thread::yield_now();
        }
        child
    }

    fn is_alive(child: &mut Child) -> bool {
        child.try_wait().expect("a child").is_none()
    }

    fn trace(pid: u32, ticks: std::ops::Range<u64>) -> Trace {
        let pid = Pid::from_raw(pid.cast_signed()).expect("a pid");
        let lease = LeaseRef { job: "job".parse().expect("an id"), attempt: 1 };
        Trace { lease, process: Some(Started { pid, ticks }) }
    }

    /// Each test has a worker of its own: they run side by side, and see each other's processes.
    fn sweep_of(folder: &Path, worker: &str, traces: &[Trace]) -> bool {
        let remains = Remains { folder, worker, traces, last_seen_ticks: u64::MAX };
        sweep(remains).expect("/proc can be read") == Swept::Clean
    }

    #[test]
    fn a_stranger_with_a_recorded_pid_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut child = stranger(&[]);
        let long_ago = trace(child.id(), 0..1);
        assert!(sweep_of(folder.path(), "dead-worker-2", &[long_ago]));
        assert!(is_alive(&mut child), "it was started at another time");
        child.kill().expect("killed");
        child.wait().expect("reaped");
    }

    #[test]
    fn while_an_unkillable_process_lives_sweeps_are_rare() {
        let (mut sweeps, began) = (Sweeps::default(), Instant::now());
        let worker: WorkerId = "w-1".parse().expect("a name");
        let mut begins =
            |is_stuck, millis| sweeps.begin(&worker, is_stuck, began + Duration::from_millis(millis));
        assert!(begins(true, 0), "the first sweep finds what else is there");
        assert!(!begins(true, 500) && !begins(true, 9_999));
        assert!(begins(true, 10_000), "it may have left something else behind");
        assert!(begins(false, 10_500), "it has ended");
        assert!(!begins(true, 11_000));
    }

    #[test]
    fn a_session_is_not_known_by_one_who_is_merely_in_it() {
        let seen = |pid: i32, session: i32| Seen {
            pid: Pid::from_raw(pid).expect("a pid"),
            stat: Stat { is_zombie: false, parent: 1, session, start_time: 1 },
            names_worker: true,
        };
        assert!(seen(7, 7).is_leader_by_name());
        assert!(!seen(8, 7).is_leader_by_name());
    }

    #[test]
    fn whoever_carries_the_name_of_the_worker_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut other = stranger(&[("QUEUECTL_WORKER_ID", "dead-worker-10")]);
        let mut child = stranger(&[("QUEUECTL_WORKER_ID", "dead-worker-1")]);
        let reaper = std::thread::spawn(move || child.wait().expect("reaped"));
        assert!(sweep_of(folder.path(), "dead-worker-1", &[]));
        reaper.join().expect("it was killed");
        assert!(is_alive(&mut other), "a longer name is another worker's");
        other.kill().expect("killed");
        other.wait().expect("reaped");
    }
}
