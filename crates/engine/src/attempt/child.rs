//! A command that was started: watching it, ending it, cleaning up after it.
//!
//! ```text
//!   runs ──────────────▶ its shell ends ──▶ leftovers are killed ──▶ reaped
//!     │ timeout, cancel,      ▲
//!     │ stop, lost lease      │
//!     └─▶ SIGTERM, SIGCONT ── grace ── SIGKILL
//! ```
//!
//! It is reaped last: until then nobody else can be given its pid, which is also the number of its group and of its
//! session.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::capture::Capture;
use super::command::{Plan, Prepared};
use super::cookie::Cookie;
use super::limits;
use super::limits::Confinement;
use super::pipes::Pipes;
use super::slot_records::{Mark, Record};
use crate::orphans::reparented::{Adopted, Family, Then};
use crate::orphans::survivor::{AGAIN, DEATH, survivors};
use crate::worker::dispatcher::{Interrupt, SlotBell, SlotReport};
use domain::job::limits::Excess;
use sys::failpoint;
use sys::guards;
use sys::guards::Guard;
use sys::process;
use sys::process::brand::Brand;
use sys::process::spawn::{ChildProcess, Limits, ProcessScope, Spawn, spawn};
use sys::process::{ChildExit, ProcessHandle};

/// The number under which a command inherits the lock of its slot. Below 64, because a larger table of descriptors must
/// be allocated; far above what scripts use.
const LOCK_DESCRIPTOR: i32 = 60;
/// How often a command that is being ended looks whether what it left behind is gone.
const LOOK: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) pid: Pid,
    handle: ProcessHandle,
    pipes: Pipes,
}

/// What decides over a running command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Oversight<'a> {
    pub(crate) timeout: Option<Duration>,
    pub(crate) kill_grace: Duration,
    pub(crate) bell: &'a SlotBell,
    pub(crate) brand: Option<Brand>,
    pub(crate) adopted: &'a Adopted,
    pub(crate) cookie: &'a Cookie,
    pub(crate) mark: &'a Mark<'a>,
    /// `None`: it may use whatever there is.
    pub(crate) confinement: Option<&'a Confinement>,
    /// Where the slot says that it cannot end the command.
    pub(crate) report: SlotReport<'a>,
}

impl<'a> Oversight<'a> {
    fn watching(&self) -> Option<&'a Confinement> {
        self.confinement.filter(|confinement| confinement.is_watched())
    }
}

/// Why a command was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Timeout,
    Interrupt(Interrupt),
    Excess(Excess),
}

/// How far the ending of a command has come.
#[derive(Clone, Copy, Debug)]
struct Ladder {
    cause: Cause,
    kill_at: Instant,
    killed: bool,
}

impl Ladder {
    /// When there is something to do about it.
    fn next_step(self, now: Instant, is_given_up: bool) -> Instant {
        match (self.killed, is_given_up) {
            (false, _) => self.kill_at,
            (true, false) if now < self.kill_at + DEATH => self.kill_at + DEATH,
            (true, _) => now + AGAIN,
        }
    }
}

impl Child {
    /// Starts the command in a session of its own; the record says which process it is.
    pub(crate) fn start(plan: &Plan, record: &Record, limits: Limits<'_>) -> io::Result<Self> {
        let pipes = Pipes::open()?;
        let [out, err] = pipes.command_ends();
        let descriptors = [(out, 1), (err, 2), (record.file().as_fd(), LOCK_DESCRIPTOR)];
        let is_unlocked = guards::is_off(Guard::AttemptLock);
        let descriptors = if is_unlocked { &descriptors[..2] } else { &descriptors[..] };
        let ChildProcess { pid, handle } = record.start(|| {
            // Whatever is wrong with a program, the shell has the right words for it.
            let started =
                spawn_session(plan.prepared(), descriptors, limits).or_else(|error| match plan.fallback() {
                    Some(shell) => spawn_session(&shell, descriptors, limits),
                    None => Err(error),
                });
            failpoint::hit("attempt.after_spawn");
            started
        })?;
        Ok(Self { pid, handle, pipes })
    }

