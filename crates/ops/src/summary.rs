//! What `queuectl` shows without a verb: the status, the latest jobs and the next schedule.

use std::path::Path;

use serde::Serialize;

use super::OpError;
use super::json::{JobJson, StatusJson};
use super::schedule::json::ScheduleJson;
use super::status::{Status, status};
use domain::job::Job;
use domain::schedule::Schedule;
use domain::values::clock::TimeFormat;
use store::{JobFilter, Page, Store};

/// How many of the latest jobs are shown.
const LATEST_JOBS: usize = 10;

#[derive(Clone, Debug)]
pub struct Summary {
    pub status: Status,
    /// Newest first.
    pub jobs: Vec<Job>,
    /// The schedule that fires next.
    pub next_schedule: Option<Schedule>,
}

/// The sentences show times in this format.
pub fn summary(store: &dyn Store, home: &Path, format: &TimeFormat) -> Result<Summary, OpError> {
    Ok(Summary {
        status: status(store, home, format)?,
        jobs: store.list(&JobFilter::default(), &Page { limit: LATEST_JOBS, after: None })?,
        next_schedule: store.upcoming(1)?.schedules.into_iter().next(),
    })
}

/// Without a queue, there is only the home.
#[derive(Debug, Serialize)]
pub struct SummaryJson<'a> {
    home: String,
    status: Option<StatusJson<'a>>,
    jobs: Vec<JobJson<'a>>,
    next_schedule: Option<ScheduleJson<'a>>,
}

impl<'a> SummaryJson<'a> {
    pub fn new(home: &Path, summary: Option<&'a Summary>) -> Self {
        Self {
            home: home.display().to_string(),
            status: summary.map(|summary| StatusJson::from(&summary.status)),
            jobs: summary.map_or(Vec::new(), |summary| summary.jobs.iter().map(JobJson::from).collect()),
            next_schedule: summary.and_then(|summary| summary.next_schedule.as_ref()).map(ScheduleJson::from),
        }
    }
}
