//! The row of a job in a list.

use std::time::Duration;

use maud::{Markup, html};
use serde_json::Value;

use super::{state, time};
use crate::pages::visit::Visit;
use domain::job::Job;
use domain::job::json::JobField;
use domain::job::life::State;
use domain::text::hostile::printable;
use ops::jobs::columns::known;

/// Longer commands and errors are cut; the page of the job has all of them.
const MAX_CHARS: usize = 200;

/// What a column shows.
#[derive(Clone, Copy)]
pub(crate) enum Column {
    State,
    Job,
    Queue,
    Try,
    When,
    Ran,
    Command,
    Error,
    /// A field as the JSON of a job has it.
    Field(&'static JobField),
}

const OWN: [(&str, Column); 8] = [
    ("state", Column::State),
    ("job", Column::Job),
    ("queue", Column::Queue),
    ("try", Column::Try),
    ("when", Column::When),
    ("ran", Column::Ran),
    ("command", Column::Command),
    ("error", Column::Error),
];

impl Column {
    /// Every column: those of a plain list, then the other fields.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let is_own = |name: &str| OWN.iter().any(|(own, _)| *own == name);
        let fields = known().filter(move |(name, _)| !is_own(name)).map(Column::Field);
        OWN.iter().map(|(_, column)| *column).chain(fields)
    }

    pub(crate) fn plain() -> Vec<Self> {
        OWN.iter().map(|(_, column)| *column).collect()
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|column| column.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Job => "job",
            Self::Queue => "queue",
            Self::Try => "try",
            Self::When => "when",
            Self::Ran => "ran",
            Self::Command => "command",
            Self::Error => "error",
            Self::Field((name, _)) => name,
        }
    }

    fn class(self) -> Option<&'static str> {
        match self {
            Self::Try | Self::Ran => Some("number"),
            Self::Command => Some("command"),
            Self::Error => Some("error"),
            Self::State | Self::Job | Self::Queue | Self::When | Self::Field(_) => None,
        }
    }
}

/// The head of a plain list.
pub(crate) fn head(with_choice: bool) -> Markup {
    head_of(with_choice, &Column::plain())
}

/// The row of a plain list.
pub(crate) fn row(visit: &Visit<'_>, job: &Job, with_choice: bool) -> Markup {
    row_of(visit, job, with_choice, &Column::plain())
}

pub(crate) fn head_of(with_choice: bool, columns: &[Column]) -> Markup {
    html! {
        thead {
            tr {
                @if with_choice { th .choice { input type="checkbox" data-choose="all" aria-label="Choose all rows"; } }
                @for column in columns { th scope="col" class=[column.class()] { (column.name().replace('_', " ")) } }
            }
        }
    }
}

pub(crate) fn row_of(visit: &Visit<'_>, job: &Job, with_choice: bool, columns: &[Column]) -> Markup {
    html! {
        tr id={ "j" (job.number) } {
            @if with_choice {
                td .choice { label { input type="checkbox" data-choose=(job.id) aria-label={ "Choose job " (printable(&job.handle())) }; } }
            }
            @for column in columns { (cell(visit, job, *column)) }
        }
    }
}

fn cell(visit: &Visit<'_>, job: &Job, column: Column) -> Markup {
    let queue = job.queue.as_str();
    let error = job.latest.error.as_deref().unwrap_or_default();
    html! {
        @match column {
            Column::State => td { (state::of_job(job, visit.now)) },
            Column::Job => td { a .id href=(visit.job_url(&job.id)) title=(printable(job.id.as_str())) { (printable(&job.handle())) } },
            Column::Queue => td { a .plain href=(visit.jobs_url(&[("queue", queue)])) { (printable(queue)) } },
            Column::Try => td .number data-label="try" { (job.life.tries()) "/" (u64::from(job.life.max_retries) + 1) },
            Column::When => td { (when(visit, job)) },
            Column::Ran => @match ran(visit, job) {
                Some(ran) => td .number data-label="ran" { (time::span(ran)) },
                None => td .number.none { "–" },
            },
            Column::Command => td .command title=(printable(&cut(&job.command))) {
                @if let Some(name) = job.name() { b { (printable(&cut(name))) } " " }
                (printable(&cut(&job.command)))
            },
            Column::Error => td .error title=(printable(&cut(error))) { (printable(&cut(error))) },
            Column::Field((name, value)) => (field(visit, name, &value(job).into())),
        }
    }
}

fn field(visit: &Visit<'_>, name: &str, value: &Value) -> Markup {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    };
    html! {
        td .number[value.is_number()] data-label=(name.replace('_', " ")) title=[(text.len() > 24).then(|| printable(&cut(&text)).into_owned())] {
            @match text.parse() { Ok(at) => (time::ago(visit.now, at)), Err(_) => (printable(&cut(&text))) }
        }
    }
}

/// How long its latest attempt ran, or runs.
fn ran(visit: &Visit<'_>, job: &Job) -> Option<Duration> {
    let until = match &job.life.state {
        State::Processing(_) => Some(visit.now),
        state @ (State::Completed { .. } | State::Dead { .. } | State::Cancelled { .. }) => {
            state.finished_at()
        }
        State::Pending { .. } | State::Failed => None,
    };
    job.latest.started_at.zip(until).map(|(from, until)| until.since(from))
}

/// The time that matters in its state.
fn when(visit: &Visit<'_>, job: &Job) -> Markup {
    let now = visit.now;
    match &job.life.state {
        State::Completed { finished_at }
        | State::Dead { finished_at, .. }
        | State::Cancelled { finished_at, .. } => time::ago(now, *finished_at),
        State::Processing(lease) => time::ago(now, lease.started_at),
        State::Failed => html! { "retry " (time::due(now, job.life.due_at)) },
        State::Pending { .. } if job.life.due_at > now => time::due(now, job.life.due_at),
        State::Pending { .. } => time::ago(now, job.created_at),
    }
}

/// The first characters.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
