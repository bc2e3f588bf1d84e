//! The last day of each queue, hour by hour. It is read from every minute of the day, so it is kept for a while.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::problem::Problem;
use domain::values::name::QueueName;
use store::Store;

/// The trends are read at most once in this time.
const KEPT: Duration = Duration::from_secs(60);
const HOURS: usize = 24;

pub(crate) type Trends = Arc<BTreeMap<QueueName, Vec<u64>>>;

/// The trends as they were read last.
#[derive(Debug, Default)]
pub(crate) struct LastTrends(Mutex<Option<(Instant, Trends)>>);

impl LastTrends {
    pub(crate) fn read(&self, store: &dyn Store) -> Result<Trends, Problem> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, trends)) = last.as_ref().filter(|(at, _)| at.elapsed() < KEPT) {
            let _ = at;
            return Ok(Arc::clone(trends));
        }
        let trends = Arc::new(store.ended_per_hour(HOURS)?);
        *last = Some((Instant::now(), Arc::clone(&trends)));
        Ok(trends)
    }
}
