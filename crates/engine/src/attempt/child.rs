//! A running command: watching it, ending it, cleaning up after it.
//!
//! ```text
//!   runs ──────────────▶ its shell ends ──▶ orphans are killed ──▶ reaped
//!     │ timeout, cancel,      ▲
//!     │ stop, lost lease      │
//!     └─▶ SIGTERM (or the signal of a cancel), SIGCONT ── grace ── SIGKILL
//! ```
//!
//! It is reaped last: until then the kernel cannot reuse its pid, which is also the id of its process group and of its
//! session.

use std::cell::Cell;
use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::capture::Capture;
use super::command::{Invocation, Plan};
use super::limits;
use super::limits::AttemptLimits;
use super::pause;
use super::pause::{Deadline, Stopped};
use super::pipes::Pipes;
use super::slot_records::Record;
use crate::orphans::reparented::{OrphanFilter, Orphans, SurvivorPolicy};
use crate::orphans::survivor::{KILL_RETRY_INTERVAL, KILL_TIMEOUT, Survivor, survivors};
use crate::worker::dispatcher::{Interrupt, SlotBell, SlotReport};
use domain::job::limits::ExceededLimit;
use sys::cgroup::Group;
use sys::failpoint;
use sys::guards;
use sys::guards::Guard;
use sys::process;
use sys::process::spawn::{ChildProcess, Limits, ProcessScope, Spawn, spawn};
use sys::process::{ChildExit, ProcessHandle};

/// The descriptor by which a command inherits the lock of its record. Below 64, because the kernel would have to
/// allocate a larger descriptor table; far above the numbers that scripts use.
const LOCK_DESCRIPTOR: i32 = 60;
/// How often to check whether the orphans of a command that is being ended are gone.
const ORPHAN_POLL_INTERVAL: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) pid: Pid,
    handle: ProcessHandle,
    pipes: Pipes,
}

/// A command to start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start<'a> {
    pub(crate) plan: &'a Plan,
    /// Its standard input; `/dev/null` if it has none.
    pub(crate) input: Option<BorrowedFd<'a>>,
    /// Where it writes its pid; `None` for a hook process.
    pub(crate) record: Option<&'a Record>,
    pub(crate) limits: Limits,
    /// The control group to start it in.
    pub(crate) group: Option<&'a Group>,
}

/// The limits and tools with which a slot or a lane of the delivery pool supervises a running command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Supervision<'a> {
    pub(crate) timeout: Option<Duration>,
    pub(crate) kill_grace: Duration,
    pub(crate) bell: &'a SlotBell,
    pub(crate) orphans: &'a Orphans,
    /// Selects the orphans of the command.
    pub(crate) filter: OrphanFilter<'a>,
    /// `None` if it has no limits.
    pub(crate) limits: Option<&'a AttemptLimits>,
    /// For reporting that the slot cannot end the command. `None` for a hook process: no lease depends on it, so one that
    /// cannot be killed is left alone, and does not keep a worker from stopping.
    pub(crate) report: Option<SlotReport<'a>>,
}

impl<'a> Supervision<'a> {
    fn watching(&self) -> Option<&'a AttemptLimits> {
        self.limits.filter(|limits| limits.is_watched())
    }

    fn report(&self, survivors: Vec<Survivor>) -> SurvivorPolicy {
        match self.report {
            Some(report) => {
                report.give_up(survivors);
                SurvivorPolicy::Wait
            }
            None => SurvivorPolicy::Leave,
        }
    }
}

/// Why a command was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Timeout,
    Interrupt(Interrupt),
    LimitExceeded(ExceededLimit),
}

impl Cause {
    /// The signal by which the command is first asked to end.
    fn signal(self) -> Signal {
        match self {
            Self::Interrupt(Interrupt::Cancel(signal)) => {
                Signal::from_named_raw(signal.number()).unwrap_or(Signal::TERM)
            }
            Self::Interrupt(
                Interrupt::Release
                | Interrupt::CutOff
                | Interrupt::ReleaseAtOnce
                | Interrupt::CutOffAtOnce
                | Interrupt::Lost,
            )
            | Self::Timeout
            | Self::LimitExceeded(_) => Signal::TERM,
        }
    }
}

