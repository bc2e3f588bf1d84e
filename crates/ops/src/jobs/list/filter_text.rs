//! The language in which people filter jobs: `state:dead queue:mail like:"smtp*"`. A word without a name is looked for in
//! the command.

use std::time::Duration;

use crate::OpError;
use crate::jobs::dlq::find_cause;
use domain::text::nearest::suggestion;
use domain::text::pattern::CommandPattern;
use domain::text::shell::quote_words;
use domain::values::name::{NameError, QueueName};
use domain::values::span::{format_span, parse_span};
use domain::values::timestamp::Timestamp;
use store::{EndReason, JobFilter, Phase, Store};

/// The names of the terms, in the order in which they are offered.
pub const TERMS: [&str; 14] = [
    "state", "queue", "tag", "batch", "schedule", "worker", "id", "cause", "reason", "exit", "since",
    "until", "like", "older",
];

/// Words that other programs use for states.
const STATE_WORDS: [(&str, &str); 3] =
    [("running", "processing"), ("done", "completed"), ("queued", "pending")];

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterTextError {
    #[error("no filter is called `{typed}`; {}", suggestion(typed, "filters", &TERMS))]
    UnknownTerm { typed: String },
    #[error("`{0}:` has no value")]
    NoValue(String),
    #[error("`{0}:` is given twice")]
    Twice(String),
    #[error("unknown state `{typed}`; {}", suggestion(typed, "states", &Phase::ALL.map(Phase::name)))]
    UnknownState { typed: String },
    #[error("no job is dead or cancelled for the reason `{0}`")]
    UnknownReason(String),
    #[error("`{term}:{value}` cannot be read ({why})")]
    BadValue { term: &'static str, value: String, why: String },
    #[error("a quotation mark is not closed")]
    OpenQuote,
}

/// A time, or how long ago it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    At(Timestamp),
    Ago(Duration),
}

impl Moment {
    fn resolve(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::Ago(age) => now.saturating_sub(age),
        }
    }
}

/// A filter as a person wrote it. Its ages are counted from the time of each search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterText {
    text: String,
    /// Without times and causes, which need the store.
    filter: Box<JobFilter>,
    /// The pattern of the command, as it was written.
    like: Option<String>,
    cause: Option<String>,
    since: Option<Moment>,
    until: Option<Moment>,
    older: Option<Duration>,
}

impl FilterText {
    pub fn parse(text: &str) -> Result<Self, FilterTextError> {
        let mut parsed = Self { text: text.trim().to_owned(), ..Self::default() };
        let mut seen: Vec<String> = Vec::new();
        for word in split(text)? {
            let (term, value) = match word.split_once(':') {
                Some((term, value)) => (term.to_ascii_lowercase(), value.to_owned()),
                None => ("like".to_owned(), word),
            };
            if seen.contains(&term) {
                return Err(FilterTextError::Twice(term));
            }
            if value.is_empty() {
                return Err(FilterTextError::NoValue(term));
            }
            parsed.set(&term, value)?;
            seen.push(term);
        }
        Ok(parsed)
    }

