//! `queuectl queue set`

use super::report_queue;
use crate::context::Context;
use crate::failure::Failure;
use crate::flags::or_none::{or_none, or_none_with};
use domain::job::limits::Limits;
use domain::job::retry_rules::ExitCodes;
use domain::queue::rate::Rate;
use domain::values::name::QueueName;
use ops::queues::{MAX_CONCURRENCY, set};
use store::{QueueUpdate, Update};
use sys::process::user;

/// Change the limits of a queue
///
/// A limit applies to all workers together. Limits that are not given stay unchanged; `none` removes a limit.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl queue set video --concurrency 2
  queuectl queue set mail --rate 100/h
  queuectl queue set video --limits memory=4G,nice=10
  queuectl queue set mail --no-retry-on 2,64
  queuectl queue set mail --rate none --concurrency none")]
pub(super) struct Args {
    /// The queue
    #[arg(value_name = "QUEUE")]
    queue: QueueName,
    /// Maximum number of jobs running at once
    #[arg(short = 'j', long, value_name = "N|none", allow_negative_numbers = true, value_parser = parse_concurrency)]
    concurrency: Option<Update<u32>>,
    /// Maximum number of job starts per period: 10/m, 1/s, 5/10s
    #[arg(long, value_name = "RATE|none", allow_hyphen_values = true, value_parser = or_none::<Rate>)]
    rate: Option<Update<Rate>>,
    /// Resource limits for jobs that set none: memory=512M,pids=100, or the same as JSON
    #[arg(long, value_name = "LIMITS|none", value_parser = or_none::<Limits>)]
    limits: Option<Update<Limits>>,
    /// Retry its jobs only after these exit codes: 1,75
    #[arg(long, value_name = "CODES|none", value_parser = or_none::<ExitCodes>)]
    retry_on: Option<Update<ExitCodes>>,
    /// Do not retry its jobs after these exit codes: 2,64
    #[arg(long, value_name = "CODES|none", value_parser = or_none::<ExitCodes>)]
    no_retry_on: Option<Update<ExitCodes>>,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let update = args.to_update();
    if update == QueueUpdate::default() {
        return Err(Failure::usage("no changes given")
            .with_hint("use --concurrency, --rate, --limits, --retry-on or --no-retry-on"));
    }
    let changed = set(context.store_or_new()?, &args.queue, &update, &user::name())?;
    report_queue(context, &changed, "changed")
}

impl Args {
    fn to_update(&self) -> QueueUpdate {
        QueueUpdate {
            concurrency: self.concurrency.clone().unwrap_or_default(),
            rate: self.rate.clone().unwrap_or_default(),
            limits: self.limits.clone().unwrap_or_default(),
            retry_on: self.retry_on.clone().unwrap_or_default(),
            no_retry_on: self.no_retry_on.clone().unwrap_or_default(),
        }
    }
}

fn parse_concurrency(text: &str) -> Result<Update<u32>, String> {
    or_none_with(text, |text| {
        let limit = text.parse().ok().filter(|limit| (1..=MAX_CONCURRENCY).contains(limit));
        limit.ok_or_else(|| format!("must be a whole number from 1 to {MAX_CONCURRENCY}, or none"))
    })
}
