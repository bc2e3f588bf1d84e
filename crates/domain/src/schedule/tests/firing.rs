//! Which runs a schedule enqueues: on time, late, missed, and while another run is unfinished.

use crate::schedule::tests::*;

const ADDED: &str = "2026-11-16T00:00:00Z";

/// A schedule for every minute with this policy.
fn minutely(on_missed: OnMissed, limit: Option<u32>, on_overlap: OnOverlap) -> Schedule {
    let policy = Policy::new(Some(on_missed), limit, Some(on_overlap)).expect("consistent policy");
    Schedule { policy, ..schedule(every("1m"), ADDED) }
}

/// This many minutes after the schedule was added.
fn minute(number: i64) -> Timestamp {
    Timestamp::from_millis(at(ADDED).as_millis() + number * 60_000)
}

fn seconds_after(minutes: i64, seconds: i64) -> Timestamp {
    Timestamp::from_millis(minute(minutes).as_millis() + seconds * 1_000)
}

#[test]
fn a_schedule_that_is_not_due_does_not_fire() {
    let schedule = minutely(OnMissed::Once, None, OnOverlap::Skip);
    assert_eq!(fire(&schedule, 0, Timestamp::from_millis(minute(1).as_millis() - 1)), None);
    assert_eq!(fire(&Schedule { next_at: None, ..schedule }, 0, minute(9)), None, "no occurrence is left");
}

#[test]
fn a_slightly_late_occurrence_counts_as_on_time() {
    for policy in [(OnMissed::Skip, OnOverlap::Skip), (OnMissed::Once, OnOverlap::Replace)] {
        let schedule = minutely(policy.0, None, policy.1);
        for late in [0, 1, 59] {
            let firing = fire(&schedule, 0, seconds_after(1, late));
            let expected = Firing {
                occurrences: vec![minute(1)],
                last_at: minute(1),
                next_at: Some(minute(2)),
                missed_at: None,
                skipped_at: None,
            };
            assert_eq!(firing, Some(expected), "{late} s late");
        }
    }
}

/// Every policy for missed occurrences, where no worker ran from the first minute until a time at which one is due, or
/// until one at which the latest is too old.
#[test]
fn missed_occurrences_are_skipped_made_up_for_once_or_all_made_up_for() {
    use OnMissed::{All, Once, Skip};
    use OnOverlap::Queue;
    let hourly = |on_missed, limit| Schedule {
        policy: Policy::new(Some(on_missed), limit, Some(Queue)).expect("consistent policy"),
        ..schedule(every("1h"), ADDED)
    };
    let hour = |number: i64| minute(number * 60);
    let (due, between) = (seconds_after(240, 30), seconds_after(240, 90));
    for (on_missed, limit, now, expected) in [
        (Skip, None, due, vec![4]),
        (Skip, None, between, vec![]),
        (Once, None, due, vec![4]),
        (Once, None, between, vec![4]),
        (All, None, due, vec![1, 2, 3, 4]),
        (All, None, between, vec![1, 2, 3, 4]),
        (All, Some(2), due, vec![2, 3, 4]),
        (All, Some(2), between, vec![3, 4]),
    ] {
        let firing = fire(&hourly(on_missed, limit), 0, now).expect("it is due");
        let expected: Vec<Timestamp> = expected.into_iter().map(hour).collect();
        assert_eq!(firing.occurrences, expected, "{on_missed:?} {limit:?}");
        assert_eq!((firing.last_at, firing.next_at), (hour(4), Some(hour(5))));
        assert_eq!(firing.missed_at, Some(hour(if now == due { 3 } else { 4 })));
        assert_eq!(firing.skipped_at, None);
    }
}

