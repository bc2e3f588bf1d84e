//! When the dead jobs of a cause died.
//!
//! No index has the deaths of a cause in the order of time, so all its dead jobs are read, a part at a time and from new to
//! old. A reader who cannot wait for all of them learns how many were read.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::rows::tables::queues;
use crate::rows::views::causes;
use crate::{Result, Store};
use domain::job::cause::CauseId;
use domain::values::name::QueueName;
use domain::values::timestamp::Timestamp;

/// How many dead jobs one read transaction looks at.
const PART: usize = 5_000;
const HOUR_MILLIS: i64 = 3_600_000;

/// The dead jobs of a cause by the hour in which they died.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deaths {
    /// By the number of the hour since 1970. Hours without a death are left out.
    pub by_hour: BTreeMap<i64, u64>,
    /// How many dead jobs were read.
    pub read: u64,
    /// Whether these are all dead jobs of the cause.
    pub is_exact: bool,
}

/// The number of the hour that a time falls into.
pub fn hour_of(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(HOUR_MILLIS)
}

impl dyn Store + '_ {
    /// When the dead jobs of a cause died, in one queue or in all. At least one part is read, however small the budget is.
    pub fn deaths(&self, cause: CauseId, queue: Option<&QueueName>, budget: Duration) -> Result<Deaths> {
        let began = Instant::now();
        let mut deaths = Deaths::default();
        let queue_id = match queue.map(|name| self.view(|tx| queues::find_id(tx, name))).transpose()? {
            Some(None) => return Ok(Deaths { is_exact: true, ..deaths }),
            queue_id => queue_id.flatten(),
        };
        let mut below = None;
        loop {
            let part = self.view(|tx| causes::deaths_below(tx, cause, queue_id, below, PART))?;
            for (_, at) in &part {
                *deaths.by_hour.entry(hour_of(*at)).or_default() += 1;
            }
            deaths.read += part.len() as u64;
            below = part.last().map(|(seq, _)| *seq);
            if part.len() < PART {
                return Ok(Deaths { is_exact: true, ..deaths });
            }
            if began.elapsed() >= budget {
                return Ok(deaths);
            }
        }
    }
}
