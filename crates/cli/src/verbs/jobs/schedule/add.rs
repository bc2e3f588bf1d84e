//! `queuectl schedule add`

use std::io::Write;
use std::time::Duration;

use super::{parse_name, report_schedule};
use crate::context::Context;
use crate::failure::Failure;
use crate::flags::caller::CallerFlags;
use crate::flags::job::JobFlags;
use crate::flags::whole_number::whole_number;
use crate::render::text::{printable, rough};
use crate::verbs::jobs::run::one_command;
use domain::job::spec::JobSpec;
use domain::schedule::{
    MAX_MISSED_LIMIT, NEXT_RUNS, OnMissed, OnOverlap, Policy, Schedule, ScheduleError, When,
};
use domain::values::span::parse_span;
use domain::values::timestamp::Timestamp;
use ops::OpError;
use ops::jobs::enqueue::check_folder;
use ops::schedule::{ScheduleRequest, add, cron};
use ops::status::HOW_TO_START_A_WORKER;
use ops::worker::live::live_workers;
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
    group = clap::ArgGroup::new("when").required(true).args(["cron", "every", "at"]),
    after_help = "Examples:
  queuectl schedule add nightly --cron \"0 3 * * *\" --tz Europe/Berlin -- make backup
  queuectl schedule add poll --every 15m --on-overlap skip --queue net -- ./poll.sh
  queuectl schedule add party --at 2026-12-31T23:59:00+01:00 --command 'echo cheers'"
)]
pub(super) struct Args {
    /// The schedule's name: letters, digits and ._-
    #[arg(value_name = "NAME")]
    name: String,
    /// The command and its arguments, used exactly as given
    #[arg(last = true, value_name = "WORD")]
    words: Vec<String>,
    /// At the times of this cron expression: "0 3 * * *", @daily
    #[arg(long, value_name = "EXPRESSION", help_heading = "When")]
    cron: Option<String>,
    /// Time zone of the cron expression: Europe/Berlin [default: that of this machine, else UTC]
    #[arg(long, value_name = "ZONE", conflicts_with_all = ["every", "at"], help_heading = "When")]
    tz: Option<String>,
    /// At this interval, starting from now: 15m, 1h30m
    #[arg(long, value_name = "DURATION", value_parser = parse_span, allow_negative_numbers = true, help_heading = "When")]
    every: Option<Duration>,
    /// Once, at this time: 2026-12-31T23:59:00Z
    #[arg(long, value_name = "TIME", help_heading = "When")]
    at: Option<Timestamp>,
    /// How to treat runs missed while no worker was running: skip, once or all [default: once]
    #[arg(long, value_name = "CHOICE", value_parser = parse_on_missed, help_heading = "When")]
    on_missed: Option<OnMissed>,
    /// With --on-missed all: make up for at most this many runs, the latest ones [default: 10]
    #[arg(long, value_name = "N", value_parser = whole_number::<u32>(1..=MAX_MISSED_LIMIT.into()), allow_negative_numbers = true, help_heading = "When")]
    missed_limit: Option<u32>,
    /// How to treat a run while an earlier one has not finished: skip, queue or replace [default: skip]
    #[arg(long, value_name = "CHOICE", value_parser = parse_on_overlap, help_heading = "When")]
    on_overlap: Option<OnOverlap>,
    #[command(flatten)]
    flags: JobFlags,
    /// Run with the worker's environment instead of the current one
    #[arg(long)]
    no_env_capture: bool,
}

/// Flags that make no sense for a recurring job.
const REFUSED: [&str; 5] = ["id", "run_at", "delay", "depends_on", "on_dependency_failure"];

pub(super) fn run(mut args: Args, context: &Context) -> Result<(), Failure> {
    let wanted = ScheduleRequest {
        name: parse_name(&args.name)?,
        when: when(&args)?,
        policy: Policy::new(args.on_missed, args.missed_limit, args.on_overlap)
            .map_err(|error| OpError::from(ScheduleError::from(error)))?,
        job: job(context, &mut args)?,
    };
    let caller = CallerFlags::without_if_absent(args.no_env_capture).caller();
    let store = context.store_or_new()?;
    let schedule = add(store, wanted, caller, &user::name())?;
    report_schedule(context, &schedule, "added")?;
    if context.stdout_is_terminal && !context.json && !context.quiet {
        print_next_runs(context, &schedule, store.now()?)?;
    }
    if let Some(Err(missing)) = schedule.job.cwd.as_deref().map(check_folder) {
        context.hint(&format!("{}; runs fail until there is one", printable(&missing.to_string())))?;
    }
    if live_workers(store)?.is_empty() {
        context.hint(&format!(
            "no worker is running, and only workers run schedules; {HOW_TO_START_A_WORKER}"
        ))?;
    }
    Ok(())
}

fn when(args: &Args) -> Result<When, Failure> {
    let refused = |error| Failure::from(OpError::from(ScheduleError::from(error)));
    match (&args.cron, args.every, args.at) {
        (Some(line), None, None) => Ok(cron(line, args.tz.as_deref())?),
        (None, Some(period), None) => When::every(period).map_err(refused),
        (None, None, Some(at)) => Ok(When::At(at)),
        _ => Err(Failure::usage("a schedule needs one of --cron, --every and --at")),
    }
}

fn job(context: &Context, args: &mut Args) -> Result<JobSpec, Failure> {
    let mut flags = std::mem::take(&mut args.flags);
    let hint = "write it after --, as in `queuectl schedule add nightly --cron \"0 3 * * *\" -- make`";
    let command = one_command(flags.command.take(), &args.words, hint)?;
    flags.into_spec(context, command)
}

fn parse_on_missed(typed: &str) -> Result<OnMissed, String> {
    OnMissed::from_name(typed).ok_or_else(|| "expected skip, once or all".to_owned())
}

fn parse_on_overlap(typed: &str) -> Result<OnOverlap, String> {
    OnOverlap::from_name(typed).ok_or_else(|| "expected skip, queue or replace".to_owned())
}

fn print_next_runs(context: &Context, schedule: &Schedule, now: Timestamp) -> Result<(), Failure> {
    let mut out = context.out();
    let words = std::iter::once("next").chain(std::iter::repeat("then"));
    for (at, word) in schedule.next_runs(NEXT_RUNS).into_iter().zip(words) {
        writeln!(out, "  {word}  {} (in {})", schedule.when.shown(at), rough(at.since(now)))?;
    }
    Ok(out.flush()?)
}
