//! The dispatcher between the ledger and the slots: it queues claimed jobs until a slot takes them, and finished
//! attempts until the ledger records them.

mod bell;

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(crate) use self::bell::{EventBell, SlotBell};
use crate::attempt::{FinishedAttempt, Rules};
use crate::orphans::survivor::Survivor;
use domain::values::signal::Signal;
use domain::values::timestamp::Timestamp;
use store::{Claim, LeaseRef, ServedJobs, UnkillableProcess};

/// Why an attempt is ended early, in ascending order of urgency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Interrupt {
    /// The job was cancelled: its command first gets this signal.
    Cancel(Signal),
    /// A shutdown releases it after `kill_grace`.
    Release,
    /// The lease cannot be renewed: the command ends in time before another machine can take the lease over.
    CutOff,
    /// A shutdown releases it without any grace.
    ReleaseAtOnce,
    /// The lease is about to end.
    CutOffAtOnce,
    /// The lease is lost: another worker may already have claimed the job.
    Lost,
}

/// Slots take the queued claim with the smallest key first: by queue if the worker serves queues in an order, then by
/// priority and due time. A later claim may overtake queued ones: it has a higher priority, or its queue had no capacity
/// before. A claim that runs alone sorts last, so that it keeps no slot from starting the others.
fn order_key(served: &ServedJobs, claim: &Claim) -> (bool, usize, Reverse<i32>, Timestamp, u64) {
    let rank = match served {
        ServedJobs::All | ServedJobs::Batch(_) | ServedJobs::Job(_) => 0,
        ServedJobs::InOrder(queues) => queues.iter().position(|queue| *queue == claim.queue).unwrap_or(0),
    };
    (claim.runs_alone, rank, Reverse(claim.priority), claim.due_at, claim.number)
}

/// How long a claim that must run alone waits for the worker's other attempts to end. Another attempt may run for
/// hours, or may itself wait for this very job; then the claim starts anyway, and if the worker dies, that loss does
/// not make the job dead.
const MAX_ALONE_WAIT: Duration = Duration::from_secs(10);
/// How many jobs with a reader are remembered at most until their claims arrive.
const MAX_PENDING_READERS: usize = 16;

#[derive(Debug)]
pub(crate) struct Dispatcher {
    state: Mutex<State>,
    /// Signalled when claims arrive, or when the dispatcher is closed.
    changed: Condvar,
    /// Wakes the ledger.
    bell: EventBell,
}

#[derive(Debug)]
struct State {
    claims: VecDeque<QueuedClaim>,
    served: ServedJobs,
    finished: Vec<FinishedAttempt>,
    slots: Vec<Slot>,
    /// How many attempts may run at once.
    max_running: usize,
    rules: Rules,
    /// How many slots wait for a claim.
    idle: usize,
    /// With fewer queued claims than this, the ledger must commit without delay.
    low_watermark: usize,
    /// Attempts that have ended and are not recorded yet: if the worker dies now, they are lost too.
    unrecorded: usize,
    /// Processes that slots could not kill and that the ledger has not taken yet.
    unkillable: Vec<UnkillableProcess>,
    is_closed: bool,
    /// No lease can be renewed: no claim is started.
    is_cut_off: bool,
    /// Jobs with a reader whose claims have not arrived yet: a reader may see a claim before this worker does.
    watched: VecDeque<u64>,
    /// The leases of paused jobs.
    paused: Vec<LeaseRef>,
}

#[derive(Debug)]
struct QueuedClaim {
    claim: Claim,
    since: Instant,
    /// A reader waits for its output.
    is_watched: bool,
}

#[derive(Debug)]
struct Slot {
    running: Option<LeaseRef>,
    /// The number of its job.
    number: u64,
    /// The running job's queue has a limit.
    is_limited: bool,
    /// The running job must run alone.
    is_alone: bool,
    /// The running command cannot be killed: another slot has replaced this one.
    is_given_up: bool,
    bell: Arc<SlotBell>,
}

