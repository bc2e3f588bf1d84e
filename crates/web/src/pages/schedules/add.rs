//! The form that adds a schedule, with a preview of its next times.

use maud::{Markup, html};

use crate::pages::visit::Visit;
use crate::parts::cli;
use crate::parts::form::{Field, Form};

pub(super) fn form(visit: &Visit<'_>) -> Markup {
    let fields = [
        Field { label: "name", name: "name", placeholder: "nightly", is_required: true, ..Field::default() },
        Field {
            label: "cron expression",
            name: "cron",
            flag: "--cron",
            placeholder: "0 3 * * *",
            ..Field::default()
        },
        Field {
            label: "its time zone",
            name: "tz",
            flag: "--tz",
            placeholder: "Europe/Berlin",
            ..Field::default()
        },
        Field { label: "or every", name: "every", flag: "--every", placeholder: "15m", ..Field::default() },
        Field {
            label: "or once at",
            name: "at",
            kind: "time",
            flag: "--at",
            placeholder: "2027-01-01 10:00",
            ..Field::default()
        },
        Field {
            label: "queue",
            name: "job.queue",
            flag: "--queue",
            placeholder: "default",
            ..Field::default()
        },
        Field {
            label: "retries",
            name: "job.max_retries",
            kind: "number",
            flag: "--max-retries",
            ..Field::default()
        },
        Field {
            label: "time limit",
            name: "job.timeout",
            flag: "--timeout",
            placeholder: "30m",
            ..Field::default()
        },
    ];
    let missed =
        Field { label: "runs that were missed", name: "on_missed", flag: "--on-missed", ..Field::default() };
    let overlap = Field {
        label: "if the last run has not ended",
        name: "on_overlap",
        flag: "--on-overlap",
        ..Field::default()
    };
    let command = Field {
        label: "command",
        name: "job.command",
        flag: "--command",
        placeholder: "./report --all",
        is_required: true,
        ..Field::default()
    };
    let form = Form {
        path: visit.url("/api/v1/schedules"),
        command: &cli::typed("schedule add"),
        then: visit.url("/schedules/{name}"),
        submit: "Add the schedule",
        preview: Some(visit.url("/api/v1/calendar/preview")),
    };
    html! {
        details .form {
            summary { "add a schedule" }
            (form.markup(&html! {
                @for field in &fields { (field.markup()) }
                (missed.choice(&["once", "skip", "all"]))
                (overlap.choice(&["skip", "queue", "replace"]))
                (command.lines(2))
            }))
        }
    }
}
