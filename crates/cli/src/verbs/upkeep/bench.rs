//! `queuectl bench`

mod bare;
mod measure;
mod results;
mod scratch;

use std::time::{Duration, Instant};

use rustix::process::Signal;

use self::measure::{Bench, MEASUREMENTS};
use self::results::{Report, show};
use self::scratch::Scratch;
use crate::context::{Context, catch};
use crate::failure::{Exit, Failure};
use crate::flags::whole_number::whole_number;
use crate::render::progress::Bar;

/// Measure how fast queuectl is on this machine
///
/// Measures one enqueue, many jobs from a file, the rate at which workers run short jobs, and how soon a job starts; each
/// beside the limit of the machine, measured in the same run without a queue. Uses a queue of its own, on the disk or the
/// server of yours, and deletes it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl bench
  queuectl bench --json | jq '.results[] | {name, value, unit}'
  queuectl bench --seconds 60
  queuectl bench --store postgres://worker@db.example.com/jobs")]
pub(crate) struct Args {
    /// About how long all measurements take together; longer ones vary less
    #[arg(long, value_name = "N", default_value_t = 10, allow_negative_numbers = true,
          value_parser = whole_number::<u32>(1..=MAX_SECONDS))]
    seconds: u32,
}

const MAX_SECONDS: i128 = 600;
/// How many loops of full length the measurements take together.
const LOOPS: u32 = 12;

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let interrupts = catch(&[Signal::INT, Signal::TERM, Signal::HUP])?;
    let (began, lasts) = (Instant::now(), Duration::from_secs(args.seconds.into()) / LOOPS);
    let scratch = Scratch::create(&context.location()?.absolute()?)?;
    let bench = Bench { scratch: &scratch, lasts, cores: cores() };
    let mut bar = Bar::new(context, "measuring", None);
    let (mut measured, mut stopped_by) = (Vec::new(), None);
    for (name, measure) in MEASUREMENTS {
        bar.say(|| format!("measuring: {name}"));
        stopped_by = interrupts.take();
        if stopped_by.is_some() {
            break;
        }
        measured.extend(measure(&bench)?);
    }
    drop(bar);
    let store = scratch.kind();
    scratch.remove()?;
    if let Some(signal) = stopped_by {
        interrupts.end_by(signal);
    }
    let report = Report { store, cores: cores(), seconds: began.elapsed().as_secs_f64(), results: measured };
    show(context, &report)
}

fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}

fn failed(what: &str, error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, format!("failed to {what} ({error})"))
}
