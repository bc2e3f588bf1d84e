//! Cron lines, and their behaviour at changes of daylight saving time.
//!
//! A crate parses the fields and finds the next time on a clock without changes. This module decides what happens where
//! a real clock is put forward or back, with the same rules as cron:
//!
//! - A line with a `*` among its seconds, minutes or hours follows elapsed time: it fires whenever the clock shows a
//!   matching time.
//! - Any other line names times of day, each of which happens once. A time that the clock skips fires at the first
//!   moment after the gap; a time that the clock shows twice fires the first time.

use std::fmt;
use std::str::FromStr;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::in_words::in_words;
use crate::text::nearest::nearest;
use crate::values::local_time::moment;
use crate::values::timestamp::Timestamp;

/// Names for common lines, and the lines that they stand for.
pub const NICKNAMES: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

const MAX_LINE_BYTES: usize = 256;

/// The names of the six fields.
const FIELDS: [&str; 6] = ["second", "minute", "hour", "day of the month", "month", "day of the week"];
/// The numbers that each of them takes.
const RANGES: [&str; 6] = ["0-59", "0-59", "0-23", "1-31", "1-12", "0-7"];

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    #[error("it has {found} fields; expected five, or six with seconds first")]
    Fields { found: usize },
    #[error("unknown nickname `{typed}`{}", nickname_hint(nearest.as_deref()))]
    Nickname { typed: String, nearest: Option<String> },
    #[error("it is longer than {MAX_LINE_BYTES} bytes")]
    TooLong,
    #[error("{field} `{typed}` is out of range: {range}")]
    OutOfRange { field: &'static str, typed: String, range: &'static str },
    #[error("not a valid {field}: `{typed}` ({problem})")]
    Field { field: &'static str, typed: String, problem: String },
}

fn nickname_hint(nearest: Option<&str>) -> String {
    match nearest {
        Some(nearest) => format!("; did you mean `{nearest}`?"),
        None => format!("; the nicknames are {}", NICKNAMES.map(|(name, _)| name).join(", ")),
    }
}

/// A parsed cron expression.
#[derive(Clone, Debug)]
pub struct CronExpression {
    typed: String,
    cron: Box<Cron>,
    /// Whether it follows elapsed time.
    is_interval: bool,
}

impl PartialEq for CronExpression {
    fn eq(&self, other: &Self) -> bool {
        self.typed == other.typed
    }
}

impl fmt::Display for CronExpression {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.typed)
    }
}

impl FromStr for CronExpression {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Self, CronError> {
        if text.len() > MAX_LINE_BYTES {
            return Err(CronError::TooLong);
        }
        let typed = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = expand(&typed)?;
        let fields: Vec<&str> = line.split(' ').filter(|field| !field.is_empty()).collect();
        let (5 | 6) = fields.len() else {
            return Err(CronError::Fields { found: fields.len() });
        };
        let cron = parse(&line).map_err(|error| invalid_field(&fields, &error))?;
        // The last three fields name days.
        let is_interval = fields[..fields.len() - 3].iter().any(|field| field.contains('*'));
        Ok(Self { typed, cron: Box::new(cron), is_interval })
    }
}

fn expand(typed: &str) -> Result<String, CronError> {
    if !typed.starts_with('@') {
        return Ok(typed.to_owned());
    }
    let name = typed.to_ascii_lowercase();
    if let Some((_, line)) = NICKNAMES.iter().find(|(known, _)| *known == name) {
        return Ok((*line).to_owned());
    }
    let nearest = nearest(&name, NICKNAMES.map(|(known, _)| known)).map(str::to_owned);
    Err(CronError::Nickname { typed: typed.to_owned(), nearest })
}

fn parse(line: &str) -> Result<Cron, croner::errors::CronError> {
    CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build().parse(line)
}

/// The error for the first field that is invalid on its own.
fn invalid_field(fields: &[&str], whole: &croner::errors::CronError) -> CronError {
    let first = FIELDS.len() - fields.len();
    for (typed, at) in fields.iter().zip(first..) {
        let mut alone = ["*"; FIELDS.len()];
        alone[at] = typed;
        if let Err(error) = parse(&alone.join(" ")) {
            let (field, typed, problem) = (FIELDS[at], (*typed).to_owned(), fragment(&error));
            return if problem == OUT_OF_RANGE {
                CronError::OutOfRange { field, typed, range: RANGES[at] }
            } else {
                CronError::Field { field, typed, problem }
            };
        }
    }
    CronError::Field { field: "time", typed: fields.join(" "), problem: fragment(whole) }
}

/// The crate's message for a number that is too small or too large, as a [`fragment`].
const OUT_OF_RANGE: &str = "number out of bounds";

/// The crate's message as a lower-case fragment, without its prefix.
fn fragment(error: &croner::errors::CronError) -> String {
    let text = error.to_string();
    let text = text.split_once(": ").map_or(text.as_str(), |(_, detail)| detail);
    let text = text.split_once(" in part ").map_or(text, |(problem, _)| problem);
    lower_first(&text.trim_end_matches('.').replace("CronPattern contains", "it contains the"))
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

impl CronExpression {
    /// A description in English.
    pub fn in_words(&self) -> String {
        let short = expand(&self.typed).ok().and_then(|line| in_words(&line));
        short.unwrap_or_else(|| lower_first(self.cron.describe().trim_end_matches('.')))
    }

    /// The first time after this one at which it fires; `None` if it never does.
    pub(super) fn next_after(&self, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
        let after = jiff::Timestamp::from_millisecond(after.as_millis()).ok()?;
        let next = if self.is_interval {
            self.next_of_interval(zone, after)?
        } else {
            self.next_time_of_day(zone, after)?
        };
        let next = Timestamp::from_millis(next.as_millisecond());
        (next <= Timestamp::MAX).then_some(next)
    }

    /// Between two changes the clock runs evenly, so the search proceeds from change to change.
    fn next_of_interval(&self, zone: &TimeZone, after: jiff::Timestamp) -> Option<jiff::Timestamp> {
        let (mut from, mut is_included) = (after, false);
        loop {
            let offset = zone.to_offset(from);
            let shown = self.next_shown(offset.to_datetime(from), is_included)?;
            let next = offset.to_timestamp(shown).ok()?;
            match zone.following(from).next() {
                Some(change) if change.timestamp() <= next => {
                    (from, is_included) = (change.timestamp(), true);
                }
                Some(_) | None => return Some(next),
            }
        }
    }

    /// The times of day increase with the moments at which they fire, so the first moment after `after` is the next one.
    fn next_time_of_day(&self, zone: &TimeZone, after: jiff::Timestamp) -> Option<jiff::Timestamp> {
        let mut shown = self.next_shown(zone.to_datetime(after), true)?;
        loop {
            let next = moment(zone, shown)?;
            if next > after {
                return Some(next);
            }
            shown = self.next_shown(shown, false)?;
        }
    }

    /// The next matching time on a clock without changes.
    fn next_shown(&self, from: DateTime, is_included: bool) -> Option<DateTime> {
        let is_included = is_included && from.subsec_nanosecond() == 0;
        let next = self.cron.find_next_occurrence(&from, is_included).ok()?;
        Some(next)
    }
}
