//! What happens in each queue, as numbers.

use std::collections::{BTreeMap, HashMap};

use crate::rows::jobs::ready;
use crate::rows::keys::QueueKey;
use crate::rows::params;
use crate::rows::tables::counters::Entered;
use crate::rows::tables::minutes::RowSum;
use crate::rows::tables::{counters, minutes, queues};
use crate::rows::tx::Tx;
use crate::rows::views::history;
use crate::{HistoryCache, QueueMetrics, Result};
use domain::job::life::StateName;
use domain::metrics::depth::share_after;
use domain::metrics::resolution::{Resolution, minute_of, start_of_minute};
use domain::values::timestamp::Timestamp;

/// Since the store counts.
pub(crate) fn total(tx: &Tx<'_>, cache: &HistoryCache) -> Result<Vec<QueueMetrics>> {
    let mut all = of_queues(tx, &history::totals(tx, cache)?)?;
    for (_, queue) in &mut all {
        queue.enqueued = queue.entered.get(&StateName::Pending).copied().unwrap_or(0);
    }
    Ok(without_keys(all))
}

/// Since the beginning of the minute of this time, which must be recent enough for rows of single minutes.
pub(crate) fn since(tx: &Tx<'_>, since: Timestamp) -> Result<Vec<QueueMetrics>> {
    let first = minute_of(since);
    let since = start_of_minute(first);
    let mut sums: HashMap<QueueKey, RowSum> = HashMap::new();
    let mut enqueued: HashMap<QueueKey, u64> = HashMap::new();
    let mut sampled = minutes::sampled_before(tx, first)?;
    let before = sampled;
    let mut first_sample = None;
    minutes::read_encoded(tx, Resolution::Minute, first..i64::MAX, &mut |row| {
        if let Some(jobs) = sums.entry(row.key.queue_id).or_default().add(row)? {
            sampled = Some(row.key.minute);
            // The first sample also counts jobs from before this time.
            let is_first = *first_sample.get_or_insert(row.key.minute) == row.key.minute;
            let share = match before.filter(|_| is_first) {
                Some(before) => {
                    let (from, to) = (start_of_minute(before), start_of_minute(row.key.minute));
                    share_after(since, jobs, from, to)
                }
                None => jobs,
            };
            *enqueued.entry(row.key.queue_id).or_default() += share;
        }
        Ok(true)
    })?;
    for (queue_id, rest) in minutes::unsampled(tx)? {
        let share =
            sampled.map_or(rest, |sampled| share_after(since, rest, start_of_minute(sampled), tx.now));
        *enqueued.entry(queue_id).or_default() += share;
    }
    let mut all = of_queues(tx, &sums)?;
    for (queue_id, queue) in &mut all {
        queue.enqueued = enqueued.get(queue_id).copied().unwrap_or(0);
    }
    Ok(without_keys(all))
}

fn without_keys(all: Vec<(QueueKey, QueueMetrics)>) -> Vec<QueueMetrics> {
    all.into_iter().map(|(_, queue)| queue).collect()
}

/// Every queue with its activity, and with what is true of it now.
fn of_queues(tx: &Tx<'_>, sums: &HashMap<QueueKey, RowSum>) -> Result<Vec<(QueueKey, QueueMetrics)>> {
    let mut entered: HashMap<QueueKey, BTreeMap<StateName, u64>> = HashMap::new();
    for Entered { queue_id, state, times } in counters::entered(tx)? {
        *entered.entry(queue_id).or_default().entry(state).or_default() += times;
    }
    let overdue = earliest(ready::overdue(tx)?);
    let running = earliest(running(tx)?);
    let mut all = Vec::new();
    for (queue_id, queue) in queues::list_with_keys(tx)? {
        let ready_at = ready::oldest(tx, queue_id)?;
        let metrics = QueueMetrics {
            queue,
            entered: entered.remove(&queue_id).unwrap_or_default(),
            activity: sums.get(&queue_id).map(|sum| sum.content().activity).unwrap_or_default(),
            enqueued: 0,
            oldest_ready_at: ready_at.into_iter().chain(overdue.get(&queue_id).copied()).min(),
            oldest_running_at: running.get(&queue_id).copied(),
        };
        all.push((queue_id, metrics));
    }
    Ok(all)
}

fn earliest(times: Vec<(QueueKey, Timestamp)>) -> HashMap<QueueKey, Timestamp> {
    let mut earliest = HashMap::new();
    for (queue_id, at) in times {
        let known = earliest.entry(queue_id).or_insert(at);
        *known = at.min(*known);
    }
    earliest
}

/// When the running attempts of each queue started.
fn running(tx: &Tx<'_>) -> Result<Vec<(QueueKey, Timestamp)>> {
    // By index jobs_by_state: few jobs run at a time.
    tx.all(
        "select queue_id, started_at from jobs where state = 'processing' and started_at is not null",
        params![],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}
