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
use proof::campaign::Campaign;
use proof::nemesis;
use proof::sandbox::Program;
use proof::trial::TrialLimits;

/// Test queuectl's guarantees on this machine
///
/// Runs real workers on separate queues in temporary directories (TMPDIR), kills and stops them while jobs run, and then
/// compares what was acknowledged, what the commands themselves wrote, and what was recorded. Your own queues are not
/// touched. Takes about half a minute; --seconds makes it run longer.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl selftest
  queuectl selftest --seconds 600
  queuectl selftest --only kill-worker --seed 42")]
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
/// With a higher load per processor, the time to notice a dead worker is not judged.
const BUSY: f64 = 2.0;

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let campaign = campaign(args)?;
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

fn campaign(args: &Args) -> Result<Campaign, Failure> {
    Ok(Campaign {
        program: Program::own()?,
        inside: std::env::temp_dir(),
        seed: args.seed.unwrap_or_else(|| fastrand::u64(..SEEDS)),
        lasts: Duration::from_secs(args.seconds.into()),
        only: args.only.clone(),
        limits: TrialLimits { notice_within: NOTICE_WITHIN, up_to_load: BUSY },
    })
}

/// All kinds of fault.
fn kinds() -> PossibleValuesParser {
    PossibleValuesParser::new(nemesis::all().iter().map(|nemesis| nemesis.name()))
}
