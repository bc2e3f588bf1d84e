//! What can be changed about a job, as flags.

use std::time::Duration;

use super::failure::Failure;
use super::job_flags::{parse_backoff, parse_timeout, split_variable};
use crate::domain::backoff::BackoffChoice;
use crate::domain::edit::Edit;
use crate::domain::name::QueueName;
use crate::domain::request::{
    JobRequest, RequestError, Timeout, check_command, check_cwd, check_tags, check_variable,
};
use crate::domain::settings::MAX_RETRIES;
use crate::domain::span::parse_span;
use crate::domain::timestamp::Timestamp;
use crate::ops::OpError;

#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Changes")]
pub(super) struct EditFlags {
    /// The command, run by `sh -c`
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,
    /// Higher first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i32>,
    /// Retries after the first attempt
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_RETRIES)))]
    max_retries: Option<u32>,
    /// How long one attempt may take: 90, 1m30s, none
    #[arg(long, value_name = "DURATION", allow_negative_numbers = true, value_parser = parse_timeout)]
    timeout: Option<Timeout>,
    /// Not before this time: 2026-01-31T09:30:00Z
    #[arg(long, value_name = "TIME")]
    run_at: Option<Timestamp>,
    /// Not before so much time has gone by: 90, 1m30s; 0 for now
    #[arg(long, value_name = "DURATION", allow_negative_numbers = true, value_parser = parse_span)]
    delay: Option<Duration>,
    /// How long to wait before a retry, as JSON: {"strategy":"fixed","delay":"5s"}
    #[arg(long, value_name = "JSON", value_parser = parse_backoff)]
    backoff: Option<BackoffChoice>,
    /// Where to run it; absolute
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    /// Add or change a variable of its environment (repeat for more)
    #[arg(long, value_name = "NAME=VALUE", value_parser = split_variable)]
    env: Vec<(String, String)>,
    /// Take away a variable that was added to its environment (repeat for more)
    #[arg(long, value_name = "NAME")]
    unset_env: Vec<String>,
    #[arg(skip)]
    place: PlaceFlags,
}

/// What a job is selected by as well: a verb that takes a selection cannot take these.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Changes")]
pub(super) struct PlaceFlags {
    /// The queue
    #[arg(long, value_name = "QUEUE")]
    queue: Option<QueueName>,
    /// Tags in the place of those that it has (repeat, or separate by commas)
    #[arg(long, visible_alias = "tag", value_name = "TAG", value_delimiter = ',')]
    tags: Vec<String>,
}

impl EditFlags {
    pub(super) fn with(self, place: PlaceFlags) -> Self {
        Self { place, ..self }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn into_edit(self) -> Result<Edit, Failure> {
        let unset_env = self.unset_env.clone();
        let request = self.into_request().map_err(OpError::from)?;
        Ok(Edit::from_request(request, unset_env).map_err(OpError::from)?)
    }

    fn into_request(self) -> Result<JobRequest, RequestError> {
        let mut request = JobRequest {
            command: self.command.map(check_command).transpose()?,
            queue: self.place.queue,
            priority: self.priority,
            max_retries: self.max_retries,
            timeout: self.timeout,
            run_at: self.run_at,
            delay: self.delay,
            backoff: self.backoff,
            cwd: self.cwd.map(check_cwd).transpose()?,
            tags: check_tags(self.place.tags)?,
            ..JobRequest::default()
        };
        for (name, value) in self.env {
            let (name, value) = check_variable(name, value)?;
            request.env.insert(name, value);
        }
        Ok(request)
    }
}
