//! Settles the attempts of a worker and claims its next jobs.
//!
//! One transaction (`exchange`) settles all attempts that ended since the last turn and claims as many jobs as the
//! worker can take. While it commits, the slots continue, and the next turn settles what they finish. So the busier a
//! worker is, the more jobs share a commit. The ledger delays a commit only briefly, and only while every slot has its
//! next job queued (`prefetch`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::dispatcher::{Dispatcher, Interrupt};
use super::prefetch;
use super::prefetch::Prefetch;
use super::spawn_backoff::SpawnBackoff;
use crate::attempt::{AttemptContext, FinishedAttempt};
use crate::journal::{Journal, chain};
use domain::job::Attempt;
use domain::job::life::StateName;
use domain::values::name::WorkerId;
use domain::values::timestamp::Timestamp;
use store::{
    CancelOrder, Claim, Exchange, ExchangeResult, LeaseRef, LeaseStatus, SettledJob, Settlement, Store,
    StoreError,
};
use sys::clock::since_boot_with_sleep;
use sys::failpoint;

#[derive(Debug)]
pub(crate) struct Ledger {
    worker: WorkerId,
    dispatcher: Arc<Dispatcher>,
    context: Arc<AttemptContext>,
    journal: Arc<Journal>,
    /// Attempts that ended and are not recorded yet.
    unsettled: Vec<Settlement>,
    /// The slot records of these attempts.
    records: Vec<u64>,
    /// How many of them came from slots.
    from_slots: usize,
    prefetch: Prefetch,
    spawn_backoff: SpawnBackoff,
    /// The error of the last command that could not be started.
    obstacle: String,
    next_due: Option<Timestamp>,
    may_be_more: bool,
    /// The store may have recorded some of `unsettled`: the answer was lost.
    is_unsure: bool,
}

/// The result of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TurnResult {
    pub(crate) claimed: usize,
    /// Something was recorded.
    pub(crate) has_settled: bool,
    /// There may be more jobs, for this worker or for others.
    pub(crate) may_be_more: bool,
    /// Another process has reaped this worker.
    pub(crate) is_retired: bool,
}

impl Ledger {
    pub(crate) fn new(
        worker: WorkerId,
        dispatcher: &Arc<Dispatcher>,
        context: &Arc<AttemptContext>,
        journal: &Arc<Journal>,
    ) -> Self {
        Self {
            worker,
            dispatcher: Arc::clone(dispatcher),
            context: Arc::clone(context),
            journal: Arc::clone(journal),
            unsettled: Vec::new(),
            records: Vec::new(),
            from_slots: 0,
            prefetch: Prefetch::default(),
            spawn_backoff: SpawnBackoff::default(),
            obstacle: String::new(),
            next_due: None,
            may_be_more: false,
            is_unsure: false,
        }
    }

