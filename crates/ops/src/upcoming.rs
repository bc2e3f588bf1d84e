//! What happens next: retries, delayed jobs and schedules in the order of time.

use serde::Serialize;

use domain::job::life::State;
use domain::values::name::{JobId, QueueName, ScheduleName};
use domain::values::timestamp::Timestamp;
use store::{Store, StoreError, Upcoming};

domain::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Kind {
        /// A failed job runs again.
        Retry = "retry",
        /// A job starts at its time.
        Start = "start",
        /// A schedule enqueues a job.
        Schedule = "schedule",
    }
}

/// One thing that happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Coming {
    /// It may be overdue.
    pub at: Timestamp,
    pub kind: Kind,
    /// Null for a schedule.
    pub number: Option<u64>,
    pub id: Option<JobId>,
    /// The job's name, if it has one.
    pub name: Option<String>,
    /// Null for a job.
    pub schedule: Option<ScheduleName>,
    pub queue: QueueName,
    pub command: String,
}

/// The next `limit` things that happen, and whether there are more. Of each schedule, only its next run is listed.
pub fn upcoming(store: &dyn Store, limit: usize) -> Result<(Vec<Coming>, bool), StoreError> {
    let mut all = merged(store.upcoming(limit.saturating_add(1))?);
    let more = all.len() > limit;
    all.truncate(limit);
    Ok((all, more))
}

fn merged(next: Upcoming) -> Vec<Coming> {
    let jobs = next.jobs.into_iter().map(|job| Coming {
        at: job.life.due_at,
        kind: if job.life.state == State::Failed { Kind::Retry } else { Kind::Start },
        number: Some(job.number),
        name: job.name().map(str::to_owned),
        id: Some(job.id),
        schedule: None,
        queue: job.queue,
        command: job.command,
    });
    let schedules = next.schedules.into_iter().filter_map(|schedule| {
        Some(Coming {
            at: schedule.next_at?,
            kind: Kind::Schedule,
            number: None,
            id: None,
            name: schedule.job.name,
            schedule: Some(schedule.name),
            queue: schedule.job.queue.unwrap_or_else(QueueName::default_queue),
            command: schedule.job.command.unwrap_or_default(),
        })
    });
    let mut all: Vec<Coming> = jobs.chain(schedules).collect();
    all.sort_by_key(|coming| coming.at);
    all
}
