//! Which jobs a verb is about: by id, by the beginning of an id, or by what they are. The same for every verb.

use std::collections::HashSet;
use std::time::Duration;

use crate::ask::somebody_is_there;
use crate::context::Context;
use crate::failure::Failure;
use domain::text::nearest::nearest;
use domain::text::pattern::CommandPattern;
use domain::values::name::{BatchName, JobId, NameError, QueueName};
use domain::values::span::parse_span;
use ops::OpError;
use ops::jobs::batch::nearest_to;
use store::{JobFilter, Phase};

/// How many ids are named where one typed was the beginning of several.
const MAX_CANDIDATES: usize = 10;

/// Jobs by what they are.
#[derive(Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct FilterArgs {
    /// Jobs in this state (several by commas): pending, processing, completed, failed, dead, cancelled; also ready,
    /// scheduled, blocked
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    state: Vec<String>,
    #[command(flatten)]
    narrow: NarrowArgs,
}

/// The same without a state, for verbs that know it.
#[derive(Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct NarrowArgs {
    /// Jobs of this queue
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Jobs with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Jobs of this batch
    #[arg(long, value_name = "NAME")]
    batch: Option<String>,
    /// Jobs that nothing has happened to for so long: 90, 1m30s, 7d
    #[arg(long, value_name = "DURATION", allow_negative_numbers = true, value_parser = parse_span)]
    older_than: Option<Duration>,
    /// Jobs whose command looks like this: `*` stands for anything, `?` for one character; without either it is looked
    /// for anywhere in the command
    #[arg(long, value_name = "GLOB")]
    command_like: Option<CommandPattern>,
}

impl FilterArgs {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn phases(&self) -> Result<Vec<Phase>, Failure> {
        self.state.iter().map(|typed| parse_phase(typed)).collect()
    }

    /// What was typed, checked; the store knows what time it is.
    pub(crate) fn filter(&self, context: &Context) -> Result<JobFilter, Failure> {
        let phases = self.phases()?;
        Ok(JobFilter { phases, ..self.narrow.filter(context)? })
    }
}

impl NarrowArgs {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn filter(&self, context: &Context) -> Result<JobFilter, Failure> {
        let queue: Option<QueueName> = named("queue", self.queue.as_deref())?;
        let batch: Option<BatchName> = named("batch", self.batch.as_deref())?;
        let now = context.store()?.now()?;
        Ok(JobFilter {
            phases: Vec::new(),
            queue,
            tag: self.tag.clone(),
            batch,
            changed_before: self.older_than.map(|age| now.saturating_sub(age)),
            command: self.command_like.clone(),
        })
    }
}

fn parse_phase(typed: &str) -> Result<Phase, Failure> {
    Phase::from_name(typed).ok_or_else(|| {
        let names = Phase::ALL.map(Phase::name);
        let hint = match nearest(typed, names) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => format!("the states are {}", names.join(", ")),
        };
        Failure::usage(format!("there is no state `{typed}`")).with_hint(hint)
    })
}

fn named<T: std::str::FromStr<Err = NameError>>(
    what: &str,
    typed: Option<&str>,
) -> Result<Option<T>, Failure> {
    let parse = |typed: &str| {
        typed.parse().map_err(|error| Failure::usage(format!("invalid {what} `{typed}` ({error})")))
    };
    typed.map(parse).transpose()
}

/// Jobs by id or by what they are, for verbs that take many.
#[derive(Debug, clap::Args)]
pub(crate) struct WhichArgs {
    /// Jobs by id, or by the beginning of one where only one begins like that; scripts name ids that you chose whole
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    filter: FilterArgs,
}

/// What was meant.
#[derive(Debug)]
pub(crate) enum Which {
    Ids(Vec<JobId>),
    Kind(JobFilter),
}

impl WhichArgs {
    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.filter.is_empty()
    }

    /// The ids that were typed, if there are any and nothing else.
    pub(crate) fn only_ids(&self) -> Option<&[String]> {
        (!self.ids.is_empty() && self.filter.is_empty()).then_some(&self.ids)
    }

    pub(crate) fn resolve(&self, context: &Context) -> Result<Which, Failure> {
        match (self.ids.is_empty(), self.filter.is_empty()) {
            (true, true) => Err(Failure::usage("which jobs are meant is missing").with_hint(
                "name their ids, or say --state, --queue, --tag, --batch, --older-than or --command-like",
            )),
            (false, false) => Err(Failure::usage("jobs are named by id and selected by what they are")
                .with_hint("give ids or a selection, not both")),
            (false, true) => Ok(Which::Ids(resolve_ids(context, &self.ids)?)),
            (true, false) => Ok(Which::Kind(self.filter.filter(context)?)),
        }
    }
}

