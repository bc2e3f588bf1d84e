//! `queuectl schedule show`

use std::io::{self, Write};

use anstyle::Style;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::facts::write_fact;
use crate::render::table::{Cell, Table};
use crate::render::text::{printable, state_style};
use domain::schedule::{NEXT_RUNS, OnMissed, Run, Schedule};
use domain::values::clock::Clock;
use domain::values::name::ScheduleName;
use ops::schedule::find;
use ops::schedule::json::{ScheduleRecordJson, description, job_facts};

pub(super) fn run(name: &ScheduleName, context: &Context) -> Result<(), Failure> {
    let store = context.store()?;
    let (schedule, runs) = find(store, name)?;
    let clock = &context.clock(store.now()?);
    context.print(&ScheduleRecordJson { schedule: (&schedule).into(), runs: &runs }, |out| {
        write_facts(out, &schedule, clock, context.width())?;
        write_next(out, &schedule, clock)?;
        write_runs(out, &schedule, &runs, clock, context.width())
    })
}

fn write_facts(out: &mut dyn Write, schedule: &Schedule, clock: &Clock, width: usize) -> io::Result<()> {
    let bold = Style::new().bold();
    writeln!(out, "{bold}{}{bold:#}  {}", schedule.name, printable(&schedule.when.in_short(clock)))?;
    let about = facts(schedule, clock).into_iter().map(|(name, value)| (name.to_owned(), value));
    for (name, value) in about.chain(job_facts(&schedule.job)) {
        write_fact(out, &name, &value, width)?;
    }
    Ok(())
}

/// The properties of a schedule that are set, the most important first.
fn facts(schedule: &Schedule, clock: &Clock) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let mut say = |name, value: Option<String>| facts.extend(value.map(|value| (name, value)));
    say("runs", Some(description(&schedule.when, clock)));
    say("zone", schedule.when.zone_name().map(str::to_owned));
    say(
        "paused",
        schedule.paused.as_ref().map(|(at, pause)| format!("{} by {}", clock.moment(*at), pause.by)),
    );
    say("reason", schedule.paused.as_ref().and_then(|(_, pause)| pause.reason.clone()));
    say("on missed", Some(on_missed(schedule)));
    say("on overlap", Some(schedule.policy.on_overlap.name().to_owned()));
    say("last missed", schedule.missed_at.map(|at| clock.moment(at)));
    say("last skipped", schedule.skipped_at.map(|at| clock.moment(at)));
    say("added", Some(format!("{} by {}", clock.moment(schedule.created_at), schedule.created_by)));
    facts
}

fn on_missed(schedule: &Schedule) -> String {
    let name = schedule.policy.on_missed.name();
    match schedule.policy.on_missed {
        OnMissed::Skip | OnMissed::Once => name.to_owned(),
        OnMissed::All => format!("{name}, at most {}", schedule.policy.missed_limit),
    }
}

fn write_next(out: &mut dyn Write, schedule: &Schedule, clock: &Clock) -> io::Result<()> {
    let mut table = Table::new(&["NEXT", "IN"]);
    for at in schedule.next_runs(NEXT_RUNS) {
        table.row(vec![schedule.when.shown(at, clock).into(), clock.left(at).into()]);
    }
    table.write_section(out, usize::MAX)
}

fn write_runs(
    out: &mut dyn Write,
    schedule: &Schedule,
    runs: &[Run],
    clock: &Clock,
    width: usize,
) -> io::Result<()> {
    let mut table = Table::new(&["RUN", "STATE", "WHEN", "FOR"]);
    for run in runs {
        table.row(vec![
            run.id.as_str().into(),
            Cell::styled(run.state.name(), state_style(run.state)),
            clock.ago(run.finished_at.unwrap_or(run.created_at)).into(),
            run.scheduled_for.map_or_else(|| "manual".to_owned(), |at| schedule.when.shown(at, clock)).into(),
        ]);
    }
    table.write_section(out, width)
}
