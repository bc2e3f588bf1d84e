//! What `metrics` counts, as lines: totals since the store counts, and what happened in each minute.
//!
//! An import takes them over only for a queue that has none yet: after a second import of the same lines nothing is counted
//! twice.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::Line;
use super::export::Sink;
use crate::Result;
use crate::rows::columns::{Bytes, Count};
use crate::rows::keys::QueueKey;
use crate::rows::tables::minutes::{self, MinuteKey, SHARED};
use crate::rows::tables::{counters, queues};
use crate::rows::tx::Tx;
use crate::rows::value::malformed;
use domain::job::life::StateName;
use domain::metrics::resolution::{Resolution, minute_of, start_of_minute};
use domain::values::name::QueueName;
use domain::values::timestamp::Timestamp;

/// What happened in a queue since the store counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TotalsLine {
    pub queue: String,
    /// How often a job entered a state; see [`crate::QueueMetrics::entered`].
    pub entered: BTreeMap<String, Count>,
    /// How many of the jobs that were enqueued the minutes contain.
    pub sampled: Count,
}

/// What happened in a queue during some minutes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MinutesLine {
    pub queue: String,
    /// How many minutes: 1, 10 or 60; 0 for all before the others.
    pub minutes: i64,
    pub since: Timestamp,
    /// As the store encodes them.
    pub numbers: Bytes,
}

/// Until the sink wants no more; returns whether it does.
pub(super) fn export(tx: &Tx<'_>, sink: Sink<'_>) -> Result<bool> {
    let names: HashMap<QueueKey, String> =
        queues::list_with_keys(tx)?.into_iter().map(|(id, queue)| (id, queue.name.to_string())).collect();
    let mut totals: BTreeMap<QueueKey, BTreeMap<String, Count>> = BTreeMap::new();
    for counter in counters::entered(tx)? {
        let states = totals.entry(counter.queue_id).or_default();
        states.entry(counter.state.name().to_owned()).or_default().add(counter.times);
    }
    let sampled: HashMap<QueueKey, u64> = queues::sampled(tx)?.into_iter().collect();
    for (queue_id, entered) in totals {
        let Some(queue) = names.get(&queue_id).cloned() else { continue };
        let sampled = sampled.get(&queue_id).copied().map(Count::of).unwrap_or_default();
        if !sink(Line::Totals(TotalsLine { queue, entered, sampled })) {
            return Ok(false);
        }
    }
    let mut wants_more = true;
    for resolution in Resolution::ALL {
        minutes::read(tx, resolution, i64::MIN..i64::MAX, &mut |row| {
            if let Some(queue) = names.get(&row.key.queue_id).cloned().filter(|_| wants_more) {
                let numbers = Bytes(minutes::encoded(&row.content));
                let since = start_of_minute(row.key.minute);
                wants_more =
                    sink(Line::Minutes(MinutesLine { queue, minutes: resolution.minutes(), since, numbers }));
            }
            wants_more
        })?;
    }
    Ok(wants_more)
}

/// The queues of the importing store that had a history of their own.
#[derive(Default)]
pub(super) struct Histories(Option<HashSet<QueueKey>>);

impl Histories {
    pub(super) fn totals(&mut self, tx: &mut Tx<'_>, queue: &QueueName, line: &TotalsLine) -> Result<()> {
        if let Some(queue_id) = self.place(tx, queue)? {
            for (state, times) in &line.entered {
                let state = StateName::from_name(state).ok_or_else(|| malformed("state", state))?;
                tx.counters.enter_before(queue_id, state, times.get());
            }
            queues::add_sampled(tx, queue_id, line.sampled.get())?;
        }
        Ok(())
    }

    pub(super) fn minutes(&mut self, tx: &Tx<'_>, queue: &QueueName, line: &MinutesLine) -> Result<()> {
        let content = minutes::decoded(&line.numbers.0)?;
        let resolution = Resolution::ALL.into_iter().find(|one| one.minutes() == line.minutes);
        if let (Some(queue_id), Some(resolution)) = (self.place(tx, queue)?, resolution) {
            let minute = resolution.start_of(minute_of(line.since));
            minutes::add(tx, MinuteKey { resolution, minute, queue_id }, SHARED, &content)?;
        }
        Ok(())
    }

    /// The queue, unless it had a history.
    fn place(&mut self, tx: &Tx<'_>, queue: &QueueName) -> Result<Option<QueueKey>> {
        let had = match &mut self.0 {
            Some(had) => had,
            none => none.insert(with_history(tx)?),
        };
        let queue_id = queues::id(tx, queue)?;
        Ok(Some(queue_id).filter(|id| !had.contains(id)))
    }
}

fn with_history(tx: &Tx<'_>) -> Result<HashSet<QueueKey>> {
    let mut found: HashSet<QueueKey> =
        counters::entered(tx)?.into_iter().map(|counter| counter.queue_id).collect();
    for resolution in Resolution::ALL {
        minutes::read(tx, resolution, i64::MIN..i64::MAX, &mut |row| {
            // A sample of an empty queue is no history.
            if row.content.has_happened() {
                found.insert(row.key.queue_id);
            }
            true
        })?;
    }
    Ok(found)
}
