//! `queuectl selftest`, and the commands that its trials run.

pub(crate) mod hidden;
mod progress;
mod results;

pub(crate) use hidden::{act, become_tied, linger};

use std::time::Duration;
use sys::program::ExitCode;

use clap::builder::PossibleValuesParser;
use rustix::process::Signal;

use self::progress::Progress;
use crate::context::{Context, catch};
use crate::failure::{Exit, Failure};
use crate::flags::whole_number::whole_number;
use ops::home::location::StoreAddress;
use proof::campaign::Campaign;
use proof::nemesis;
use proof::sandbox::Program;
use proof::trial::TrialLimits;
use store::postgres::Address;

/// Test queuectl's guarantees on this machine
///
/// Runs real workers on separate queues in temporary directories (TMPDIR), kills and stops them while jobs run, and then
/// compares what was acknowledged, what the commands themselves wrote, and what was recorded. Your own queues are not
/// touched. Takes about half a minute; --seconds makes it run longer.
///
/// With --store, three simulated hosts share a queue on that PostgreSQL server, in a schema that selftest creates and
/// drops. The faults then include hosts that lose their power or are cut off from the server, and take about four minutes.
/// The role needs the right to create schemas in the database.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl selftest
  queuectl selftest --seconds 600
  queuectl selftest --only kill-worker --seed 42
  queuectl selftest --store postgres://worker@db.example.com/jobs --only cut-off")]
pub(crate) struct Args {
    /// Start new trials for this many seconds; each kind of fault is tested at least once
    #[arg(long, value_name = "N", default_value_t = 20, allow_negative_numbers = true,
          value_parser = whole_number::<u32>(0..=u32::MAX.into()))]
    seconds: u32,
    /// Repeat the trials of this seed [default: random]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Only this kind of fault
    #[arg(long, value_name = "KIND", value_parser = kinds())]
    only: Option<String>,
}

/// Random seeds are short enough to type.
const SEEDS: u64 = 1_000_000_000;
/// The promised time in which a dead worker is noticed.
const NOTICE_WITHIN: Duration = Duration::from_secs(1);
/// No trial waits longer for a job that does not finish.
const MAX_STALL: Duration = Duration::from_secs(60);
/// With a higher load per processor, the time to notice a dead worker is not judged.
const BUSY: f64 = 2.0;

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let campaign = campaign(args, server(context)?)?;
    let interrupts = catch(&[Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT])?;
    let progress = Progress::new(context, interrupts);
    let (reports, ended) = campaign.run(&progress);
    let interrupted = progress.end();
    let all_held = results::show(context, &campaign, &reports)?;
    // Show the results first: they may matter more than the error.
    ended?;
    if let Some((interrupts, signal)) = interrupted {
        interrupts.end_by(signal);
    }
    Ok(if all_held { ExitCode::SUCCESS } else { Exit::Failed.into() })
}

/// The server that the user named. The one of the user's own queue is not tested by the way.
fn server(context: &Context) -> Result<Option<Address>, Failure> {
    if context.location_flags().store.is_none() {
        return Ok(None);
    }
    match context.location()?.store {
        StoreAddress::Postgres(address) => Ok(Some(*address)),
        StoreAddress::Sqlite(_) => Err(Failure::usage(
            "selftest makes queues in files of its own: --store can only name a PostgreSQL server",
        )),
    }
}

fn campaign(args: &Args, server: Option<Address>) -> Result<Campaign, Failure> {
    let campaign = Campaign {
        program: Program::own()?,
        inside: std::env::temp_dir(),
        server,
        seed: args.seed.unwrap_or_else(|| fastrand::u64(..SEEDS)),
        lasts: Duration::from_secs(args.seconds.into()),
        only: args.only.clone(),
        limits: TrialLimits { notice_within: NOTICE_WITHIN, max_stall: MAX_STALL, up_to_load: BUSY },
    };
    check_kind(&campaign)?;
    Ok(campaign)
}

/// Refuses a kind of fault that exists only with a server, or only without one.
fn check_kind(campaign: &Campaign) -> Result<(), Failure> {
    let Some(only) = &campaign.only else {
        return Ok(());
    };
    if campaign.nemeses().iter().any(|nemesis| nemesis.name() == only) {
        return Ok(());
    }
    Err(Failure::usage(match &campaign.server {
        None => format!("`{only}` needs a PostgreSQL server: name one with --store"),
        Some(_) => format!("`{only}` is not possible on this server (network faults need a way without TLS)"),
    }))
}

/// All kinds of fault, those for files first.
fn kinds() -> PossibleValuesParser {
    let mut names: Vec<&'static str> = Vec::new();
    for nemesis in nemesis::for_one_host().iter().chain(&nemesis::for_hosts(true)) {
        if !names.contains(&nemesis.name()) {
            names.push(nemesis.name());
        }
    }
    PossibleValuesParser::new(names)
}
