//! The verbs of `queuectl hook`.

use super::{add, deliveries, list, remove, retry, show, test};
use crate::context::Context;
use crate::failure::Failure;

/// Run a command or call a URL when something happens
///
/// Events are recorded in the same transaction as the change itself, and delivered by the workers at least once, even after
/// a crash.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl hook add notify-dead --on dead -- notify-send \"a job died\"
  queuectl hook add site --on batch-finished --url https://example.org
  queuectl hook test notify-dead
  queuectl hook list")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: HookVerb,
}

#[derive(Debug, clap::Subcommand)]
enum HookVerb {
    Add(Box<add::Args>),
    List(list::Args),
    Show(show::Args),
    Test(test::Args),
    Deliveries(deliveries::Args),
    Retry(retry::Args),
    Remove(remove::Args),
}

pub(crate) fn run(args: Args, context: &Context) -> Result<(), Failure> {
    match args.verb {
        HookVerb::Add(args) => add::run(*args, context),
        HookVerb::List(args) => list::run(&args, context),
        HookVerb::Show(args) => show::run(&args, context),
        HookVerb::Test(args) => test::run(&args, context),
        HookVerb::Deliveries(args) => deliveries::run(&args, context),
        HookVerb::Retry(args) => retry::run(&args, context),
        HookVerb::Remove(args) => remove::run(&args, context),
    }
}
