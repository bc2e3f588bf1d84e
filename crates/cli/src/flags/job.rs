//! The fields of a job as flags, for callers who do not want to quote JSON.

use super::handle::resolve_id;
use super::start_time::{StartTime, parse_delay, parse_run_at, start_fields};
use super::whole_number::whole_number;
use crate::context::Context;
use crate::failure::Failure;
use domain::job::OnDependencyFailure;
use domain::job::backoff::BackoffChoice;
use domain::job::limits::Limits;
use domain::job::priority::Priority;
use domain::job::retry_rules::ExitCodes;
use domain::job::spec::{JobSpec, Timeout};
use domain::job::unique::UniqueFor;
use domain::settings::MAX_RETRIES;
use domain::values::name::{JobId, QueueName};
use ops::OpError;
use ops::error::JsonProblem;

#[derive(Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Job")]
pub(crate) struct JobFlags {
    /// The command, run by `sh -c`
    #[arg(short, long, value_name = "COMMAND")]
    pub(crate) command: Option<String>,
    /// The job's id [default: generated]
    #[arg(long, value_name = "ID")]
    id: Option<JobId>,
    /// A label for people; shown instead of the command where space is short, need not be unique
    // Schedules have a name of their own.
    #[arg(id = "job-name", long = "name", value_name = "NAME")]
    name: Option<String>,
    /// The queue [default: default]
    #[arg(short = 'Q', long, value_name = "QUEUE")]
    queue: Option<QueueName>,
    /// Priority, higher runs first: a number, or low (-10), normal, high (10), urgent (20) [default: 0]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<Priority>,
    /// Retries after the first attempt; --max-attempts counts that one, too [default: the setting max_retries]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole_number::<u32>(0..=MAX_RETRIES.into()), help_heading = "Timeout and retries")]
    max_retries: Option<u32>,
    /// Total number of attempts; an alternative to --max-retries
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole_number::<u32>(1..=i128::from(MAX_RETRIES) + 1), help_heading = "Timeout and retries")]
    max_attempts: Option<u32>,
    /// Time limit for one attempt: 90, 1m30s, none [default: the setting job_timeout]
    #[arg(
        short,
        long,
        value_name = "DURATION",
        allow_negative_numbers = true,
        help_heading = "Timeout and retries"
    )]
    timeout: Option<Timeout>,
    /// Start no earlier than this time: 03:00, "tomorrow 3am", "mon 10:30", "2027-01-01 10:00", 2026-01-31T09:30:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_run_at, help_heading = "Start time and dependencies")]
    run_at: Option<StartTime>,
    /// Delay before the first attempt: 90, 1m30s, or a time as for --run-at
    #[arg(short, long, value_name = "DURATION", allow_negative_numbers = true, value_parser = parse_delay, help_heading = "Start time and dependencies")]
    delay: Option<StartTime>,
    /// Delay before a retry, as JSON: {"strategy":"fixed","delay":"5s"} [default: the backoff settings]
    #[arg(long, value_name = "JSON", value_parser = parse_backoff, help_heading = "Timeout and retries")]
    backoff: Option<BackoffChoice>,
    /// Start after these jobs have completed: numbers, ids, or % for the latest job (repeat, or separate with commas)
    #[arg(short = 'a', long, visible_alias = "after", value_name = "JOB", value_delimiter = ',')]
    #[arg(help_heading = "Start time and dependencies")]
    depends_on: Vec<String>,
    /// If one of those jobs is dead or cancelled: cancel or run [default: cancel]
    #[arg(long, value_name = "CHOICE", help_heading = "Start time and dependencies")]
    on_dependency_failure: Option<OnDependencyFailure>,
    /// If an unfinished job has this key (see --unique-for), return that job instead
    #[arg(long, value_name = "KEY", help_heading = "Duplicates")]
    unique_key: Option<String>,
    /// How long the key stays taken: until started or finished, or a duration such as 90 or 1h [default: finished]
    #[arg(long, value_name = "WHEN", help_heading = "Duplicates")]
    unique_for: Option<UniqueFor>,
    /// Working directory [default: the current one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    /// Add a variable to its environment (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = split_variable)]
    env: Vec<(String, String)>,
    /// Tags to select it by (repeat, or separate with commas)
    #[arg(long, visible_alias = "tag", value_name = "TAG", value_delimiter = ',')]
    tags: Vec<String>,
    /// Resource limits: memory=512M,cpu=1.5,pids=100,nice=10,open_files=1024, or the same as JSON [default: those of its
    /// queue, else the setting limits]
    #[arg(long, value_name = "LIMITS")]
    limits: Option<Limits>,
    /// Retry only after these exit codes: 1,75 [default: those of its queue, else all codes]
    #[arg(long, value_name = "CODES", help_heading = "Timeout and retries")]
    retry_on: Option<ExitCodes>,
    /// Do not retry after these exit codes: 2,64
    #[arg(long, value_name = "CODES", help_heading = "Timeout and retries")]
    no_retry_on: Option<ExitCodes>,
}

impl JobFlags {
    /// The start time, from either flag.
    pub(crate) fn start_time(&self) -> Option<StartTime> {
        self.run_at.clone().or_else(|| self.delay.clone())
    }

    pub(crate) fn into_spec(self, context: &Context, command: String) -> Result<JobSpec, Failure> {
        self.into_partial_spec(context, Some(command))
    }

    /// The fields that are given, to change those of an existing request.
    pub(crate) fn into_changes(mut self, context: &Context) -> Result<JobSpec, Failure> {
        let command = self.command.take();
        self.into_partial_spec(context, command)
    }

    /// The fields that are given; the JSON beside them may have the command.
    pub(crate) fn into_partial_spec(
        self,
        context: &Context,
        command: Option<String>,
    ) -> Result<JobSpec, Failure> {
        if !self.depends_on.is_empty() {
            // In a new home the error is that there is no such job, not that there is no queue.
            context.store_or_new()?;
        }
        let depends_on = self.depends_on.iter().map(|typed| resolve_id(context, typed));
        let depends_on = depends_on.collect::<Result<_, _>>()?;
        let (run_at, delay) = start_fields(self.run_at.as_ref(), self.delay.as_ref());
        let spec = JobSpec {
            command,
            id: self.id,
            name: self.name,
            queue: self.queue,
            priority: self.priority.map(|priority| priority.0),
            max_retries: self.max_retries,
            max_attempts: self.max_attempts,
            timeout: self.timeout,
            run_at,
            delay,
            backoff: self.backoff,
            depends_on,
            on_dependency_failure: self.on_dependency_failure,
            unique_key: self.unique_key,
            unique_for: self.unique_for,
            cwd: self.cwd,
            env: self.env.into_iter().collect(),
            tags: self.tags,
            limits: self.limits,
            retry_on: self.retry_on,
            no_retry_on: self.no_retry_on,
        };
        Ok(spec.checked().map_err(OpError::from)?)
    }
}

pub(crate) fn parse_backoff(text: &str) -> Result<BackoffChoice, JsonProblem> {
    if !text.trim_start().starts_with('{') {
        return Err(JsonProblem::new(r#"write it as JSON, such as {"strategy":"fixed","delay":"5s"}"#));
    }
    serde_json::from_str(text).map_err(|error| JsonProblem::from(&error))
}

pub(crate) fn split_variable(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
