//! What happened over a time, point by point.

mod cache;

pub use cache::HistoryCache;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::time::Duration;

use crate::Result;
use crate::rows::keys::QueueKey;
use crate::rows::tables::minutes;
use crate::rows::tables::minutes::RowSum;
use crate::rows::tables::queues;
use crate::rows::tx::Tx;
use domain::metrics::history::Timeline;
use domain::metrics::resolution::{Resolution, minute_of, start_of_minute};
use domain::values::name::QueueName;

use cache::Past;

const MINUTES_PER_HOUR: i64 = 60;

/// In one queue, or in all of them.
pub(crate) fn history(
    tx: &Tx<'_>,
    cache: &HistoryCache,
    range: Duration,
    queue_id: Option<QueueKey>,
) -> Result<Timeline> {
    let timeline = Timeline::new(range, tx.now);
    let first = timeline.first_minute();
    let read = |end| {
        let mut reader = Reader { queue_id, timeline, sampled: None };
        // These are of minutes that are over, also if the clock was ahead when they were written.
        for resolution in [Resolution::Hour, Resolution::TenMinutes] {
            reader.read(tx, resolution, resolution.start_of(first)..i64::MAX)?;
        }
        // A short range may begin after the end; the samples between them count too.
        let from = first.min(end);
        reader.sampled = minutes::sampled_before(tx, from)?;
        reader.read(tx, Resolution::Minute, from..end)?;
        Ok(reader)
    };
    let Past { found: mut reader, end } = cache.timelines.past(tx, (range, queue_id), read)?;
    reader.timeline.begin_with(first);
    reader.read(tx, Resolution::Minute, end..i64::MAX)?;
    for (of, jobs) in minutes::unsampled(tx)? {
        if reader.is_selected(of) {
            let from = reader.sampled.map_or(tx.now, start_of_minute);
            reader.timeline.add_enqueued(jobs, from, tx.now);
        }
    }
    Ok(reader.timeline)
}

/// What happened in each queue since the store counts, for those that have a history.
pub(crate) fn totals(tx: &Tx<'_>, cache: &HistoryCache) -> Result<HashMap<QueueKey, RowSum>> {
    let read = |end| {
        let mut sums = HashMap::new();
        for resolution in Resolution::ALL {
            // Coarser rows are of minutes that are over, also if the clock was ahead when they were written.
            let end = if resolution == Resolution::Minute { end } else { i64::MAX };
            sum_up(tx, resolution, i64::MIN..end, &mut sums)?;
        }
        Ok(sums)
    };
    let Past { found: mut sums, end } = cache.totals.past(tx, (), read)?;
    sum_up(tx, Resolution::Minute, end..i64::MAX, &mut sums)?;
    Ok(sums)
}

fn sum_up(
    tx: &Tx<'_>,
    resolution: Resolution,
    minutes: Range<i64>,
    sums: &mut HashMap<QueueKey, RowSum>,
) -> Result<()> {
    minutes::read_encoded(tx, resolution, minutes, &mut |row| {
        sums.entry(row.key.queue_id).or_default().add(row)?;
        Ok(true)
    })
}

/// How many attempts ended in each of the last hours, queue by queue, up to now. A queue in which none ended is left out.
pub(crate) fn ended_per_hour(tx: &Tx<'_>, hours: usize) -> Result<BTreeMap<QueueName, Vec<u64>>> {
    let first = minute_of(tx.now) - i64::try_from(hours).unwrap_or(0) * MINUTES_PER_HOUR + 1;
    let mut found: HashMap<QueueKey, Vec<u64>> = HashMap::new();
    for resolution in [Resolution::Hour, Resolution::TenMinutes, Resolution::Minute] {
        minutes::read_encoded(tx, resolution, resolution.start_of(first)..i64::MAX, &mut |row| {
            let hour = usize::try_from((row.key.minute - first).max(0) / MINUTES_PER_HOUR).unwrap_or(0);
            let ended = row.finished()?;
            if ended > 0 {
                let queue = found.entry(row.key.queue_id).or_insert_with(|| vec![0; hours]);
                queue.get_mut(hour).into_iter().for_each(|count| *count += ended);
            }
            Ok(true)
        })?;
    }
    let queues = queues::list_with_keys(tx)?;
    Ok(queues.into_iter().filter_map(|(id, queue)| Some((queue.name, found.remove(&id)?))).collect())
}

/// Reads rows into a time line.
#[derive(Clone, Debug)]
struct Reader {
    queue_id: Option<QueueKey>,
    timeline: Timeline,
    /// The minute of the last sample.
    sampled: Option<i64>,
}

/// The rows of one time.
#[derive(Default)]
struct Moment {
    minute: i64,
    sum: RowSum,
    /// Queues without jobs have no rows in a sample, so the sample of one queue says that the others were empty.
    is_sampled: bool,
}

impl Reader {
    fn is_selected(&self, queue_id: QueueKey) -> bool {
        self.queue_id.is_none_or(|only| only == queue_id)
    }

    fn read(&mut self, tx: &Tx<'_>, resolution: Resolution, minutes: Range<i64>) -> Result<()> {
        let mut moment = Moment::default();
        // Rows come in the order of time, those of all queues for one time together.
        minutes::read_encoded(tx, resolution, minutes, &mut |row| {
            if row.key.minute != moment.minute {
                self.add(resolution, &moment);
                moment = Moment { minute: row.key.minute, ..Moment::default() };
            }
            let mut ignored = RowSum::default();
            let sum = if self.is_selected(row.key.queue_id) { &mut moment.sum } else { &mut ignored };
            moment.is_sampled |= sum.add(row)?.is_some();
            Ok(true)
        })?;
        self.add(resolution, &moment);
        Ok(())
    }

    fn add(&mut self, resolution: Resolution, moment: &Moment) {
        let Moment { minute, sum, is_sampled } = moment;
        let found = sum.content();
        self.timeline.add_activity(*minute, &found.activity);
        if !is_sampled {
            return;
        }
        self.timeline.add_depth(*minute, found.depth.unwrap_or_default());
        let start = start_of_minute(*minute);
        match resolution {
            // A sample counts what was enqueued since the one before.
            Resolution::Minute => {
                let from = self.sampled.map_or(start, start_of_minute);
                self.timeline.add_enqueued(found.enqueued, from, start);
                self.sampled = Some(*minute);
            }
            // A coarser row has the sum of its samples.
            Resolution::TenMinutes | Resolution::Hour | Resolution::Rest => {
                let end = start_of_minute(minute + resolution.minutes());
                self.timeline.add_enqueued(found.enqueued, start, end);
            }
        }
    }
}
