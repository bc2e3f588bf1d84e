//! `queuectl schedule list`

use crate::context::Context;
use crate::failure::Failure;
use crate::render::table::{Cell, Table};
use crate::render::text::{ago, rough, state_style};
use domain::schedule::{Run, Schedule};
use domain::values::timestamp::Timestamp;
use ops::schedule::json::ScheduleSummaryJson;

pub(super) fn run(context: &Context) -> Result<(), Failure> {
    let store = context.store()?;
    let schedules = store.schedules()?;
    let now = store.now()?;
    let if_empty = "no schedules; `queuectl schedule add --help` shows how to add one";
    context.print_list::<ScheduleSummaryJson<'_>, _>(&schedules, if_empty, |schedules| table(schedules, now))
}

fn table(schedules: &[(Schedule, Option<Run>)], now: Timestamp) -> Table {
    let mut table =
        Table::new(&["NAME", "WHEN", "ZONE", "NEXT", "LAST", "PAUSED"]).with_optional_columns(&["ZONE"]);
    for (schedule, run) in schedules {
        table.row(row(schedule, run.as_ref(), now));
    }
    table
}

fn row(schedule: &Schedule, run: Option<&Run>, now: Timestamp) -> Vec<Cell> {
    vec![
        schedule.name.as_str().into(),
        schedule.when.to_string().into(),
        schedule.when.zone_name().unwrap_or("-").into(),
        next(schedule, now).into(),
        run.map_or_else(|| "-".into(), |run| Cell::styled(&last(schedule, run, now), state_style(run.state))),
        paused(schedule, now).into(),
    ]
}

fn next(schedule: &Schedule, now: Timestamp) -> String {
    match schedule.next_runs(1).first() {
        Some(at) if *at > now => format!("in {}", rough(at.since(now))),
        Some(_) => "due".to_owned(),
        None => "-".to_owned(),
    }
}

fn last(schedule: &Schedule, run: &Run, now: Timestamp) -> String {
    let skipped = if schedule.skipped_its_latest() { ", latest skipped" } else { "" };
    format!("{} {}{skipped}", run.state.name(), ago(run.finished_at.unwrap_or(run.created_at), now))
}

fn paused(schedule: &Schedule, now: Timestamp) -> String {
    let Some((at, pause)) = &schedule.paused else {
        return "-".to_owned();
    };
    let why = pause.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{} by {}{why}", ago(*at, now), pause.by)
}
