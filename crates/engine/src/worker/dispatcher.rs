//! Where the ledger and the slots meet: claimed jobs lie here until a slot takes them, finished attempts until the
//! ledger records them.

mod bell;

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(crate) use super::dispatcher::bell::{EventBell, SlotBell};
use crate::attempt::{Finished, Rules};
use crate::orphans::survivor::Survivor;
use domain::values::name::QueueName;
use domain::values::timestamp::Timestamp;
use store::{Claim, LeaseRef, UnkillableProcess};

/// Why an attempt is ended before its time; the most pressing reason last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Interrupt {
    /// Somebody cancelled the job.
    Cancel,
    /// A shutdown gives it back, after the usual grace.
    Release,
    /// The same, without any grace.
    ReleaseAtOnce,
    /// The lease is lost: another may have the job already.
    Lost,
}

/// Which of the claims that lie here a slot takes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The one whose turn it is among all.
    Turn,
    /// The same, but these queues go before each other.
    Queues(Vec<QueueName>),
}

impl Order {
    /// The smallest goes first. What was claimed later may stand before others that lie here: it was urgent, or its queue
    /// had no room before.
    /// One that runs alone waits until all others are done, so that it keeps no slot from starting them.
    fn key(&self, claim: &Claim) -> (bool, usize, Reverse<i32>, Timestamp, u64) {
        let rank = match self {
            Self::Turn => 0,
            Self::Queues(queues) => queues.iter().position(|queue| *queue == claim.queue).unwrap_or(0),
        };
        (claim.runs_alone, rank, Reverse(claim.priority), claim.due_at, claim.number)
    }
}

/// How long a claim that must be alone waits for the others of its worker to end. A neighbour may run for hours, or itself
/// wait for this very job; then the claim starts beside it, and its loss would not be the last.
const SOLITUDE_PATIENCE: Duration = Duration::from_secs(10);
/// How many jobs with a reader are remembered at most until their claims come.
const MOST_WATCHED: usize = 16;

#[derive(Debug)]
pub(crate) struct Desk {
    state: Mutex<State>,
    /// Claims have come, or none will come any more.
    changed: Condvar,
    /// Wakes the ledger.
    bell: EventBell,
}

#[derive(Debug)]
struct State {
    claims: VecDeque<Waiting>,
    order: Order,
    finished: Vec<Finished>,
    slots: Vec<Slot>,
    /// How many attempts may run at once.
    most: usize,
    rules: Rules,
    /// How many slots sleep until there is something to take.
    idle: usize,
    /// With fewer claims than this waiting for a slot, the ledger has to hurry.
    low_stock: usize,
    /// Attempts that have ended and are not recorded yet: should the worker die now, they are lost too.
    unrecorded: usize,
    /// Processes that slots could not kill and that the ledger does not know of yet.
    unkillable: Vec<UnkillableProcess>,
    is_closed: bool,
    /// Jobs with a reader whose claims have not come yet: a reader may see a claim before this worker does.
    watched: VecDeque<u64>,
}

#[derive(Debug)]
struct Waiting {
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
    /// What runs is of a queue with a limit.
    is_limited: bool,
    /// What runs must be alone.
    is_alone: bool,
    /// What runs cannot be killed: another slot has taken this one's place.
    is_given_up: bool,
    bell: Arc<SlotBell>,
}

impl Slot {
    /// Whether it runs something that can be ended.
    fn is_busy(&self) -> bool {
        self.running.is_some() && !self.is_given_up
    }
}

impl State {
    /// Slots that take the next claims as soon as they get to it; on a busy machine that may take a while.
    fn idle_slots(&self) -> usize {
        let usable = self.slots.iter().filter(|slot| !slot.is_given_up).count();
        self.most.min(usable).saturating_sub(self.busy())
    }

    /// How many attempts run that can be ended.
    fn busy(&self) -> usize {
        self.slots.iter().filter(|slot| slot.is_busy()).count()
    }