impl Slot {
    /// Whether it runs an attempt that can still be ended.
    fn is_busy(&self) -> bool {
        self.running.is_some() && !self.is_given_up
    }

    /// Whether it runs the job of a claim, or one with its number, which names the log file.
    fn runs(&self, claim: &Claim) -> bool {
        let lease = self.running.as_ref();
        lease.is_some_and(|lease| lease.job == claim.lease.job || self.number == claim.number)
    }
}

impl State {
    /// Slots that are about to take the next claims; on a busy machine that may take a while.
    fn idle_slots(&self) -> usize {
        let usable = self.slots.iter().filter(|slot| !slot.is_given_up).count();
        self.max_running.min(usable).saturating_sub(self.busy())
    }

    /// The number of running attempts that can still be ended.
    fn busy(&self) -> usize {
        self.slots.iter().filter(|slot| slot.is_busy()).count()
    }

    /// Whether the running attempt must run alone, so that nothing else may be started.
    fn is_reserved(&self) -> bool {
        self.slots.iter().any(|slot| slot.is_busy() && slot.is_alone)
    }

    /// The next claim, if it may be started now.
    fn next(&mut self) -> Option<QueuedClaim> {
        let front = self.claims.front()?;
        let busy = self.busy();
        let has_company = busy > 0 || self.unrecorded > 0;
        let must_wait = front.claim.runs_alone && has_company && front.since.elapsed() < MAX_ALONE_WAIT;
        if busy >= self.max_running || must_wait || self.is_reserved() || self.is_cut_off {
            return None;
        }
        let mut next = self.claims.pop_front()?;
        next.claim.runs_alone &= !has_company;
        Some(next)
    }

    /// How long the first claim must still wait for others to end, if it must run alone.
    fn alone_wait_left(&self) -> Option<Duration> {
        let front = self.claims.front().filter(|queued| queued.claim.runs_alone)?;
        Some(MAX_ALONE_WAIT.saturating_sub(front.since.elapsed())).filter(|left| !left.is_zero())
    }

    fn put(&mut self, queued: QueuedClaim) {
        let key = order_key(&self.served, &queued.claim);
        let at = self.claims.partition_point(|other| order_key(&self.served, &other.claim) <= key);
        self.claims.insert(at, queued);
    }

    /// Since when the oldest claim without an idle slot has been queued.
    fn oldest_prefetched(&self) -> Option<Instant> {
        self.claims.iter().skip(self.idle_slots()).map(|queued| queued.since).min()
    }
}

/// Running attempts and queued claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    /// How many of both belong to queues with a limit.
    pub(crate) limited: usize,
    /// One of both must run alone, so the worker must claim nothing else.
    pub(crate) is_reserved: bool,
}

