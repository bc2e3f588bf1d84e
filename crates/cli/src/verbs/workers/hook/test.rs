//! `queuectl hook test`

use rustix::process::Signal;
use serde::Serialize;

use crate::context::{Context, catch};
use crate::failure::Failure;
use crate::render::report_change::report_change;
use engine::test_hook;
use ops::OpError;
use ops::hook::{find, parse_name, sample};
use store::DeliveryResult;

/// Deliver a sample event now, and show whether it succeeded
///
/// The sample looks like a real event of this hook, but its delivery id starts with `test-`. No worker is needed, and a
/// failure is not retried (exit code 1).
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  queuectl hook test notify-dead")]
pub(super) struct Args {
    /// The hook's name
    #[arg(value_name = "NAME")]
    name: String,
}

#[derive(Serialize)]
struct HookTestJson<'a> {
    hook: &'a str,
    delivery: &'a str,
    delivered: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let name = parse_name(&args.name)?;
    let store = context.store()?;
    let hook = find(store, &name)?;
    let delivery = sample(&hook, store.now()?, fastrand::u64(..));
    let interrupts = catch(&[Signal::INT, Signal::TERM, Signal::HUP])?;
    let location = context.location()?.absolute()?;
    let sent = match test_hook(
        &delivery,
        &location.home,
        location.store_variable(),
        location.environment(),
        &interrupts,
    )? {
        Ok(sent) => sent,
        Err(signal) => interrupts.end_by(signal),
    };
    if let DeliveryResult::Failed(why) = sent {
        return Err(OpError::HookFailed { hook: name, why }.into());
    }
    let json = HookTestJson { hook: name.as_str(), delivery: &delivery.name, delivered: true };
    let sentence = format!("Hook {name} works: the sample event was delivered");
    report_change(context, name.as_str(), &json, &sentence)
}
