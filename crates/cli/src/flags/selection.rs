//! How every verb selects jobs: by handle, or by their properties.

use std::time::Duration;

use crate::context::Context;
use crate::failure::Failure;
use crate::flags::handle::{NamedJobs, no_jobs_given, resolve_ids};
use crate::render::text::grouped;
use domain::job::life::StateName;
use domain::text::nearest::{nearest, suggestion};
use domain::text::pattern::CommandPattern;
use domain::values::name::{BatchName, NameError, QueueName, ScheduleName, WorkerId};
use domain::values::span::parse_span;
use domain::values::timestamp::Timestamp;
use ops::jobs::batch::nearest_to;
use ops::jobs::dlq::find_cause;
use store::{EndReason, JobFilter, Phase};

/// Selects jobs by their properties.
#[derive(Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct JobFilterArgs {
    /// Jobs in this state (separate several with commas): pending, processing, completed, failed, dead, cancelled; also
    /// ready, scheduled, blocked, paused; running, done and queued for processing, completed and pending
    #[arg(short, long, value_name = "STATE", value_delimiter = ',')]
    state: Vec<String>,
    #[command(flatten)]
    others: StatelessFilterArgs,
}

/// [`JobFilterArgs`] without the state, for verbs that imply one.
#[derive(Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct StatelessFilterArgs {
    /// Jobs in this queue
    #[arg(short = 'Q', long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Jobs with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Jobs in this batch
    #[arg(long, value_name = "NAME")]
    batch: Option<String>,
    #[command(flatten)]
    properties: PropertyFilterArgs,
}

/// [`StatelessFilterArgs`] without the queue, the tag and the batch, which are fields of a job, too.
#[derive(Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct PropertyFilterArgs {
    /// Jobs that have not changed for this long: 90, 1m30s, 7d
    #[arg(long, value_name = "DURATION", allow_negative_numbers = true, value_parser = parse_span)]
    older_than: Option<Duration>,
    /// Jobs whose command matches: `*` matches anything, `?` one character; a pattern without either matches anywhere in
    /// the command
    #[arg(long, value_name = "GLOB")]
    command_like: Option<CommandPattern>,
    /// Jobs that changed then or later: 1h for the last hour, or a time such as 2026-01-31T09:30:00Z
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = parse_since)]
    changed_after: Option<Since>,
    /// Jobs whose id begins like this
    #[arg(long, value_name = "PREFIX")]
    id_prefix: Option<String>,
    /// Runs of this schedule
    #[arg(long, value_name = "NAME")]
    schedule: Option<String>,
    /// Jobs that this worker runs
    #[arg(long, value_name = "WORKER")]
    worker: Option<String>,
    /// Jobs that died of this cause or like this job (`dlq list --group`)
    #[arg(long, value_name = "CAUSE")]
    cause: Option<String>,
    /// Jobs that are dead or cancelled for this reason
    #[arg(long, value_name = "REASON")]
    reason: Option<String>,
    /// Jobs whose last attempt had this exit code
    #[arg(long, value_name = "CODE", allow_negative_numbers = true)]
    exit_code: Option<i32>,
}

/// The beginning of a time that lasts until now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Since {
    Ago(Duration),
    At(Timestamp),
}

impl Since {
    fn resolve(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Ago(age) => now.saturating_sub(age),
            Self::At(at) => at,
        }
    }
}

fn parse_since(text: &str) -> Result<Since, String> {
    let by_time = |_| text.parse().map(Since::At);
    let neither = |_| "give a duration such as 1h or a time such as 2026-01-31T09:30:00Z".to_owned();
    parse_span(text).map(Since::Ago).or_else(by_time).map_err(neither)
}

/// [`JobFilterArgs`] for a verb with which the same flags change a job that is named.
#[derive(Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct EditFilterArgs {
    /// Jobs in this state (separate several with commas): pending, failed, dead, cancelled; also ready, scheduled, blocked
    #[arg(short, long, value_name = "STATE", value_delimiter = ',')]
    state: Vec<String>,
    /// Jobs in this queue; if JOB is given, the queue to move it to
    #[arg(short = 'Q', long, value_name = "QUEUE")]
    pub(crate) queue: Option<String>,
    /// Jobs with this tag; if JOB is given, its new tags
    #[arg(long, visible_alias = "tags", value_name = "TAG", value_delimiter = ',')]
    pub(crate) tag: Vec<String>,
    /// Jobs in this batch
    #[arg(long, value_name = "NAME")]
    pub(crate) batch: Option<String>,
    #[command(flatten)]
    properties: PropertyFilterArgs,
}

