//! Times of day in a time zone, whose clock may skip them or show them twice.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

/// The moment at which the clock of this zone shows this time: the first one if it shows it twice, and the end of the gap
/// if it skips it. `None` outside the range of times.
pub(crate) fn moment(zone: &TimeZone, shown: DateTime) -> Option<jiff::Timestamp> {
    let at = |offset: Offset| offset.to_timestamp(shown).ok();
    match zone.to_ambiguous_timestamp(shown).offset() {
        AmbiguousOffset::Unambiguous { offset } => at(offset),
        AmbiguousOffset::Fold { before, .. } => at(before),
        // With the offset after the gap, the time lies just before the change.
        AmbiguousOffset::Gap { after, .. } => Some(zone.following(at(after)?).next()?.timestamp()),
    }
}
