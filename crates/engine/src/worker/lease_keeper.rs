//! Ends the commands of a worker before another machine can take its leases over.
//!
//! A lease counts from the moment at which the request that renewed it was *sent*, on CLOCK_BOOTTIME: the store cannot have
//! renewed it earlier, and a machine that sleeps does not stop the others. Without a renewal the commands are asked to end
//! early enough for their `kill_grace`, and killed a margin before the lease ends:
//!
//! ```text
//!   sent ── heartbeat ── … ── SIGTERM ────── kill_grace ────── SIGKILL ── margin ── lease ends
//! ```
//!
//! A `kill_grace` that would take more than half of this time gets half of it: a worker must not ask its commands to end
//! because of one missed heartbeat. From the first signal on, no claim is started. Outcomes stay in the ledger; when the
//! store answers again, it decides which of them it takes.
//!
//! This is a thread of its own, because the main thread may be waiting for the store.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use super::dispatcher::{Dispatcher, EventBell, Interrupt};
use crate::journal::Journal;
use domain::settings::Settings;
use sys::clock::boot_timer::BootTimer;
use sys::clock::since_boot_with_sleep;
use sys::guards;
use sys::guards::Guard;

/// How long before the end of a lease its command is killed.
const KILL_MARGIN: Duration = Duration::from_secs(1);
/// The same for short leases, as a part of the lease.
const MARGINS_PER_LEASE: u32 = 4;

/// A time that is never reached, for when only a renewal can change anything.
const FAR_AHEAD: Duration = Duration::from_secs(u32::MAX as u64);

/// The problem that a worker reports, and the error of the attempts that it ended.
pub(crate) const CUT_OFF: &str = "cut off from the store";

/// How long after the last renewal a worker ends its commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    end_after: Duration,
    kill_after: Duration,
}

impl Limits {
    fn of(lease: Duration, kill_grace: Duration) -> Self {
        let kill_after = lease.saturating_sub(KILL_MARGIN.min(lease / MARGINS_PER_LEASE));
        Self { end_after: kill_after.saturating_sub(kill_grace).max(kill_after / 2), kill_after }
    }

    fn stage(self, since_renewal: Duration) -> Stage {
        if since_renewal >= self.kill_after {
            Stage::Killed
        } else if since_renewal >= self.end_after {
            Stage::Ending
        } else {
            Stage::Kept
        }
    }
}

/// How far a worker has ended its commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Kept,
    Ending,
    Killed,
}

#[derive(Debug)]
struct State {
    limits: Limits,
    /// When the last successful request was sent.
    renewed: Duration,
    stage: Stage,
    is_closed: bool,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Rings when the thread must look at the state again.
    bell: EventBell,
    dispatcher: Arc<Dispatcher>,
    journal: Arc<Journal>,
}

#[derive(Debug)]
pub(crate) struct LeaseKeeper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl LeaseKeeper {
    pub(crate) fn start(
        dispatcher: &Arc<Dispatcher>,
        journal: &Arc<Journal>,
        settings: &Settings,
    ) -> io::Result<Self> {
        let state = State {
            limits: Limits::of(settings.lease, settings.kill_grace),
            renewed: since_boot_with_sleep(),
            stage: Stage::Kept,
            is_closed: false,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            bell: EventBell::new()?,
            dispatcher: Arc::clone(dispatcher),
            journal: Arc::clone(journal),
        });
        let (timer, keeper) = (BootTimer::new()?, Arc::clone(&shared));
        let thread = Builder::new().name("lease-keeper".to_owned()).spawn(move || keeper.keep(&timer))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// The store has renewed every lease by a request that was sent at this time.
    pub(crate) fn note_renewal(&self, sent: Duration) {
        let mut state = self.shared.lock();
        state.renewed = state.renewed.max(sent);
        if state.stage != Stage::Kept && state.current_stage() == Stage::Kept {
            state.stage = Stage::Kept;
            // The thread waits for nothing else once it has killed the commands.
            self.shared.bell.ring();
            self.shared.dispatcher.end_cut_off();
            self.shared.journal.note(format_args!("the store answers again: the worker starts jobs again"));
        }
    }

