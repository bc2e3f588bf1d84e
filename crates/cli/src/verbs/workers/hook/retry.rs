//! `queuectl hook retry`

use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::report_change::report_change;
use crate::render::text::grouped;
use ops::hook::{parse_name, retry};
use sys::process::user;

/// Try to deliver waiting events now, instead of after their backoff
///
/// A worker delivers them; the failure of a try counts as ever. Without DELIVERY, all events of the hook that wait for their
/// next try are tried.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl hook retry notify-dead
  queuectl hook retry notify-dead d-1m7hv6eca1xcxeceqx")]
pub(super) struct Args {
    /// The hook's name
    #[arg(value_name = "NAME")]
    name: String,
    /// The id of a delivery; `queuectl hook deliveries NAME` lists those that wait
    #[arg(value_name = "DELIVERY")]
    delivery: Option<String>,
}

#[derive(Serialize)]
struct HookRetryJson<'a> {
    hook: &'a str,
    retried: u64,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let name = parse_name(&args.name)?;
    let retried = retry(context.store()?, &name, args.delivery.as_deref(), &user::name())?;
    let sentence = match retried {
        0 => format!("Hook {name} has no event that waits for its next try"),
        1 => format!("1 event of hook {name} is due now"),
        count => format!("{} events of hook {name} are due now", grouped(count)),
    };
    report_change(context, name.as_str(), &HookRetryJson { hook: name.as_str(), retried }, &sentence)
}
