//! The jobs in the order in which people ask about them: running, waiting for a retry, dead, pending, finished.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::list::Listing;
use domain::job::Job;
use domain::job::life::StateName;
use store::{JobFilter, Page, Phase, Store, StoreError};

/// The groups, in their order.
const GROUPS: [&[StateName]; 5] = [
    &[StateName::Processing],
    &[StateName::Failed],
    &[StateName::Dead],
    &[StateName::Pending],
    &[StateName::Completed, StateName::Cancelled],
];

/// An overview has at most this many unfinished jobs.
const MAX_UNFINISHED: usize = 100;
/// A long group leaves room for this many jobs of each group after it.
const MIN_PER_GROUP: usize = 20;
/// The jobs that finished last are searched among this many of the newest ones, because no index has their order.
const MAX_FINISHED_READ: usize = 100;

/// The jobs that people ask about first.
#[derive(Clone, Debug, PartialEq)]
pub struct Overview {
    pub jobs: Vec<Job>,
    /// How many jobs there are besides, by state.
    pub hidden: BTreeMap<StateName, u64>,
}

/// The unfinished jobs, and `finished` of those that finished last. Of the filter, only the queue counts.
pub fn overview(store: &dyn Store, filter: &JobFilter, finished: usize) -> Result<Overview, StoreError> {
    let mut groups = Vec::new();
    for states in GROUPS {
        groups.push(read(store, &in_states(filter, states), MAX_UNFINISHED.max(MAX_FINISHED_READ))?);
    }
    let mut last = groups.pop().unwrap_or_default();
    last.sort_by_key(|job| Reverse(job.life.state.finished_at()));
    last.truncate(finished);
    let lengths: Vec<usize> = groups.iter().map(Vec::len).collect();
    for (group, room) in groups.iter_mut().zip(shares(&lengths)) {
        group.truncate(room);
    }
    let jobs: Vec<Job> = groups.into_iter().flatten().chain(last).collect();
    let hidden = hidden(store, filter, &jobs)?;
    Ok(Overview { jobs, hidden })
}

/// All jobs that match the filter, group by group; within a group, newest first.
pub fn in_groups<'s>(
    store: &'s dyn Store,
    filter: &JobFilter,
    limit: usize,
) -> Result<Listing<'s>, StoreError> {
    Listing::in_groups(store, GROUPS.iter().map(|states| in_states(filter, states)).collect(), limit)
}

/// Whether an index yields each group of the matching jobs. For other filters, all matching jobs would be read.
pub fn can_group(filter: &JobFilter) -> bool {
    let queue = filter.queue.clone();
    *filter == JobFilter { queue, ..JobFilter::default() }
}

fn in_states(filter: &JobFilter, states: &[StateName]) -> JobFilter {
    JobFilter { phases: states.iter().copied().map(Phase::State).collect(), ..filter.clone() }
}

fn read(store: &dyn Store, filter: &JobFilter, limit: usize) -> Result<Vec<Job>, StoreError> {
    store.list(filter, &Page { limit, after: None })
}

/// How many jobs of each group fit, if the groups are this long.
fn shares(lengths: &[usize]) -> Vec<usize> {
    let mut left = MAX_UNFINISHED;
    let share = |(at, length): (usize, &usize)| {
        let reserved: usize = lengths[at + 1..].iter().map(|later| *later.min(&MIN_PER_GROUP)).sum();
        let share = *length.min(&left.saturating_sub(reserved));
        left -= share;
        share
    };
    lengths.iter().enumerate().map(share).collect()
}

fn hidden(
    store: &dyn Store,
    filter: &JobFilter,
    shown: &[Job],
) -> Result<BTreeMap<StateName, u64>, StoreError> {
    let mut hidden = BTreeMap::new();
    let queues = store.queues()?;
    let queues = queues.iter().filter(|queue| filter.queue.as_ref().is_none_or(|name| queue.name == *name));
    for (state, count) in queues.flat_map(|queue| &queue.counts) {
        *hidden.entry(*state).or_default() += count;
    }
    for job in shown {
        let count: &mut u64 = hidden.entry(job.life.state.name()).or_default();
        *count = count.saturating_sub(1);
    }
    hidden.retain(|_, count| *count > 0);
    Ok(hidden)
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn a_long_group_leaves_room_for_those_after_it() {
        for (lengths, expected) in [
            ([1, 3, 4, 5], [1, 3, 4, 5]),
            ([0, 0, 100, 0], [0, 0, 100, 0]),
            ([0, 0, 100, 100], [0, 0, 80, 20]),
            ([100, 100, 100, 100], [40, 20, 20, 20]),
            ([100, 0, 0, 5], [95, 0, 0, 5]),
            ([0, 10, 30, 100], [0, 10, 30, 60]),
        ] {
            assert_eq!(shares(&lengths), expected, "{lengths:?}");
        }
    }
}
