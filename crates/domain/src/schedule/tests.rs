//! When schedules fire, and which runs they enqueue.

mod clocks;
mod firing;
mod lines;

use std::time::Duration;

use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::schedule::*;
use crate::values::clock::{Clock, TimeFormat};

fn zone(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).expect("known zone")
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("valid time")
}

fn every(period: &str) -> When {
    When::every(crate::values::span::parse_span(period).expect("valid duration")).expect("valid period")
}

fn cron(line: &str, zone_name: &str) -> When {
    When::cron(line, zone(zone_name)).expect("valid line")
}

/// The occurrences from this time on, in the local time of the zone.
fn shown(when: &When, from: &str, count: usize) -> Vec<String> {
    let from = Timestamp::from_millis(at(from).as_millis() - 1);
    let first = when.next_after(from, from);
    let all = std::iter::successors(first, |last| when.next_after(from, *last));
    let clock = Clock::new(from, TimeFormat::Short(TimeZone::UTC));
    all.take(count).map(|moment| when.shown(moment, &clock)).collect()
}

fn schedule(when: When, created_at: &str) -> Schedule {
    let created_at = at(created_at);
    let next_at = when.next_after(created_at, created_at);
    Schedule {
        name: "nightly".parse().expect("valid name"),
        when,
        job: JobSpec::default(),
        policy: Policy::new(None, None, None).expect("valid defaults"),
        created_at,
        created_by: "tester".to_owned(),
        last_at: None,
        next_at,
        missed_at: None,
        skipped_at: None,
        paused: None,
    }
}

#[test]
fn a_resumed_single_run_comes_again_only_if_its_time_was_changed() {
    let now = at("2026-11-16T12:00:00Z");
    let (earlier, later) = (at("2026-11-16T03:00:00Z"), at("2026-11-17T03:00:00Z"));
    let fired = Schedule { last_at: Some(earlier), ..schedule(When::At(earlier), "2026-11-16T00:00:00Z") };
    assert_eq!(fired.resumed_at(now), None);
    assert_eq!(Schedule { when: When::At(later), ..fired }.resumed_at(now), Some(later));
}

#[test]
fn a_job_id_consists_of_the_name_and_the_time() {
    let nightly = schedule(every("1s"), "2026-11-16T00:00:00Z");
    let moment = at("2026-11-16T03:00:00.250Z");
    assert_eq!(nightly.job_id(moment, 1).as_str(), "nightly:20261116T030000Z");
    assert_eq!(nightly.job_id(moment, 3).as_str(), "nightly:20261116T030000Z-3");
    let longest = Schedule { name: "n".repeat(64).parse().expect("valid name"), ..nightly };
    assert_eq!(longest.job_id(Timestamp::MAX, u32::MAX).as_str().len(), 92);
}

#[test]
fn a_period_counts_from_when_it_was_added_and_does_not_drift() {
    let (period, added) = (every("7m"), at("2026-01-01T00:00:00.123Z"));
    let mut moment = added;
    for expected in 1..1_000_i64 {
        moment = period.next_after(added, moment).expect("a next occurrence");
        assert_eq!(moment.as_millis() - added.as_millis(), expected * 420_000);
    }
    let late = Timestamp::from_millis(added.as_millis() + 420_001);
    assert_eq!(period.next_after(added, late), Some(Timestamp::from_millis(added.as_millis() + 840_000)));
    assert_eq!(every("100w").next_after(Timestamp::MAX, Timestamp::MAX), None);
}

#[test]
fn a_schedule_that_never_fires_is_refused() {
    let now = at("2026-11-16T00:00:00Z");
    for line in ["0 0 30 2 *", "* * 31 4 *", "0 0 31 2,4,6,9,11 *", "*/5 * * 30 2 *"] {
        assert_eq!(cron(line, "UTC").first(now), Err(WhenError::Never(line.to_owned())), "{line}");
    }
    assert_eq!(When::At(now).first(now), Err(WhenError::Past(now)), "the current time counts as past");
    assert_eq!(When::every(Duration::from_millis(999)), Err(WhenError::TooOften(Duration::from_millis(999))));
    assert_eq!(every("1d").first(Timestamp::MAX), Err(WhenError::TooLate));
    assert_eq!(cron("@yearly", "UTC").first(now), Ok(at("2027-01-01T00:00:00Z")));
}

#[test]
fn a_paused_schedule_has_no_next_runs() {
    let nightly = schedule(cron("0 3 * * *", "UTC"), "2026-11-16T00:00:00Z");
    let next = ["2026-11-16T03:00:00Z", "2026-11-17T03:00:00Z"].map(at);
    assert_eq!(nightly.next_runs(2), next);
    let once = schedule(When::At(next[0]), "2026-11-16T00:00:00Z");
    assert_eq!(once.next_runs(5), next[..1]);
    let pause = Pause { by: "tester".to_owned(), reason: None };
    assert_eq!(Schedule { paused: Some((next[0], pause)), ..nightly }.next_runs(5), []);
}

#[test]
fn a_resumed_schedule_does_not_make_up_for_its_pause() {
    let now = at("2026-11-20T12:00:00Z");
    let nightly = schedule(cron("0 3 * * *", "UTC"), "2026-11-16T00:00:00Z");
    assert_eq!(nightly.resumed_at(now), Some(at("2026-11-21T03:00:00Z")));
    // The clock was set back: an occurrence that was handled does not come again.
    let ahead = Schedule { last_at: Some(at("2026-11-25T03:00:00Z")), ..nightly };
    assert_eq!(ahead.resumed_at(now), Some(at("2026-11-26T03:00:00Z")));
    let once = schedule(When::At(at("2026-11-18T03:00:00Z")), "2026-11-16T00:00:00Z");
    assert_eq!(once.resumed_at(now), once.next_at, "its only occurrence is not lost");
    assert_eq!(Schedule { last_at: once.next_at, ..once }.resumed_at(now), None);
}
