//! `queuectl service status`

use std::io::{self, Write};

use super::WhichService;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::render::facts::write_fact;
use crate::render::text::rough_size;
use domain::values::clock::Clock;
use domain::values::timestamp::Timestamp;
use ops::worker::service::Scope;
use ops::worker::service::state::{ServiceState, state};
use sys::clock::{Clock as _, SystemClock};
use sys::program::ExitCode;

/// Show whether the service runs, since when, and what its workers do
///
/// Exits with 1 if the service does not run, and with 3 if it is not installed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  queuectl service status\n  queuectl service status --json | jq .status")]
pub(super) struct Args {
    #[command(flatten)]
    which: WhichService,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let state = state(args.which.scope(), &args.which.name())?;
    let clock = context.clock(Timestamp::from_millis(SystemClock.wall_millis()));
    context.print(&state, |out| write(out, &state, &clock, context.width()))?;
    Ok(if state.active { ExitCode::SUCCESS } else { Exit::Failed.into() })
}

fn write(out: &mut dyn Write, state: &ServiceState, clock: &Clock, width: usize) -> io::Result<()> {
    let start = match (state.enabled, state.scope) {
        (true, Scope::System) => "at boot",
        (true, Scope::User) => "with your systemd",
        (false, Scope::System | Scope::User) => "by hand only",
    };
    let failure = state.failure.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
    let facts = [
        ("service", Some(state.unit.clone())),
        ("state", Some(format!("{}{failure}", state.state))),
        ("status", state.status.clone()),
        ("since", state.since.map(|since| clock.ago(since))),
        ("pid", state.pid.map(|pid| pid.to_string())),
        ("memory", state.memory_bytes.map(rough_size)),
        ("restarts", (state.restarts > 0).then(|| state.restarts.to_string())),
        ("starts", Some(start.to_owned())),
        ("unit", Some(state.path.clone())),
    ];
    facts
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .try_for_each(|(name, value)| write_fact(out, name, &value, width))
}