    /// Watches it to its end. Nothing that it started is left then.
    pub(crate) fn run(
        mut self,
        oversight: Oversight<'_>,
        capture: &mut Capture,
    ) -> (Option<Cause>, io::Result<ChildExit>) {
        let Oversight { cookie, mark, brand, .. } = oversight;
        let family = Family { leader: self.pid, cookie, mark: Some(mark), brand };
        let ladder = self.watch(oversight, family, capture);
        failpoint::hit("attempt.after_exit");
        if let Some(ladder) = ladder.filter(|ladder| !ladder.killed) {
            self.wait_for_leftovers(ladder.kill_at, oversight, family, capture);
        }
        self.kill_all(oversight);
        let wait = |orphan: &ProcessHandle, patience| {
            self.pipes.read_until_ready(orphan.as_fd(), patience, capture);
            Ok(())
        };
        oversight.adopted.end(family, wait, |survivors| {
            oversight.report.give_up(survivors);
            Then::Wait
        });
        self.pipes.drain(capture);
        (ladder.map(|ladder| ladder.cause), self.reap())
    }

    /// Reads its output until its shell has ended, by itself or because it was made to.
    fn watch(
        &mut self,
        oversight: Oversight<'_>,
        family: Family<'_>,
        capture: &mut Capture,
    ) -> Option<Ladder> {
        let deadline = oversight.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut ladder: Option<Ladder> = None;
        let mut look_at = oversight.watching().map(|_| Instant::now() + limits::LOOK);
        let mut is_given_up = false;
        loop {
            let now = Instant::now();
            if capture.spill_due().is_some_and(|at| at <= now) {
                capture.spill();
            }
            if ladder.is_none() && deadline.is_some_and(|at| at <= now) {
                ladder = Some(self.ask_to_end(Cause::Timeout, oversight.kill_grace));
            }
            if look_at.is_some_and(|at| at <= now) {
                ladder = self.look(oversight, family, ladder);
                look_at = Some(Instant::now() + limits::LOOK);
            }
            ladder = ladder.map(|ladder| self.climb(ladder, now, oversight));
            is_given_up |= ladder.is_some_and(|ladder| self.outlives(ladder, now, is_given_up, oversight));
            let next_step = ladder.map_or(deadline, |ladder| Some(ladder.next_step(now, is_given_up)));
            let wake_at = next_step.into_iter().chain(capture.spill_due()).chain(look_at).min();
            let patience = wake_at.map(|at| at.saturating_duration_since(now));
            let others = [self.handle.as_fd(), oversight.bell.as_fd()];
            let [has_ended, was_told] = self.pipes.wait(others, patience, capture);
            if has_ended {
                return ladder;
            }
            if was_told {
                let told = oversight.bell.take();
                if told.is_watched {
                    capture.watch();
                }
                if let Some(interrupt) = told.interrupt {
                    ladder = Some(self.interrupt(interrupt, ladder, oversight));
                }
            }
        }
    }

    /// Whether it uses more than it may: then there is no grace, and the first cause stays the cause.
    fn look(&self, oversight: Oversight<'_>, family: Family<'_>, ladder: Option<Ladder>) -> Option<Ladder> {
        let roots = || {
            let mut roots = oversight.adopted.orphans_of(family);
            roots.push(self.pid);
            roots
        };
        let confinement = oversight.watching()?;
        let Some(excess) = confinement.look(roots) else {
            return ladder;
        };
        // All of its group at the same moment, before those that have left it are looked for.
        self.signal(Signal::STOP);
        confinement.put_down(roots);
        Some(self.kill(ladder.map_or(Cause::Excess(excess), |before| before.cause), oversight))
    }