/// How far the termination of a command has come.
#[derive(Clone, Copy, Debug)]
struct Termination {
    cause: Cause,
    kill_at: Instant,
    killed: bool,
}

impl Termination {
    /// When the next step is due.
    fn next_step(self, now: Instant, is_given_up: bool) -> Instant {
        match (self.killed, is_given_up) {
            (false, _) => self.kill_at,
            (true, false) if now < self.kill_at + KILL_TIMEOUT => self.kill_at + KILL_TIMEOUT,
            (true, _) => now + KILL_RETRY_INTERVAL,
        }
    }
}

impl Child {
    /// Starts the command in its own session.
    pub(crate) fn start(start: Start<'_>) -> io::Result<Self> {
        let Start { plan, record, limits, group, .. } = start;
        let pipes = Pipes::open()?;
        let [out, err] = pipes.command_ends();
        // Both streams of a hook process share a pipe, so that the last line of either is the last.
        let err = if record.is_some() { err } else { out };
        let lock = record.filter(|_| !guards::is_off(Guard::AttemptLock));
        let lock = lock.map(|record| (record.file().as_fd(), LOCK_DESCRIPTOR));
        let input = start.input.map(|input| (input, 0));
        let descriptors: Vec<_> = [(out, 1), (err, 2)].into_iter().chain(lock).chain(input).collect();
        let pid_record = record.map(Record::pid_record);
        let start = |invocation: &Invocation| {
            spawn(&Spawn {
                program: &invocation.program,
                argv: &invocation.argv,
                envp: &invocation.envp,
                cwd: Some(&invocation.cwd),
                scope: ProcessScope::Session,
                descriptors: &descriptors,
                limits,
                group: group.map(AsFd::as_fd),
                pid_record,
            })
        };
        // If the program cannot be executed, the shell reports the error in its usual words.
        let started = start(&plan.invocation).or_else(|error| match plan.fallback() {
            Some(shell) => start(&shell),
            None => Err(error),
        });
        failpoint::hit("attempt.after_spawn");
        let ChildProcess { pid, handle } = started?;
        Ok(Self { pid, handle, pipes })
    }

    /// Watches it to its end, and kills every process that it left.
    pub(crate) fn run(
        self,
        supervision: Supervision<'_>,
        capture: &mut Capture,
    ) -> (Option<Cause>, io::Result<ChildExit>) {
        SupervisedChild { child: self, supervision, stopped: Cell::new(None) }.run(capture)
    }
}

struct SupervisedChild<'a> {
    child: Child,
    supervision: Supervision<'a>,
    /// While it is paused.
    stopped: Cell<Option<Stopped>>,
}

