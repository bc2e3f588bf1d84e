//! The hidden verbs that the jobs of a trial call.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use sys::program::ExitCode;

use crate::context::Context;
use crate::failure::Failure;
use domain::values::span::parse_span;
use proof::actor;
use proof::actor::{AttemptRef, CommandSpec, Escape};
use proof::ledger::CommandEnd;
use proof::sandbox::host_of;

/// One command of a trial
#[derive(Debug, clap::Args)]
pub(crate) struct ActArgs {
    ledger: PathBuf,
    #[arg(long, value_parser = parse_span)]
    lives: Duration,
    #[arg(long, value_delimiter = ',', value_parser = str::parse::<CommandEnd>)]
    ends: Vec<CommandEnd>,
    #[arg(long, value_delimiter = ',', value_parser = parse_escape)]
    escapes: Vec<Escape>,
    #[arg(long)]
    deaf: bool,
}

/// A process of a trial that ends with the trial
#[derive(Debug, clap::Args)]
pub(crate) struct TiedArgs {
    parent: u32,
    #[arg(last = true)]
    words: Vec<OsString>,
}

pub(crate) fn become_tied(args: &TiedArgs, _: &Context) -> Result<ExitCode, Failure> {
    Err(actor::become_tied(args.parent, &args.words).into())
}

/// A process that a command of a trial left running
#[derive(Debug, clap::Args)]
pub(crate) struct LingerArgs {
    ledger: PathBuf,
    host: String,
    job: String,
    attempt: u32,
    name: String,
    nonce: String,
}

pub(crate) fn act(args: ActArgs, _: &Context) -> Result<ExitCode, Failure> {
    let act = CommandSpec {
        ledger: args.ledger,
        lives: args.lives,
        ends: args.ends,
        escapes: args.escapes,
        ignores_sigterm: args.deaf,
    };
    let who = AttemptRef {
        job: variable("QUEUECTL_JOB_ID")?,
        attempt: variable("QUEUECTL_ATTEMPT")?.parse().map_err(|_| internal_command())?,
        worker: variable("QUEUECTL_WORKER_ID")?,
        host: host_of(Path::new(&variable("QUEUECTL_HOME")?)),
    };
    Ok(actor::act(&act, &who)?)
}

pub(crate) fn linger(args: LingerArgs, _: &Context) -> Result<ExitCode, Failure> {
    let LingerArgs { ledger, host, job, attempt, name, nonce } = args;
    let who = AttemptRef { job, attempt, worker: String::new(), host };
    Ok(actor::linger(&ledger, &who, &name, &nonce)?)
}

fn variable(name: &str) -> Result<String, Failure> {
    std::env::var(name).map_err(|_| internal_command())
}

fn internal_command() -> Failure {
    Failure::usage("this command is internal; use `queuectl selftest`")
}

fn parse_escape(text: &str) -> Result<Escape, String> {
    Escape::from_name(text).ok_or_else(|| format!("`{text}` is not a valid way to escape"))
}
