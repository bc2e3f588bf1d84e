//! `queuectl schedule add`

use std::collections::BTreeSet;
use std::io::Write;

use super::when_flags::WhenFlags;
use super::{parse_name, report_schedule};
use crate::context::Context;
use crate::failure::Failure;
use crate::flags::caller::CaptureFlags;
use crate::flags::job::JobFlags;
use crate::flags::start_time::hint_unknown_zone;
use crate::render::text::printable;
use crate::verbs::jobs::autostart::autostart;
use crate::verbs::jobs::typed_command::one_command;
use domain::job::spec::JobSpec;
use domain::schedule::{NEXT_RUNS, Schedule};
use domain::values::clock::Clock;
use ops::jobs::enqueue::check_folder;
use ops::schedule::{ScheduleRequest, add};
use ops::status::HOW_TO_START_A_WORKER;
use ops::worker::live::live_workers;
use store::settings::in_force;
use sys::process::user;

/// Add a schedule
///
/// A cron expression has five fields (minute, hour, day of the month, month, day of the week), or six with seconds first;
/// or it is @hourly, @daily, @weekly, @monthly or @yearly. The job runs in the current directory with the current
/// environment. Its retries and timeout, unless given, come from the settings at the time it is enqueued.
#[derive(Debug, clap::Args)]
#[command(
    // Accepted only to explain why they are refused.
    mut_args(|flag| if REFUSED.contains(&flag.get_id().as_str()) { flag.hide(true) } else { flag }),
    override_usage = "queuectl schedule add NAME --cron|--every|--at WHEN [OPTIONS] COMMAND...",
    group = clap::ArgGroup::new("required").required(true).args(["cron", "every", "at"]),
    after_help = "Examples:
  queuectl schedule add nightly --cron \"0 3 * * *\" --tz Europe/Berlin make backup
  queuectl schedule add poll --every 15m --on-overlap skip --queue net ./poll
  queuectl schedule add party --at \"2026-12-31 23:59\" --command 'echo cheers'"
)]
pub(super) struct Args {
    /// The schedule's name: letters, digits and ._-
    #[arg(value_name = "NAME")]
    name: String,
    /// The command and its arguments, used exactly as given
    #[arg(last = true, value_name = "COMMAND")]
    words: Vec<String>,
    #[command(flatten)]
    when: WhenFlags,
    #[command(flatten)]
    flags: JobFlags,
    #[command(flatten)]
    capture: CaptureFlags,
}

/// Flags that make no sense for a recurring job.
pub(super) const REFUSED: [&str; 5] = ["id", "run_at", "delay", "depends_on", "on_dependency_failure"];

pub(super) fn run(mut args: Args, context: &Context) -> Result<(), Failure> {
    let Some((when, start)) = args.when.when(None)? else {
        return Err(no_time());
    };
    let wanted = ScheduleRequest {
        name: parse_name(&args.name)?,
        when,
        policy: args.when.policy(None)?,
        job: job(context, &mut args)?,
    };
    let caller = args.capture.caller(context)?;
    let store = context.store_or_new()?;
    let schedule = add(store, wanted, caller, &user::name())?;
    report_schedule(context, &schedule, "added")?;
    start.map_or(Ok(()), |start| start.confirm(context))?;
    if context.stdout_is_terminal && !context.json && !context.quiet {
        print_next_runs(context, &schedule, &context.clock(store.now()?))?;
    }
    if args.when.uses_zone_of_machine() {
        hint_unknown_zone(context)?;
    }
    hint_missing_folder(context, &schedule)?;
    if in_force(store)?.autostart {
        autostart(context, store, &BTreeSet::new())?;
    } else if live_workers(store)?.is_empty() {
        context.hint(&format!(
            "no worker is running, and only workers run schedules; {HOW_TO_START_A_WORKER}"
        ))?;
    }
    Ok(())
}

/// The error for a schedule without a time.
pub(crate) fn no_time() -> Failure {
    Failure::usage("no time given").with_hint("use --cron, --every or --at")
}

fn job(context: &Context, args: &mut Args) -> Result<JobSpec, Failure> {
    let mut flags = std::mem::take(&mut args.flags);
    let hint = "write it after --, as in `queuectl schedule add nightly --cron \"0 3 * * *\" -- make`";
    let command = one_command(context, flags.command.take(), &args.words, hint)?;
    flags.into_spec(context, command)
}

pub(super) fn hint_missing_folder(context: &Context, schedule: &Schedule) -> Result<(), Failure> {
    match schedule.job.cwd.as_deref().map(check_folder) {
        Some(Err(missing)) => {
            context.hint(&format!("{}; runs fail until there is one", printable(&missing.to_string())))
        }
        Some(Ok(())) | None => Ok(()),
    }
}

pub(super) fn print_next_runs(context: &Context, schedule: &Schedule, clock: &Clock) -> Result<(), Failure> {
    let mut out = context.out();
    let words = std::iter::once("next").chain(std::iter::repeat("then"));
    for (at, word) in schedule.next_runs(NEXT_RUNS).into_iter().zip(words) {
        writeln!(out, "  {word}  {} (in {})", schedule.when.shown(at, clock), clock.left(at))?;
    }
    Ok(out.flush()?)
}