impl SupervisedChild<'_> {
    fn run(&self, capture: &mut Capture) -> (Option<Cause>, io::Result<ChildExit>) {
        let termination = self.watch(capture);
        failpoint::hit("attempt.after_exit");
        if let Some(termination) = termination.filter(|termination| !termination.killed) {
            self.wait_for_orphans(termination, capture);
        }
        // Processes outside its process group are killed as orphans.
        self.signal(Signal::KILL);
        let wait = |orphan: &ProcessHandle, timeout| {
            self.child.pipes.read_until_ready(orphan.as_fd(), timeout, capture);
            Ok(())
        };
        self.supervision
            .orphans
            .kill_all(self.supervision.filter, wait, |survivors| self.supervision.report(survivors));
        // A paused command may have been killed by another process. The next one uses the same group.
        self.resume();
        self.child.pipes.drain(capture);
        (termination.map(|termination| termination.cause), self.reap())
    }

    /// Reads its output until its shell has ended, by itself or because it was terminated.
    fn watch(&self, capture: &mut Capture) -> Option<Termination> {
        let mut deadline = Deadline::new(self.supervision.timeout, Instant::now());
        let mut termination: Option<Termination> = None;
        let mut check_at = self.supervision.watching().map(|_| Instant::now() + limits::LIMIT_CHECK_INTERVAL);
        let mut is_given_up = false;
        loop {
            let now = Instant::now();
            if capture.spill_due().is_some_and(|at| at <= now) {
                capture.spill();
            }
            if termination.is_none() && deadline.is_over(now) {
                termination = Some(self.terminate(Cause::Timeout));
            }
            if check_at.is_some_and(|at| at <= now) {
                termination = self.check_limits(termination);
                check_at = Some(Instant::now() + limits::LIMIT_CHECK_INTERVAL);
            }
            termination = termination.map(|termination| self.escalate(termination, now));
            is_given_up |=
                termination.is_some_and(|termination| self.survives_kill(termination, now, is_given_up));
            if is_given_up && self.supervision.report.is_none() {
                return termination;
            }
            let next_step = termination
                .map_or(deadline.at(), |termination| Some(termination.next_step(now, is_given_up)));
            let wake_at = next_step.into_iter().chain(capture.spill_due()).chain(check_at).min();
            let timeout = wake_at.map(|at| at.saturating_duration_since(now));
            let others = [self.child.handle.as_fd(), self.supervision.bell.as_fd()];
            let ([has_ended, was_rung], _) = self.child.pipes.wait(others, timeout, capture);
            if has_ended {
                return termination;
            }
            if was_rung {
                let notice = self.supervision.bell.take();
                if notice.is_watched {
                    capture.watch();
                }
                if let Some(interrupt) = notice.interrupt {
                    termination = Some(self.interrupt(interrupt, termination));
                }
                if let Some(pause) = notice.pause.filter(|_| termination.is_none()) {
                    self.set_paused(pause, &mut deadline);
                }
            }
        }
    }

    fn set_paused(&self, pause: bool, deadline: &mut Deadline) {
        if pause {
            // The whole process group at once, before searching for processes that have left it.
            if self.supervision.filter.group().is_none() {
                self.signal(Signal::STOP);
            }
            self.stopped.set(Some(pause::stop(self.supervision.filter.group(), || self.roots())));
            deadline.pause(Instant::now());
        } else {
            self.resume();
            deadline.resume(Instant::now());
        }
    }

    /// Continues the command if it is paused.
    fn resume(&self) {
        if let Some(stopped) = self.stopped.take() {
            pause::resume(stopped, self.supervision.filter.group(), || self.roots());
        }
    }

    /// Its processes, without those that one of these has started.
    fn roots(&self) -> Vec<Pid> {
        let mut roots = self.supervision.orphans.list(self.supervision.filter);
        roots.push(self.child.pid);
        roots
    }

    /// Kills the command without grace if it exceeds a limit; an earlier cause remains the cause.
    fn check_limits(&self, termination: Option<Termination>) -> Option<Termination> {
        let limits = self.supervision.watching()?;
        let Some(exceeded) = limits.exceeded(self.supervision.filter.group(), || self.roots()) else {
            return termination;
        };
        // Stop the whole process group at once, before searching for processes that have left it.
        self.signal(Signal::STOP);
        if self.supervision.filter.group.is_none() {
            limits::stop_and_kill(|| self.roots());
        }
        Some(self.kill(termination.map_or(Cause::LimitExceeded(exceeded), |before| before.cause)))
    }

    /// The first cause remains the cause, but a lost lease overrides it: nothing may be recorded, and there is no
    /// grace.
    fn interrupt(&self, interrupt: Interrupt, termination: Option<Termination>) -> Termination {
        let cause = Cause::Interrupt(interrupt);
        match (interrupt, termination) {
            (Interrupt::Lost, _) => self.kill(cause),
            (Interrupt::ReleaseAtOnce | Interrupt::CutOffAtOnce, before) => {
                self.kill(before.map_or(cause, |before| before.cause))
            }
            (Interrupt::Cancel(_), Some(before)) => self.cancel_again(cause, before),
            (Interrupt::Release | Interrupt::CutOff, Some(before)) => before,
            (Interrupt::Cancel(_) | Interrupt::Release | Interrupt::CutOff, None) => self.terminate(cause),
        }
    }

    /// A later cancellation may name another signal. The grace is still that of the first.
    fn cancel_again(&self, cause: Cause, before: Termination) -> Termination {
        let is_cancelled = matches!(before.cause, Cause::Interrupt(Interrupt::Cancel(_)));
        if !is_cancelled || before.killed || before.cause.signal() == cause.signal() {
            return before;
        }
        let kill_at = before.kill_at.min(self.terminate(cause).kill_at);
        Termination { cause, kill_at, killed: false }
    }

    fn terminate(&self, cause: Cause) -> Termination {
        self.signal(cause.signal());
        // A stopped process does not handle the signal before SIGCONT.
        self.signal(Signal::CONT);
        self.resume();
        let now = Instant::now();
        Termination {
            cause,
            kill_at: match cause.signal() {
                Signal::KILL => now,
                _ => now.checked_add(self.supervision.kill_grace).unwrap_or(now),
            },
            killed: false,
        }
    }

    fn escalate(&self, termination: Termination, now: Instant) -> Termination {
        if termination.killed || termination.kill_at > now {
            termination
        } else {
            self.kill(termination.cause)
        }
    }

    fn kill(&self, cause: Cause) -> Termination {
        self.kill_all();
        Termination { cause, kill_at: Instant::now(), killed: true }
    }

    fn kill_all(&self) {
        self.signal(Signal::KILL);
        if let Some(group) = self.supervision.filter.group().filter(|group| group.is_populated()) {
            group.kill();
        }
    }

    /// Whether its leader is still alive long after SIGKILL: then the slot is given up, and the kill is repeated
    /// periodically.
    fn survives_kill(&self, termination: Termination, now: Instant, is_given_up: bool) -> bool {
        if !termination.killed || now < termination.kill_at + KILL_TIMEOUT {
            return false;
        }
        if is_given_up {
            self.kill_all();
            return true;
        }
        let survivors = survivors([self.child.pid], now - termination.kill_at);
        let is_one = !survivors.is_empty();
        if is_one {
            self.supervision.report(survivors);
        }
        is_one
    }

    /// The shell has ended, but its descendants may still be cleaning up after the signal. Daemons, which left its group,
    /// get it only now, as they have become children of this worker.
    fn wait_for_orphans(&self, termination: Termination, capture: &mut Capture) {
        let mut signalled = HashSet::new();
        let signal = termination.cause.signal();
        while Instant::now() < termination.kill_at
            && self.supervision.orphans.signal(self.supervision.filter, signal, &mut signalled)
        {
            let ([was_rung], _) =
                self.child.pipes.wait([self.supervision.bell.as_fd()], Some(ORPHAN_POLL_INTERVAL), capture);
            let interrupt = if was_rung { self.supervision.bell.take().interrupt } else { None };
            if let Some(Interrupt::ReleaseAtOnce | Interrupt::CutOffAtOnce | Interrupt::Lost) = interrupt {
                return;
            }
        }
    }

    /// Signals the whole group. The leader is not reaped yet, so the group id is not reused; it may contain only a
    /// zombie.
    fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.child.pid, signal);
    }

    fn reap(&self) -> io::Result<ChildExit> {
        let began = Instant::now();
        loop {
            if let Some(ended) = process::reap(self.child.pid)? {
                return Ok(ended);
            }
            if self.supervision.report.is_none() && began.elapsed() >= KILL_TIMEOUT {
                return Err(io::Error::other(format!(
                    "process {} cannot be killed",
                    self.child.pid.as_raw_pid()
                )));
            }
            self.child.handle.ends_within(ORPHAN_POLL_INTERVAL)?;
        }
    }
}
