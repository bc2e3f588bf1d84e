//! The fields of a job as flags, for shells where quoting JSON hurts.

use std::time::Duration;

use crate::failure::Failure;
use domain::job::OnDependencyFailure;
use domain::job::backoff::BackoffChoice;
use domain::job::limits::Limits;
use domain::job::request::{
    JobRequest, Timeout, check_command, check_cwd, check_dependency_choice, check_depends_on, check_tags,
    check_unique_key, check_variables,
};
use domain::job::retry_rules::ExitCodes;
use domain::job::unique::UniqueFor;
use domain::settings::MAX_RETRIES;
use domain::values::name::{JobId, QueueName};
use domain::values::span::parse_span;
use domain::values::timestamp::Timestamp;
use ops::OpError;

#[derive(Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Job")]
pub(crate) struct JobFlags {
    /// The command, run by `sh -c`
    #[arg(long, value_name = "COMMAND")]
    pub(crate) command: Option<String>,
    /// The job's id [default: a new one]
    #[arg(long, value_name = "ID")]
    id: Option<JobId>,
    /// The queue [default: default]
    #[arg(long, value_name = "QUEUE")]
    queue: Option<QueueName>,
    /// Higher first [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i32>,
    /// Retries after the first attempt [default: the setting]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_RETRIES)), help_heading = "If it fails")]
    max_retries: Option<u32>,
    /// Attempts in all, instead of --max-retries
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_RETRIES) + 1), help_heading = "If it fails")]
    max_attempts: Option<u32>,
    /// How long one attempt may take: 90, 1m30s, none [default: the setting]
    #[arg(long, value_name = "DURATION", allow_negative_numbers = true, value_parser = parse_timeout, help_heading = "If it fails")]
    timeout: Option<Timeout>,
    /// Not before this time: 2026-01-31T09:30:00Z
    #[arg(long, value_name = "TIME", help_heading = "Not before")]
    run_at: Option<Timestamp>,
    /// Not before so much time has gone by: 90, 1m30s
    #[arg(long, value_name = "DURATION", allow_negative_numbers = true, value_parser = parse_span, help_heading = "Not before")]
    delay: Option<Duration>,
    /// How long to wait before a retry, as JSON: {"strategy":"fixed","delay":"5s"} [default: the settings]
    #[arg(long, value_name = "JSON", value_parser = parse_backoff, help_heading = "If it fails")]
    backoff: Option<BackoffChoice>,
    /// Run after these jobs completed (repeat, or separate by commas)
    #[arg(long, value_name = "ID", value_delimiter = ',', help_heading = "Not before")]
    depends_on: Vec<JobId>,
    /// When one of those is dead or cancelled: cancel or run [default: cancel]
    #[arg(long, value_name = "CHOICE", value_parser = check_dependency_choice, help_heading = "Not before")]
    on_dependency_failure: Option<OnDependencyFailure>,
    /// While a job with this key is unfinished (see --unique-for), return it instead
    #[arg(long, value_name = "KEY", help_heading = "Only once")]
    unique_key: Option<String>,
    /// How long it keeps others with its key away: until it has started or finished, or for 90, 1h [default: finished]
    #[arg(long, value_name = "WHEN", help_heading = "Only once")]
    unique_for: Option<UniqueFor>,
    /// Where to run it [default: here]
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    /// Add a variable to its environment (repeat for more)
    #[arg(long, value_name = "NAME=VALUE", value_parser = split_variable)]
    env: Vec<(String, String)>,
    /// Tags for selection (repeat, or separate by commas)
    #[arg(long, visible_alias = "tag", value_name = "TAG", value_delimiter = ',')]
    tags: Vec<String>,
    /// What it may use: memory=512M,cpu=1.5,pids=100,nice=10,open_files=1024, or the same as JSON [default: those of its
    /// queue, else the setting]
    #[arg(long, value_name = "LIMITS")]
    limits: Option<Limits>,
    /// Retry only after these exit codes: 1,75 [default: those of its queue, else all]
    #[arg(long, value_name = "CODES", help_heading = "If it fails")]
    retry_on: Option<ExitCodes>,
    /// Do not retry after these exit codes: 2,64
    #[arg(long, value_name = "CODES", help_heading = "If it fails")]
    no_retry_on: Option<ExitCodes>,
}

impl JobFlags {
    pub(crate) fn into_request(self, command: String) -> Result<JobRequest, Failure> {
        Ok(JobRequest {
            command: Some(check(check_command(command))?),
            id: self.id,
            queue: self.queue,
            priority: self.priority,
            max_retries: self.max_retries,
            max_attempts: self.max_attempts,
            timeout: self.timeout,
            run_at: self.run_at,
            delay: self.delay,
            backoff: self.backoff,
            depends_on: check(check_depends_on(self.depends_on))?,
            on_dependency_failure: self.on_dependency_failure,
            unique_key: self.unique_key.map(check_unique_key).transpose().map_err(OpError::from)?,
            unique_for: self.unique_for,
            cwd: self.cwd.map(check_cwd).transpose().map_err(OpError::from)?,
            tags: check(check_tags(self.tags))?,
            limits: self.limits,
            retry_on: self.retry_on,
            no_retry_on: self.no_retry_on,
            env: check(check_variables(self.env))?,
        })
    }
}

fn check<T>(result: Result<T, domain::job::request::RequestError>) -> Result<T, Failure> {
    Ok(result.map_err(OpError::from)?)
}

pub(crate) fn parse_timeout(text: &str) -> Result<Timeout, domain::job::request::RequestError> {
    text.parse()
}

pub(crate) fn parse_backoff(text: &str) -> Result<BackoffChoice, serde_json::Error> {
    serde_json::from_str(text)
}

pub(crate) fn split_variable(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