/// Ids of jobs that are to be changed or waited for, each once. A bad one is refused before anything is done.
pub(crate) fn resolve_ids(context: &Context, typed: &[String]) -> Result<Vec<JobId>, Failure> {
    let typed: Vec<JobId> = typed.iter().map(|id| parse(id)).collect::<Result<_, _>>()?;
    let mut ids: Vec<JobId> = Vec::with_capacity(typed.len());
    let mut known = HashSet::with_capacity(typed.len());
    for id in typed {
        let id = complete_with_care(context, id)?;
        if known.insert(id.clone()) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// The same for one.
pub(crate) fn resolve_id(context: &Context, typed: &str) -> Result<JobId, Failure> {
    complete_with_care(context, parse(typed)?)
}

/// The id of a job that is only looked at.
pub(crate) fn resolve_id_to_show(context: &Context, typed: &str) -> Result<JobId, Failure> {
    complete(context, parse(typed)?, |_| true)
}

fn parse(typed: &str) -> Result<JobId, Failure> {
    Ok(typed.parse().map_err(|source| OpError::BadId { id: typed.to_owned(), source })?)
}

/// What somebody chose as an id may also be the beginning of another that was chosen: `build-1`, when that job is gone, must
/// not be taken for `build-10` by a script. The beginning of an id that was made here cannot be the id of another, and who
/// sits at a terminal reads what is meant.
fn complete_with_care(context: &Context, typed: JobId) -> Result<JobId, Failure> {
    complete(context, typed, |only| only.is_generated() || somebody_is_there())
}

/// The one id that begins with the typed one, if `may_stand_for` it; else the typed id. Where that names no job, the verb
/// answers for it alone and tries the other ids; a hint names the ids that begin with it.
fn complete(
    context: &Context,
    typed: JobId,
    may_stand_for: impl Fn(&JobId) -> bool,
) -> Result<JobId, Failure> {
    // The shortest comes first, so one that is whole does.
    let mut candidates = context.store()?.ids_with_prefix(&typed, MAX_CANDIDATES + 1)?;
    match &candidates[..] {
        [] => Ok(typed),
        [first, ..] if *first == typed => Ok(typed),
        [only] if may_stand_for(only) => {
            // Never silently: it may be a slip, or a job that is gone.
            context
                .hint(&format!("there is no job {typed}; {only} is meant, which alone begins like that"))?;
            Ok(candidates.remove(0))
        }
        [only] => {
            context.hint(&format!("{only} begins with {typed}; if that is meant, name it whole"))?;
            Ok(typed)
        }
        several => {
            let named: Vec<&str> = several.iter().take(MAX_CANDIDATES).map(JobId::as_str).collect();
            let more = if several.len() > MAX_CANDIDATES { " and more" } else { "" };
            let named = named.join(", ");
            context.hint(&format!("{named}{more} begin with {typed}; name one of them whole"))?;
            Ok(typed)
        }
    }
}

/// Says that there is nothing of the kind. What nobody has used yet is empty, but it may also be a slip of the fingers.
pub(crate) fn hint_at_nothing(context: &Context, filter: &JobFilter) -> Result<(), Failure> {
    if !hint_at_unknown(context, filter)? {
        context.hint("there are no such jobs")?;
    }
    Ok(())
}

/// Says so if a name is unknown, and offers the nearest.
pub(crate) fn hint_at_unknown(context: &Context, filter: &JobFilter) -> Result<bool, Failure> {
    let store = context.store()?;
    let mut told = false;
    if let Some(queue) = &filter.queue {
        let queues = store.queues()?;
        if !queues.iter().any(|known| known.name == *queue) {
            let known = queues.iter().map(|known| known.name.as_str());
            offer(context, "queue", queue.as_str(), nearest(queue.as_str(), known))?;
            told = true;
        }
    }
    if let Some(batch) = &filter.batch
        && store.batch(batch)?.is_none()
    {
        let near = nearest_to(store, batch)?;
        offer(context, "batch", batch.as_str(), near.as_ref().map(BatchName::as_str))?;
        told = true;
    }
    Ok(told)
}

fn offer(context: &Context, what: &str, typed: &str, nearest: Option<&str>) -> Result<(), Failure> {
    match nearest {
        Some(nearest) => context.hint(&format!("there is no {what} {typed}; did you mean {nearest}?")),
        None => context.hint(&format!("there is no {what} {typed}")),
    }
}
