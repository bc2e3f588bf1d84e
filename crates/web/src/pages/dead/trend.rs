//! When the jobs of each cause died, over the last 24 hours.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use maud::{Markup, html};

use crate::pages::visit::Visit;
use crate::parts::number::{counted, grouped};
use crate::parts::sparkline;
use crate::problem::Problem;
use domain::job::cause::CauseId;
use domain::values::name::QueueName;
use domain::values::timestamp::Timestamp;
use ops::jobs::dlq::CauseGroup;
use store::{Deaths, hour_of};

const HOURS: i64 = 24;
/// Reading the deaths of all causes of a page takes no longer.
const BUDGET: Duration = Duration::from_millis(120);

pub(super) struct Trends {
    /// The number of the current hour.
    hour: i64,
    deaths: BTreeMap<CauseId, Deaths>,
}

impl Trends {
    pub(super) fn read<'a>(
        visit: &Visit<'_>,
        groups: impl Iterator<Item = &'a CauseGroup>,
        queue: Option<&QueueName>,
    ) -> Result<Self, Problem> {
        let (began, hour) = (Instant::now(), hour_of(visit.now));
        let mut deaths = BTreeMap::new();
        for group in groups {
            // Nothing has to be read of a cause that nothing died of lately.
            let found = if is_recent(group.last_at, hour) {
                visit.store.deaths(group.id, queue, BUDGET.saturating_sub(began.elapsed()))?
            } else {
                Deaths { is_exact: true, ..Deaths::default() }
            };
            deaths.insert(group.id, found);
        }
        Ok(Self { hour, deaths })
    }

    /// The chart, and how many of the jobs it covers if it does not cover all.
    pub(super) fn markup(&self, group: &CauseGroup) -> Markup {
        let Some(deaths) = self.deaths.get(&group.id) else {
            return html! {};
        };
        let bars = last_hours(deaths, self.hour);
        let recent: u64 = bars.iter().sum();
        let about = format!("{} in the last 24 hours, by the hour", counted(recent, "death", "deaths"));
        html! {
            div .trend {
                (sparkline::bars(&bars, "dead", &about))
                span .note {
                    (grouped(recent)) " in 24 h"
                    @if !deaths.is_exact { " among the newest " (grouped(deaths.read)) }
                }
            }
        }
    }
}

fn is_recent(last_at: Timestamp, hour: i64) -> bool {
    hour_of(last_at) > hour - HOURS
}

/// The deaths of each of the last hours, from old to new; the last one is not over.
fn last_hours(deaths: &Deaths, hour: i64) -> Vec<u64> {
    (hour - HOURS + 1..=hour).map(|at| deaths.by_hour.get(&at).copied().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_death_counts_in_its_hour_and_only_for_a_day() {
        let by_hour = BTreeMap::from([(76, 9), (77, 1), (100, 3)]);
        let bars = last_hours(&Deaths { by_hour, read: 13, is_exact: true }, 100);
        assert_eq!((bars.len(), bars[0], bars[23], bars.iter().sum::<u64>()), (24, 1, 3, 4));
    }
}
