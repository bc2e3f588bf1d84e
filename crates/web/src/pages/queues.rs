//! The queues: what waits in them, what ended, and what limits them.

mod change;
pub(super) mod queue;
pub(super) mod table;
pub(crate) mod trends;

use maud::{Markup, html};

use self::trends::Trends;
use super::view::{Place, View};
use super::visit::Visit;
use crate::parts::cli;
use crate::parts::number::counted;
use crate::problem::Problem;
use ops::metrics::recent::{Recent, recent};
use store::QueueMetrics;

pub(super) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let recent = recent(visit.store, None)?;
    let trends = visit.server.trends.read(visit.store)?;
    Ok(View::new("Queues", Place::Queues).with("queues", "Queues", content(visit, &recent, &trends)))
}

fn content(visit: &Visit<'_>, recent: &Recent, trends: &Trends) -> Markup {
    let queues: Vec<&QueueMetrics> = recent.queues.iter().collect();
    html! {
        div .bar {
            h1 { "Queues" }
            span { (counted(queues.len() as u64, "queue", "queues")) }
            (cli::copyable(&cli::typed("queue list")))
        }
        @if queues.is_empty() {
            div .empty { p { "No queue yet: the first job creates one." } p { (cli::copyable(&cli::typed("enqueue --queue mail -- echo hello"))) } }
        } @else {
            (table::rows(visit, recent, &queues, trends))
            p .note { "Rates and times are those of the last hour." }
        }
    }
}
