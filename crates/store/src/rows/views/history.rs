//! What happened over a time, point by point.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::Result;
use crate::rows::keys::QueueKey;
use crate::rows::tables::minutes;
use crate::rows::tables::minutes::MinuteRow;
use crate::rows::tables::queues;
use crate::rows::tx::Tx;
use domain::metrics::depth::Depth;
use domain::metrics::history::Timeline;
use domain::metrics::resolution::{Resolution, minute_of, start_of_minute};
use domain::values::name::QueueName;

const MINUTES_PER_HOUR: i64 = 60;

/// In one queue, or in all of them.
pub(crate) fn history(tx: &Tx<'_>, range: Duration, queue_id: Option<QueueKey>) -> Result<Timeline> {
    let timeline = Timeline::new(range, tx.now);
    let first = timeline.first_minute();
    let mut reader = Reader { queue_id, timeline, sample: None, sampled: None, enqueued: 0 };
    for resolution in [Resolution::Hour, Resolution::TenMinutes, Resolution::Minute] {
        if resolution == Resolution::Minute {
            reader.sampled = minutes::sampled_before(tx, first)?;
        }
        minutes::read(tx, resolution, resolution.start_of(first)..i64::MAX, &mut |row| {
            reader.add(&row);
            true
        })?;
        reader.end_sample();
    }
    for (of, jobs) in minutes::unsampled(tx)? {
        if reader.is_selected(of) {
            let from = reader.sampled.map_or(tx.now, start_of_minute);
            reader.timeline.add_enqueued(jobs, from, tx.now);
        }
    }
    Ok(reader.timeline)
}

/// How many attempts ended in each of the last hours, queue by queue, up to now. A queue in which none ended is left out.
pub(crate) fn ended_per_hour(tx: &Tx<'_>, hours: usize) -> Result<BTreeMap<QueueName, Vec<u64>>> {
    let first = minute_of(tx.now) - i64::try_from(hours).unwrap_or(0) * MINUTES_PER_HOUR + 1;
    let mut found: HashMap<QueueKey, Vec<u64>> = HashMap::new();
    for resolution in [Resolution::Hour, Resolution::TenMinutes, Resolution::Minute] {
        minutes::read(tx, resolution, resolution.start_of(first)..i64::MAX, &mut |row| {
            let hour = usize::try_from((row.key.minute - first).max(0) / MINUTES_PER_HOUR).unwrap_or(0);
            let ended = row.content.activity.finished();
            if ended > 0 {
                let queue = found.entry(row.key.queue_id).or_insert_with(|| vec![0; hours]);
                queue.get_mut(hour).into_iter().for_each(|count| *count += ended);
            }
            true
        })?;
    }
    let queues = queues::list_with_keys(tx)?;
    Ok(queues.into_iter().filter_map(|(id, queue)| Some((queue.name, found.remove(&id)?))).collect())
}

struct Reader {
    queue_id: Option<QueueKey>,
    timeline: Timeline,
    /// The sample of the time that is being read, summed up over the queues.
    sample: Option<Sample>,
    /// The minute of the last sample before it.
    sampled: Option<i64>,
    /// Jobs that the sample says were enqueued since then.
    enqueued: u64,
}

#[derive(Clone, Copy)]
struct Sample {
    minute: i64,
    resolution: Resolution,
    depth: Depth,
}

impl Reader {
    fn is_selected(&self, queue_id: QueueKey) -> bool {
        self.queue_id.is_none_or(|only| only == queue_id)
    }

    /// Rows come in the order of time, those of all queues for one time together.
    fn add(&mut self, row: &MinuteRow) {
        let (minute, resolution) = (row.key.minute, row.key.resolution);
        let is_selected = self.is_selected(row.key.queue_id);
        if is_selected {
            self.timeline.add_activity(minute, &row.content.activity);
        }
        // Queues without jobs have no rows in a sample, so the sample of one queue says that the others were empty.
        let Some(depth) = row.content.depth else {
            return;
        };
        if self.sample.is_none_or(|sample| sample.minute != minute) {
            self.end_sample();
            self.sample = Some(Sample { minute, resolution, depth: Depth::default() });
        }
        if let Some(sample) = self.sample.as_mut().filter(|_| is_selected) {
            sample.depth.pending += depth.pending;
            sample.depth.processing += depth.processing;
            sample.depth.failed += depth.failed;
            sample.depth.dead += depth.dead;
            self.enqueued += row.content.enqueued;
        }
    }

    /// Adds the sample that was read.
    fn end_sample(&mut self) {
        let Some(sample) = self.sample.take() else {
            return;
        };
        let jobs = std::mem::take(&mut self.enqueued);
        self.timeline.add_depth(sample.minute, sample.depth);
        let start = start_of_minute(sample.minute);
        match sample.resolution {
            // A sample counts what was enqueued since the one before.
            Resolution::Minute => {
                let from = self.sampled.map_or(start, start_of_minute);
                self.timeline.add_enqueued(jobs, from, start);
                self.sampled = Some(sample.minute);
            }
            // A coarser row has the sum of its samples.
            Resolution::TenMinutes | Resolution::Hour | Resolution::Rest => {
                let end = start_of_minute(sample.minute + sample.resolution.minutes());
                self.timeline.add_enqueued(jobs, start, end);
            }
        }
    }
}