    pub(crate) fn set_limits(&self, settings: &Settings) {
        self.shared.lock().limits = Limits::of(settings.lease, settings.kill_grace);
        self.shared.bell.ring();
    }

    /// Whether the worker ends its commands because no lease was renewed.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.shared.lock().stage != Stage::Kept
    }
}

impl Drop for LeaseKeeper {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.bell.ring();
        if let Some(thread) = self.thread.take() {
            // A panic has already aborted the process.
            let _ = thread.join();
        }
    }
}

impl State {
    fn current_stage(&self) -> Stage {
        self.limits.stage(since_boot_with_sleep().saturating_sub(self.renewed))
    }

    /// When the next stage begins.
    fn next_stage_at(&self) -> Option<Duration> {
        match self.stage {
            Stage::Kept => Some(self.renewed + self.limits.end_after),
            Stage::Ending => Some(self.renewed + self.limits.kill_after),
            Stage::Killed => None,
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, timer: &BootTimer) {
        while let Some(next) = self.advance() {
            let at = next.unwrap_or(FAR_AHEAD);
            if timer.set(at).is_err() {
                return;
            }
            let mut watched = [
                PollFd::from_borrowed_fd(timer.as_fd(), PollFlags::IN),
                PollFd::new(&self.bell, PollFlags::IN),
            ];
            // An interrupted sleep just ends early.
            let _ = poll(&mut watched, None);
            self.bell.clear();
        }
    }

    /// Does what is due. Returns when the next step is, or `None` if the worker ends.
    #[expect(clippy::option_option, reason = "the worker ends, or no step is due")]
    fn advance(&self) -> Option<Option<Duration>> {
        let mut state = self.lock();
        if state.is_closed {
            return None;
        }
        let due = state.current_stage();
        if due > state.stage && !guards::is_off(Guard::SelfFencing) {
            state.stage = due;
            let is_last = due == Stage::Killed;
            self.dispatcher.cut_off(if is_last { Interrupt::CutOffAtOnce } else { Interrupt::CutOff });
            let how = if is_last { "killed" } else { "asked to end" };
            self.journal
                .note(format_args!("{CUT_OFF}: no lease was renewed in time, the commands are {how}"));
        }
        Some(state.next_stage_at())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(lease: u64, kill_grace: u64) -> (u128, u128) {
        let limits = Limits::of(Duration::from_millis(lease), Duration::from_millis(kill_grace));
        (limits.end_after.as_millis(), limits.kill_after.as_millis())
    }

    #[test]
    fn commands_are_asked_to_end_early_enough_for_their_grace() {
        assert_eq!(millis(60_000, 10_000), (49_000, 59_000));
        assert_eq!(millis(30_000, 10_000), (19_000, 29_000));
        assert_eq!(millis(30_000, 0), (29_000, 29_000));
    }

    #[test]
    fn a_grace_that_the_lease_has_no_room_for_is_cut() {
        assert_eq!(millis(30_000, 20_000), (14_500, 29_000), "more than half");
        assert_eq!(millis(30_000, 30_000), (14_500, 29_000), "the whole lease");
        assert_eq!(millis(30_000, 3_600_000), (14_500, 29_000), "an hour");
    }

    #[test]
    fn a_short_lease_has_a_short_margin() {
        assert_eq!(millis(3_000, 10_000), (1_125, 2_250));
        assert_eq!(millis(0, 10_000), (0, 0));
    }

    #[test]
    fn the_stages_follow_each_other() {
        let limits = Limits::of(Duration::from_secs(60), Duration::from_secs(10));
        let stage = |seconds| limits.stage(Duration::from_secs(seconds));
        assert_eq!([0, 48].map(stage), [Stage::Kept; 2]);
        assert_eq!([49, 58].map(stage), [Stage::Ending; 2]);
        assert_eq!([59, 60, 6_000].map(stage), [Stage::Killed; 3], "also after a sleep");
    }
}
