//! The form that enqueues a job, with the command and the call that do the same.

use maud::{Markup, html};

use crate::pages::view::{Place, View};
use crate::pages::visit::Visit;
use crate::parts::cli;
use crate::parts::form::{Field, Form};
use crate::parts::job_fields::Values;
use crate::problem::Problem;
use crate::request::query::{Param, TEXT};
use domain::job::Job;
use domain::text::hostile::printable;
use domain::values::name::JobId;

pub(in crate::pages) const PARAMS: &[Param] =
    &[Param::new("from", TEXT, "The job whose fields the form begins with")];

pub(in crate::pages) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let from: Option<JobId> = visit.query.read("from")?;
    let original = match &from {
        Some(id) => Some(visit.store.find(id)?.ok_or_else(|| {
            Problem::not_found(format!("there is no job `{id}`; it may have been removed"))
        })?),
        None => None,
    };
    let content = html! {
        div .bar {
            h1 { "Enqueue a job" }
            @if let Some(job) = &original { span { "like " a .id href=(visit.job_url(&job.id)) { (printable(&job.handle())) } } }
        }
        @if !visit.may_administer() {
            div .empty { p { "A new command needs the scope admin. On the command line:" } p { (cli::copyable(&cli::typed("enqueue -- echo hello"))) } }
        } @else {
            @if original.as_ref().is_some_and(|job| !job.options.env.is_empty() || job.options.stdin_bytes > 0) {
                p .note { "The form has neither its environment nor its standard input. The button `clone` on its page copies both." }
            }
            (form(visit, original.as_ref()))
        }
    };
    Ok(View::new("Enqueue", Place::Enqueue)
        .with_still("enqueue", "Enqueue a job", content)
        .with_script("forms.js"))
}

/// Label, name, kind, flag and example of the fields of one line.
const USUAL: [[&str; 5]; 6] = [
    ["queue", "queue", "", "--queue", "default"],
    ["name", "name", "", "--name", "for people, instead of the command"],
    ["priority", "priority", "number", "--priority", "0"],
    ["retries", "max_retries", "number", "--max-retries", ""],
    ["time limit", "timeout", "", "--timeout", "30m"],
    ["tags", "tags", "list", "--tags", "nightly, mail"],
];
const START: [[&str; 5]; 4] = [
    ["start after", "delay", "", "--delay", "10m"],
    ["or start at", "run_at", "time", "--run-at", "2027-01-01 10:00"],
    ["after these jobs", "depends_on", "list", "--depends-on", "their ids"],
    ["batch", "batch", "query", "--batch", "import"],
];
const MORE: [[&str; 5]; 8] = [
    ["id", "id", "", "--id", "generated"],
    ["working directory", "cwd", "", "--cwd", "/srv/app"],
    ["resources", "limits", "limits", "--limits", "memory=512M,cpu=1"],
    ["retry only on exit codes", "retry_on", "codes", "--retry-on", "75"],
    ["never retry on exit codes", "no_retry_on", "codes", "--no-retry-on", "2,64"],
    ["delay of retries", "backoff", "json", "--backoff", r#"{"strategy":"fixed","delay":"5s"}"#],
    ["unique key", "unique_key", "", "--unique-key", "at most one unfinished job has it"],
    ["key stays taken", "unique_for", "", "--unique-for", "until started, or 1h"],
];

fn form(visit: &Visit<'_>, original: Option<&Job>) -> Markup {
    let values = Values::of(original);
    let command = values.get("command");
    let line = Field {
        label: "command",
        name: "command",
        flag: "--command",
        placeholder: "./send-mail --to a@b",
        value: &command,
        is_required: true,
        ..Field::default()
    };
    let env = Field {
        label: "environment",
        name: "env",
        kind: "pairs",
        flag: "--env",
        placeholder: "NAME=VALUE, one per line",
        ..Field::default()
    };
    let form = Form {
        path: visit.url("/api/v1/jobs"),
        command: &cli::typed("enqueue"),
        then: visit.url("/jobs/{id}"),
        submit: "Enqueue",
        preview: None,
    };
    form.markup(&html! {
        (line.lines(3))
        (fields(&values, &USUAL))
        (fields(&values, &START))
        details .broad { summary { "more" } div .wide { (fields(&values, &MORE)) (env.lines(2)) } }
    })
}

fn fields(values: &Values, fields: &[[&str; 5]]) -> Markup {
    html! {
        @for [label, name, kind, flag, placeholder] in fields {
            // A copy does not start at the time of its original.
            @let value = if *kind == "time" { String::new() } else { values.get(name) };
            (Field { label, name, kind, flag, placeholder, value: &value, ..Field::default() }.markup())
        }
    }
}
