//! How much of each thing clients may use at once.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::problem::Problem;

/// Requests that are handled at once.
pub(crate) const MAX_REQUESTS: usize = 32;
/// The changes among them: while they wait for a locked store, there is room for requests that read.
pub(crate) const MAX_CHANGES: usize = 24;
/// Wrong tokens and codes from one address within [`ATTEMPT_WINDOW`]; more are refused unseen.
const MAX_WRONG_ATTEMPTS: usize = 10;
const ATTEMPT_WINDOW: Duration = Duration::from_secs(60);
/// Addresses whose attempts are counted.
const MAX_ADDRESSES: usize = 10_000;

/// Wrong tokens and codes, by address.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    wrong: Mutex<HashMap<Option<IpAddr>, Vec<Instant>>>,
}

impl Attempts {
    fn lock(&self) -> MutexGuard<'_, HashMap<Option<IpAddr>, Vec<Instant>>> {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses an address that guesses.
    pub(crate) fn check(&self, address: Option<IpAddr>) -> Result<(), Problem> {
        let mut wrong = self.lock();
        let Some(times) = wrong.get_mut(&address) else {
            return Ok(());
        };
        times.retain(|at| at.elapsed() < ATTEMPT_WINDOW);
        match times.first() {
            Some(first) if times.len() >= MAX_WRONG_ATTEMPTS => {
                let left = ATTEMPT_WINDOW.saturating_sub(first.elapsed()).as_secs() + 1;
                Err(Problem::too_many("too many wrong tokens from this address", left))
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) fn record(&self, address: Option<IpAddr>) {
        let mut wrong = self.lock();
        if wrong.len() >= MAX_ADDRESSES {
            wrong.retain(|_, times| times.last().is_some_and(|at| at.elapsed() < ATTEMPT_WINDOW));
        }
        if wrong.len() < MAX_ADDRESSES || wrong.contains_key(&address) {
            wrong.entry(address).or_default().push(Instant::now());
        }
    }
}

/// Counts the uses of something that has a maximum.
#[derive(Clone, Debug)]
pub(crate) struct Gauge {
    used: Arc<AtomicUsize>,
    max: usize,
}

impl Gauge {
    pub(crate) fn new(max: usize) -> Self {
        Self { used: Arc::default(), max }
    }

    /// A place, unless all are taken.
    pub(crate) fn enter(&self) -> Option<Place> {
        let enter = |used: usize| (used < self.max).then_some(used + 1);
        let entered = self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, enter);
        entered.ok().map(|_| Place(Arc::clone(&self.used)))
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Acquire)
    }
}

/// A place that is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Places for each caller.
#[derive(Debug)]
pub(crate) struct PerCaller {
    max: usize,
    used: Mutex<HashMap<String, Gauge>>,
}

impl PerCaller {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, used: Mutex::default() }
    }

    pub(crate) fn enter(&self, caller: &str) -> Option<Place> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|_, gauge| gauge.used() > 0);
        used.entry(caller.to_owned()).or_insert_with(|| Gauge::new(self.max)).enter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_guesses_is_refused_and_another_is_not() {
        let attempts = Attempts::default();
        let (one, other) = (Some([127, 0, 0, 1].into()), None);
        for _ in 0..MAX_WRONG_ATTEMPTS {
            assert!(attempts.check(one).is_ok());
            attempts.record(one);
        }
        assert!(attempts.check(one).is_err() && attempts.check(other).is_ok());
    }

    #[test]
    fn places_are_free_again_when_they_are_dropped() {
        let limit = PerCaller::new(2);
        let (first, second) = (limit.enter("a"), limit.enter("a"));
        assert!(first.is_some() && second.is_some() && limit.enter("a").is_none());
        assert!(limit.enter("b").is_some());
        drop(first);
        assert!(limit.enter("a").is_some());
    }
}