    /// The first cause stays the cause, but a lost lease overrules all: nothing may be recorded, and there is no time.
    fn interrupt(&self, interrupt: Interrupt, ladder: Option<Ladder>, oversight: Oversight<'_>) -> Ladder {
        let cause = Cause::Interrupt(interrupt);
        match (interrupt, ladder) {
            (Interrupt::Lost, _) => self.kill(cause, oversight),
            (Interrupt::ReleaseAtOnce, before) => {
                self.kill(before.map_or(cause, |before| before.cause), oversight)
            }
            (Interrupt::Cancel | Interrupt::Release, Some(before)) => before,
            (Interrupt::Cancel | Interrupt::Release, None) => self.ask_to_end(cause, oversight.kill_grace),
        }
    }

    fn ask_to_end(&self, cause: Cause, grace: Duration) -> Ladder {
        self.signal(Signal::TERM);
        // A stopped process acts on nothing but this.
        self.signal(Signal::CONT);
        let now = Instant::now();
        Ladder { cause, kill_at: now.checked_add(grace).unwrap_or(now), killed: false }
    }

    fn climb(&self, ladder: Ladder, now: Instant, oversight: Oversight<'_>) -> Ladder {
        if ladder.killed || ladder.kill_at > now { ladder } else { self.kill(ladder.cause, oversight) }
    }

    fn kill(&self, cause: Cause, oversight: Oversight<'_>) -> Ladder {
        self.kill_all(oversight);
        Ladder { cause, kill_at: Instant::now(), killed: true }
    }

    fn kill_all(&self, oversight: Oversight<'_>) {
        self.signal(Signal::KILL);
        if let Some(confinement) = oversight.confinement {
            confinement.kill();
        }
    }

    /// Whether its leader lives on long after it was killed: then the slot is given up, and it is killed again now and then.
    fn outlives(&self, ladder: Ladder, now: Instant, is_given_up: bool, oversight: Oversight<'_>) -> bool {
        if !ladder.killed || now < ladder.kill_at + DEATH {
            return false;
        }
        if is_given_up {
            self.kill_all(oversight);
            return true;
        }
        let survivors = survivors(&[self.pid], now - ladder.kill_at);
        let is_one = !survivors.is_empty();
        if is_one {
            oversight.report.give_up(survivors);
        }
        is_one
    }

    /// The shell is gone, but what it started may still be tidying up after the SIGTERM. Daemons, which left its group,
    /// hear of it only now that they are ours.
    fn wait_for_leftovers(
        &mut self,
        until: Instant,
        oversight: Oversight<'_>,
        family: Family<'_>,
        capture: &mut Capture,
    ) {
        let mut asked = HashSet::new();
        while Instant::now() < until && oversight.adopted.ask_to_end(family, &mut asked) {
            let [was_told] = self.pipes.wait([oversight.bell.as_fd()], Some(LOOK), capture);
            let interrupt = if was_told { oversight.bell.take().interrupt } else { None };
            if let Some(Interrupt::ReleaseAtOnce | Interrupt::Lost) = interrupt {
                return;
            }
        }
    }

    /// To its whole group. It is not reaped yet, so the group is its own; that only a zombie may be left in it is fine.
    fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.pid, signal);
    }

    fn reap(&self) -> io::Result<ChildExit> {
        loop {
            if let Some(ended) = process::reap(self.pid)? {
                return Ok(ended);
            }
            self.handle.ends_within(LOOK)?;
        }
    }
}

fn spawn_session(
    prepared: &Prepared,
    descriptors: &[(BorrowedFd<'_>, i32)],
    limits: Limits<'_>,
) -> io::Result<ChildProcess> {
    spawn(&Spawn {
        program: &prepared.program,
        argv: &prepared.argv,
        envp: &prepared.envp,
        cwd: Some(&prepared.cwd),
        scope: ProcessScope::Session,
        descriptors,
        limits,
    })
}
