//! Cron lines where the clock is put forward or back.

use crate::schedule::tests::*;

/// Asserts the local times at which a line fires, from a moment on.
#[track_caller]
fn fires(line: &str, zone_name: &str, from: &str, expected: &[&str]) {
    let when = cron(line, zone_name);
    assert_eq!(shown(&when, from, expected.len()), expected, "{line} in {zone_name}");
}

#[test]
fn a_time_that_the_clock_skips_fires_once_after_the_gap() {
    let berlin = "2026-03-28T00:00:00Z";
    let around = ["2026-03-28 02:30:00 CET", "2026-03-29 03:00:00 CEST", "2026-03-30 02:30:00 CEST"];
    fires("30 2 * * *", "Europe/Berlin", berlin, &around);
    // Two times in the gap and one at its end give one run.
    let once = ["2026-03-29 01:30:00 CET", "2026-03-29 03:00:00 CEST", "2026-03-29 04:30:00 CEST"];
    fires("30 1,2,4 29 3 *", "Europe/Berlin", berlin, &once);
    fires("0 2,3 29 3 *", "Europe/Berlin", berlin, &["2026-03-29 03:00:00 CEST", "2027-03-29 02:00:00 CEST"]);
    fires(
        "15 2 * * *",
        "America/New_York",
        "2026-03-07T12:00:00Z",
        &["2026-03-08 03:00:00 EDT", "2026-03-09 02:15:00 EDT"],
    );
    fires(
        "15 2 * * *",
        "Australia/Lord_Howe",
        "2026-10-02T20:00:00Z",
        &["2026-10-04 02:30:00 +11", "2026-10-05 02:15:00 +11"],
    );
}

#[test]
fn a_time_that_the_clock_shows_twice_fires_the_first_time() {
    fires(
        "30 2 * * *",
        "Europe/Berlin",
        "2026-10-24T12:00:00Z",
        &["2026-10-25 02:30:00 CEST", "2026-10-26 02:30:00 CET"],
    );
    fires(
        "0 1,3 * * *",
        "America/New_York",
        "2026-11-01T00:00:00Z",
        &["2026-11-01 01:00:00 EDT", "2026-11-01 03:00:00 EST", "2026-11-02 01:00:00 EST"],
    );
    fires(
        "45 1 * * *",
        "Australia/Lord_Howe",
        "2026-04-04T00:00:00Z",
        &["2026-04-05 01:45:00 +11", "2026-04-06 01:45:00 +1030"],
    );
    // The schedule is added while the clock shows such a time for the second time.
    fires("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", &["2026-10-26 02:30:00 CET"]);
}

#[test]
fn a_line_with_a_star_follows_elapsed_time() {
    fires(
        "*/30 * * * *",
        "Europe/Berlin",
        "2026-03-29T00:30:00Z",
        &["2026-03-29 01:30:00 CET", "2026-03-29 03:00:00 CEST", "2026-03-29 03:30:00 CEST"],
    );
    fires(
        "*/30 * * * *",
        "Europe/Berlin",
        "2026-10-25T00:00:00Z",
        &[
            "2026-10-25 02:00:00 CEST",
            "2026-10-25 02:30:00 CEST",
            "2026-10-25 02:00:00 CET",
            "2026-10-25 02:30:00 CET",
            "2026-10-25 03:00:00 CET",
        ],
    );
    fires(
        "15 * * * *",
        "America/New_York",
        "2026-11-01T05:00:00Z",
        &["2026-11-01 01:15:00 EDT", "2026-11-01 01:15:00 EST", "2026-11-01 02:15:00 EST"],
    );
    fires(
        "*/15 * * * *",
        "Australia/Lord_Howe",
        "2026-04-04T14:45:00Z",
        &[
            "2026-04-05 01:45:00 +11",
            "2026-04-05 01:30:00 +1030",
            "2026-04-05 01:45:00 +1030",
            "2026-04-05 02:00:00 +1030",
        ],
    );
}

#[test]
fn evenly_spaced_lines_stay_even_through_a_year_of_clock_changes() {
    for zone_name in ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"] {
        let when = cron("*/15 * * * *", zone_name);
        let mut last = at("2026-01-01T00:00:00Z");
        for _ in 0..35_040 {
            let next = when.next_after(last, last).expect("a next occurrence");
            assert_eq!(next.since(last).as_secs(), 900, "{zone_name} after {last}");
            last = next;
        }
    }
}

#[test]
fn a_time_of_day_fires_once_on_each_day_of_a_year() {
    for zone_name in ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca"] {
        for line in ["0 2 * * *", "30 2 * * *", "0 1 * * *", "30 1 * * *", "59 59 2 * * *"] {
            let times = shown(&cron(line, zone_name), "2026-01-01T12:00:00Z", 400);
            let mut days: Vec<&str> = times.iter().map(|time| &time[..10]).collect();
            let count = days.len();
            days.dedup();
            assert_eq!(days.len(), count, "{line} in {zone_name}: {times:?}");
        }
    }
}

#[test]
fn a_year_begins_by_the_clock_of_the_zone() {
    fires(
        "0 0 1 1 *",
        "Pacific/Kiritimati",
        "2026-12-31T09:59:00Z",
        &["2027-01-01 00:00:00 +14", "2028-01-01 00:00:00 +14"],
    );
    fires("59 23 31 12 *", "America/New_York", "2026-12-31T00:00:00Z", &["2026-12-31 23:59:00 EST"]);
}