impl Dispatcher {
    pub(crate) fn new(rules: Rules, served: ServedJobs) -> io::Result<Self> {
        let state = State {
            claims: VecDeque::new(),
            served,
            finished: Vec::new(),
            slots: Vec::new(),
            max_running: usize::MAX,
            rules,
            idle: 0,
            low_watermark: 0,
            unrecorded: 0,
            unkillable: Vec::new(),
            is_closed: false,
            is_cut_off: false,
            watched: VecDeque::new(),
            paused: Vec::new(),
        };
        Ok(Self { state: Mutex::new(state), changed: Condvar::new(), bell: EventBell::new()? })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // For slots

    /// Adds a slot; returns its number and its bell.
    pub(crate) fn add_slot(&self) -> io::Result<(usize, Arc<SlotBell>)> {
        let bell = Arc::new(SlotBell::new()?);
        let mut state = self.lock();
        state.slots.push(Slot {
            running: None,
            number: 0,
            is_limited: false,
            is_alone: false,
            is_given_up: false,
            bell: Arc::clone(&bell),
        });
        Ok((state.slots.len() - 1, bell))
    }

    /// Waits for the slot's next claim; `None` when the dispatcher is closed or the slot was given up.
    pub(crate) fn take(&self, slot: usize) -> Option<(Claim, Rules)> {
        let mut state = self.lock();
        loop {
            if state.slots[slot].is_given_up {
                return None;
            }
            if let Some(QueuedClaim { claim, is_watched, .. }) = state.next() {
                state.slots[slot].bell.reset();
                if is_watched {
                    state.slots[slot].bell.ring_for_reader();
                }
                if state.paused.contains(&claim.lease) {
                    state.slots[slot].bell.ring_to_pause(true);
                }
                state.slots[slot].number = claim.number;
                state.slots[slot].running = Some(claim.lease.clone());
                state.slots[slot].is_limited = claim.is_limited;
                state.slots[slot].is_alone = claim.runs_alone;
                if state.claims.len() + 1 == state.low_watermark && !state.finished.is_empty() {
                    self.bell.ring();
                }
                return Some((claim, state.rules));
            }
            if state.is_closed {
                return None;
            }
            state.idle += 1;
            state = match state.alone_wait_left() {
                Some(left) => self.wait_within(state, left),
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
            state.idle -= 1;
        }
    }

    fn wait_within<'a>(&self, state: MutexGuard<'a, State>, left: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn submit(&self, slot: usize, finished: FinishedAttempt) {
        let mut state = self.lock();
        state.slots[slot].running = None;
        state.unrecorded += usize::from(finished.settlement.is_some());
        state.finished.push(finished);
        let is_first = state.finished.len() == 1;
        self.wake_closer(&state);
        drop(state);
        if is_first {
            self.bell.ring();
        }
    }

    /// This slot cannot kill its command. It keeps the lease, and the worker starts another slot in its place.
    fn give_up(&self, slot: usize, unkillable: Vec<UnkillableProcess>) {
        let mut state = self.lock();
        state.unkillable.extend(unkillable);
        state.slots[slot].is_given_up = true;
        self.wake_closer(&state);
        drop(state);
        self.bell.ring();
    }

    /// `close` waits until every slot is idle.
    fn wake_closer(&self, state: &State) {
        if state.is_closed {
            self.changed.notify_all();
        }
    }

    // For the ledger

    /// Queues claims for the slots. The ledger is woken when fewer than `low_watermark` of them are left.
    pub(crate) fn dispatch(&self, claims: Vec<Claim>, low_watermark: usize) {
        let since = Instant::now();
        let mut state = self.lock();
        let to_wake = claims.len().min(state.idle);
        state.low_watermark = low_watermark;
        for claim in claims {
            let watched = state.watched.iter().position(|number| *number == claim.number);
            let is_watched = watched.is_some_and(|at| state.watched.remove(at).is_some());
            state.put(QueuedClaim { claim, since, is_watched });
        }
        drop(state);
        for _ in 0..to_wake {
            self.changed.notify_one();
        }
    }

    /// Leaves out claims of jobs that this worker still runs or has queued. A store gives out such a job, or its number, only
    /// if it has lost its last commits, as after a failover to a standby that lagged behind. The same attempt continues under
    /// the new lease. Another one is ended; the worker does not know the new lease, so its next heartbeat releases that.
    pub(crate) fn without_running(&self, mut claims: Vec<Claim>) -> Vec<Claim> {
        let state = self.lock();
        claims.retain(|claim| {
            let slot = state.slots.iter().find(|slot| slot.runs(claim));
            if let Some(slot) = slot
                && slot.running.as_ref() != Some(&claim.lease)
            {
                slot.bell.ring(Interrupt::Lost);
            }
            let is_queued = state.claims.iter().any(|queued| queued.claim.lease.job == claim.lease.job);
            slot.is_none() && !is_queued
        });
        claims
    }

    /// Notes that `count` ended attempts are recorded: a claim that must run alone may have waited for that.
    pub(crate) fn note_recorded(&self, count: usize) {
        let mut state = self.lock();
        state.unrecorded -= count;
        let is_awaited = state.claims.front().is_some_and(|queued| queued.claim.runs_alone);
        drop(state);
        if is_awaited {
            self.changed.notify_one();
        }
    }

    /// Whether enough claims are queued that no slot waits for the ledger. If so, the bell is cleared and rings again
    /// when that changes.
    pub(crate) fn has_enough_claims(&self) -> bool {
        let state = self.lock();
        let has_enough_claims = state.low_watermark > 0 && state.claims.len() >= state.low_watermark;
        if has_enough_claims {
            self.bell.clear();
        }
        has_enough_claims
    }

    pub(crate) fn take_finished(&self) -> Vec<FinishedAttempt> {
        self.bell.clear();
        std::mem::take(&mut self.lock().finished)
    }

    pub(crate) fn load(&self) -> Load {
        let state = self.lock();
        let running = || state.slots.iter().filter(|slot| slot.is_busy());
        let limited = running().filter(|slot| slot.is_limited).count()
            + state.claims.iter().filter(|queued| queued.claim.is_limited).count();
        let is_reserved =
            state.is_reserved() || state.claims.back().is_some_and(|queued| queued.claim.runs_alone);
        Load { running: running().count(), waiting: state.claims.len(), limited, is_reserved }
    }

    /// Takes the list of processes that could not be killed.
    pub(crate) fn take_unkillable(&self) -> Vec<UnkillableProcess> {
        std::mem::take(&mut self.lock().unkillable)
    }

    /// The number of slots that were given up.
    pub(crate) fn given_up(&self) -> usize {
        self.lock().slots.iter().filter(|slot| slot.is_given_up).count()
    }

    /// The leases of running attempts that cannot be killed.
    pub(crate) fn unkillable_leases(&self) -> Vec<LeaseRef> {
        let state = self.lock();
        let given_up = state.slots.iter().filter(|slot| slot.is_given_up);
        given_up.filter_map(|slot| slot.running.clone()).collect()
    }

    /// Whether nothing is queued, finished or running, except attempts that cannot be killed.
    pub(crate) fn is_drained(&self) -> bool {
        let state = self.lock();
        state.claims.is_empty() && state.finished.is_empty() && !state.slots.iter().any(Slot::is_busy)
    }

    /// The leases of all queued claims, running attempts, and finished attempts that the ledger has not taken yet.
    pub(crate) fn leases(&self) -> Vec<LeaseRef> {
        let state = self.lock();
        let waiting = state.claims.iter().map(|queued| &queued.claim.lease);
        let running = state.slots.iter().filter_map(|slot| slot.running.as_ref());
        let finished = state.finished.iter().filter_map(|finished| finished.settlement.as_ref());
        waiting.chain(running).chain(finished.map(|settlement| &settlement.lease)).cloned().collect()
    }

    /// Ends the attempts for which `why` gives a reason; returns the claims among them that no slot has taken yet. Both
    /// under one lock: a slot that ends one of these attempts must not take another of them.
    pub(crate) fn interrupt(&self, why: impl Fn(&LeaseRef) -> Option<Interrupt>) -> Vec<Claim> {
        let mut state = self.lock();
        for slot in &state.slots {
            if let Some(why) = slot.running.as_ref().and_then(&why) {
                slot.bell.ring(why);
            }
        }
        let (interrupted, others) =
            state.claims.drain(..).partition(|queued: &QueuedClaim| why(&queued.claim.lease).is_some());
        state.claims = others;
        VecDeque::into_iter(interrupted).map(|queued| queued.claim).collect()
    }

    /// Pauses the attempts with these leases, and continues all others.
    pub(crate) fn set_paused(&self, paused: &[LeaseRef]) {
        let mut state = self.lock();
        if state.paused == paused {
            return;
        }
        let before = std::mem::replace(&mut state.paused, paused.to_vec());
        for slot in &state.slots {
            let Some(lease) = &slot.running else { continue };
            let is_paused = paused.contains(lease);
            if before.contains(lease) != is_paused {
                slot.bell.ring_to_pause(is_paused);
            }
        }
    }

    /// Notes that readers follow the output of these jobs.
    pub(crate) fn note_readers(&self, numbers: &[u64]) {
        let mut state = self.lock();
        for number in numbers {
            let mut slots = state.slots.iter().filter(|slot| slot.running.is_some());
            if let Some(slot) = slots.find(|slot| slot.number == *number) {
                slot.bell.ring_for_reader();
            } else if let Some(queued) = state.claims.iter_mut().find(|one| one.claim.number == *number) {
                queued.is_watched = true;
            } else {
                state.watched.truncate(MAX_PENDING_READERS - 1);
                state.watched.push_front(*number);
            }
        }
    }

    /// Ends every running attempt.
    pub(crate) fn interrupt_all(&self, why: Interrupt) {
        for slot in self.lock().slots.iter().filter(|slot| slot.running.is_some()) {
            slot.bell.ring(why);
        }
    }

    /// Ends every running attempt, and starts no claim until [`Self::end_cut_off`].
    pub(crate) fn cut_off(&self, why: Interrupt) {
        let mut state = self.lock();
        state.is_cut_off = true;
        for slot in state.slots.iter().filter(|slot| slot.running.is_some()) {
            slot.bell.ring(why);
        }
    }

    /// Starts claims again.
    pub(crate) fn end_cut_off(&self) {
        self.lock().is_cut_off = false;
        self.changed.notify_all();
    }

    /// Takes back every claim that no slot has taken.
    pub(crate) fn recall(&self) -> Vec<Claim> {
        self.lock().claims.drain(..).map(|queued| queued.claim).collect()
    }

    /// Takes back the claims that have no idle slot, if one of them was queued before this moment. All of them: a later
    /// claim must not run before an earlier one that is released and claimed again.
    pub(crate) fn recall_prefetched(&self, before: Instant) -> Vec<Claim> {
        let mut state = self.lock();
        if state.oldest_prefetched().is_none_or(|since| since >= before) {
            return Vec::new();
        }
        let soon_taken = state.idle_slots();
        state.claims.split_off(soon_taken).into_iter().map(|queued| queued.claim).collect()
    }

    /// Since when the oldest claim without an idle slot has been queued.
    pub(crate) fn oldest_prefetched(&self) -> Option<Instant> {
        self.lock().oldest_prefetched()
    }

    /// Sets the rules for attempts that start from now on.
    pub(crate) fn set_rules(&self, rules: Rules) {
        self.lock().rules = rules;
    }

    /// Limits how many attempts run at once; running attempts are not affected.
    pub(crate) fn set_max_running(&self, max_running: usize) {
        let before = std::mem::replace(&mut self.lock().max_running, max_running);
        if before != max_running {
            self.changed.notify_all();
        }
    }

    /// Accepts no more claims: slots end when the queue is empty. Returns when only attempts that cannot be killed
    /// still run.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        self.changed.notify_all();
        while state.slots.iter().any(Slot::is_busy) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl AsFd for Dispatcher {
    /// Readable when an attempt has finished.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// Lets a slot report that it cannot end its attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotReport<'a> {
    pub(crate) dispatcher: &'a Dispatcher,
    pub(crate) slot: usize,
    pub(crate) lease: &'a LeaseRef,
}

impl SlotReport<'_> {
    pub(crate) fn give_up(&self, survivors: Vec<Survivor>) {
        let unkillable = survivors.into_iter().map(|survivor| survivor.of(self.lease));
        self.dispatcher.give_up(self.slot, unkillable.collect());
    }
}

#[cfg(test)]
mod tests;
