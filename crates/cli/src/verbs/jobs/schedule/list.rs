//! `queuectl schedule list`

use anstyle::AnsiColor;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::table::{Cell, Table};
use crate::render::text::state_style;
use domain::schedule::{Run, Schedule};
use domain::values::clock::Clock;
use ops::schedule::json::ScheduleSummaryJson;

pub(super) fn run(context: &Context) -> Result<(), Failure> {
    let store = context.store()?;
    let schedules = store.schedules()?;
    let clock = &context.clock(store.now()?);
    let if_empty = "no schedules; `queuectl schedule add --help` shows how to add one";
    context.print_list::<ScheduleSummaryJson<'_>, _>(&schedules, if_empty, |schedules| {
        let detailed = table(schedules, clock, Detail::Full);
        if detailed.fits(context.width()) { detailed } else { table(schedules, clock, Detail::Short) }
    })
}

/// How much the table says about the next run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    /// Its time and its distance, or who paused the schedule and why.
    Full,
    /// Its time, or that the schedule is paused.
    Short,
}

fn table(schedules: &[(Schedule, Option<Run>)], clock: &Clock, detail: Detail) -> Table {
    let mut table = Table::new(&["NAME", "WHEN", "ZONE", "NEXT", "LAST", "COMMAND"])
        .with_optional_columns(&["ZONE", "LAST"])
        .with_whole_columns(&["WHEN", "NEXT"]);
    for (schedule, run) in schedules {
        table.row(row(schedule, run.as_ref(), clock, detail));
    }
    table
}

fn row(schedule: &Schedule, run: Option<&Run>, clock: &Clock, detail: Detail) -> Vec<Cell> {
    let last = |run: &Run| Cell::styled(&last(schedule, run, clock), state_style(run.state));
    vec![
        schedule.name.as_str().into(),
        schedule.when.in_short(clock).into(),
        schedule.when.zone_name().unwrap_or("-").into(),
        next(schedule, clock, detail),
        run.map_or_else(|| "-".into(), last),
        Cell::command(schedule.job.command.as_deref().unwrap_or_default()),
    ]
}

/// When it fires next, or that it is paused.
fn next(schedule: &Schedule, clock: &Clock, detail: Detail) -> Cell {
    if let Some((at, pause)) = &schedule.paused {
        let why = pause.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        let paused = match detail {
            Detail::Full => format!("paused {} by {}{why}", clock.ago(*at), pause.by),
            Detail::Short => "paused".to_owned(),
        };
        return Cell::styled(&paused, AnsiColor::Yellow.on_default());
    }
    match schedule.next_runs(1).first() {
        Some(at) if *at > clock.now => match detail {
            Detail::Full => clock.moment(*at).into(),
            Detail::Short => clock.time(*at).into(),
        },
        Some(_) => "due".into(),
        None => "-".into(),
    }
}

fn last(schedule: &Schedule, run: &Run, clock: &Clock) -> String {
    let skipped = if schedule.skipped_its_latest() { ", latest skipped" } else { "" };
    format!("{} {}{skipped}", run.state.name(), clock.ago(run.finished_at.unwrap_or(run.created_at)))
}
