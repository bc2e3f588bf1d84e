//! The schedules: when each runs next, and how its last run ended.

use maud::{Markup, html};

use super::view::{Place, View};
use super::visit::Visit;
use crate::parts::button::Act;
use crate::parts::job_row::cut;
use crate::parts::{cli, state, time};
use crate::problem::Problem;
use crate::request::query::encode;
use domain::schedule::{Run, Schedule};
use domain::text::hostile::printable;

pub(super) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let schedules = visit.store.schedules()?;
    Ok(View::new("Schedules", Place::Schedules).with("schedules", "Schedules", content(visit, &schedules)))
}

fn content(visit: &Visit<'_>, schedules: &[(Schedule, Option<Run>)]) -> Markup {
    html! {
        div .bar { h1 { "Schedules" } (cli::copyable("queuectl schedule list")) }
        @if schedules.is_empty() {
            div .empty { p { "No schedule yet. This adds one:" } p { (cli::copyable("queuectl schedule add nightly --cron '0 3 * * *' -- ./report")) } }
        } @else {
            div .scroll {
                table .rows {
                    thead {
                        tr {
                            th scope="col" { "schedule" } th scope="col" { "when" } th scope="col" { "next" } th scope="col" { "last run" }
                            th scope="col" { "command" } @if visit.may_operate() { th scope="col" { span .hidden { "actions" } } }
                        }
                    }
                    tbody { @for (schedule, run) in schedules { (row(visit, schedule, run.as_ref())) } }
                }
            }
        }
    }
}

fn row(visit: &Visit<'_>, schedule: &Schedule, run: Option<&Run>) -> Markup {
    let name = schedule.name.as_str();
    html! {
        tr id={ "s-" (name) } {
            td { a .id href=(visit.jobs_url(&[("schedule", name)])) { (printable(name)) } }
            td { (printable(&schedule.when.to_string())) }
            td {
                @match (&schedule.paused, schedule.next_at) {
                    (Some((_, pause)), _) => { (state::badge("paused")) " by " (printable(&pause.by)) },
                    (None, Some(at)) => (time::ago(visit.now, at)),
                    (None, None) => "never again",
                }
            }
            td { @match run { Some(run) => a .plain href=(visit.job_url(&run.id)) { (state::of_name(run.state)) }, None => span .zero { "none" } } }
            td .command { (printable(&cut(schedule.job.command.as_deref().unwrap_or_default()))) }
            @if visit.may_operate() { td { div .actions { (actions(visit, schedule)) } } }
        }
    }
}

fn actions(visit: &Visit<'_>, schedule: &Schedule) -> Markup {
    let name = schedule.name.as_str();
    let act = |label: &'static str, verb: &str| Act {
        label,
        method: "POST",
        path: visit.url(&format!("/api/v1/schedules/{}/{verb}", encode(name))),
        cli: cli::line(&["schedule", verb, name]),
        ..Act::default()
    };
    html! {
        (act("run now", "run").markup())
        @if schedule.paused.is_some() { (act("resume", "resume").markup()) } @else { (act("pause", "pause").markup()) }
    }
}
