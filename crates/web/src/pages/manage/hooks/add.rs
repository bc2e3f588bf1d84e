//! The form that adds a hook.

use maud::{Markup, html};

use crate::pages::visit::Visit;
use crate::parts::cli;
use crate::parts::form::{Field, Form};
use domain::hook::HookEvent;

pub(super) fn form(visit: &Visit<'_>) -> Markup {
    let fields = [
        Field {
            label: "name",
            name: "name",
            placeholder: "notify-dead",
            is_required: true,
            ..Field::default()
        },
        Field { label: "only in queue", name: "queue", flag: "--queue", ..Field::default() },
        Field {
            label: "dead jobs above",
            name: "above",
            kind: "number",
            flag: "--above",
            placeholder: "for dlq-above",
            ..Field::default()
        },
        Field {
            label: "run a command",
            name: "command",
            flag: "--command",
            placeholder: "mail -s dead root",
            ..Field::default()
        },
        Field {
            label: "or call a URL",
            name: "url",
            flag: "--url",
            placeholder: "https://example.org/hook",
            ..Field::default()
        },
    ];
    let form = Form {
        path: visit.url("/api/v1/hooks"),
        command: &cli::typed("hook add"),
        then: visit.url("/hooks/{name}"),
        submit: "Add the hook",
        preview: None,
    };
    html! {
        details .form {
            summary { "add a hook" }
            (form.markup(&html! {
                @for field in &fields { (field.markup()) }
                fieldset .broad {
                    legend { "when" }
                    @for event in HookEvent::ALL {
                        label .check { input type="checkbox" name="on" data-flag="--on" value=(event.name_in_flags()); " " (event.name_in_flags()) }
                    }
                }
            }))
        }
    }
}
