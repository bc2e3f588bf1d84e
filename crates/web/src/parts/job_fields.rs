//! The fields of a job in forms: the one that enqueues a job, and those that change one or many.

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::form::Field;
use domain::job::Job;
use domain::job::spec::JobSpec;
use domain::text::hostile::printable_lines;

/// The fields of a job as a form shows them.
pub(crate) struct Values(Map<String, Value>);

impl Values {
    pub(crate) fn of(job: Option<&Job>) -> Self {
        let spec = job.map(JobSpec::editable).and_then(|spec| serde_json::to_value(spec).ok());
        match spec {
            Some(Value::Object(fields)) => Self(fields),
            Some(_) | None => Self(Map::new()),
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(crate) fn get(&self, name: &str) -> String {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match self.0.get(name) {
            None | Some(Value::Null) => String::new(),
            Some(value) if name == "backoff" => value.to_string(),
            Some(Value::Array(list)) => list.iter().map(text).collect::<Vec<_>>().join(", "),
            Some(Value::Object(fields)) => fields
                .iter()
                .map(|(name, value)| format!("{name}={}", text(value)))
                .collect::<Vec<_>>()
                .join(","),
            Some(value) => text(value),
        }
    }
}

/// A field of one line with the flag of `edit`, and the flag that says the same as an empty field, where that is not `none`.
struct Editable {
    label: &'static str,
    name: &'static str,
    kind: &'static str,
    flag: &'static str,
    none: &'static str,
    placeholder: &'static str,
}

const fn editable([label, name, kind, flag, none, placeholder]: [&'static str; 6]) -> Editable {
    Editable { label, name, kind, flag, none, placeholder }
}

/// What can be changed for many jobs at once.
const OF_MANY: [Editable; 11] = [
    editable(["queue", "queue", "", "--set-queue", "--set-queue default", "default"]),
    editable(["priority", "priority", "number", "--priority", "--priority 0", "0"]),
    editable(["retries", "max_retries", "number", "--max-retries", "", ""]),
    editable(["time limit", "timeout", "", "--timeout", "", "30m, none"]),
    editable(["start at", "run_at", "time", "--run-at", "--delay 0", "2027-01-01 10:00"]),
    editable(["tags", "tags", "list", "--set-tags", "--no-tags", "nightly, mail"]),
    editable(["working directory", "cwd", "", "--cwd", "", "/srv/app"]),
    editable(["resources", "limits", "limits", "--limits", "", "memory=512M,cpu=1"]),
    editable(["retry only on exit codes", "retry_on", "codes", "--retry-on", "", "75"]),
    editable(["never retry on exit codes", "no_retry_on", "codes", "--no-retry-on", "", "2,64"]),
    editable([
        "delay of retries",
        "backoff",
        "json",
        "--backoff",
        "",
        r#"{"strategy":"fixed","delay":"5s"}"#,
    ]),
];
const NAME: Editable = editable(["name", "name", "", "--name", "", "for people, instead of the command"]);
/// Fields that cannot be emptied.
const KEPT: [&str; 2] = ["max_retries", "cwd"];
/// The choices for a job whose dependency failed.
const ON_DEPENDENCY_FAILURE: [&str; 2] = ["cancel", "run"];

/// Every field that an edit of this job can change. The values of its variables are never shown.
pub(crate) fn of_one(job: &Job) -> Markup {
    let values = Values::of(Some(job));
    let command = values.get("command");
    let line = Field {
        label: "command",
        name: "command",
        flag: "--command",
        value: &command,
        is_required: true,
        ..Field::default()
    };
    html! {
        @if printable_lines(&command) == command { (line.lines(3)) }
        @else { p .note .broad { "The command has characters that cannot be shown: `queuectl edit` changes it." } }
        (one_line(&NAME, &values))
        @for field in &OF_MANY { (one_line(field, &values)) }
        @if values.has("on_dependency_failure") {
            (Field {
                label: "if a job that it needs failed",
                name: "on_dependency_failure",
                flag: "--on-dependency-failure",
                value: &values.get("on_dependency_failure"),
                ..Field::default()
            }.pick(&ON_DEPENDENCY_FAILURE))
        }
        (variables())
    }
}

/// What can be changed for many jobs; an empty field changes nothing.
pub(crate) fn of_many() -> Markup {
    let values = Values::of(None);
    html! {
        @for field in &OF_MANY { (one_line(field, &values)) }
        (variables())
    }
}

fn one_line(field: &Editable, values: &Values) -> Markup {
    let Editable { label, name, kind, flag, none, placeholder } = *field;
    let value = values.get(name);
    let is_required = KEPT.contains(&name) && !value.is_empty();
    // What a screen would not show as it is cannot be edited on it.
    let is_shown = printable_lines(&value) == value;
    html! {
        @if is_shown { (Field { label, name, flag, kind, none, placeholder, value: &value, is_required }.markup()) }
    }
}

fn variables() -> Markup {
    let set = Field {
        label: "variables to set",
        name: "env",
        kind: "pairs",
        flag: "--env",
        placeholder: "NAME=VALUE, one per line",
        ..Field::default()
    };
    let unset = Field {
        label: "variables to remove",
        name: "env",
        kind: "unset",
        flag: "--unset-env",
        placeholder: "NAME",
        ..Field::default()
    };
    html! { (set.lines(2)) (unset.markup()) }
}
