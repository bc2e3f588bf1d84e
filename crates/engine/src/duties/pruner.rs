//! Forgets what is older than the settings say. One worker does it for all of a store, a few rows at a time, so that
//! nobody waits for it; when nothing is left it rests for an hour.

use std::path::Path;
use std::time::{Duration, Instant};

use domain::settings::Settings;
use domain::values::name::WorkerId;
use store::retention::{PruneTotals, RetentionPass};
use store::{Duty, Store, StoreError};

/// A worker that ends sooner leaves it to others.
const FIRST: Duration = Duration::from_secs(1);
/// How long it rests when it is through.
const REST: Duration = Duration::from_secs(3_600);
/// How long nobody else begins while one is at it.
const LEASE: Duration = Duration::from_secs(600);
/// How many steps are taken at once.
const STEPS: u32 = 4;

#[derive(Debug)]
pub(crate) struct Pruner {
    /// When to look whether it is time.
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
        Self { next: Instant::now() + FIRST, round: None }
    }

    pub(crate) fn rests(&self) -> bool {
        self.round.is_none()
    }

    /// Takes a few steps if it is time.
    pub(crate) fn run_once(
        &mut self,
        store: &dyn Store,
        settings: &Settings,
        logs: &Path,
        own: &WorkerId,
    ) -> Result<(), StoreError> {
        if self.round.is_none() && self.next <= Instant::now() {
            self.next = Instant::now() + REST;
            if store.take_duty(Duty::Prune, LEASE)? {
                let walk = RetentionPass::by_settings(settings, store.now()?, logs);
                self.round = Some(Round { walk, renewed: Instant::now() });
            }
        }
        let Some(round) = &mut self.round else {
            return Ok(());
        };
        if round.go_on(store, own)? {
            return Ok(());
        }
        let done = summary(round.walk.deleted());
        self.round = None;
        self.next = Instant::now() + REST;
        store.end_duty(Duty::Prune, REST, own.as_str(), done.as_deref())
    }
}

impl Round {
    /// `false` when it is through.
    fn go_on(&mut self, store: &dyn Store, own: &WorkerId) -> Result<bool, StoreError> {
        if self.renewed.elapsed() > LEASE / 2 {
            store.end_duty(Duty::Prune, LEASE, own.as_str(), None)?;
            self.renewed = Instant::now();
        }
        for _ in 0..STEPS {
            if !self.walk.step(store)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// What is told of it; nothing if nothing was forgotten.
fn summary(forgotten: PruneTotals) -> Option<String> {
    (forgotten != PruneTotals::default()).then(|| forgotten.to_string())
}
