//! `queuectl metrics --listen`: a server that answers at `/metrics` alone.

use std::io::Write;

use rustix::process::Signal;
use serde_json::json;

use crate::context::{Context, catch};
use crate::failure::Failure;
use crate::verbs::workers::dashboard::entrance::{EntranceArgs, failure};
use sys::signal;
use web::{ListenAddress, Ready};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Server")]
pub(super) struct ListenArgs {
    /// Serve the metrics at /metrics: IP:PORT, a port, or unix:PATH; can be repeated
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["format", "output", "queue"])]
    listen: Vec<ListenAddress>,
    #[command(flatten)]
    entrance: EntranceArgs,
}

impl ListenArgs {
    /// Whether to serve. Flags of the server alone are a mistake.
    pub(super) fn is_given(&self) -> Result<bool, Failure> {
        if self.listen.is_empty() && self.entrance != EntranceArgs::default() {
            return Err(Failure::usage("a server needs --listen")
                .with_hint("--listen 127.0.0.1:9464 serves the metrics on this machine"));
        }
        Ok(!self.listen.is_empty())
    }
}

pub(super) fn run(args: &ListenArgs, context: &Context) -> Result<(), Failure> {
    let interrupts = catch(&[Signal::INT, Signal::TERM, Signal::HUP])?;
    // A client that goes away must not end the server.
    signal::survive_closed_pipe();
    context.store()?;
    let options = args.entrance.options(context, args.listen.clone())?;
    web::run(options, &interrupts, |ready| {
        // A server without a terminal serves all the same.
        let _ = report(context, ready);
    })
    .map_err(failure)?;
    Ok(())
}

fn report(context: &Context, ready: &Ready) -> Result<(), Failure> {
    for warning in &ready.warnings {
        context.hint(warning)?;
    }
    let url = format!("{}/metrics", ready.url);
    if context.json {
        return context.print_json(&json!({ "url": url }));
    }
    if context.quiet {
        return Ok(());
    }
    let mut out = context.out();
    writeln!(out, "Metrics at {url}")?;
    Ok(out.flush()?)
}
