//! `queuectl schedule`; its larger verbs have files of their own.

mod add;
mod edit;
mod list;
mod show;
mod when_flags;

pub(crate) use self::add::no_time;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::report_change::report_change;
use crate::verbs::jobs::autostart::autostart_if_ready;
use crate::verbs::jobs::enqueue::print_one;
use domain::schedule::Schedule;
use domain::values::name::ScheduleName;
use ops::schedule;
use ops::schedule::json::ScheduleJson;
use store::Pause;
use sys::process::user;

/// Enqueue jobs at fixed times or intervals
///
/// Any running worker enqueues the jobs of a schedule when they are due, no matter which queues it serves.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl schedule add nightly --cron \"0 3 * * *\" --tz Europe/Berlin make backup
  queuectl schedule list
  queuectl schedule edit nightly --cron \"30 4 * * *\"
  queuectl schedule run nightly")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: ScheduleVerb,
}

#[derive(Debug, clap::Subcommand)]
enum ScheduleVerb {
    Add(Box<add::Args>),
    Edit(Box<edit::Args>),
    /// List all schedules with their next and last runs and their commands
    #[command(
        after_help = "Examples:\n  queuectl schedule list\n  queuectl schedule list --json | jq -r '.[].name'"
    )]
    List,
    /// Show one schedule: its job, its next five and its last ten runs
    #[command(
        after_help = "Examples:\n  queuectl schedule show nightly\n  queuectl schedule show nightly --json | jq .next_runs"
    )]
    Show(ScheduleArg),
    /// Pause a schedule
    ///
    /// It enqueues nothing until it is resumed. Jobs that it has already enqueued continue.
    #[command(after_help = "Example:\n  queuectl schedule pause nightly --reason \"the disk is full\"")]
    Pause {
        #[command(flatten)]
        arg: ScheduleArg,
        /// The reason, shown in `schedule list`
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Resume a paused schedule
    ///
    /// It continues with its next time. Runs that were due while it was paused are not run later.
    #[command(after_help = "Example:\n  queuectl schedule resume nightly")]
    Resume(ScheduleArg),
    /// Remove a schedule; the jobs that it has enqueued are kept
    #[command(after_help = "Example:\n  queuectl schedule remove nightly")]
    Remove(ScheduleArg),
    /// Enqueue the schedule's job once now, in addition to its times
    ///
    /// Also if an earlier run has not finished.
    #[command(
        after_help = "Examples:\n  queuectl schedule run nightly\n  queuectl wait \"$(queuectl schedule run nightly)\""
    )]
    Run(ScheduleArg),
}

#[derive(Debug, clap::Args)]
struct ScheduleArg {
    /// The schedule's name
    #[arg(value_name = "NAME")]
    name: String,
}

impl ScheduleArg {
    fn name(&self) -> Result<ScheduleName, Failure> {
        parse_name(&self.name)
    }
}

fn parse_name(typed: &str) -> Result<ScheduleName, Failure> {
    typed.parse().map_err(|error| Failure::usage(format!("invalid name `{typed}` ({error})")))
}

pub(crate) fn run(args: Args, context: &Context) -> Result<(), Failure> {
    match args.verb {
        ScheduleVerb::Add(args) => add::run(*args, context)?,
        ScheduleVerb::Edit(args) => edit::run(*args, context)?,
        ScheduleVerb::List => list::run(context)?,
        ScheduleVerb::Show(arg) => show::run(&arg.name()?, context)?,
        ScheduleVerb::Pause { arg, reason } => {
            let (name, by) = (arg.name()?, user::name());
            let pause = Pause { by: by.clone(), reason };
            let schedule = schedule::set_pause(context.store()?, &name, Some(&pause), &by)?;
            report_schedule(context, &schedule, "paused")?;
        }
        ScheduleVerb::Resume(arg) => {
            let name = arg.name()?;
            let schedule = schedule::set_pause(context.store()?, &name, None, &user::name())?;
            report_schedule(context, &schedule, "resumed")?;
        }
        ScheduleVerb::Remove(arg) => {
            let name = arg.name()?;
            let removed = schedule::remove(context.store()?, &name, &user::name())?;
            report_schedule(context, &removed, "removed; its jobs are kept")?;
        }
        ScheduleVerb::Run(arg) => {
            let name = arg.name()?;
            let store = context.store()?;
            let enqueued = schedule::run(store, &name, &user::name())?;
            print_one(context, store, &enqueued)?;
            autostart_if_ready(context)?;
        }
    }
    Ok(())
}

/// Reports a change to a schedule.
fn report_schedule(context: &Context, schedule: &Schedule, done: &str) -> Result<(), Failure> {
    let name = schedule.name.as_str();
    report_change(context, name, &ScheduleJson::from(schedule), &format!("Schedule {name} {done}"))
}
