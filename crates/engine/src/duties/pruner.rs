//! Deletes history that is older than the settings allow. One worker does it for the whole store, a few rows at a time,
//! so that no other writer waits for long; when it is done, pruning pauses for an hour.
//!
//! In a file each step keeps all other writers waiting, so there are few per tick. On a server others do not wait, and a
//! fleet runs more jobs than a few steps delete: there the worker gives retention a quarter of its time.

use std::path::Path;
use std::time::{Duration, Instant};

use domain::settings::Settings;
use domain::values::name::WorkerId;
use store::retention::{PruneTotals, RetentionPass};
use store::{Duty, Store, StoreError};

/// The delay before the first round; a worker that ends sooner does not prune.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// The pause after a complete round.
const PRUNE_INTERVAL: Duration = Duration::from_secs(3_600);
/// How long the duty is reserved for the worker that prunes.
const DUTY_LEASE: Duration = Duration::from_secs(600);
/// How many steps are taken per tick in a file.
const STEPS_PER_TICK: u32 = 4;
/// How long steps are taken per tick on a server, and how long until the next tick.
const TIME_PER_TICK: Duration = Duration::from_millis(50);
const REST: Duration = Duration::from_millis(150);

#[derive(Debug)]
pub(crate) struct Pruner {
    /// When to check whether a round is due.
    next: Instant,
    round: Option<Round>,
}

#[derive(Debug)]
struct Round {
    walk: RetentionPass,
    renewed: Instant,
}

impl Pruner {
    pub(crate) fn new() -> Self {
        Self { next: Instant::now() + FIRST_DELAY, round: None }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.round.is_none()
    }

    /// How long the worker waits at most until it takes further steps.
    pub(crate) fn rest(&self, store: &dyn Store) -> Option<Duration> {
        (self.round.is_some() && store.spans_machines()).then_some(REST)
    }

    /// Takes a few steps if a round is due or in progress.
    pub(crate) fn run_once(
        &mut self,
        store: &dyn Store,
        settings: &Settings,
        logs: &Path,
        own: &WorkerId,
    ) -> Result<(), StoreError> {
        if self.round.is_none() && self.next <= Instant::now() {
            self.next = Instant::now() + PRUNE_INTERVAL;
            if store.take_duty(Duty::Prune, DUTY_LEASE)? {
                let walk = RetentionPass::by_settings(settings, store.now()?, logs);
                self.round = Some(Round { walk, renewed: Instant::now() });
            }
        }
        let Some(round) = &mut self.round else {
            return Ok(());
        };
        if round.advance(store, own)? {
            return Ok(());
        }
        let done = summary(round.walk.deleted());
        self.round = None;
        self.next = Instant::now() + PRUNE_INTERVAL;
        store.end_duty(Duty::Prune, PRUNE_INTERVAL, own.as_str(), done.as_deref())
    }
}

impl Round {
    /// Takes a few steps; `false` when the round is complete.
    fn advance(&mut self, store: &dyn Store, own: &WorkerId) -> Result<bool, StoreError> {
        if self.renewed.elapsed() > DUTY_LEASE / 2 {
            store.end_duty(Duty::Prune, DUTY_LEASE, own.as_str(), None)?;
            self.renewed = Instant::now();
        }
        let (began, mut steps) = (Instant::now(), 0);
        while self.walk.step(store)? {
            steps += 1;
            let is_enough = if store.spans_machines() {
                began.elapsed() >= TIME_PER_TICK
            } else {
                steps == STEPS_PER_TICK
            };
            if is_enough {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The summary for the log; `None` if nothing was deleted.
fn summary(deleted: PruneTotals) -> Option<String> {
    (deleted != PruneTotals::default()).then(|| deleted.to_string())
}
