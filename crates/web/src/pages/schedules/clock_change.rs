//! Changes of daylight saving time: which times of day a zone skips or shows twice, and what that does to a run.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

use domain::schedule::When;
use domain::values::timestamp::Timestamp;

/// A change of a zone's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClockChange {
    /// What the clock shows just before it is changed, and just after.
    pub(super) before: DateTime,
    pub(super) after: DateTime,
}

impl ClockChange {
    /// In words: `02:00–03:00 does not exist`.
    pub(super) fn message(&self) -> String {
        let clock = |time: DateTime| time.strftime("%H:%M").to_string();
        if self.after > self.before {
            format!("{}–{} does not exist", clock(self.before), clock(self.after))
        } else {
            format!("{}–{} happens twice", clock(self.after), clock(self.before))
        }
    }
}

/// The changes of a zone's clock between two moments.
pub(super) fn changes(zone: &TimeZone, from: jiff::Timestamp, to: jiff::Timestamp) -> Vec<ClockChange> {
    let within = zone.following(from).take_while(|change| change.timestamp() < to);
    within
        .map(|change| {
            let moment = change.timestamp();
            let earlier = moment.checked_sub(jiff::SignedDuration::from_millis(1)).unwrap_or(moment);
            let before = zone.to_offset(earlier).to_datetime(moment);
            ClockChange { before, after: change.offset().to_datetime(moment) }
        })
        .filter(|change| change.before != change.after)
        .collect()
}

/// Why a run of a cron schedule is at another time than its expression says, or at a time that its clock shows twice.
pub(super) fn effect(when: &When, at: Timestamp) -> Option<String> {
    let When::Cron { line, zone } = when else {
        return None;
    };
    let moment = jiff::Timestamp::from_millisecond(at.as_millis()).ok()?;
    let shown = zone.to_datetime(moment);
    let clock = shown.strftime("%H:%M");
    if let AmbiguousOffset::Fold { .. } = zone.to_ambiguous_timestamp(shown).offset() {
        return Some(format!("{clock} happens twice on this day"));
    }
    let earlier = moment.checked_sub(jiff::SignedDuration::from_millis(1)).ok()?;
    let change =
        changes(zone, earlier, moment.checked_add(jiff::SignedDuration::from_millis(1)).ok()?).pop()?;
    if change.after < change.before {
        return None;
    }
    // On a clock without changes the expression has its own time.
    let plain = When::Cron { line: line.clone(), zone: TimeZone::UTC };
    let on_plain_clock = |time: DateTime| {
        let moment = TimeZone::UTC.to_timestamp(time).ok()?;
        Some(Timestamp::from_millis(moment.as_millisecond()))
    };
    let gap = on_plain_clock(change.before)?;
    let meant = plain.next_after(gap, Timestamp::from_millis(gap.as_millis() - 1))?;
    if meant >= on_plain_clock(change.after)? {
        return None;
    }
    let meant = jiff::Timestamp::from_millisecond(meant.as_millis()).ok()?;
    let meant = TimeZone::UTC.to_datetime(meant);
    Some(format!("{} does not exist on this day, so it runs at {clock}", meant.strftime("%H:%M")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn berlin() -> TimeZone {
        sys::zone::find("Europe/Berlin").expect("a zone")
    }

    fn moment(text: &str) -> jiff::Timestamp {
        text.parse().expect("a time")
    }

    fn first(line: &str, after: &str) -> (When, Timestamp) {
        let when = When::cron(line, berlin()).expect("an expression");
        let after: Timestamp = after.parse().expect("a time");
        let at = when.next_after(after, after).expect("a time");
        (when, at)
    }

    #[test]
    fn a_gap_and_an_overlap_are_found_in_their_week() {
        let of = |from, to| {
            let changes = changes(&berlin(), moment(from), moment(to));
            changes.iter().map(ClockChange::message).collect::<Vec<_>>()
        };
        assert_eq!(of("2026-03-23T00:00:00Z", "2026-03-30T00:00:00Z"), ["02:00–03:00 does not exist"]);
        assert_eq!(of("2026-10-19T00:00:00Z", "2026-10-26T00:00:00Z"), ["02:00–03:00 happens twice"]);
        assert!(of("2026-11-02T00:00:00Z", "2026-11-09T00:00:00Z").is_empty());
    }

    #[test]
    fn only_a_run_that_the_change_concerns_is_marked() {
        for (line, after, effects) in [
            (
                "30 2 * * *",
                "2026-03-28T12:00:00Z",
                Some("02:30 does not exist on this day, so it runs at 03:00"),
            ),
            ("0 3 * * *", "2026-03-28T12:00:00Z", None),
            ("30 2 * * *", "2026-10-24T12:00:00Z", Some("02:30 happens twice on this day")),
            ("30 4 * * *", "2026-10-24T12:00:00Z", None),
            ("30 2 * * *", "2026-06-01T12:00:00Z", None),
        ] {
            let (when, at) = first(line, after);
            assert_eq!(effect(&when, at).as_deref(), effects, "{line} after {after}");
        }
        let (_, at) = first("30 2 * * *", "2026-03-28T12:00:00Z");
        assert_eq!(effect(&When::Every(std::time::Duration::from_secs(60)), at), None);
    }
}
