//! The meaning of cron lines, and lines that are invalid.

use proptest::prelude::{ProptestConfig, prop_assert, proptest};

use crate::schedule::tests::*;

#[test]
fn lines_fire_at_the_times_that_they_name() {
    for (line, from, expected) in [
        ("30 4 * * *", "2026-12-30T00:00:00Z", ["12-30 04:30:00", "12-31 04:30:00", "01-01 04:30:00"]),
        ("@daily", "2026-12-31T00:00:00Z", ["12-31 00:00:00", "01-01 00:00:00", "01-02 00:00:00"]),
        ("@Hourly", "2026-12-31T22:30:00Z", ["12-31 23:00:00", "01-01 00:00:00", "01-01 01:00:00"]),
        ("@weekly", "2026-11-16T00:00:00Z", ["11-22 00:00:00", "11-29 00:00:00", "12-06 00:00:00"]),
        ("@monthly", "2026-11-16T00:00:00Z", ["12-01 00:00:00", "01-01 00:00:00", "02-01 00:00:00"]),
        ("@yearly", "2026-11-16T00:00:00Z", ["01-01 00:00:00", "01-01 00:00:00", "01-01 00:00:00"]),
        ("*/20 0 0 29 2 *", "2026-01-01T00:00:00Z", ["02-29 00:00:00", "02-29 00:00:20", "02-29 00:00:40"]),
        ("0 0 29 2 *", "2026-01-01T00:00:00Z", ["02-29 00:00:00", "02-29 00:00:00", "02-29 00:00:00"]),
        // Day of the month or day of the week: either matches.
        ("0 0 13 * fri", "2026-11-01T00:00:00Z", ["11-06 00:00:00", "11-13 00:00:00", "11-20 00:00:00"]),
        // With a plus, both must match.
        ("0 0 13 * +FRI", "2026-01-01T00:00:00Z", ["02-13 00:00:00", "03-13 00:00:00", "11-13 00:00:00"]),
        ("0 0 L * *", "2026-01-31T12:00:00Z", ["02-28 00:00:00", "03-31 00:00:00", "04-30 00:00:00"]),
        ("0 0 15W * *", "2026-02-01T00:00:00Z", ["02-16 00:00:00", "03-16 00:00:00", "04-15 00:00:00"]),
        ("0 0 LW * *", "2026-01-01T00:00:00Z", ["01-30 00:00:00", "02-27 00:00:00", "03-31 00:00:00"]),
        ("0 0 * * MON#1", "2026-11-01T00:00:00Z", ["11-02 00:00:00", "12-07 00:00:00", "01-04 00:00:00"]),
        ("0 0 * * 5L", "2026-11-01T00:00:00Z", ["11-27 00:00:00", "12-25 00:00:00", "01-29 00:00:00"]),
        (
            "0 12 * jan-feb 1-5/2",
            "2026-12-01T00:00:00Z",
            ["01-01 12:00:00", "01-04 12:00:00", "01-06 12:00:00"],
        ),
        ("0 0 * * 7", "2026-11-16T00:00:00Z", ["11-22 00:00:00", "11-29 00:00:00", "12-06 00:00:00"]),
    ] {
        let found = shown(&cron(line, "UTC"), from, 3);
        let expected = expected.map(|time| format!("{time} UTC"));
        let found: Vec<&str> = found.iter().map(|time| &time[5..]).collect();
        assert_eq!(found, expected, "{line}");
    }
}

#[test]
fn leap_days_follow_the_gregorian_calendar() {
    let leap = cron("0 0 29 2 *", "UTC");
    let years: Vec<String> =
        shown(&leap, "2092-01-01T00:00:00Z", 3).iter().map(|time| time[..4].to_owned()).collect();
    assert_eq!(years, ["2092", "2096", "2104"]);
}

#[test]
fn an_invalid_line_is_refused_with_the_reason() {
    for (line, expected) in [
        ("", "it has 0 fields"),
        ("* * * *", "it has 4 fields"),
        ("0 0 0 1 1 * 2027", "it has 7 fields"),
        ("@dayly", "did you mean `@daily`?"),
        ("@reboot", "the nicknames are @hourly, @daily"),
        ("60 * * * *", "minute `60` is out of range: 0-59"),
        ("* 24 * * *", "hour `24` is out of range: 0-23"),
        ("* * 0 * *", "day of the month `0` is out of range: 1-31"),
        ("* * * 13 *", "month `13` is out of range: 1-12"),
        ("* * * * 8", "day of the week `8` is out of range: 0-7"),
        ("61 * * * * *", "second `61` is out of range: 0-59"),
        ("5-1 * * * *", "not a valid minute: `5-1` ("),
        ("*/0 * * * *", "not a valid minute: `*/0` ("),
        ("x * * * *", "not a valid minute: `x` (it contains the illegal character 'X'"),
        ("* * * * MONDAY", "not a valid day of the week: `MONDAY`"),
        ("0 0 * * 1#6", "not a valid day of the week: `1#6` ("),
    ] {
        let error = line.parse::<CronExpression>().expect_err(line).to_string();
        assert!(error.contains(expected), "{line}: {error}");
        assert!(!error.contains(".)") && !error.contains("Component error"), "{line}: {error}");
    }
    assert_eq!("* ".repeat(200).parse::<CronExpression>(), Err(CronError::TooLong));
}

#[test]
fn a_line_is_described_in_english() {
    let words = |line: &str| line.parse::<CronExpression>().expect(line).in_words();
    for (line, expected) in [
        ("@daily", "at 00:00"),
        ("0 3 * * *", "at 03:00"),
        ("  0   3 * * MON", "at 03:00, Mon"),
        ("30 9,17 * * 1-5", "at 09:30, 17:30, Mon–Fri"),
        ("*/5 9-17 * * 1-5", "every 5 minutes, 09:00–17:59, Mon–Fri"),
        ("*/15 * * * *", "every 15 minutes"),
        ("5 * * * *", "every hour at :05"),
    ] {
        assert_eq!(words(line), expected);
    }
    // Other lines are described by the crate.
    for (line, expected) in [
        ("*/7 * * * *", "at every 7 minutes"),
        ("0 0 1 * *", "on day 1"),
        ("*/5 */2 * * *", "hour"),
        ("0 0 * * 5L", "Friday"),
    ] {
        assert!(words(line).contains(expected), "{line}: {}", words(line));
    }
    assert_eq!("  0   3 * *  MON ".parse::<CronExpression>().expect("valid line").to_string(), "0 3 * * MON");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn no_line_panics_and_occurrences_increase(
        line in "[0-9*/,\\-LW#?+A-Z@ ä]{0,20}|([0-9*]{1,2}(/[0-9])?(,[0-9])? ){4,5}[0-7*L]",
        from in 0..4_000_000_000_000_i64,
    ) {
        let Ok(when) = When::cron(&line, zone("Australia/Lord_Howe")) else {
            return Ok(());
        };
        let from = Timestamp::from_millis(from);
        if let Some(first) = when.next_after(from, from) {
            prop_assert!(first > from);
            let second = when.next_after(from, first);
            prop_assert!(second.is_none_or(|second| second > first));
        }
    }
}
