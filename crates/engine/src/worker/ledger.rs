//! The books of a worker: which leases it holds, what became of them, and what it may take next.
//!
//! Everything that has come to an end since the last turn is recorded, and everything that can be taken is claimed, in
//! one transaction (`exchange`). While it commits, the slots go on, and what they finish is in the next turn. So the busier
//! a worker is, the more jobs share a commit. It waits for more to come only for a moment, and only while every slot has
//! its next job at hand (`pace`).

use std::time::Instant;

use super::dispatcher::{Desk, Interrupt};
use super::prefetch;
use super::prefetch::Pace;
use super::spawn_backoff::SpawnBackoff;
use crate::attempt::Finished;
use crate::attempt::slot_records::Slots;
use crate::journal::{Chain, Journal};
use domain::values::name::WorkerId;
use domain::values::timestamp::Timestamp;
use store::{Claim, Exchange, ExchangeResult, LeaseRef, LeaseStatus, Settlement, Store, StoreError};
use sys::failpoint;

/// What the ledger works with: the store may be replaced by one that was opened anew.
#[derive(Debug)]
pub(crate) struct Tools<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) desk: &'a Desk,
    pub(crate) slots: &'a Slots,
    pub(crate) journal: &'a Journal,
}

#[derive(Debug)]
pub(crate) struct Ledger {
    worker: WorkerId,
    /// Attempts that ended and are not recorded yet.
    unsettled: Vec<Settlement>,
    /// The records that say that they were started.
    records: Vec<u64>,
    /// How many of them the slots have run.
    run: usize,
    pace: Pace,
    spawn_backoff: SpawnBackoff,
    /// What the spawn_backoff was when it was last met.
    obstacle: String,
    next_due: Option<Timestamp>,
    may_be_more: bool,
}

/// What came of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) claimed: usize,
    /// Something was recorded.
    pub(crate) has_settled: bool,
    /// There may be more, for this worker or for others.
    pub(crate) may_be_more: bool,
    /// Somebody declared this worker dead.
    pub(crate) is_retired: bool,
}

impl Ledger {
    pub(crate) fn new(worker: WorkerId) -> Self {
        Self {
            worker,
            unsettled: Vec::new(),
            records: Vec::new(),
            run: 0,
            pace: Pace::default(),
            spawn_backoff: SpawnBackoff::default(),
            obstacle: String::new(),
            next_due: None,
            may_be_more: false,
        }
    }