#[test]
fn an_occurrence_during_an_unfinished_run_is_skipped_queued_or_replaces_it() {
    for (on_overlap, unfinished, occurrences, skipped_at) in [
        (OnOverlap::Skip, 0, vec![minute(1)], None),
        (OnOverlap::Skip, 1, vec![], Some(minute(1))),
        (OnOverlap::Queue, 1, vec![minute(1)], None),
        (OnOverlap::Queue, MAX_UNFINISHED_RUNS - 1, vec![minute(1)], None),
        (OnOverlap::Queue, MAX_UNFINISHED_RUNS, vec![], Some(minute(1))),
        (OnOverlap::Replace, 1, vec![minute(1)], None),
    ] {
        let schedule = minutely(OnMissed::Once, None, on_overlap);
        let firing = fire(&schedule, unfinished, minute(1)).expect("it is due");
        assert_eq!((firing.occurrences, firing.skipped_at), (occurrences, skipped_at), "{on_overlap:?}");
        assert_eq!(firing.next_at, Some(minute(2)), "the schedule continues");
    }
}

#[test]
fn several_occurrences_at_once_overlap_each_other() {
    let often = |on_overlap| Schedule {
        policy: Policy::new(None, None, Some(on_overlap)).expect("consistent policy"),
        ..schedule(every("1s"), ADDED)
    };
    let now = seconds_after(0, 5);
    let seconds = |range: std::ops::RangeInclusive<i64>| -> Vec<Timestamp> {
        range.map(|second| seconds_after(0, second)).collect()
    };
    for on_overlap in [OnOverlap::Skip, OnOverlap::Replace] {
        let firing = fire(&often(on_overlap), 0, now).expect("it is due");
        assert_eq!((firing.occurrences, firing.skipped_at), (seconds(5..=5), Some(seconds_after(0, 4))));
    }
    let firing = fire(&often(OnOverlap::Queue), 1, now).expect("it is due");
    assert_eq!((firing.occurrences, firing.skipped_at), (seconds(1..=5), None));
    let firing = fire(&often(OnOverlap::Queue), MAX_UNFINISHED_RUNS - 2, now).expect("it is due");
    assert_eq!((firing.occurrences, firing.skipped_at), (seconds(4..=5), Some(seconds_after(0, 3))));
}

#[test]
fn a_clock_that_jumps_years_ahead_is_handled() {
    let years_later = at("2060-06-01T00:00:30Z");
    for when in [every("1s"), cron("* * * * * *", "Europe/Berlin"), cron("* * * * 1 *", "Europe/Berlin")] {
        let policy =
            Policy::new(Some(OnMissed::All), Some(MAX_MISSED_LIMIT), None).expect("consistent policy");
        let schedule = Schedule { policy, ..schedule(when, ADDED) };
        let firing = fire(&schedule, 0, years_later).expect("it is due");
        assert!(firing.occurrences.len() >= MAX_MISSED_LIMIT as usize);
        assert!(firing.occurrences.is_sorted_by(|a, b| a < b));
        assert!(firing.next_at > Some(years_later));
    }
}

#[test]
fn a_schedule_that_fires_once_has_no_next_occurrence() {
    let once = schedule(When::At(minute(5)), ADDED);
    let firing = fire(&once, 0, minute(5)).expect("it is due");
    assert_eq!((firing.occurrences, firing.next_at), (vec![minute(5)], None));
    let late = fire(&once, 0, minute(500)).expect("it is due");
    assert_eq!((late.occurrences, late.missed_at), (vec![minute(5)], Some(minute(5))));
    let strict = Schedule { policy: minutely(OnMissed::Skip, None, OnOverlap::Skip).policy, ..once };
    assert_eq!(fire(&strict, 0, minute(500)).expect("it is due").occurrences, []);
}

#[test]
fn the_latest_missed_occurrence_of_a_sparse_line_is_found() {
    let line = cron("17 3 * 1,6 *", "America/New_York");
    let nightly = schedule(line.clone(), "2026-01-05T00:00:00Z");
    let now = at("2026-05-01T00:00:00Z");
    let firing = fire(&nightly, 0, now).expect("it is due");
    assert_eq!(firing.occurrences, [at("2026-01-31T08:17:00Z")]);
    assert_eq!(firing.next_at, Some(at("2026-06-01T07:17:00Z")));
}
