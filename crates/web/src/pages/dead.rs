//! The dead jobs, grouped by what they died of.

mod actions;
pub(super) mod cause;
mod trend;

use maud::{Markup, html};

use self::trend::Trends;
use super::view::{Place, View};
use super::visit::Visit;
use crate::parts::job_row::cut;
use crate::parts::number::{counted, grouped};
use crate::parts::{cli, time};
use crate::problem::Problem;
use crate::request::query::{Param, TEXT, encode};
use domain::job::handle::JobHandle;
use domain::text::hostile::printable;
use domain::values::name::QueueName;
use ops::jobs::dlq::{CauseGroup, group_by_cause};
use store::JobFilter;

pub(super) const PARAMS: &[Param] = &[Param::new("queue", TEXT, "Only of this queue")];

/// More causes are on the command line.
const MAX_CAUSES: usize = 100;

pub(super) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let queue: Option<QueueName> = visit.query.read("queue")?;
    let groups = group_by_cause(visit.store, &JobFilter { queue: queue.clone(), ..JobFilter::default() })?;
    let trends = Trends::read(visit, groups.iter().take(MAX_CAUSES), queue.as_ref())?;
    let view = View::new("Dead", Place::Dead);
    Ok(view.with("causes", "Dead jobs by cause", content(visit, &groups, &trends)))
}

fn content(visit: &Visit<'_>, groups: &[CauseGroup], trends: &Trends) -> Markup {
    let all: u64 = groups.iter().map(|group| group.count).sum();
    let queue = only_queue(visit);
    let of_queue = |words: &[&'static str]| -> Vec<&str> {
        words.iter().copied().chain(queue.iter().flat_map(|queue| ["--queue", *queue])).collect()
    };
    let words = of_queue(&["dlq", "list", "--group"]);
    let retry_all = of_queue(if queue.is_some() { &["dlq", "retry"] } else { &["dlq", "retry", "--all"] });
    html! {
        div .bar {
            h1 { "Dead" }
            span { (counted(all, "job", "jobs")) " of " (counted(groups.len() as u64, "cause", "causes")) }
            @if let Some(queue) = queue {
                a .chip href=(visit.url("/dead")) title="Remove this filter" { "queue:" (printable(queue)) " ×" }
            }
            (cli::copyable(&cli::line(&words)))
        }
        @if groups.is_empty() {
            div .empty {
                p { "No job is dead. A job dies when its last retry has failed. This retries all that are dead, once there are any:" }
                p { (cli::copyable(&cli::line(&retry_all))) }
                p { a href=(visit.jobs_url(&[("state", "failed"), ("queue", queue.unwrap_or_default())])) { "Jobs that failed and will run again" } }
            }
        } @else {
            ul .causes {
                @for group in groups.iter().take(MAX_CAUSES) { (item(visit, group, trends)) }
            }
            @if groups.len() > MAX_CAUSES {
                p .more { "These are the largest causes of " (grouped(groups.len() as u64)) ". All of them: " (cli::copyable(&cli::line(&words))) }
            }
        }
    }
}

/// The queue that the page is restricted to. Its actions and links must not lead to the jobs of other queues.
fn only_queue<'a>(visit: &Visit<'a>) -> Option<&'a str> {
    visit.query.get("queue")
}

/// A page of the dead jobs with the same restriction, and another parameter.
fn restricted(visit: &Visit<'_>, path: &str, more: Option<(&str, &str)>) -> String {
    let pairs = only_queue(visit).map(|queue| ("queue", queue)).into_iter().chain(more);
    let pairs: Vec<String> = pairs.map(|(name, value)| format!("{name}={}", encode(value))).collect();
    let mark = if pairs.is_empty() { "" } else { "?" };
    visit.url(&format!("{path}{mark}{}", pairs.join("&")))
}

fn url_of_cause(visit: &Visit<'_>, group: &CauseGroup, more: Option<(&str, &str)>) -> String {
    restricted(visit, &format!("/dead/{}", encode(&group.id.to_string())), more)
}

/// The list of the dead jobs of a cause.
fn jobs_of_cause(visit: &Visit<'_>, group: &CauseGroup) -> String {
    let cause = group.id.to_string();
    let filters = [("state", "dead"), ("cause", cause.as_str())];
    let queue = only_queue(visit).map(|queue| ("queue", queue));
    visit.jobs_url(&filters.into_iter().chain(queue).collect::<Vec<_>>())
}

fn item(visit: &Visit<'_>, group: &CauseGroup, trends: &Trends) -> Markup {
    let cause = group.id.to_string();
    let own = url_of_cause(visit, group, None);
    let example = JobHandle { id: group.example.clone(), number: Some(group.number) }.short();
    html! {
        li .cause-row id={ "c-" (encode(&cause)) } {
            a .count href=(jobs_of_cause(visit, group)) title="List these jobs" { (grouped(group.count)) }
            div .what {
                a .message href=(own) { (printable(&cut(&group.message))) }
                p .facts {
                    span { (group.reason.replace('_', " ")) }
                    span { "in " @for queue in &group.queues {
                        a .plain href=(visit.url(&format!("/dead?queue={}", encode(queue.as_str())))) { (printable(queue.as_str())) } " "
                    } }
                    span { "first " (time::ago(visit.now, group.first_at)) }
                    span { "last " (time::ago(visit.now, group.last_at)) }
                    span { "example " a .id href=(visit.job_url(&group.example)) { (printable(&example)) } }
                }
                (actions::of_cause(visit, group))
            }
            (trends.markup(group))
        }
    }
}
