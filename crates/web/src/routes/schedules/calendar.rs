//! The runs of schedules in a span of time.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use crate::request::query::{Param, TIME};
use domain::job::life::StateName;
use domain::schedule::{Run, Schedule};
use domain::values::name::{JobId, ScheduleName};
use domain::values::timestamp::Timestamp;

const DAY_MILLIS: i64 = 86_400_000;
const MAX_SPAN: Duration = Duration::from_secs(60 * 86_400);
const DEFAULT_SPAN: Duration = Duration::from_secs(7 * 86_400);
/// More runs of all schedules are only counted, by day.
const MAX_ENTRIES: usize = 5_000;
/// The runs of one schedule are counted up to this many.
const MAX_COUNTED: usize = 100_000;

pub(super) const PARAMS: &[Param] = &[
    Param::new("from", TIME, "The beginning; now unless given"),
    Param::new("to", TIME, "The end, at most 60 days later; 7 days unless given"),
];

#[derive(Serialize)]
struct Entry<'a> {
    at: Timestamp,
    schedule: &'a ScheduleName,
    /// Of a run in the past.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<JobId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<StateName>,
    /// How many runs begin on this day, where they are not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
}

pub(super) fn calendar(call: &Call<'_>) -> Result<Answer, Problem> {
    let store = call.store()?;
    let now = store.now()?;
    let from: Timestamp = call.query().read("from")?.unwrap_or(now);
    let to = call.query().read("to")?.unwrap_or_else(|| from.saturating_add(DEFAULT_SPAN));
    if to < from || to.since(from) > MAX_SPAN {
        return Err(Problem::invalid("`to` must be at most 60 days after `from`"));
    }
    let mut schedules: Vec<(Schedule, Vec<Run>)> = Vec::new();
    for (schedule, _) in store.schedules()? {
        schedules.extend(store.schedule(&schedule.name)?);
    }
    let future: Vec<Vec<Timestamp>> =
        schedules.iter().map(|(schedule, _)| upcoming(schedule, from.max(now), to)).collect();
    let is_listed = future.iter().map(Vec::len).sum::<usize>() <= MAX_ENTRIES;
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for ((schedule, runs), future) in schedules.iter().zip(&future) {
        entries.extend(past(schedule, runs, from, to));
        if is_listed {
            entries.extend(future.iter().map(|at| entry(*at, schedule)));
        } else {
            entries.extend(by_day(schedule, future));
        }
    }
    entries.sort_by_key(|entry| entry.at);
    Answer::json(&entries)
}

fn entry(at: Timestamp, schedule: &Schedule) -> Entry<'_> {
    Entry { at, schedule: &schedule.name, job: None, state: None, count: None }
}

fn upcoming(schedule: &Schedule, from: Timestamp, to: Timestamp) -> Vec<Timestamp> {
    if schedule.paused.is_some() {
        return Vec::new();
    }
    let first = schedule.next_at.filter(|at| *at >= from).or_else(|| schedule.next_after(from));
    std::iter::successors(first, |at| schedule.next_after(*at))
        .take_while(|at| *at <= to)
        .take(MAX_COUNTED)
        .collect()
}

/// The latest runs; older ones are not kept with the schedule.
fn past<'a>(
    schedule: &'a Schedule,
    runs: &'a [Run],
    from: Timestamp,
    to: Timestamp,
) -> impl Iterator<Item = Entry<'a>> {
    let is_within = move |run: &&Run| (from..=to).contains(&run.created_at);
    runs.iter().filter(is_within).map(|run| Entry {
        job: Some(run.id.clone()),
        state: Some(run.state),
        ..entry(run.created_at, schedule)
    })
}

fn by_day<'a>(schedule: &'a Schedule, times: &[Timestamp]) -> Vec<Entry<'a>> {
    let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
    for at in times {
        *counts.entry(at.as_millis().div_euclid(DAY_MILLIS)).or_default() += 1;
    }
    let day = |(day, count): (i64, u64)| Entry {
        count: Some(count),
        ..entry(Timestamp::from_millis(day * DAY_MILLIS), schedule)
    };
    counts.into_iter().map(day).collect()
}
