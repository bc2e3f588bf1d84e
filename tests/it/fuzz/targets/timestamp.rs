//! Times: an accepted time survives a round trip, and every RFC 3339 time is read correctly.

use domain::values::timestamp::{Timestamp, TimestampError};

use super::message;

pub const TOKENS: &[&str] = &[
    "2026-01-31T09:30:00Z",
    "T",
    "Z",
    "z",
    "t",
    " ",
    "+02:00",
    "-23:59",
    "+00:00",
    "-00:00",
    "+25:59:59",
    ".123",
    ",5",
    ".1234567899",
    "[Europe/Berlin]",
    "[",
    "9999-12-31",
    "0001-01-01",
    "0000-12-31",
    "-000001-01-01",
    "+010000-01-01",
    "2024-02-29",
    "2023-02-29",
    "1900-02-29",
    "23:59:60",
    "24:00:00",
    ":",
    "-",
    "W05",
    "2026W051",
];

pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let read = text.parse::<Timestamp>();
    if let Ok(time) = read {
        assert!((Timestamp::MIN..=Timestamp::MAX).contains(&time), "{text:?} is out of range");
        let written = time.to_string();
        assert_eq!(written.len(), "2026-01-31T09:30:00.000Z".len());
        assert_eq!(written.parse(), Ok(time));
        assert_eq!(rfc_3339(&written), Some(time.as_millis()));
    }
    match (&read, rfc_3339(&text)) {
        (Ok(time), Some(millis)) => assert_eq!(time.as_millis(), millis, "{text:?}"),
        (Err(TimestampError::OutOfRange(_)), Some(millis)) => {
            let time = Timestamp::from_millis(millis);
            assert!(time < Timestamp::MIN || time > Timestamp::MAX, "{text:?} is within range");
        }
        (Err(error), Some(_)) => panic!("{text:?} is refused: {error}"),
        (Ok(_) | Err(_), None) => {}
    }
    if let Err(error) = read {
        message::check(&error, text.as_bytes());
    }
}

/// The milliseconds since 1970 of a time in strict RFC 3339 form. Leap seconds are left out, because they depend on a
/// table.
fn rfc_3339(text: &str) -> Option<i64> {
    if !text.is_ascii() {
        return None;
    }
    let (date, rest) = text.split_at_checked(10)?;
    let (time, rest) = rest.strip_prefix('T')?.split_at_checked(8)?;
    let (year, month, day) = (digits(&date[..4])?, digits(&date[5..7])?, digits(&date[8..])?);
    let (hour, minute, second) = (digits(&time[..2])?, digits(&time[3..5])?, digits(&time[6..])?);
    let has_separators = &date[4..5] == "-" && &date[7..8] == "-" && &time[2..3] == ":" && &time[5..6] == ":";
    let is_date = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
    if !has_separators || !is_date || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (millis, zone) = fraction(rest)?;
    let second_of_day = (hour * 60 + minute) * 60 + second - offset(zone)?;
    Some((days_before(year, month, day) * 86_400 + second_of_day) * 1000 + millis)
}

/// The milliseconds, if any, and the rest of the text. `None` for more than nine digits, which parsers need not
/// support.
fn fraction(text: &str) -> Option<(i64, &str)> {
    let Some(fraction) = text.strip_prefix('.') else {
        return Some((0, text));
    };
    let end = fraction.find(|c: char| !c.is_ascii_digit()).filter(|end| (1..=9).contains(end))?;
    let millis = format!("{:0<3}", &fraction[..end.min(3)]);
    Some((digits(&millis)?, &fraction[end..]))
}

/// In seconds.
fn offset(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let sign = if zone.starts_with('+') { 1 } else { -1 };
    let (hours, minutes) = zone.strip_prefix(['+', '-'])?.split_once(':')?;
    let (hours, minutes) = (two_digits(hours)?, two_digits(minutes)?);
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 60 + minutes) * 60)
}

fn two_digits(text: &str) -> Option<i64> {
    if text.len() == 2 { digits(text) } else { None }
}

fn digits(text: &str) -> Option<i64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

fn is_leap(year: i64) -> bool {
    (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The days from 1970 to this date.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let leaps = |before: i64| {
        let last = before - 1;
        last.div_euclid(4) - last.div_euclid(100) + last.div_euclid(400)
    };
    let years = (year - 1970) * 365 + leaps(year) - leaps(1970);
    years + (1..month).map(|month| days_in(year, month)).sum::<i64>() + day - 1
}
