//! Bars that show parts of a whole. The policy of the pages allows no style of an element, so their widths are in SVG.

use maud::{Markup, html};

use domain::job::life::StateName;

use super::number::grouped;

/// The width of a whole, in units of the drawing.
const WHOLE: u64 = 1_000;
/// A part that is not empty is never narrower.
const MIN_WIDTH: u64 = 6;

/// Jobs by state, in the order in which a batch proceeds.
pub(crate) fn states(counts: &dyn Fn(StateName) -> u64) -> Markup {
    const ORDER: [StateName; 6] = [
        StateName::Completed,
        StateName::Processing,
        StateName::Failed,
        StateName::Dead,
        StateName::Cancelled,
        StateName::Pending,
    ];
    let total: u64 = ORDER.iter().map(|state| counts(*state)).sum();
    let mut at = 0;
    let parts: Vec<(StateName, u64, u64, u64)> = ORDER
        .into_iter()
        .filter(|state| counts(*state) > 0)
        .map(|state| {
            let width = (counts(state) * WHOLE / total.max(1)).max(MIN_WIDTH);
            let from = at;
            at += width;
            (state, from, width, counts(state))
        })
        .collect();
    html! {
        svg .bar-of-states viewBox={ "0 0 " (at.max(WHOLE)) " 10" } preserveAspectRatio="none" aria-hidden="true" {
            @for (state, from, width, count) in parts {
                rect class={ "fill-" (state.name()) } x=(from) y="0" width=(width) height="10" {
                    title { (state.name()) " " (grouped(count)) }
                }
            }
        }
    }
}

/// How much of a usual length has passed. What exceeds it is drawn in another colour.
pub(crate) fn elapsed(passed_millis: u128, usual_millis: u128) -> Markup {
    let usual = u64::try_from(usual_millis).unwrap_or(u64::MAX).max(1);
    let passed = u64::try_from(passed_millis).unwrap_or(u64::MAX);
    let all = passed.max(usual);
    let width = |part: u64| u128::from(part) * u128::from(WHOLE) / u128::from(all);
    html! {
        svg .lane-bar viewBox={ "0 0 " (WHOLE) " 10" } preserveAspectRatio="none" aria-hidden="true" {
            rect .track x="0" y="0" width=(WHOLE) height="10" {}
            rect .fill-processing x="0" y="0" width=(width(passed.min(usual)).max(4)) height="10" {}
            @if passed > usual {
                rect .fill-failed x=(width(usual)) y="0" width=(width(passed - usual)) height="10" {}
            }
        }
    }
}

/// A bar of a length with which no other is comparable.
pub(crate) fn neutral() -> Markup {
    html! {
        svg .lane-bar viewBox={ "0 0 " (WHOLE) " 10" } preserveAspectRatio="none" aria-hidden="true" {
            rect .track x="0" y="0" width=(WHOLE) height="10" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_with_jobs_has_a_part_that_can_be_seen() {
        let drawn = states(&|state| match state {
            StateName::Completed => 1_000_000,
            StateName::Dead => 1,
            StateName::Pending | StateName::Processing | StateName::Failed | StateName::Cancelled => 0,
        })
        .into_string();
        assert_eq!(drawn.matches("<rect").count(), 2, "{drawn}");
        assert!(drawn.contains("dead 1<") && drawn.contains("width=\"6\""), "{drawn}");
        assert!(!states(&|_| 0).into_string().contains("<rect"));
    }

    #[test]
    fn what_takes_longer_than_usual_is_marked() {
        assert!(!elapsed(50, 100).into_string().contains("fill-failed"));
        let long = elapsed(200, 100).into_string();
        assert!(long.contains("fill-failed\" x=\"500\" y=\"0\" width=\"500\""), "{long}");
    }
}
