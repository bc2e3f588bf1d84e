//! Cron lines: an accepted line survives a round trip, and fires at ever later times in any zone.

use domain::schedule::{CronExpression, When};
use domain::values::timestamp::Timestamp;
use jiff::tz::TimeZone;

use super::message;

pub const TOKENS: &[&str] = &[
    " ",
    "*",
    "*/",
    "/",
    ",",
    "-",
    "?",
    "+",
    "#",
    "L",
    "W",
    "LW",
    "15W",
    "0",
    "1",
    "5",
    "7",
    "12",
    "23",
    "29",
    "30",
    "31",
    "59",
    "60",
    "65536",
    "99999999999",
    "MON",
    "fri",
    "SUN",
    "JAN",
    "dec",
    "@",
    "@daily",
    "@hourly",
    "@reboot",
    "ſun",
    "ä",
    "\t",
    "\0",
    "2026",
];

/// A time in a year in which Lord Howe Island changes its clocks by half an hour.
const FROM: Timestamp = Timestamp::from_millis(1_775_000_000_000);

pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let line: CronExpression = match text.parse() {
        Ok(line) => line,
        Err(error) => return message::check(&error, text.as_bytes()),
    };
    let written = line.to_string();
    assert_eq!(written.parse::<CronExpression>().as_ref(), Ok(&line), "{written}");
    assert!(!line.in_words().is_empty(), "{written}");
    for zone in ["UTC", "Australia/Lord_Howe"] {
        let when = When::Cron { line: line.clone(), zone: TimeZone::get(zone).expect("a zone") };
        let mut last = FROM;
        for _ in 0..3 {
            let Some(next) = when.next_after(FROM, last) else {
                break;
            };
            assert!(next > last, "{written}: {next} after {last}");
            last = next;
        }
    }
}
