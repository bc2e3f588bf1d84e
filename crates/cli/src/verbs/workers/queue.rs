//! `queuectl queue`; its larger verbs have files of their own.

mod list;
mod set;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::report_change::report_change;
use crate::verbs::jobs::autostart::autostart_if_ready;
use domain::values::name::QueueName;
use ops::json::QueueJson;
use ops::queues::{ChangedQueue, pause, remove, resume};
use store::Pause;
use sys::process::user;

/// Pause, resume, limit and remove queues
///
/// A queue is a named lane of jobs with its own limits. It is created when it is first used.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl queue list
  queuectl queue set mail --concurrency 2 --rate 100/h
  queuectl queue pause mail --reason \"the server is down\"
  queuectl queue resume mail")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: QueueVerb,
}

#[derive(Debug, clap::Subcommand)]
enum QueueVerb {
    /// List queues with their jobs, limits, and what holds them back
    #[command(
        after_help = "Examples:\n  queuectl queue list\n  queuectl queue list --json | jq '.[] | select(.paused)'"
    )]
    List,
    /// Pause a queue: no job starts; running jobs continue
    #[command(after_help = "Examples:
  queuectl queue pause mail
  queuectl queue pause mail --reason \"the server is down until noon\"")]
    Pause {
        /// The queue
        #[arg(value_name = "QUEUE")]
        queue: QueueName,
        /// The reason, shown in `queue list` and `explain`
        #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
        reason: Option<String>,
    },
    /// Resume a paused queue
    #[command(after_help = "Example:\n  queuectl queue resume mail")]
    Resume {
        /// The queue
        #[arg(value_name = "QUEUE")]
        queue: QueueName,
    },
    Set(set::Args),
    /// Remove a queue that has no jobs, with its limits and defaults
    ///
    /// Jobs in any state keep a queue, finished ones too. The queue `default` cannot be removed.
    #[command(after_help = "Example:\n  queuectl queue remove mial")]
    Remove {
        /// The queue
        #[arg(value_name = "QUEUE")]
        queue: QueueName,
    },
}

pub(crate) fn run(args: Args, context: &Context) -> Result<(), Failure> {
    match args.verb {
        QueueVerb::List => list::run(context),
        QueueVerb::Pause { queue, reason } => {
            let why = Pause { by: user::name(), reason };
            report_queue(context, &pause(context.store_or_new()?, &queue, &why)?, "paused")
        }
        QueueVerb::Resume { queue } => {
            let store = context.store_or_new()?;
            let before = store.queues()?.into_iter().find(|known| known.name == queue);
            let what = match before.map(|known| known.paused.is_some()) {
                Some(true) => "resumed",
                Some(false) => "was not paused",
                None => "created; it is not paused",
            };
            report_queue(context, &resume(store, &queue, &user::name())?, what)?;
            autostart_if_ready(context)
        }
        QueueVerb::Set(args) => set::run(&args, context),
        QueueVerb::Remove { queue } => {
            let removed = remove(context.store()?, &queue, &user::name())?;
            let name = removed.name.as_str();
            report_change(context, name, &QueueJson::from(&removed), &format!("Queue {name} removed"))
        }
    }
}

/// Reports a change to a queue.
fn report_queue(context: &Context, changed: &ChangedQueue, what: &str) -> Result<(), Failure> {
    let name = changed.queue.name.as_str();
    report_change(context, name, &QueueJson::from(&changed.queue), &format!("Queue {name} {what}"))?;
    match &changed.similar_queue {
        Some(other) => context.hint(&format!("queue `{name}` is new; did you mean `{other}`?")),
        None => Ok(()),
    }
}