    /// Whether what runs must be alone: nothing else is started.
    fn is_reserved(&self) -> bool {
        self.slots.iter().any(|slot| slot.is_busy() && slot.is_alone)
    }

    /// The next claim, if it may be started now.
    fn next(&mut self) -> Option<Waiting> {
        let front = self.claims.front()?;
        let busy = self.busy();
        let has_company = busy > 0 || self.unrecorded > 0;
        let must_wait = front.claim.runs_alone && has_company && front.since.elapsed() < SOLITUDE_PATIENCE;
        if busy >= self.most || must_wait || self.is_reserved() {
            return None;
        }
        let mut next = self.claims.pop_front()?;
        next.claim.runs_alone &= !has_company;
        Some(next)
    }

    /// How long until a claim that must be alone has waited long enough.
    fn solitude_left(&self) -> Option<Duration> {
        let front = self.claims.front().filter(|waiting| waiting.claim.runs_alone)?;
        Some(SOLITUDE_PATIENCE.saturating_sub(front.since.elapsed())).filter(|left| !left.is_zero())
    }

    fn put(&mut self, waiting: Waiting) {
        let key = self.order.key(&waiting.claim);
        let at = self.claims.partition_point(|other| self.order.key(&other.claim) <= key);
        self.claims.insert(at, waiting);
    }

    /// Since when the oldest of those has been waiting that no idle slot takes.
    fn oldest_ahead(&self) -> Option<Instant> {
        self.claims.iter().skip(self.idle_slots()).map(|waiting| waiting.since).min()
    }
}

/// How many attempts run, and how many claims no slot has taken yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    /// How many of both are of queues with a limit.
    pub(crate) limited: usize,
    /// One of both must be alone: nothing else is to be claimed.
    pub(crate) is_reserved: bool,
}

