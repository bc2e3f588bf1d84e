//! Sampling how many jobs each queue has, and how many were enqueued since the sample before.

use std::collections::BTreeMap;

use super::shards::gather;
use super::{Content, MinuteKey, SHARED, add};
use crate::rows::keys::QueueKey;
use crate::rows::tables::{counters, duties, queues};
use crate::rows::tx::Tx;
use crate::{Duty, Result};
use domain::job::life::StateName;
use domain::metrics::depth::Depth;
use domain::metrics::resolution::{Resolution, minute_of, start_of_minute};

/// Takes the sample of this minute; `false` if another worker was quicker.
pub(crate) fn sample(tx: &Tx<'_>) -> Result<bool> {
    let minute = minute_of(tx.now);
    if !duties::take(tx, Duty::Sample, start_of_minute(minute + 1).since(tx.now))? {
        return Ok(false);
    }
    gather(tx, minute)?;
    let samples = samples(tx)?;
    // Queues without jobs have no rows. If none has jobs, a row of zeros says that a sample was taken.
    let is_any_busy = samples.values().any(|sample| *sample != Sample::default());
    let idle = samples.keys().next().copied().filter(|_| !is_any_busy);
    for (queue_id, Sample { enqueued, depth }) in samples {
        let is_busy = (Sample { enqueued, depth }) != Sample::default();
        if is_busy || idle == Some(queue_id) {
            let key = MinuteKey { resolution: Resolution::Minute, minute, queue_id };
            add(tx, key, SHARED, &Content { enqueued, depth: Some(depth), ..Content::default() })?;
        }
        if enqueued > 0 {
            queues::add_sampled(tx, queue_id, enqueued)?;
        }
    }
    Ok(true)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sample {
    enqueued: u64,
    depth: Depth,
}

fn samples(tx: &Tx<'_>) -> Result<BTreeMap<QueueKey, Sample>> {
    let unsampled = unsampled(tx)?;
    let mut samples = BTreeMap::new();
    for (queue_id, queue) in queues::list_with_keys(tx)? {
        let count = |state| queue.counts.get(&state).copied().unwrap_or(0);
        let depth = Depth {
            pending: count(StateName::Pending),
            processing: count(StateName::Processing),
            failed: count(StateName::Failed),
            dead: count(StateName::Dead),
        };
        let enqueued = unsampled.get(&queue_id).copied().unwrap_or(0);
        samples.insert(queue_id, Sample { enqueued, depth });
    }
    Ok(samples)
}

/// How many jobs were enqueued since the last sample, by queue.
pub(crate) fn unsampled(tx: &Tx<'_>) -> Result<BTreeMap<QueueKey, u64>> {
    let mut unsampled: BTreeMap<QueueKey, u64> = BTreeMap::new();
    for counter in counters::entered(tx)?.iter().filter(|entered| entered.state == StateName::Pending) {
        *unsampled.entry(counter.queue_id).or_default() += counter.times;
    }
    for (queue_id, sampled) in queues::sampled(tx)? {
        unsampled.entry(queue_id).and_modify(|jobs| *jobs = jobs.saturating_sub(sampled));
    }
    Ok(unsampled)
}