impl EditFilterArgs {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it has flags that can only select jobs.
    pub(crate) fn only_selects(&self) -> bool {
        !self.state.is_empty() || self.properties != PropertyFilterArgs::default()
    }

    pub(crate) fn filter(self, context: &Context) -> Result<JobFilter, Failure> {
        let Self { state, queue, mut tag, batch, properties } = self;
        if tag.len() > 1 {
            return Err(Failure::usage("a selection has one tag"));
        }
        let others = StatelessFilterArgs { queue, tag: tag.pop(), batch, properties };
        JobFilterArgs { state, others }.filter(context)
    }
}

impl JobFilterArgs {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn phases(&self) -> Result<Vec<Phase>, Failure> {
        self.state.iter().map(|typed| parse_phase(typed)).collect()
    }

    /// Checks the flags. Ages are resolved with the store's clock.
    pub(crate) fn filter(&self, context: &Context) -> Result<JobFilter, Failure> {
        let phases = self.phases()?;
        Ok(JobFilter { phases, ..self.others.filter(context)? })
    }
}

impl StatelessFilterArgs {
    pub(crate) fn filter(&self, context: &Context) -> Result<JobFilter, Failure> {
        let properties = &self.properties;
        let queue: Option<QueueName> = parse_name("queue", self.queue.as_deref())?;
        let batch: Option<BatchName> = parse_name("batch", self.batch.as_deref())?;
        let schedule: Option<ScheduleName> = parse_name("schedule", properties.schedule.as_deref())?;
        let worker: Option<WorkerId> = parse_name("worker", properties.worker.as_deref())?;
        let reason = properties.reason.as_deref().map(parse_reason).transpose()?;
        let store = context.store()?;
        let now = store.now()?;
        Ok(JobFilter {
            phases: Vec::new(),
            queue,
            tag: self.tag.clone(),
            batch,
            schedule,
            worker,
            id_prefix: properties.id_prefix.clone(),
            cause: properties.cause.as_deref().map(|typed| find_cause(store, typed)).transpose()?,
            reason,
            exit_code: properties.exit_code,
            changed_before: properties.older_than.map(|age| now.saturating_sub(age)),
            changed_after: properties.changed_after.map(|since| since.resolve(now)),
            command: properties.command_like.clone(),
        })
    }
}

/// Words that other programs use for states, as input only.
pub(crate) const STATE_WORDS: [(&str, &str); 3] =
    [("running", "processing"), ("done", "completed"), ("queued", "pending")];

fn parse_phase(typed: &str) -> Result<Phase, Failure> {
    let word = typed.to_ascii_lowercase();
    let synonym = STATE_WORDS.iter().find(|(synonym, _)| *synonym == word);
    Phase::from_name(synonym.map_or(word.as_str(), |(_, state)| state)).ok_or_else(|| {
        let words = STATE_WORDS.map(|(synonym, _)| synonym);
        let known = [&Phase::ALL.map(Phase::name)[..], &words].concat();
        let hint = suggestion(typed, "states", &known);
        Failure::usage(format!("unknown state `{typed}`")).with_hint(hint)
    })
}

fn parse_reason(typed: &str) -> Result<EndReason, Failure> {
    EndReason::from_name(&typed.to_ascii_lowercase().replace('-', "_")).ok_or_else(|| {
        let known: Vec<&str> = EndReason::all().map(EndReason::name).collect();
        Failure::usage(format!("unknown reason `{typed}`")).with_hint(suggestion(typed, "reasons", &known))
    })
}

fn parse_name<T: std::str::FromStr<Err = NameError>>(
    what: &str,
    typed: Option<&str>,
) -> Result<Option<T>, Failure> {
    let parse = |typed: &str| {
        typed.parse().map_err(|error| Failure::usage(format!("invalid {what} `{typed}` ({error})")))
    };
    typed.map(parse).transpose()
}

