//! `queuectl schedule edit`

use serde::{Deserialize, Serialize};

use super::add::{REFUSED, hint_missing_folder, print_next_runs};
use super::when_flags::WhenFlags;
use super::{ScheduleArg, report_schedule};
use crate::confirm::is_interactive;
use crate::context::Context;
use crate::editor::{Edited, edit_json};
use crate::failure::Failure;
use crate::flags::caller::CaptureFlags;
use crate::flags::job::JobFlags;
use crate::verbs::jobs::typed_command::given_command;
use domain::job::spec::JobSpec;
use domain::schedule::{OnMissed, OnOverlap, Policy, Schedule, ScheduleError, When};
use domain::values::span::parse_span;
use domain::values::timestamp::Timestamp;
use ops::OpError;
use ops::schedule::{ScheduleChange, ScheduleRequest, cron, edit, find};
use sys::process::user;

/// Change a schedule
///
/// Takes the flags of `schedule add`; fields without a flag stay as they are. Without flags, opens $VISUAL or $EDITOR with
/// the schedule as JSON; a field that you delete there returns to its default. Jobs that it has already enqueued do not
/// change.
#[derive(Debug, clap::Args)]
#[command(
    // Accepted only to explain why they are refused.
    mut_args(|flag| if REFUSED.contains(&flag.get_id().as_str()) { flag.hide(true) } else { flag }),
    override_usage = "queuectl schedule edit NAME [OPTIONS] [COMMAND...]",
    after_help = "Examples:
  queuectl schedule edit nightly --cron \"30 4 * * *\"
  queuectl schedule edit nightly --tz Europe/Berlin --on-missed skip
  queuectl schedule edit poll --every 5m --timeout 1m -- ./poll.sh --quick
  queuectl schedule edit nightly"
)]
pub(super) struct Args {
    #[command(flatten)]
    schedule: ScheduleArg,
    /// The new command and its arguments, used exactly as given
    #[arg(last = true, value_name = "COMMAND")]
    words: Vec<String>,
    #[command(flatten)]
    when: WhenFlags,
    #[command(flatten)]
    flags: JobFlags,
    /// Run with the worker's environment instead of the one in which it was added
    #[arg(long)]
    no_env_capture: bool,
}

pub(super) fn run(mut args: Args, context: &Context) -> Result<(), Failure> {
    let name = args.schedule.name()?;
    let store = context.store()?;
    let mut flags = std::mem::take(&mut args.flags);
    flags.command = given_command(context, flags.command.take(), &args.words)?;
    let has_flags = flags != JobFlags::default() || args.when != WhenFlags::default() || args.no_env_capture;
    let (seen, _) = find(store, &name)?;
    let (request, start) = if has_flags {
        let (when, start) = args.when.when(Some(&seen.when))?.unwrap_or_else(|| (seen.when.clone(), None));
        let policy = args.when.policy(Some(seen.policy))?;
        let job = seen.job.clone().changed_by(flags.into_changes(context)?);
        (Edited::without_file(ScheduleRequest { name, when, policy, job }), start)
    } else if is_interactive() {
        match edit_json(context, &Document::of(&seen), |document: Document| document.request(&seen))? {
            Some(request) => (request, None),
            None => return report_schedule(context, &seen, "is unchanged"),
        }
    } else {
        return Err(Failure::usage("no changes given")
            .with_hint("give flags such as `--every 5m`; an editor opens only on a terminal"));
    };
    if !args.no_env_capture && is_unchanged(&seen, &request.value) {
        return report_schedule(context, &seen, "is unchanged");
    }
    let schedule = request.apply(|request| {
        let (caller, drops_environment) = (CaptureFlags::default().caller(context)?, args.no_env_capture);
        Ok(edit(store, &seen, ScheduleChange { request, caller, drops_environment }, &user::name())?)
    })?;
    report_schedule(context, &schedule, "changed")?;
    start.map_or(Ok(()), |start| start.confirm(context))?;
    if seen.when != schedule.when && context.stdout_is_terminal && !context.json && !context.quiet {
        print_next_runs(context, &schedule, &context.clock(store.now()?))?;
    }
    hint_missing_folder(context, &schedule)
}

fn is_unchanged(seen: &Schedule, wanted: &ScheduleRequest) -> bool {
    (&seen.when, seen.policy, &seen.job) == (&wanted.when, wanted.policy, &wanted.job)
}

/// A schedule in the editor. Its fields are named like the flags.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(skip_serializing_if = "Option::is_none")]
    cron: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tz: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    every: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
    on_missed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missed_limit: Option<u32>,
    on_overlap: Option<String>,
    job: JobSpec,
}

impl Document {
    fn of(schedule: &Schedule) -> Self {
        let Policy { on_missed, missed_limit, on_overlap } = schedule.policy;
        let mut document = Self {
            on_missed: Some(on_missed.name().to_owned()),
            missed_limit: (on_missed == OnMissed::All).then_some(missed_limit),
            on_overlap: Some(on_overlap.name().to_owned()),
            job: schedule.job.clone(),
            ..Self::default()
        };
        match &schedule.when {
            When::Cron { line, .. } => {
                document.cron = Some(line.to_string());
                document.tz = schedule.when.zone_name().map(str::to_owned);
            }
            When::Every(_) => document.every = Some(schedule.when.expression()),
            When::At(at) => document.at = Some(*at),
        }
        document
    }

    fn request(self, seen: &Schedule) -> Result<ScheduleRequest, Failure> {
        let refused = |error| Failure::from(OpError::from(ScheduleError::from(error)));
        let when = match (self.cron, self.every, self.at) {
            (Some(line), None, None) => cron(&line, self.tz.as_deref())?,
            (None, Some(_), None) | (None, None, Some(_)) if self.tz.is_some() => {
                return Err(Failure::usage("`tz` needs `cron`"));
            }
            (None, Some(period), None) => {
                let period = parse_span(&period)
                    .map_err(|error| Failure::usage(format!("invalid `every` ({error})")))?;
                When::every(period).map_err(refused)?
            }
            (None, None, Some(at)) => When::At(at),
            _ => return Err(Failure::usage("a schedule needs one of `cron`, `every` and `at`")),
        };
        let policy = Policy::new(
            choice("on_missed", self.on_missed, OnMissed::from_name, "skip, once or all")?,
            self.missed_limit,
            choice("on_overlap", self.on_overlap, OnOverlap::from_name, "skip, queue or replace")?,
        );
        let policy = policy.map_err(|error| Failure::from(OpError::from(ScheduleError::from(error))))?;
        Ok(ScheduleRequest { name: seen.name.clone(), when, policy, job: self.job })
    }
}

fn choice<T>(
    field: &str,
    typed: Option<String>,
    from_name: fn(&str) -> Option<T>,
    choices: &str,
) -> Result<Option<T>, Failure> {
    let Some(typed) = typed else {
        return Ok(None);
    };
    let refused = || Failure::usage(format!("`{field}` must be {choices}, not `{typed}`"));
    from_name(&typed).map(Some).ok_or_else(refused)
}
