//! The schedules: when each runs next, and how its last runs ended.

mod actions;
mod add;
mod clock_change;
pub(super) mod schedule;
mod week;

use maud::{Markup, html};

use super::view::{Place, View};
use super::visit::Visit;
use crate::parts::job_row::cut;
use crate::parts::number::counted;
use crate::parts::{cli, state, time};
use crate::problem::Problem;
use crate::request::query::{Param, TEXT, encode};
use domain::schedule::{Run, Schedule};
use domain::text::hostile::printable;
use domain::values::clock::{Clock, TimeFormat};
use ops::schedule::json::description;

pub(super) const PARAMS: &[Param] = &[
    Param::new("view", r#"{"enum":["list","week"]}"#, "As a list or by the week"),
    Param::new("week", TEXT, "A day of the week to show: 2026-03-29"),
    Param::new("tz", TEXT, "The time zone of the week: Europe/Berlin"),
];

/// How many of the last runs are shown as ticks.
const TICKS: usize = 20;
/// The runs of a week of a schedule that runs every hour.
const RUNS_OF_WEEK: usize = 200;

type Scheduled = (Schedule, Vec<Run>);

pub(super) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let view = View::new("Schedules", Place::Schedules).with_script("forms.js");
    let view = match visit.query.get("view") {
        None | Some("list") => {
            let schedules = visit.store.schedules_with_runs(TICKS)?;
            view.with("schedules", "Schedules", list(visit, &schedules))
        }
        Some("week") => {
            let schedules = visit.store.schedules_with_runs(RUNS_OF_WEEK)?;
            view.with("week", "Week", week::content(visit, &schedules)?)
        }
        Some(other) => {
            return Err(Problem::invalid(format!("unknown view `{other}`")).with_hint("list or week"));
        }
    };
    let view =
        if visit.may_administer() { view.with("add", "Add a schedule", add::form(visit)) } else { view };
    Ok(view)
}

/// The title, and the choice between list and week.
fn bar(visit: &Visit<'_>, count: usize, is_week: bool) -> Markup {
    html! {
        div .bar {
            h1 { "Schedules" }
            span { (counted(count as u64, "schedule", "schedules")) }
            nav .ranges aria-label="View" {
                a href=(visit.url("/schedules")) aria-current=[(!is_week).then_some("true")] { "list" }
                a href=(visit.url("/schedules?view=week")) data-zoned aria-current=[is_week.then_some("true")] { "week" }
            }
            (cli::copyable(&cli::typed("schedule list")))
        }
    }
}

fn empty() -> Markup {
    html! {
        div .empty { p { "No schedule yet. This adds one:" } p { (cli::copyable(&cli::typed("schedule add nightly --cron '0 3 * * *' -- ./report"))) } }
    }
}

fn list(visit: &Visit<'_>, schedules: &[Scheduled]) -> Markup {
    html! {
        (bar(visit, schedules.len(), false))
        @if schedules.is_empty() { (empty()) } @else {
            div .scroll {
                table .rows.cards {
                    thead {
                        tr {
                            th scope="col" { "schedule" } th scope="col" { "when" } th scope="col" { "next" }
                            th scope="col" { "last " (TICKS) " runs" } th scope="col" { "command" }
                            @if visit.may_operate() { th scope="col" { span .hidden { "actions" } } }
                        }
                    }
                    tbody { @for (schedule, runs) in schedules { (row(visit, schedule, runs)) } }
                }
            }
        }
    }
}

fn row(visit: &Visit<'_>, schedule: &Schedule, runs: &[Run]) -> Markup {
    let name = schedule.name.as_str();
    html! {
        tr id={ "s-" (encode(name)) } {
            td { a .id href=(url(visit, name)) { (printable(name)) } }
            td data-label="when" {
                (in_words(visit, schedule))
                @if let Some(zone) = schedule.when.zone_name() { " " span .note { (zone) } }
            }
            td data-label="next" { (next(visit, schedule)) }
            td data-label="last runs" { (ticks(visit, runs)) }
            td .command data-label="command" { (printable(&cut(schedule.job.command.as_deref().unwrap_or_default()))) }
            @if visit.may_operate() { td { (actions::short(visit, schedule)) } }
        }
    }
}

pub(super) fn url(visit: &Visit<'_>, name: &str) -> String {
    visit.url(&format!("/schedules/{}", encode(name)))
}

fn in_words(visit: &Visit<'_>, schedule: &Schedule) -> Markup {
    cli::with_times(visit.now, &description(&schedule.when, &Clock::new(visit.now, TimeFormat::Full)))
}

fn next(visit: &Visit<'_>, schedule: &Schedule) -> Markup {
    html! {
        @match (&schedule.paused, schedule.next_at) {
            (Some((_, pause)), _) => {
                (state::badge("paused")) " by " (printable(&pause.by))
                @if let Some(reason) = &pause.reason { ": " (printable(&cut(reason))) }
            },
            (None, Some(at)) => (time::due(visit.now, at)),
            (None, None) => "never again",
        }
    }
}

/// The results of the last runs, from old to new; each leads to its job.
fn ticks(visit: &Visit<'_>, runs: &[Run]) -> Markup {
    let clock = visit.clock();
    html! {
        @if runs.is_empty() { span .zero { "none" } } @else {
            span .ticks {
                @for run in runs.iter().take(TICKS).rev() {
                    @let word = run.state.name();
                    @let about = format!("{word}, started {} UTC", clock.time(run.created_at));
                    a class={ "tick s-" (word) } href=(visit.job_url(&run.id)) title=(about) aria-label=(about) { (state::icon(word)) }
                }
            }
        }
    }
}
