//! Times as people type them: `03:00`, `tomorrow 3am`, `mon 10:30`, `2027-01-01 10:00`, `in 2h`.
//!
//! Only flags accept these; JSON accepts only RFC 3339, which means the same everywhere and at any time. The crate jiff
//! parses dates, times of day and durations; this module knows the words around them and finds the day.

use jiff::ToSpan;
use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::TimeZone;

use super::local_time::moment;
use super::span::{SpanError, parse_span};
use super::timestamp::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HumanTimeError {
    #[error("not a time: `{0}`; write 03:00, \"tomorrow 3am\" or \"2027-01-01 10:00\"")]
    Malformed(String),
    #[error("time outside the years 1 to 9999: `{0}`")]
    OutOfRange(String),
    #[error(transparent)]
    Span(#[from] SpanError),
}

/// The day that a time belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DayWord {
    Today,
    Tomorrow,
    /// The next day of this name.
    Next(Weekday),
    Date(Date),
}

/// Longer texts are not parsed.
const MAX_BYTES: usize = 64;

/// Parses a time relative to `now` in this zone. A time of day alone is its next occurrence; a day alone begins at
/// midnight. Where the clock changes, the rules of schedules apply: a skipped time is the end
/// of the gap, and of a time that comes twice it is the first.
pub fn parse_human_time(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, HumanTimeError> {
    let malformed = || HumanTimeError::Malformed(text.to_owned());
    if text.len() > MAX_BYTES {
        return Err(malformed());
    }
    let typed = text.to_lowercase();
    let words: Vec<&str> = typed.split_whitespace().collect();
    if let ["in", ..] = words[..] {
        let span = parse_span(&words[1..].join(" ")).map_err(|error| match error {
            SpanError::Malformed(_) => malformed(),
            SpanError::Negative(_) | SpanError::TooLong(_) => error.into(),
        })?;
        return now.checked_add(span).ok_or_else(|| HumanTimeError::OutOfRange(text.to_owned()));
    }
    let (day, time) = day_and_time(&words).ok_or_else(malformed)?;
    resolve(day, time, now, zone).ok_or_else(|| HumanTimeError::OutOfRange(text.to_owned()))
}

/// A day, a time of day, or both in either order; `at` may stand before the time.
fn day_and_time(words: &[&str]) -> Option<(Option<DayWord>, Option<Time>)> {
    match words {
        [] => None,
        [one] => {
            let day = day(one).filter(|day| *day != DayWord::Today).map(|day| (Some(day), None));
            let time = || time(&[one]).map(|time| (None, Some(time)));
            day.or_else(time).or_else(|| date_time(one))
        }
        [first, "at", rest @ ..] => Some((Some(day(first)?), Some(time(rest)?))),
        [first, rest @ ..] if day(first).is_some() => Some((day(first), Some(time(rest)?))),
        [rest @ .., last] if day(last).is_some() => Some((day(last), Some(time(rest)?))),
        _ => time(words).map(|time| (None, Some(time))),
    }
}

/// `2027-01-01T10:00`
fn date_time(word: &str) -> Option<(Option<DayWord>, Option<Time>)> {
    let (date, time_of_day) = word.split_once('t')?;
    Some((Some(DayWord::Date(iso_date(date)?)), Some(time(&[time_of_day])?)))
}

fn day(word: &str) -> Option<DayWord> {
    match word {
        "today" => Some(DayWord::Today),
        "tomorrow" => Some(DayWord::Tomorrow),
        _ => weekday(word).map(DayWord::Next).or_else(|| iso_date(word).map(DayWord::Date)),
    }
}

/// `mon`, `tues` and `wednesday`: a name in full, or its beginning of at least three letters.
fn weekday(word: &str) -> Option<Weekday> {
    const NAMES: [(&str, Weekday); 7] = [
        ("monday", Weekday::Monday),
        ("tuesday", Weekday::Tuesday),
        ("wednesday", Weekday::Wednesday),
        ("thursday", Weekday::Thursday),
        ("friday", Weekday::Friday),
        ("saturday", Weekday::Saturday),
        ("sunday", Weekday::Sunday),
    ];
    let is_it = |(name, _): &&(&str, Weekday)| word.len() >= 3 && name.starts_with(word);
    NAMES.iter().find(is_it).map(|(_, weekday)| *weekday)
}

/// `2027-01-01`, with all its digits.
fn iso_date(word: &str) -> Option<Date> {
    let has_all_digits = word.len() == "2027-01-01".len();
    word.parse::<Date>().ok().filter(|date| has_all_digits && date.year() >= 1)
}

/// `03:00`, `15:24:09`, `3am`, `10:30 pm`, `noon`.
fn time(words: &[&str]) -> Option<Time> {
    let word = words.concat();
    match word.as_str() {
        "noon" => return Some(Time::constant(12, 0, 0, 0)),
        "midnight" => return Some(Time::midnight()),
        _ => {}
    }
    let has_half = word.ends_with("am") || word.ends_with("pm");
    // Otherwise `%H` would accept a sign and blanks.
    if !word.starts_with(|first: char| first.is_ascii_digit()) || words.len() > 1 && !has_half {
        return None;
    }
    let formats: &[&str] = if has_half { &["%I%P", "%I:%M%P", "%I:%M:%S%P"] } else { &["%H:%M", "%H:%M:%S"] };
    formats.iter().find_map(|format| Time::strptime(format, &word).ok())
}

fn resolve(day: Option<DayWord>, time: Option<Time>, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let today = zone.to_datetime(jiff::Timestamp::from_millisecond(now.as_millis()).ok()?).date();
    let at = |date: Date| resolved(zone, date.to_datetime(time.unwrap_or(Time::midnight())));
    let next_of = |first: Date, step_days: i64| {
        let on = at(first)?;
        if on > now { Some(on) } else { at(first.checked_add(step_days.days()).ok()?) }
    };
    match day {
        None => next_of(today, 1),
        Some(DayWord::Today) => at(today),
        Some(DayWord::Tomorrow) => at(today.tomorrow().ok()?),
        Some(DayWord::Next(weekday)) => {
            let days_until = i64::from(today.weekday().until(weekday));
            next_of(today.checked_add(days_until.days()).ok()?, 7)
        }
        Some(DayWord::Date(date)) => at(date),
    }
}

fn resolved(zone: &TimeZone, shown: DateTime) -> Option<Timestamp> {
    let at = Timestamp::from_millis(moment(zone, shown)?.as_millisecond());
    (Timestamp::MIN..=Timestamp::MAX).contains(&at).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> TimeZone {
        TimeZone::get(name).expect("a zone")
    }

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    /// Parses each text at this time in Berlin.
    fn check(now: &str, table: &[(&str, &str)]) {
        for (text, expected) in table {
            let parsed = parse_human_time(text, at(now), &zone("Europe/Berlin"));
            assert_eq!(parsed, Ok(at(expected)), "{text}");
        }
    }

    #[test]
    fn every_documented_form_is_parsed() {
        // A Tuesday, 15:18 on the clock.
        check(
            "2026-11-17T14:18:12.345Z",
            &[
                ("03:00", "2026-11-18T02:00:00Z"),
                ("15:18", "2026-11-18T14:18:00Z"),
                ("15:19", "2026-11-17T14:19:00Z"),
                ("15:24:09", "2026-11-17T14:24:09Z"),
                ("3am", "2026-11-18T02:00:00Z"),
                ("3 am", "2026-11-18T02:00:00Z"),
                ("3PM", "2026-11-18T14:00:00Z"),
                ("12am", "2026-11-17T23:00:00Z"),
                ("12pm", "2026-11-18T11:00:00Z"),
                ("10:30pm", "2026-11-17T21:30:00Z"),
                ("noon", "2026-11-18T11:00:00Z"),
                ("midnight", "2026-11-17T23:00:00Z"),
                ("tomorrow", "2026-11-17T23:00:00Z"),
                ("tomorrow 3am", "2026-11-18T02:00:00Z"),
                ("tomorrow at 3am", "2026-11-18T02:00:00Z"),
                ("3am tomorrow", "2026-11-18T02:00:00Z"),
                ("today 17:00", "2026-11-17T16:00:00Z"),
                ("mon 10:30", "2026-11-23T09:30:00Z"),
                ("Wednesday 10:30pm", "2026-11-18T21:30:00Z"),
                ("wed 10:30 pm", "2026-11-18T21:30:00Z"),
                ("tue 15:00", "2026-11-24T14:00:00Z"),
                ("tue 15:30", "2026-11-17T14:30:00Z"),
                ("tue", "2026-11-23T23:00:00Z"),
                ("friday", "2026-11-19T23:00:00Z"),
                ("2027-01-01 10:00", "2027-01-01T09:00:00Z"),
                ("2027-01-01T10:00", "2027-01-01T09:00:00Z"),
                ("2027-01-01 10:00:30", "2027-01-01T09:00:30Z"),
                ("2027-01-01 10am", "2027-01-01T09:00:00Z"),
                ("2027-01-01", "2026-12-31T23:00:00Z"),
                ("2020-01-01 10:00", "2020-01-01T09:00:00Z"),
                ("  in   2h ", "2026-11-17T16:18:12.345Z"),
                ("in 2 days", "2026-11-19T14:18:12.345Z"),
                ("in 90", "2026-11-17T14:19:42.345Z"),
            ],
        );
    }

    #[test]
    fn months_and_leap_years_end_where_they_should() {
        check("2026-02-28T12:00:00Z", &[("tomorrow 09:00", "2026-03-01T08:00:00Z")]);
        check("2028-02-28T12:00:00Z", &[("tomorrow 09:00", "2028-02-29T08:00:00Z")]);
        check(
            "2028-02-29T12:00:00Z",
            &[("09:00", "2028-03-01T08:00:00Z"), ("2028-02-29", "2028-02-28T23:00:00Z")],
        );
        check(
            "2026-12-31T12:00:00Z",
            &[("tomorrow", "2026-12-31T23:00:00Z"), ("thu 9am", "2027-01-07T08:00:00Z")],
        );
        // In Berlin, the new day has begun already.
        check(
            "2026-11-17T23:30:00Z",
            &[("tomorrow", "2026-11-18T23:00:00Z"), ("00:15", "2026-11-18T23:15:00Z")],
        );
    }

    #[test]
    fn a_change_of_the_clock_is_resolved_as_in_schedules() {
        // 02:00 becomes 03:00 on 29 March: a skipped time is the end of the gap.
        check(
            "2026-03-28T12:00:00Z",
            &[
                ("02:30", "2026-03-29T01:00:00Z"),
                ("tomorrow 2am", "2026-03-29T01:00:00Z"),
                ("2026-03-29 02:59:59", "2026-03-29T01:00:00Z"),
                ("2026-03-29 03:00", "2026-03-29T01:00:00Z"),
                ("sun 01:59", "2026-03-29T00:59:00Z"),
            ],
        );
        // 03:00 becomes 02:00 on 25 October: of two, the first.
        check(
            "2026-10-24T12:00:00Z",
            &[("tomorrow 02:30", "2026-10-25T00:30:00Z"), ("03:00", "2026-10-25T02:00:00Z")],
        );
        check(
            "2026-10-25T00:45:00Z",
            &[("02:30", "2026-10-26T01:30:00Z"), ("02:50", "2026-10-25T00:50:00Z")],
        );
        // At midnight, in a zone that changes then: the day begins at 01:00.
        let parsed = parse_human_time("2018-11-04", at("2018-11-01T12:00:00Z"), &zone("America/Sao_Paulo"));
        assert_eq!(parsed, Ok(at("2018-11-04T03:00:00Z")));
    }

    #[test]
    fn a_text_that_is_no_time_is_refused_with_examples() {
        let parse = |text: &str| parse_human_time(text, at("2026-11-17T14:18:12Z"), &TimeZone::UTC);
        let long = "0".repeat(1_000);
        for text in [
            "",
            " ",
            "soon",
            "today",
            "at",
            "at 3",
            "3",
            "25:00",
            "24:00",
            "3:60",
            "13pm",
            "0am",
            "-3am",
            "+3am",
            "tomorrow tomorrow",
            "tomorrow 3",
            "mo 10:00",
            "mondayy",
            "2027-13-01",
            "2027-02-29",
            "2027-1-1",
            "27-01-01",
            "2027-01-01 10",
            "in",
            "in 2 parsecs",
            "in two hours",
            "20270101",
            "03:00 04:00",
            "1 0:30",
            "2h",
            "0000-01-01",
            &long,
        ] {
            assert_eq!(parse(text), Err(HumanTimeError::Malformed(text.to_owned())), "{text}");
        }
        let message = parse("soon").expect_err("not a time").to_string();
        for example in ["03:00", "tomorrow 3am", "2027-01-01 10:00"] {
            assert!(message.contains(example), "{message}");
        }
        assert!(matches!(parse("in -2h"), Err(HumanTimeError::Span(SpanError::Negative(_)))));
        assert!(matches!(parse("in 2000000h"), Err(HumanTimeError::Span(SpanError::TooLong(_)))));
        assert!(matches!(parse("9999-12-31 23:59"), Err(HumanTimeError::OutOfRange(_))));
    }

    #[test]
    fn the_examples_of_the_error_are_valid() {
        for text in ["03:00", "tomorrow 3am", "2027-01-01 10:00"] {
            assert!(parse_human_time(text, Timestamp::EPOCH, &TimeZone::UTC).is_ok(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics_and_relative_times_lie_ahead(
            text in "(today|tomorrow|[a-z]{3,9}|[0-9-]{1,10}|in)?[ t]?(at )?[0-9]{0,2}(:[0-9]{0,2}){0,2} ?(am|pm|h)?",
            now in -62_135_596_800_000_i64..253_402_300_799_999,
            arbitrary: String,
        ) {
            let now = Timestamp::from_millis(now);
            let berlin = zone("Europe/Berlin");
            let _ = parse_human_time(&arbitrary, now, &berlin);
            let is_next = |text: &str| !text.contains("today") && !text.contains('-');
            if let Ok(at) = parse_human_time(&text, now, &berlin) && is_next(&text) {
                proptest::prop_assert!(at >= now, "{text}: {at} at {now}");
            }
        }
    }
}
