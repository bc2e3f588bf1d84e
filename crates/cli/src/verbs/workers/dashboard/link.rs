//! `queuectl dashboard link`

use serde_json::json;

use crate::context::Context;
use crate::failure::{Exit, Failure};
use domain::values::timestamp::Timestamp;
use sys::clock::{Clock, SystemClock};
use web::{new_link, running};

/// Print a new login link for a running dashboard
///
/// The link logs one browser in, within 5 minutes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  queuectl dashboard link")]
pub(super) struct Args {}

pub(super) fn run(_: &Args, context: &Context) -> Result<(), Failure> {
    let home = context.location()?.home;
    let unreadable = |error: std::io::Error| {
        Failure::new(Exit::Failed, format!("failed to read what the dashboard left ({error})"))
    };
    let Some(server) = running(&home).map_err(unreadable)? else {
        return Err(Failure::new(Exit::NotFound, "no dashboard is running in this home")
            .with_hint("start it: `queuectl dashboard`"));
    };
    let now = Timestamp::from_millis(SystemClock.wall_millis());
    let link = new_link(&server, now).map_err(unreadable)?;
    context.print(&json!({ "url": server.url, "link": link }), |out| writeln!(out, "{link}"))
}
