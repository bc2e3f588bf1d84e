//! `queuectl queue set`

use std::process::ExitCode;

use super::changed::tell;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::domain::name::QueueName;
use crate::domain::rate::{Rate, RateError};
use crate::ops::queues::set;
use crate::store::{QueueUpdate, Update};
use crate::sys::user;

/// Change the limits of a queue
///
/// They hold for all workers together. What is not named stays as it is; `none` takes a limit away.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl queue set video --concurrency 2
  queuectl queue set mail --rate 100/h
  queuectl queue set mail --rate none --concurrency none")]
pub(super) struct Args {
    /// The queue
    #[arg(value_name = "QUEUE")]
    queue: QueueName,
    #[command(flatten)]
    values: Values,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
struct Values {
    /// How many of its jobs run at once at most
    #[arg(long, value_name = "N|none", allow_negative_numbers = true, value_parser = parse_concurrency)]
    concurrency: Option<Update<u32>>,
    /// How many of its jobs may start in how much time: 10/m, 1/s, 5/10s
    #[arg(long, value_name = "RATE|none", allow_hyphen_values = true, value_parser = parse_rate)]
    rate: Option<Update<Rate>>,
}

/// How a limit is taken away.
const NONE: &str = "none";
/// More than this at once is no limit any more.
const MAX_CONCURRENCY: u32 = 100_000;

pub(super) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let update = args.values.to_update();
    let changed = set(context.store()?, &args.queue, &update, &user::name())?;
    tell(context, &changed, "was changed")
}

impl Values {
    fn to_update(&self) -> QueueUpdate {
        QueueUpdate {
            concurrency: self.concurrency.clone().unwrap_or_default(),
            rate: self.rate.clone().unwrap_or_default(),
        }
    }
}

fn parse_concurrency(text: &str) -> Result<Update<u32>, String> {
    if text == NONE {
        return Ok(Update::Clear);
    }
    let limit = text.parse().ok().filter(|limit| (1..=MAX_CONCURRENCY).contains(limit));
    limit.map(Update::Set).ok_or_else(|| format!("write a number from 1 to {MAX_CONCURRENCY}, or none"))
}

fn parse_rate(text: &str) -> Result<Update<Rate>, RateError> {
    if text == NONE { Ok(Update::Clear) } else { text.parse().map(Update::Set) }
}
