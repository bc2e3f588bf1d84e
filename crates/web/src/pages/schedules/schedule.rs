//! One schedule: its next times, its last runs and its job.

use maud::{Markup, html};

use super::{RUNS_OF_WEEK, actions, in_words, next, ticks};
use crate::pages::view::{Place, View};
use crate::pages::visit::Visit;
use crate::parts::{cli, state, time};
use crate::problem::Problem;
use crate::request::query::encode;
use domain::schedule::{NEXT_RUNS, Run, Schedule};
use domain::text::hostile::printable;
use domain::values::clock::{Clock, TimeFormat};
use domain::values::name::{QueueName, ScheduleName};
use jiff::tz::TimeZone;
use ops::schedule::find;
use ops::schedule::json::job_facts;

pub(crate) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let name: ScheduleName = visit.name("schedule")?;
    // The error names the nearest schedule.
    let (schedule, _) = find(visit.store, &name)?;
    let all = visit.store.schedules_with_runs(RUNS_OF_WEEK)?;
    let runs =
        all.into_iter().find(|(known, _)| known.name == name).map(|(_, runs)| runs).unwrap_or_default();
    let pause =
        html! { @if visit.may_operate() && schedule.paused.is_none() { (actions::pause(visit, &schedule)) } };
    Ok(View::new(format!("Schedule {name}"), Place::Schedules)
        .with("schedule", "Schedule", head(visit, &schedule, &runs))
        .with("next", "Next times", coming(visit, &schedule))
        .with("runs", "Last runs", last(visit, &runs))
        .with("pause", "Pause", pause)
        .with_script("forms.js"))
}

fn head(visit: &Visit<'_>, schedule: &Schedule, runs: &[Run]) -> Markup {
    let default = QueueName::default_queue();
    let queue = schedule.job.queue.as_ref().unwrap_or(&default).as_str();
    html! {
        div .bar {
            h1 { "Schedule " (printable(schedule.name.as_str())) }
            a href=(visit.url("/schedules")) { "all schedules" }
            a href=(visit.url("/schedules?view=week")) data-zoned { "week" }
            (cli::copyable(&cli::line(&["schedule", "show", schedule.name.as_str()])))
        }
        dl {
            dt { "when" } dd {
                (in_words(visit, schedule))
                @if let Some(zone) = schedule.when.zone_name() {
                    " · " code { (printable(&schedule.when.to_string())) } " in " (zone)
                }
            }
            dt { "next" } dd { (next(visit, schedule)) }
            dt { "last" } dd { (ticks(visit, runs)) }
            dt { "missed runs" } dd {
                (schedule.policy.on_missed.name())
                @if let Some(at) = schedule.missed_at { " · last missed " (time::ago(visit.now, at)) }
            }
            dt { "overlap" } dd {
                (schedule.policy.on_overlap.name())
                @if let Some(at) = schedule.skipped_at { " · last skipped " (time::ago(visit.now, at)) }
            }
            dt { "added" } dd { (time::ago(visit.now, schedule.created_at)) " by " (printable(&schedule.created_by)) }
            dt { "queue" } dd { a href=(visit.url(&format!("/queues/{}", encode(queue)))) { (printable(queue)) } }
            @for (name, value) in job_facts(&schedule.job).iter().filter(|(name, _)| name != "queue") {
                dt { (printable(name)) } dd { code { (printable(value)) } }
            }
        }
        (actions::all(visit, schedule))
    }
}

fn coming(visit: &Visit<'_>, schedule: &Schedule) -> Markup {
    let times = schedule.next_runs(NEXT_RUNS);
    let clock = Clock::new(visit.now, TimeFormat::Short(TimeZone::UTC));
    html! {
        h2 { "Next times" }
        @if times.is_empty() { p .empty { "None: it is paused, or it has run for the last time." } } @else {
            ol .list {
                @for at in times {
                    li {
                        (time::ago(visit.now, at)) " · " (time::clock(visit.now, at))
                        @if schedule.when.zone_name().is_some() { " · " (schedule.when.shown(at, &clock)) }
                        @if let Some(effect) = super::clock_change::effect(&schedule.when, at) { " " span .clock-change { "⚠ " (effect) } }
                    }
                }
            }
        }
    }
}

fn last(visit: &Visit<'_>, runs: &[Run]) -> Markup {
    html! {
        h2 { "Last runs" }
        @if runs.is_empty() { p .empty { "It has not run yet." } } @else {
            div .scroll {
                table .rows.cards {
                    thead { tr { th scope="col" { "job" } th scope="col" { "state" } th scope="col" { "planned for" } th scope="col" { "enqueued" } th scope="col" { "ended" } } }
                    tbody {
                        @for run in runs.iter().take(super::TICKS) {
                            tr {
                                td { a .id href=(visit.job_url(&run.id)) { (printable(run.id.as_str())) } }
                                td data-label="state" { (state::of_name(run.state)) }
                                td data-label="planned for" { @match run.scheduled_for { Some(at) => (time::clock(visit.now, at)), None => "started by hand" } }
                                td data-label="enqueued" { (time::ago(visit.now, run.created_at)) }
                                td data-label="ended" { @match run.finished_at { Some(at) => (time::ago(visit.now, at)), None => "–" } }
                            }
                        }
                    }
                }
            }
        }
    }
}
