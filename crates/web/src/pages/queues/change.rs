//! What holds back the jobs of a queue, and the forms that change it.

use maud::{Markup, html};

use crate::pages::visit::Visit;
use crate::parts::button::Act;
use crate::parts::form;
use crate::parts::form::Field;
use crate::parts::job_row::cut;
use crate::parts::number::counted;
use crate::parts::{cli, state};
use crate::request::query::encode;
use domain::job::life::StateName;
use domain::job::retry_rules::ExitCodes;
use domain::text::hostile::printable;
use store::Queue;

/// The limits in one line.
pub(in crate::pages) fn limits(queue: &Queue) -> Markup {
    let has_limits = queue.concurrency.is_some() || queue.rate.is_some() || !queue.limits.is_none();
    html! {
        @if let Some((_, pause)) = &queue.paused {
            span .paused {
                (state::badge("paused")) " by " (printable(&pause.by))
                @if let Some(reason) = &pause.reason { ": " (printable(&cut(reason))) }
            } " "
        }
        @if let Some(limit) = queue.concurrency { span .tag { (limit) " at once" } " " }
        @if let Some(rate) = &queue.rate { span .tag { (rate) } " " }
        @if !queue.limits.is_none() { span .tag { (queue.limits) } }
        @if queue.paused.is_none() && !has_limits { span .zero { "–" } }
    }
}

fn path(visit: &Visit<'_>, name: &str, verb: &str) -> String {
    visit.url(&format!("/api/v1/queues/{}{verb}", encode(name)))
}

pub(in crate::pages) fn resume<'a>(visit: &Visit<'_>, name: &str) -> Act<'a> {
    Act {
        label: "resume",
        method: "POST",
        path: path(visit, name, "/resume"),
        cli: cli::line(&["queue", "resume", name]),
        ..Act::default()
    }
}

fn remove<'a>(visit: &Visit<'_>, name: &str) -> Act<'a> {
    Act {
        label: "remove this queue",
        method: "DELETE",
        path: path(visit, name, ""),
        ask: format!("Remove queue {name} with its limits? It has no jobs."),
        cli: cli::line(&["queue", "remove", name]),
        then: visit.url("/queues"),
        is_final: true,
        ..Act::default()
    }
}

/// The forms of a queue's page.
pub(super) fn forms(visit: &Visit<'_>, queue: &Queue) -> Markup {
    let name = queue.name.as_str();
    html! {
        h2 #change { "Pause or limit" }
        @if queue.paused.is_some() {
            div .actions { (resume(visit, name).markup()) (cli::copyable(&cli::line(&["queue", "resume", name]))) }
        } @else {
            (pause(visit, queue))
        }
        (limit(visit, queue))
        @if queue.counts.values().sum::<u64>() == 0 { div .actions { (remove(visit, name).markup()) } }
    }
}

fn pause(visit: &Visit<'_>, queue: &Queue) -> Markup {
    let count =
        |states: &[StateName]| -> u64 { states.iter().filter_map(|state| queue.counts.get(state)).sum() };
    let waiting = count(&[StateName::Pending, StateName::Failed]);
    let running = queue.running();
    let effect = html! {
        "Holds back " b { (counted(waiting, "job", "jobs")) }
        @if running > 0 { "; " (counted(running, "running job continues", "running jobs continue")) } "."
    };
    form::pause(&path(visit, queue.name.as_str(), "/pause"), &command("pause", queue), &effect)
}

fn limit(visit: &Visit<'_>, queue: &Queue) -> Markup {
    let text = |value: Option<String>| value.unwrap_or_default();
    let codes = |codes: Option<ExitCodes>| text(codes.map(|codes| codes.to_string()));
    let concurrency = text(queue.concurrency.map(|limit| limit.to_string()));
    let rate = text(queue.rate.map(|rate| rate.to_string()));
    let limits = text(Some(queue.limits).filter(|limits| !limits.is_none()).map(|limits| limits.to_string()));
    let (retry_on, no_retry_on) = (codes(queue.retry.retry_on), codes(queue.retry.no_retry_on));
    let fields = [
        Field {
            label: "jobs at once",
            name: "concurrency",
            kind: "number",
            flag: "--concurrency",
            placeholder: "no limit",
            value: &concurrency,
            ..Field::default()
        },
        Field {
            label: "starts per time",
            name: "rate",
            flag: "--rate",
            placeholder: "10/m",
            value: &rate,
            ..Field::default()
        },
        Field {
            label: "resources of a job",
            name: "limits",
            kind: "limits",
            flag: "--limits",
            placeholder: "memory=512M,cpu=1",
            value: &limits,
            ..Field::default()
        },
        Field {
            label: "retry only on exit codes",
            name: "retry_on",
            kind: "codes",
            flag: "--retry-on",
            placeholder: "75",
            value: &retry_on,
            ..Field::default()
        },
        Field {
            label: "never retry on exit codes",
            name: "no_retry_on",
            kind: "codes",
            flag: "--no-retry-on",
            placeholder: "2,64",
            value: &no_retry_on,
            ..Field::default()
        },
    ];
    html! {
        form .limits data-make=(path(visit, queue.name.as_str(), "")) data-method="PATCH" data-command=(command("set", queue)) {
            div .wide { @for field in &fields { (field.markup()) } }
            (form::problem())
            p .actions { button type="submit" { "change the limits" } span .note { "An empty field means no limit." } }
            (form::same())
        }
    }
}

fn command(verb: &str, queue: &Queue) -> String {
    cli::line(&["queue", verb, queue.name.as_str()])
}