    /// When the next delayed job becomes due, as of the last turn.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.next_due
    }

    /// Whether nothing is left to record.
    pub(crate) fn is_settled(&self) -> bool {
        self.unsettled.is_empty()
    }

    /// Whether the worker must not claim now, because its commands cannot be started.
    pub(crate) fn is_backing_off(&self) -> bool {
        self.spawn_backoff.is_active(Instant::now())
    }

    /// Why commands cannot be started.
    pub(crate) fn obstacle(&self) -> Option<&str> {
        self.spawn_backoff.is_recent(Instant::now()).then_some(&self.obstacle)
    }

    /// Settles ended attempts, and claims jobs for the free ones of this many slots. With nothing to settle it asks the
    /// store only if `poll` is set or the last turn left jobs.
    pub(crate) fn turn(
        &mut self,
        store: &dyn Store,
        slots: usize,
        poll: bool,
    ) -> Result<TurnResult, StoreError> {
        self.collect();
        let (want, want_limited) = self.claim_counts(slots);
        let asks_store = want > 0 && (poll || self.may_be_more);
        if self.unsettled.is_empty() && !asks_store {
            return Ok(TurnResult::default());
        }
        let has_settled = !self.unsettled.is_empty();
        if has_settled {
            failpoint::hit("ledger.before_settle");
        }
        let exchange = Exchange { worker: &self.worker, settlements: &self.unsettled, want, want_limited };
        let exchanged = store.exchange(&exchange).inspect_err(|error| {
            self.is_unsure |= has_settled && matches!(error, StoreError::OutcomeUnknown { .. });
        })?;
        if has_settled {
            failpoint::hit("ledger.after_settle");
        }
        self.note_settled(store, &exchanged);
        self.is_unsure = false;
        if let Some(spool) = &self.context.spool {
            self.unsettled.iter().for_each(|settlement| spool.settle(settlement));
        }
        self.unsettled.clear();
        self.dispatcher.note_recorded(std::mem::take(&mut self.from_slots));
        self.records.drain(..).for_each(|index| self.context.slots.clear_record(index));
        self.next_due = exchanged.next_due;
        let claimed = exchanged.claimed.len();
        self.may_be_more = want > 0 && claimed == want;
        if claimed > 0 {
            failpoint::hit("ledger.after_claim");
        }
        let claims = if store.spans_machines() {
            self.dispatcher.without_running(exchanged.claimed)
        } else {
            exchanged.claimed
        };
        self.dispatcher.dispatch(claims, self.prefetch.low_watermark(slots));
        let may_be_more = self.may_be_more || exchanged.has_left_some;
        Ok(TurnResult { claimed, has_settled, may_be_more, is_retired: exchanged.retired })
    }

    /// The results are in the order of the settlements; those of lost leases are missing.
    fn note_settled(&self, store: &dyn Store, exchanged: &ExchangeResult) {
        let mut recorded = exchanged.settled.iter().peekable();
        for settlement in &self.unsettled {
            let settled = recorded.next_if(|settled| settled.lease == settlement.lease);
            let before = settled.is_none().then(|| self.recorded_before(store, &settlement.lease)).flatten();
            self.journal.ended(settlement, settled.or(before.as_ref()));
        }
    }

    /// The job of a settlement that was recorded by a commit whose outcome this worker did not learn.
    fn recorded_before(&self, store: &dyn Store, lease: &LeaseRef) -> Option<SettledJob> {
        let record = if self.is_unsure { store.record(&lease.job).ok()?? } else { return None };
        let is_it = |attempt: &Attempt| {
            attempt.number == lease.attempt && attempt.worker == self.worker && attempt.ending.is_some()
        };
        let life = &record.job.life;
        record.history.iter().any(is_it).then(|| SettledJob {
            lease: lease.clone(),
            state: life.state.name(),
            next_retry_at: (life.state.name() == StateName::Failed).then_some(life.due_at),
            dead: life.state.dead_reason(),
        })
    }

    /// How many jobs to claim (for free slots, plus some prefetched ones while attempts are very short), and how many
    /// of them may belong to queues with a limit. The worker never holds more of the latter than it has slots, because
    /// a queued claim uses up capacity that another worker could use.
    fn claim_counts(&self, slots: usize) -> (usize, usize) {
        if self.is_backing_off() {
            return (0, 0);
        }
        let load = self.dispatcher.load();
        if load.is_reserved {
            return (0, 0);
        }
        let want = (slots + self.prefetch.limit(slots)).saturating_sub(load.running + load.waiting);
        (want, slots.saturating_sub(load.limited))
    }

    /// Collects the attempts that slots have finished.
    pub(crate) fn collect(&mut self) {
        for FinishedAttempt { began, settlement, record, obstacle } in self.dispatcher.take_finished() {
            let has_not_started = obstacle.is_some();
            match obstacle {
                Some(obstacle) => {
                    self.journal.error(&obstacle);
                    self.obstacle = chain(&obstacle);
                    self.spawn_backoff.note_failed_start(Instant::now());
                }
                None if record.is_some() => self.spawn_backoff.note_started(began),
                None => {}
            }
            match settlement {
                Some(settlement) => {
                    if !has_not_started {
                        self.prefetch.note(settlement.duration);
                    }
                    self.unsettled.push(settlement);
                    self.from_slots += 1;
                    self.records.extend(record);
                }
                None => record.into_iter().for_each(|index| self.context.slots.clear_record(index)),
            }
        }
    }

    /// Extends every lease of this worker, and ends the attempts whose lease is lost. Returns when the request was sent: the
    /// leases count from then, on the clock of [`since_boot_with_sleep`].
    pub(crate) fn heartbeat(&mut self, store: &dyn Store) -> Result<Duration, StoreError> {
        self.collect();
        let mut leases = self.dispatcher.leases();
        leases.extend(self.unsettled.iter().map(|settlement| settlement.lease.clone()));
        let sent = since_boot_with_sleep();
        let statuses = store.extend(&self.worker, &leases)?;
        let (mut cancelled, mut lost) = (Vec::new(), Vec::new());
        for (lease, status) in leases.into_iter().zip(statuses) {
            match status {
                LeaseStatus::Held => {}
                LeaseStatus::CancelRequested(signal) => cancelled.push(CancelOrder { lease, signal }),
                LeaseStatus::Lost => lost.push(lease),
            }
        }
        self.dispatcher.interrupt(|lease| lost.contains(lease).then_some(Interrupt::Lost));
        self.cancel(&cancelled);
        Ok(sent)
    }

    /// Ends these attempts, and releases those that were never started.
    pub(crate) fn cancel(&mut self, orders: &[CancelOrder]) {
        let unstarted = self.dispatcher.interrupt(|lease| {
            let order = orders.iter().find(|order| order.lease == *lease)?;
            Some(Interrupt::Cancel(order.signal))
        });
        self.settle_unstarted(unstarted);
    }

    /// Releases every claim that no slot has taken.
    pub(crate) fn recall(&mut self) {
        let recalled = self.dispatcher.recall();
        self.release(recalled);
    }

    /// Releases the prefetched claims if one of them has waited for a slot since before this moment.
    pub(crate) fn recall_prefetched(&mut self, before: Instant) {
        let recalled = self.dispatcher.recall_prefetched(before);
        self.release(recalled);
    }

    fn release(&mut self, recalled: Vec<Claim>) {
        if !recalled.is_empty() {
            self.prefetch.note_wait();
            self.may_be_more = false;
        }
        self.settle_unstarted(recalled);
    }

    fn settle_unstarted(&mut self, claims: Vec<Claim>) {
        self.unsettled.extend(claims.into_iter().map(|claim| Settlement::never_started(claim.lease)));
    }

    /// When the oldest prefetched claim will have waited for too long.
    pub(crate) fn recall_at(&self) -> Option<Instant> {
        self.dispatcher.oldest_prefetched().and_then(|since| since.checked_add(prefetch::MAX_CLAIM_WAIT))
    }
}
