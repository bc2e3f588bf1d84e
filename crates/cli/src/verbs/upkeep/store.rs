//! `queuectl store`: where the queue lives.

mod copy;
mod grant;
mod info;
mod migrate;

use crate::context::Context;
use crate::failure::Failure;

/// Show where a queue lives, move it, update it, grant rights
///
/// A queue is a SQLite file, or a schema in a PostgreSQL database: `--store postgres://USER@HOST/DATABASE`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl store info
  queuectl store migrate
  queuectl store copy ~/.queuectl postgres://queue@db.example.com/jobs
  queuectl store grant web --as enqueuer --store postgres://owner@db.example.com/jobs")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: StoreVerb,
}

#[derive(Debug, clap::Subcommand)]
enum StoreVerb {
    Info(info::Args),
    Migrate(migrate::Args),
    Grant(grant::Args),
    Copy(copy::Args),
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    match &args.verb {
        StoreVerb::Info(args) => info::run(args, context),
        StoreVerb::Migrate(args) => migrate::run(args, context),
        StoreVerb::Grant(args) => grant::run(args, context),
        StoreVerb::Copy(args) => copy::run(args, context),
    }
}
