//! How every verb selects jobs: by id, by a prefix of an id, or by their properties.

use std::collections::HashSet;
use std::time::Duration;

use crate::confirm::is_interactive;
use crate::context::Context;
use crate::failure::Failure;
use domain::text::nearest::{nearest, suggestion};
use domain::text::pattern::CommandPattern;
use domain::values::name::{BatchName, JobId, NameError, QueueName};
use domain::values::span::parse_span;
use ops::OpError;
use ops::jobs::batch::nearest_to;
use store::{JobFilter, Phase};

/// At most this many ids are listed if a prefix is ambiguous.
const MAX_CANDIDATES: usize = 10;

/// Selects jobs by their properties.
#[derive(Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct JobFilterArgs {
    /// Jobs in this state (separate several with commas): pending, processing, completed, failed, dead, cancelled; also
    /// ready, scheduled, blocked
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    state: Vec<String>,
    #[command(flatten)]
    others: StatelessFilterArgs,
}

/// [`JobFilterArgs`] without the state, for verbs that imply one.
#[derive(Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct StatelessFilterArgs {
    /// Jobs in this queue
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Jobs with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Jobs in this batch
    #[arg(long, value_name = "NAME")]
    batch: Option<String>,
    /// Jobs that have not changed for this long: 90, 1m30s, 7d
    #[arg(long, value_name = "DURATION", allow_negative_numbers = true, value_parser = parse_span)]
    older_than: Option<Duration>,
    /// Jobs whose command matches: `*` matches anything, `?` one character; a pattern without either matches anywhere in
    /// the command
    #[arg(long, value_name = "GLOB")]
    command_like: Option<CommandPattern>,
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
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn filter(&self, context: &Context) -> Result<JobFilter, Failure> {
        let queue: Option<QueueName> = parse_name("queue", self.queue.as_deref())?;
        let batch: Option<BatchName> = parse_name("batch", self.batch.as_deref())?;
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
        let hint = suggestion(typed, "states", &Phase::ALL.map(Phase::name));
        Failure::usage(format!("unknown state `{typed}`")).with_hint(hint)
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
    /// Job ids; a unique prefix is enough for generated ids and, on a terminal, for ids that you chose
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    filter: JobFilterArgs,
}

#[derive(Debug)]
pub(crate) enum Selection {
    Ids(Vec<JobId>),
    Matching(JobFilter),
}

impl SelectionArgs {
    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.filter.is_empty()
    }

    /// The given ids, if there are any and no other selection.
    pub(crate) fn only_ids(&self) -> Option<&[String]> {
        (!self.ids.is_empty() && self.filter.is_empty()).then_some(&self.ids)
    }

    pub(crate) fn resolve(&self, context: &Context) -> Result<Selection, Failure> {
        match (self.ids.is_empty(), self.filter.is_empty()) {
            (true, true) => Err(Failure::usage("no jobs given").with_hint(
                "give ids, or select with --state, --queue, --tag, --batch, --older-than or --command-like",
            )),
            (false, false) => Err(Failure::usage("ids cannot be combined with a selection")
                .with_hint("give either ids or flags such as --state")),
            (false, true) => Ok(Selection::Ids(resolve_ids(context, &self.ids)?)),
            (true, false) => Ok(Selection::Matching(self.filter.filter(context)?)),
        }
    }
}

/// Ids of jobs to change or wait for, without duplicates. An invalid id is refused before anything is done.
pub(crate) fn resolve_ids(context: &Context, typed: &[String]) -> Result<Vec<JobId>, Failure> {
    let typed: Vec<JobId> = typed.iter().map(|id| parse(id)).collect::<Result<_, _>>()?;
    let mut ids: Vec<JobId> = Vec::with_capacity(typed.len());
    let mut known = HashSet::with_capacity(typed.len());
    for id in typed {
        let id = complete_safely(context, id)?;
        if known.insert(id.clone()) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// As [`resolve_ids`], for one id.
pub(crate) fn resolve_id(context: &Context, typed: &str) -> Result<JobId, Failure> {
    complete_safely(context, parse(typed)?)
}

/// The id of a job that is only read.
pub(crate) fn resolve_id_to_show(context: &Context, typed: &str) -> Result<JobId, Failure> {
    complete(context, parse(typed)?, |_| true)
}

fn parse(typed: &str) -> Result<JobId, Failure> {
    Ok(typed.parse().map_err(|source| OpError::BadName { what: "id", typed: typed.to_owned(), source })?)
}

/// A chosen id may be a prefix of another chosen id: after job `build-1` is deleted, a script that names it must not
/// change `build-10`. A prefix of a generated id cannot be another job's id, and at a terminal the user reads which job
/// was used.
fn complete_safely(context: &Context, typed: JobId) -> Result<JobId, Failure> {
    complete(context, typed, |only| only.is_generated() || is_interactive())
}

/// The only id that starts with the typed one, if `may_stand_for` allows it; else the typed id. If no job has the typed
/// id, the verb reports that and continues with the other ids; a hint lists the ids that start with it.
fn complete(
    context: &Context,
    typed: JobId,
    may_stand_for: impl Fn(&JobId) -> bool,
) -> Result<JobId, Failure> {
    // The shortest comes first, so an exact match does.
    let mut candidates = context.store()?.ids_with_prefix(&typed, MAX_CANDIDATES + 1)?;
    match &candidates[..] {
        [] => Ok(typed),
        [first, ..] if *first == typed => Ok(typed),
        [only] if may_stand_for(only) => {
            // Never silently: it may be a typo, or a job that was deleted.
            context.hint(&format!("using {only} (the only id starting with \"{typed}\")"))?;
            Ok(candidates.remove(0))
        }
        [only] => {
            context.hint(&format!("{only} starts with \"{typed}\"; scripts must give the whole id"))?;
            Ok(typed)
        }
        several => {
            let named: Vec<&str> = several.iter().take(MAX_CANDIDATES).map(JobId::as_str).collect();
            let more = if several.len() > MAX_CANDIDATES { " and more" } else { "" };
            let named = named.join(", ");
            context.hint(&format!("\"{typed}\" is ambiguous: {named}{more}"))?;
            Ok(typed)
        }
    }
}

/// Prints a hint that no job matched, naming a queue or batch that does not exist: it may be a typo.
pub(crate) fn hint_no_match(context: &Context, filter: &JobFilter) -> Result<(), Failure> {
    if !hint_unknown_name(context, filter)? {
        context.hint("no jobs matched")?;
    }
    Ok(())
}

/// Prints a hint if the queue or batch does not exist, and suggests the nearest name.
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