    /// When the next job that waits for its time becomes due, as of the last turn.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.next_due
    }

    /// Whether anything is left to record.
    pub(crate) fn is_settled(&self) -> bool {
        self.unsettled.is_empty()
    }

    /// Whether it would be of no use to claim anything now.
    pub(crate) fn is_hindered(&self) -> bool {
        self.spawn_backoff.holds(Instant::now())
    }

    /// What keeps attempts from being started.
    pub(crate) fn obstacle(&self) -> Option<&str> {
        self.spawn_backoff.lasts(Instant::now()).then_some(&self.obstacle)
    }

    /// Records what has ended, and claims for the free ones of this many slots. With nothing to record it asks the store
    /// only if there is reason to `look`.
    pub(crate) fn turn(&mut self, tools: &Tools<'_>, slots: usize, look: bool) -> Result<Turn, StoreError> {
        self.collect(tools);
        let (want, want_limited) = self.wanted(tools, slots);
        let looks = want > 0 && (look || self.may_be_more);
        if self.unsettled.is_empty() && !looks {
            return Ok(Turn::default());
        }
        let has_settled = !self.unsettled.is_empty();
        if has_settled {
            failpoint::hit("ledger.before_settle");
        }
        let exchange = Exchange { worker: &self.worker, settlements: &self.unsettled, want, want_limited };
        let exchanged = tools.store.exchange(&exchange)?;
        if has_settled {
            failpoint::hit("ledger.after_settle");
        }
        self.note_settled(&exchanged, tools.journal);
        self.unsettled.clear();
        tools.desk.note_recorded(std::mem::take(&mut self.run));
        self.records.drain(..).for_each(|index| tools.slots.give_back(index));
        self.next_due = exchanged.next_due;
        let claimed = exchanged.claimed.len();
        self.may_be_more = want > 0 && claimed == want;
        if claimed > 0 {
            failpoint::hit("ledger.after_claim");
        }
        tools.desk.hand_out(exchanged.claimed, self.pace.low_stock(slots));
        let may_be_more = self.may_be_more || exchanged.has_left_some;
        Ok(Turn { claimed, has_settled, may_be_more, is_retired: exchanged.retired })
    }

    /// The answers are in the order of what was handed in.
    fn note_settled(&self, exchanged: &ExchangeResult, journal: &Journal) {
        let mut recorded = exchanged.settled.iter().peekable();
        for settlement in &self.unsettled {
            match recorded.next_if(|settled| settled.lease == settlement.lease) {
                Some(settled) => journal.settled(settlement, settled),
                None => journal.stale(settlement),
            }
        }
    }

    /// How many jobs to claim: for free slots, and where attempts are very short a few more. How many of them may be of
    /// queues with a limit: never are more of those in hand than there are slots, because one that waits here uses up a
    /// place that another worker could use.
    fn wanted(&self, tools: &Tools<'_>, slots: usize) -> (usize, usize) {
        if self.is_hindered() {
            return (0, 0);
        }
        let load = tools.desk.load();
        if load.is_reserved {
            return (0, 0);
        }
        let want = (slots + self.pace.ahead(slots)).saturating_sub(load.running + load.waiting);
        (want, slots.saturating_sub(load.limited))
    }

    /// Takes over what the slots have finished.
    pub(crate) fn collect(&mut self, tools: &Tools<'_>) {
        for Finished { began, settlement, record, obstacle } in tools.desk.take_finished() {
            let is_hindered = obstacle.is_some();
            match obstacle {
                Some(obstacle) => {
                    tools.journal.trouble(&obstacle);
                    self.obstacle = Chain(&obstacle).to_string();
                    self.spawn_backoff.note(Instant::now());
                }
                None if record.is_some() => self.spawn_backoff.clear_by(began),
                None => {}
            }
            match settlement {
                Some(settlement) => {
                    if !is_hindered {
                        self.pace.note(settlement.duration);
                    }
                    self.unsettled.push(settlement);
                    self.run += 1;
                    self.records.extend(record);
                }
                None => record.into_iter().for_each(|index| tools.slots.give_back(index)),
            }
        }
    }

    /// A heartbeat: lengthens every lease in hand, and ends the attempts whose lease turns out to be lost.
    pub(crate) fn beat(&mut self, tools: &Tools<'_>) -> Result<(), StoreError> {
        self.collect(tools);
        let mut leases = tools.desk.leases();
        leases.extend(self.unsettled.iter().map(|settlement| settlement.lease.clone()));
        let statuses = tools.store.extend(&self.worker, &leases)?;
        let (mut cancelled, mut lost) = (Vec::new(), Vec::new());
        for (lease, status) in leases.into_iter().zip(statuses) {
            match status {
                LeaseStatus::Held => {}
                LeaseStatus::CancelRequested => cancelled.push(lease),
                LeaseStatus::Lost => lost.push(lease),
            }
        }
        tools.desk.interrupt(&lost, Interrupt::Lost);
        self.cancel(tools, &cancelled);
        Ok(())
    }

    /// Ends these attempts, and gives those back that were never started.
    pub(crate) fn cancel(&mut self, tools: &Tools<'_>, leases: &[LeaseRef]) {
        self.settle_unstarted(tools.desk.interrupt(leases, Interrupt::Cancel));
    }

    /// Gives back everything that no slot has taken.
    pub(crate) fn recall(&mut self, tools: &Tools<'_>) {
        self.give_back(tools.desk.recall());
    }

    /// Gives back what was claimed ahead and found no slot since before this moment.
    pub(crate) fn recall_ahead(&mut self, tools: &Tools<'_>, before: Instant) {
        self.give_back(tools.desk.recall_ahead(before));
    }

    fn give_back(&mut self, recalled: Vec<Claim>) {
        if !recalled.is_empty() {
            self.pace.note_wait();
            self.may_be_more = false;
        }
        self.settle_unstarted(recalled);
    }

    fn settle_unstarted(&mut self, claims: Vec<Claim>) {
        self.unsettled.extend(claims.into_iter().map(|claim| Settlement::never_started(claim.lease)));
    }

    /// When the oldest claim for which there was no slot will have waited for too long.
    pub(crate) fn recall_at(desk: &Desk) -> Option<Instant> {
        desk.oldest_ahead().and_then(|since| since.checked_add(prefetch::PATIENCE))
    }
}