    fn set(&mut self, term: &str, value: String) -> Result<(), FilterTextError> {
        let filter = &mut self.filter;
        match term {
            "state" => filter.phases = value.split(',').map(parse_phase).collect::<Result<_, _>>()?,
            "queue" => filter.queue = Some(name("queue", &value)?),
            "batch" => filter.batch = Some(name("batch", &value)?),
            "schedule" => filter.schedule = Some(name("schedule", &value)?),
            "worker" => filter.worker = Some(name("worker", &value)?),
            "tag" => filter.tag = Some(value),
            "id" => filter.id_prefix = Some(value),
            "cause" => self.cause = Some(value),
            "reason" => {
                let reason = EndReason::from_name(&value).ok_or(FilterTextError::UnknownReason(value))?;
                filter.reason = Some(reason);
            }
            "exit" => filter.exit_code = Some(value.parse().map_err(|error| bad("exit", &value, &error))?),
            "like" => {
                let pattern = value.parse::<CommandPattern>().map_err(|error| bad("like", &value, &error))?;
                filter.command = Some(pattern);
                self.like = Some(value);
            }
            "since" => self.since = Some(moment("since", &value)?),
            "until" => self.until = Some(moment("until", &value)?),
            "older" => self.older = Some(parse_span(&value).map_err(|error| bad("older", &value, &error))?),
            unknown => return Err(FilterTextError::UnknownTerm { typed: unknown.to_owned() }),
        }
        Ok(())
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The states that it names.
    pub fn phases(&self) -> &[Phase] {
        &self.filter.phases
    }

    /// The filter for a search that begins now.
    pub fn resolve(&self, store: &dyn Store) -> Result<JobFilter, OpError> {
        let mut filter = (*self.filter).clone();
        filter.cause = self.cause.as_deref().map(|typed| find_cause(store, typed)).transpose()?;
        if self.since.is_some() || self.until.is_some() || self.older.is_some() {
            let now = store.now()?;
            filter.changed_after = self.since.map(|since| since.resolve(now));
            let older = self.older.map(|age| now.saturating_sub(age));
            filter.changed_before = self.until.map(|until| until.resolve(now)).into_iter().chain(older).min();
        }
        Ok(filter)
    }

    /// The flags that select the same jobs on the command line; `None` if it has no flag for a part.
    pub fn flags(&self) -> Option<String> {
        let JobFilter { phases, queue, tag, batch, schedule, worker, id_prefix, reason, exit_code, .. } =
            &*self.filter;
        let has_no_flag = schedule.is_some()
            || worker.is_some()
            || id_prefix.is_some()
            || reason.is_some()
            || exit_code.is_some()
            || self.cause.is_some()
            || self.since.is_some()
            || self.until.is_some();
        if has_no_flag {
            return None;
        }
        let states: Vec<&str> = phases.iter().map(|phase| phase.name()).collect();
        let flags = [
            ("--state", (!states.is_empty()).then(|| states.join(","))),
            ("--queue", queue.as_ref().map(QueueName::to_string)),
            ("--tag", tag.clone()),
            ("--batch", batch.as_ref().map(ToString::to_string)),
            ("--older-than", self.older.map(format_span)),
            ("--command-like", self.like.clone()),
        ];
        let given =
            flags.into_iter().filter_map(|(flag, value)| Some(format!("{flag} {}", quote_words(&[value?]))));
        Some(given.collect::<Vec<_>>().join(" "))
    }
}

fn bad(term: &'static str, value: &str, error: &impl ToString) -> FilterTextError {
    FilterTextError::BadValue { term, value: value.to_owned(), why: error.to_string() }
}

fn name<T: std::str::FromStr<Err = NameError>>(
    term: &'static str,
    value: &str,
) -> Result<T, FilterTextError> {
    value.parse().map_err(|error| bad(term, value, &error))
}

fn moment(term: &'static str, value: &str) -> Result<Moment, FilterTextError> {
    if let Ok(at) = value.parse() {
        return Ok(Moment::At(at));
    }
    parse_span(value).map(Moment::Ago).map_err(|error| bad(term, value, &error))
}

fn parse_phase(typed: &str) -> Result<Phase, FilterTextError> {
    let word = typed.to_ascii_lowercase();
    let synonym = STATE_WORDS.iter().find(|(synonym, _)| *synonym == word);
    let known = Phase::from_name(synonym.map_or(word.as_str(), |(_, state)| state));
    known.ok_or_else(|| FilterTextError::UnknownState { typed: typed.to_owned() })
}

/// The words of a text; a part in quotation marks may contain spaces.
fn split(text: &str) -> Result<Vec<String>, FilterTextError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    for character in text.chars() {
        match character {
            '"' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            space if space.is_whitespace() && !is_quoted => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    if is_quoted {
        return Err(FilterTextError::OpenQuote);
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::job::life::StateName;

    fn flags(text: &str) -> Option<String> {
        FilterText::parse(text).expect("a filter").flags()
    }

    #[test]
    fn terms_become_a_filter_and_flags() {
        let parsed = FilterText::parse("state:dead,ready queue:mail like:\"send mail*\"").expect("a filter");
        assert_eq!(parsed.phases(), [Phase::State(StateName::Dead), Phase::Ready]);
        assert_eq!(
            parsed.flags().as_deref(),
            Some("--state dead,ready --queue mail --command-like 'send mail*'")
        );
        assert_eq!(flags("smtp").as_deref(), Some("--command-like smtp"));
        assert_eq!(
            flags("state:running older:90s").as_deref(),
            Some("--state processing --older-than 1m30s")
        );
        assert_eq!(flags("").as_deref(), Some(""));
        assert_eq!(flags("worker:w-1"), None);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, message) in [
            ("state:dad", "unknown state `dad`"),
            ("sate:dead", "did you mean `state`"),
            ("queue:", "`queue:` has no value"),
            ("queue:a queue:b", "given twice"),
            ("like:\"a", "not closed"),
            ("exit:x", "`exit:x` cannot be read"),
            ("since:soon", "`since:soon` cannot be read"),
            ("reason:x", "no job is dead"),
        ] {
            let error = FilterText::parse(text).expect_err(text).to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
