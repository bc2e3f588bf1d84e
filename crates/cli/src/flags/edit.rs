//! The editable fields of a job as flags.

use super::job::{parse_backoff, split_variable};
use super::or_none::{or_none, or_none_with};
use super::start_time::{StartTime, parse_delay, parse_run_at, start_fields};
use super::whole_number::whole_number;
use crate::failure::Failure;
use domain::job::OnDependencyFailure;
use domain::job::backoff::BackoffChoice;
use domain::job::edit::Edit;
use domain::job::limits::Limits;
use domain::job::priority::Priority;
use domain::job::retry_rules::ExitCodes;
use domain::job::spec::{JobSpec, Timeout};
use domain::settings::MAX_RETRIES;
use domain::values::name::QueueName;
use ops::OpError;
use ops::error::JsonProblem;
use store::Update;

#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Changes")]
pub(crate) struct EditFlags {
    /// The command, run by `sh -c`
    #[arg(short, long, value_name = "COMMAND")]
    command: Option<String>,
    /// A label for people; none for no label
    #[arg(long, value_name = "NAME|none", value_parser = or_none::<String>)]
    name: Option<Update<String>>,
    /// Priority, higher runs first: a number, or low (-10), normal, high (10), urgent (20)
    #[arg(short, long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<Priority>,
    /// Retries after the first attempt; --max-attempts counts that one, too
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole_number::<u32>(0..=MAX_RETRIES.into()))]
    max_retries: Option<u32>,
    /// Total number of attempts; an alternative to --max-retries
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole_number::<u32>(1..=i128::from(MAX_RETRIES) + 1))]
    max_attempts: Option<u32>,
    /// Time limit for one attempt: 90, 1m30s, none
    #[arg(short, long, value_name = "DURATION", allow_negative_numbers = true)]
    timeout: Option<Timeout>,
    /// Start no earlier than this time: 03:00, "tomorrow 3am", "mon 10:30", "2027-01-01 10:00", 2026-01-31T09:30:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_run_at)]
    run_at: Option<StartTime>,
    /// Delay before the next attempt, from now: 90, 1m30s, or a time as for --run-at; 0 to start at once
    #[arg(short, long, value_name = "DURATION", allow_negative_numbers = true, value_parser = parse_delay)]
    delay: Option<StartTime>,
    /// Delay before a retry, as JSON: {"strategy":"fixed","delay":"5s"}; none for the backoff settings
    #[arg(long, value_name = "JSON|none", value_parser = backoff_or_none)]
    backoff: Option<Update<BackoffChoice>>,
    /// Working directory, as an absolute path
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    /// Add or change a variable of its environment (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = split_variable)]
    env: Vec<(String, String)>,
    /// Remove a variable that was added to its environment (repeatable)
    #[arg(long, value_name = "NAME")]
    unset_env: Vec<String>,
    /// If a job that it depends on is dead or cancelled: cancel or run
    #[arg(long, value_name = "CHOICE")]
    on_dependency_failure: Option<OnDependencyFailure>,
    /// Resource limits: memory=512M,cpu=1.5,pids=100,nice=10,open_files=1024, or the same as JSON; none for those of its
    /// queue or the setting limits
    #[arg(long, value_name = "LIMITS|none", value_parser = or_none::<Limits>)]
    limits: Option<Update<Limits>>,
    /// Retry only after these exit codes: 1,75; none for those of its queue
    #[arg(long, value_name = "CODES|none", value_parser = or_none::<ExitCodes>)]
    retry_on: Option<Update<ExitCodes>>,
    /// Do not retry after these exit codes: 2,64
    #[arg(long, value_name = "CODES|none", value_parser = or_none::<ExitCodes>)]
    no_retry_on: Option<Update<ExitCodes>>,
    #[command(flatten)]
    queue_and_tags: QueueAndTagFlags,
}

/// Fields that also select jobs. A verb that takes a selection needs other flag names to change them; for a named job,
/// `edit` accepts the names of `enqueue`, too.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Changes")]
pub(crate) struct QueueAndTagFlags {
    /// Move it to this queue
    #[arg(id = "set-queue", long, value_name = "QUEUE")]
    queue: Option<QueueName>,
    /// Replace its tags with these (repeat, or separate with commas)
    #[arg(id = "set-tags", long, alias = "set-tag", value_name = "TAG", value_delimiter = ',')]
    tags: Vec<String>,
    /// Remove all its tags
    #[arg(long, conflicts_with = "set-tags")]
    no_tags: bool,
}

fn backoff_or_none(text: &str) -> Result<Update<BackoffChoice>, JsonProblem> {
    or_none_with(text, parse_backoff)
}

impl EditFlags {
    /// The start time, from either flag.
    pub(crate) fn start_time(&self) -> Option<StartTime> {
        self.run_at.clone().or_else(|| self.delay.clone())
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the changes that were given under the names that `enqueue` has for them.
    pub(crate) fn with_enqueue_names(
        mut self,
        queue: Option<&str>,
        tags: Vec<String>,
    ) -> Result<Self, Failure> {
        let own = &mut self.queue_and_tags;
        if let Some(typed) = queue {
            let name = typed
                .parse()
                .map_err(|error| Failure::usage(format!("invalid queue `{typed}` ({error})")))?;
            if own.queue.replace(name).is_some() {
                return Err(Failure::usage(
                    "for a named job --queue is --set-queue, which cannot be used multiple times",
                ));
            }
        }
        if !tags.is_empty() {
            if own.no_tags || !own.tags.is_empty() {
                return Err(Failure::usage(
                    "--tag cannot be used with --set-tags or --no-tags for a named job",
                ));
            }
            own.tags = tags;
        }
        Ok(self)
    }

    pub(crate) fn into_edit(self) -> Result<Edit, Failure> {
        let (run_at, delay) = start_fields(self.run_at.as_ref(), self.delay.as_ref());
        let mut reset = Vec::new();
        let set = JobSpec {
            command: self.command,
            name: or_reset("name", self.name, &mut reset),
            queue: self.queue_and_tags.queue,
            priority: self.priority.map(|priority| priority.0),
            max_retries: self.max_retries,
            max_attempts: self.max_attempts,
            timeout: self.timeout,
            run_at,
            delay,
            backoff: or_reset("backoff", self.backoff, &mut reset),
            cwd: self.cwd,
            env: self.env.into_iter().collect(),
            on_dependency_failure: self.on_dependency_failure,
            limits: or_reset("limits", self.limits, &mut reset),
            retry_on: or_reset("retry_on", self.retry_on, &mut reset),
            no_retry_on: or_reset("no_retry_on", self.no_retry_on, &mut reset),
            tags: self.queue_and_tags.tags,
            ..JobSpec::default()
        };
        reset.extend(self.queue_and_tags.no_tags.then_some("tags"));
        let set = set.checked().map_err(OpError::from)?;
        Ok(Edit::new(set, reset, self.unset_env).map_err(OpError::from)?)
    }
}

/// The value to set; `none` resets the field instead.
fn or_reset<T>(field: &'static str, value: Option<Update<T>>, reset: &mut Vec<&'static str>) -> Option<T> {
    match value? {
        Update::Set(value) => return Some(value),
        Update::Clear => reset.push(field),
        Update::Keep => {}
    }
    None
}