impl Desk {
    pub(crate) fn new(rules: Rules, order: Order) -> io::Result<Self> {
        let state = State {
            claims: VecDeque::new(),
            order,
            finished: Vec::new(),
            slots: Vec::new(),
            most: usize::MAX,
            rules,
            idle: 0,
            low_stock: 0,
            unrecorded: 0,
            unkillable: Vec::new(),
            is_closed: false,
            watched: VecDeque::new(),
        };
        Ok(Self { state: Mutex::new(state), changed: Condvar::new(), bell: EventBell::new()? })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // For slots

    /// Makes room for one more; gives its number and its bell.
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

    /// Waits for the next job of this slot. `None`: there will be no more.
    pub(crate) fn take(&self, slot: usize) -> Option<(Claim, Rules)> {
        let mut state = self.lock();
        loop {
            if state.slots[slot].is_given_up {
                return None;
            }
            if let Some(Waiting { claim, is_watched, .. }) = state.next() {
                state.slots[slot].bell.forget();
                if is_watched {
                    state.slots[slot].bell.ring_of_reader();
                }
                state.slots[slot].number = claim.number;
                state.slots[slot].running = Some(claim.lease.clone());
                state.slots[slot].is_limited = claim.is_limited;
                state.slots[slot].is_alone = claim.runs_alone;
                if state.claims.len() + 1 == state.low_stock && !state.finished.is_empty() {
                    self.bell.ring();
                }
                return Some((claim, state.rules));
            }
            if state.is_closed {
                return None;
            }
            state.idle += 1;
            state = match state.solitude_left() {
                Some(left) => self.wait_within(state, left),
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
            state.idle -= 1;
        }
    }

    fn wait_within<'a>(&self, state: MutexGuard<'a, State>, left: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn hand_in(&self, slot: usize, finished: Finished) {
        let mut state = self.lock();
        state.slots[slot].running = None;
        state.unrecorded += usize::from(finished.settlement.is_some());
        state.finished.push(finished);
        let is_first = state.finished.len() == 1;
        self.tell_closer(&state);
        drop(state);
        if is_first {
            self.bell.ring();
        }
    }

    /// This slot cannot kill what it runs. It keeps the lease, and another slot takes its place.
    fn give_up(&self, slot: usize, unkillable: Vec<UnkillableProcess>) {
        let mut state = self.lock();
        state.unkillable.extend(unkillable);
        state.slots[slot].is_given_up = true;
        self.tell_closer(&state);
        drop(state);
        self.bell.ring();
    }

    /// `close` waits until every slot is idle.
    fn tell_closer(&self, state: &State) {
        if state.is_closed {
            self.changed.notify_all();
        }
    }

    // For the ledger

    /// Puts claims down for the slots; with fewer than `low_stock` of them left, the ledger wants to know.
    pub(crate) fn hand_out(&self, claims: Vec<Claim>, low_stock: usize) {
        let since = Instant::now();
        let mut state = self.lock();
        let to_wake = claims.len().min(state.idle);
        state.low_stock = low_stock;
        for claim in claims {
            let watched = state.watched.iter().position(|number| *number == claim.number);
            let is_watched = watched.is_some_and(|at| state.watched.remove(at).is_some());
            state.put(Waiting { claim, since, is_watched });
        }
        drop(state);
        for _ in 0..to_wake {
            self.changed.notify_one();
        }
    }

    /// So many attempts that had ended are recorded now: a claim that must be alone may have waited for that.
    pub(crate) fn note_recorded(&self, count: usize) {
        let mut state = self.lock();
        state.unrecorded -= count;
        let is_awaited = state.claims.front().is_some_and(|waiting| waiting.claim.runs_alone);
        drop(state);
        if is_awaited {
            self.changed.notify_one();
        }
    }

    /// Whether so many claims wait for a slot that none of them waits for the ledger. If so, the bell is silent until
    /// that changes.
    pub(crate) fn is_well_stocked(&self) -> bool {
        let state = self.lock();
        let is_well_stocked = state.low_stock > 0 && state.claims.len() >= state.low_stock;
        if is_well_stocked {
            self.bell.silence();
        }
        is_well_stocked
    }

    pub(crate) fn take_finished(&self) -> Vec<Finished> {
        self.bell.silence();
        std::mem::take(&mut self.lock().finished)
    }

    pub(crate) fn load(&self) -> Load {
        let state = self.lock();
        let running = || state.slots.iter().filter(|slot| slot.is_busy());
        let limited = running().filter(|slot| slot.is_limited).count()
            + state.claims.iter().filter(|waiting| waiting.claim.is_limited).count();
        let is_reserved =
            state.is_reserved() || state.claims.back().is_some_and(|waiting| waiting.claim.runs_alone);
        Load { running: running().count(), waiting: state.claims.len(), limited, is_reserved }
    }

    /// Processes that could not be killed, once.
    pub(crate) fn take_unkillable(&self) -> Vec<UnkillableProcess> {
        std::mem::take(&mut self.lock().unkillable)
    }

    /// How many slots were given up.
    pub(crate) fn given_up(&self) -> usize {
        self.lock().slots.iter().filter(|slot| slot.is_given_up).count()
    }

    /// The attempts that run and cannot be killed.
    pub(crate) fn left_behind(&self) -> Vec<LeaseRef> {
        let state = self.lock();
        let given_up = state.slots.iter().filter(|slot| slot.is_given_up);
        given_up.filter_map(|slot| slot.running.clone()).collect()
    }

    /// Whether nothing lies here or runs but what cannot be killed.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.lock();
        state.claims.is_empty() && state.finished.is_empty() && !state.slots.iter().any(Slot::is_busy)
    }

    /// Every lease that lies here or runs, and those that ended and were not taken away yet.
    pub(crate) fn leases(&self) -> Vec<LeaseRef> {
        let state = self.lock();
        let waiting = state.claims.iter().map(|waiting| &waiting.claim.lease);
        let running = state.slots.iter().filter_map(|slot| slot.running.as_ref());
        let finished = state.finished.iter().filter_map(|finished| finished.settlement.as_ref());
        waiting.chain(running).chain(finished.map(|settlement| &settlement.lease)).cloned().collect()
    }

    /// Ends these attempts. Those that no slot has taken yet are handed back as claims. All at once: a slot that is done
    /// with one of them must not take another.
    pub(crate) fn interrupt(&self, leases: &[LeaseRef], why: Interrupt) -> Vec<Claim> {
        let mut state = self.lock();
        let is_meant = |lease: &LeaseRef| leases.contains(lease);
        for slot in state.slots.iter().filter(|slot| slot.running.as_ref().is_some_and(is_meant)) {
            slot.bell.ring(why);
        }
        let (meant, others) =
            state.claims.drain(..).partition(|waiting: &Waiting| is_meant(&waiting.claim.lease));
        state.claims = others;
        VecDeque::into_iter(meant).map(|waiting| waiting.claim).collect()
    }

    /// Readers follow the output of these jobs.
    pub(crate) fn note_readers(&self, numbers: &[u64]) {
        let mut state = self.lock();
        for number in numbers {
            let mut slots = state.slots.iter().filter(|slot| slot.running.is_some());
            if let Some(slot) = slots.find(|slot| slot.number == *number) {
                slot.bell.ring_of_reader();
            } else if let Some(waiting) = state.claims.iter_mut().find(|one| one.claim.number == *number) {
                waiting.is_watched = true;
            } else {
                state.watched.truncate(MOST_WATCHED - 1);
                state.watched.push_front(*number);
            }
        }
    }

    /// Ends every attempt that runs.
    pub(crate) fn interrupt_all(&self, why: Interrupt) {
        for slot in self.lock().slots.iter().filter(|slot| slot.running.is_some()) {
            slot.bell.ring(why);
        }
    }

    /// Takes back every claim that no slot has taken.
    pub(crate) fn recall(&self) -> Vec<Claim> {
        self.lock().claims.drain(..).map(|waiting| waiting.claim).collect()
    }

    /// Takes back the claims that wait for a busy slot, if one of them has done so since before this moment. All of
    /// them: one that was claimed later must not run before one that is claimed again.
    pub(crate) fn recall_ahead(&self, before: Instant) -> Vec<Claim> {
        let mut state = self.lock();
        if state.oldest_ahead().is_none_or(|since| since >= before) {
            return Vec::new();
        }
        let soon_taken = state.idle_slots();
        state.claims.split_off(soon_taken).into_iter().map(|waiting| waiting.claim).collect()
    }

    /// Since when the oldest of those has been waiting.
    pub(crate) fn oldest_ahead(&self) -> Option<Instant> {
        self.lock().oldest_ahead()
    }

    /// Attempts that start from now on follow these.
    pub(crate) fn set_rules(&self, rules: Rules) {
        self.lock().rules = rules;
    }

    /// Lets no more attempts than this run at once; those that run already go on.
    pub(crate) fn set_most(&self, most: usize) {
        self.lock().most = most;
        self.changed.notify_all();
    }

    /// No more claims: slots end when there is nothing left to take. Returns when none runs anything but what cannot be
    /// killed.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        self.changed.notify_all();
        while state.slots.iter().any(Slot::is_busy) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl AsFd for Desk {
    /// Readable when an attempt has finished.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// How a slot says that it cannot end the attempt that it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotReport<'a> {
    pub(crate) desk: &'a Desk,
    pub(crate) slot: usize,
    pub(crate) lease: &'a LeaseRef,
}

impl SlotReport<'_> {
    pub(crate) fn give_up(&self, survivors: Vec<Survivor>) {
        let unkillable = survivors.into_iter().map(|survivor| survivor.of(self.lease));
        self.desk.give_up(self.slot, unkillable.collect());
    }
}

#[cfg(test)]
mod tests;
