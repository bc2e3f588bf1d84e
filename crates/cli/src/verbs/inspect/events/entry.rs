//! One entry of the list of events, wherever it comes from, as a line and as JSON.

use anstyle::Style;
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use crate::render::text::{printable, wrap};
use domain::job::Job;
use domain::job::life::StateName;
use domain::values::clock::Clock;
use domain::values::timestamp::Timestamp;
use engine::{AttemptChange, AttemptEvent};
use ops::events::{EventJson, EventKind, about, title};
use store::Event;

/// Something that happened.
#[derive(Debug, Serialize)]
pub(super) struct Entry {
    #[serde(flatten)]
    pub(super) event: EventJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    /// The state of the job after an attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<StateName>,
    /// The event, for people.
    #[serde(skip)]
    title: String,
    /// For people.
    #[serde(skip)]
    about: String,
}

impl Entry {
    /// Shows the time of the next retry like the other times.
    pub(super) fn localize_retry(&mut self, clock: &Clock) {
        if self.state != Some(StateName::Failed) {
            return;
        }
        if let Some((before, at)) = self.about.rsplit_once(RETRY_AT)
            && let Ok(at) = at.parse::<Timestamp>()
        {
            self.about = format!("{before}{RETRY_AT}{}", clock.time(at));
        }
    }

    /// Names its job like this where people read about it.
    pub(super) fn name_job(&mut self, handle: &str) {
        if let Some(id) = &self.event.job {
            self.about = self.about.replacen(id.as_str(), handle, 1);
        }
    }
}

impl From<Event> for Entry {
    fn from(event: Event) -> Self {
        let (title, about) = (title(&event), about(&event));
        Self { event: event.into(), attempt: None, state: None, title, about }
    }
}

impl From<AttemptEvent> for Entry {
    fn from(found: AttemptEvent) -> Self {
        let AttemptEvent { at, worker, job, attempt, change } = found;
        let (event, state, detail) = match change {
            AttemptChange::Started { command } => ("attempt_started", None, command),
            AttemptChange::Ended { state, result } => ("attempt_ended", state, result),
        };
        let about = format!("job {job} attempt {attempt}: {detail}");
        let title = event.replace('_', " ");
        let event = EventJson {
            number: None,
            at,
            event: event.to_owned(),
            by: Some(worker),
            kind: EventKind::Job,
            job: Some(job),
            detail: Some(detail),
        };
        Self { event, attempt: Some(attempt), state, title, about }
    }
}

/// A job that was enqueued.
impl From<&Job> for Entry {
    fn from(job: &Job) -> Self {
        let detail = job.command.clone();
        let about = format!("job {}  {detail}", job.id);
        let event = EventJson {
            number: None,
            at: job.created_at,
            event: "job_enqueued".to_owned(),
            by: None,
            kind: EventKind::Job,
            job: Some(job.id.clone()),
            detail: Some(detail),
        };
        Self { event, attempt: None, state: None, title: "job enqueued".to_owned(), about }
    }
}

/// What comes before the time of the next retry in the journal.
const RETRY_AT: &str = ", retry at ";
/// A name that is longer shifts the rest of its line.
const MAX_NAME_WIDTH: usize = 26;
/// Details that do not fit on the line are indented below it.
const INDENT: &str = "    ";

/// The widths of the columns. They grow with what is printed, because following prints line by line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    time: usize,
    event: usize,
    by: usize,
}

impl Columns {
    pub(super) fn new() -> Self {
        Self { time: "TIME".len(), event: "EVENT".len(), by: "BY".len() }
    }

    /// Makes room for these.
    pub(super) fn grow(&mut self, entries: &[Entry], clock: &Clock) {
        for entry in entries {
            let by = entry.event.by.as_deref().map_or(0, |by| printable(by).width());
            self.time = self.time.max(clock.time(entry.event.at).width());
            self.event = self.event.max(entry.title.width().min(MAX_NAME_WIDTH));
            self.by = self.by.max(by.min(MAX_NAME_WIDTH));
        }
    }

    pub(super) fn heading(&self) -> String {
        let Self { time, event, by } = self;
        let bold = Style::new().bold();
        format!("{bold}{:time$}  {:event$}  {:by$}  ABOUT{bold:#}", "TIME", "EVENT", "BY")
    }

    /// `2026-01-31T09:30:00.000Z  cancel  ada  job job1`; on a terminal, details that do not fit are on the following
    /// lines.
    pub(super) fn lines(&self, entry: &Entry, clock: &Clock, width: usize) -> Vec<String> {
        let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
        let at = clock.time(entry.event.at);
        let (what, by) = (printable(&entry.title), printable(entry.event.by.as_deref().unwrap_or_default()));
        let about = printable(&entry.about);
        let Self { time, event, by: by_width } = *self;
        let plain = format!("{at:time$}  {what:event$}  {by:by_width$}");
        let styled = format!("{dim}{at:time$}{dim:#}  {bold}{what:event$}{bold:#}  {by:by_width$}");
        if plain.width() + 2 + about.width() <= width {
            return vec![format!("{styled}  {about}")];
        }
        let below = wrap(&about, width.saturating_sub(INDENT.len()));
        let below = below.iter().map(|line| format!("{INDENT}{line}"));
        std::iter::once(styled.trim_end().to_owned()).chain(below).collect()
    }
}
