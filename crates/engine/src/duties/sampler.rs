//! Samples once a minute how many jobs the queues have. One worker does it for the whole store: the first that asks.

use std::time::{Duration, Instant};

use domain::metrics::resolution::{minute_of, start_of_minute};
use store::{Store, StoreError};

/// The delay before the first sample; a worker that ends sooner takes none.
const FIRST_DELAY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Sampler {
    /// When to ask whether a sample is due.
    next: Instant,
}

impl Sampler {
    pub(crate) fn new() -> Self {
        Self { next: Instant::now() + FIRST_DELAY }
    }

    /// Takes a sample if one is due.
    pub(crate) fn run_once(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        if self.next > Instant::now() {
            return Ok(());
        }
        store.sample_depth()?;
        let now = store.now()?;
        self.next = Instant::now() + start_of_minute(minute_of(now) + 1).since(now);
        Ok(())
    }
}