/// Selects jobs by id or by their properties, for verbs that take many.
#[derive(Debug, clap::Args)]
pub(crate) struct SelectionArgs {
    /// Numbers or ids of jobs; a unique part of an id is enough for generated ids and, on a terminal, for ids that you chose
    #[arg(value_name = "JOB")]
    ids: Vec<String>,
    #[command(flatten)]
    filter: JobFilterArgs,
}

#[derive(Debug)]
pub(crate) enum Selection {
    Named(NamedJobs),
    Matching(Box<JobFilter>),
}

impl SelectionArgs {
    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.filter.is_empty()
    }

    /// The given ids, if there are any and no other selection.
    pub(crate) fn only_ids(&self) -> Option<&[String]> {
        (!self.ids.is_empty() && self.filter.is_empty()).then_some(&self.ids)
    }

    /// The selected jobs; without a selection, `default`.
    pub(crate) fn resolve_or(
        &self,
        context: &Context,
        default: impl FnOnce() -> Result<Selection, Failure>,
    ) -> Result<Selection, Failure> {
        if self.is_empty() { default() } else { self.resolve(context) }
    }

    pub(crate) fn resolve(&self, context: &Context) -> Result<Selection, Failure> {
        match (self.ids.is_empty(), self.filter.is_empty()) {
            (true, true) => Err(no_jobs_given()),
            (false, false) => Err(Failure::usage("ids cannot be combined with a selection")
                .with_hint("give either ids or flags such as --state")),
            (false, true) => Ok(Selection::Named(resolve_ids(context, &self.ids)?)),
            (true, false) => Ok(Selection::Matching(Box::new(self.filter.filter(context)?))),
        }
    }
}

/// Prints a hint that no job matched, naming a queue, schedule or batch that does not exist: it may be a typo.
pub(crate) fn hint_no_match(context: &Context, filter: &JobFilter) -> Result<(), Failure> {
    if !hint_unknown_name(context, filter)? && !hint_dead_not_failed(context, filter)? {
        context.hint("no jobs matched")?;
    }
    Ok(())
}

/// Prints a hint if only failed jobs were selected and there are none, but there are dead ones. To many people a job that
/// used up its retries has failed.
pub(crate) fn hint_dead_not_failed(context: &Context, filter: &JobFilter) -> Result<bool, Failure> {
    if filter.phases != [Phase::State(StateName::Failed)] {
        return Ok(false);
    }
    let dead = JobFilter { phases: vec![Phase::State(StateName::Dead)], ..filter.clone() };
    let count = context.store()?.count(&dead, None)?.count;
    if count == 0 {
        return Ok(false);
    }
    let (count, jobs) = (grouped(count), if count == 1 { "job" } else { "jobs" });
    context.hint(&format!(
        "no failed jobs, but {count} dead {jobs}: use --state dead (\"failed\" means waiting for a retry)"
    ))?;
    Ok(true)
}

/// Prints a hint if the queue, schedule or batch does not exist, and suggests the nearest name.
pub(crate) fn hint_unknown_name(context: &Context, filter: &JobFilter) -> Result<bool, Failure> {
    let store = context.store()?;
    let mut hinted = false;
    if let Some(queue) = &filter.queue {
        let queues = store.queues()?;
        if !queues.iter().any(|known| known.name == *queue) {
            let known = queues.iter().map(|known| known.name.as_str());
            offer(context, "queue", queue.as_str(), nearest(queue.as_str(), known))?;
            hinted = true;
        }
    }
    if let Some(schedule) = &filter.schedule {
        let schedules = store.schedules()?;
        if !schedules.iter().any(|(known, _)| known.name == *schedule) {
            let known = schedules.iter().map(|(known, _)| known.name.as_str());
            offer(context, "schedule", schedule.as_str(), nearest(schedule.as_str(), known))?;
            hinted = true;
        }
    }
    if let Some(batch) = &filter.batch
        && store.batch(batch)?.is_none()
    {
        let near = nearest_to(store, batch)?;
        offer(context, "batch", batch.as_str(), near.as_ref().map(BatchName::as_str))?;
        hinted = true;
    }
    Ok(hinted)
}

fn offer(context: &Context, what: &str, typed: &str, nearest: Option<&str>) -> Result<(), Failure> {
    match nearest {
        Some(nearest) => context.hint(&format!("there is no {what} `{typed}`; did you mean `{nearest}`?")),
        None => context.hint(&format!("there is no {what} `{typed}`")),
    }
}
