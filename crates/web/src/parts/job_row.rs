//! The row of a job in a list.

use maud::{Markup, html};

use super::{state, time};
use crate::pages::visit::Visit;
use domain::job::Job;
use domain::job::life::State;
use domain::text::hostile::printable;

/// Longer commands and errors are cut; the page of the job has all of them.
const MAX_CHARS: usize = 200;

pub(crate) fn head(with_choice: bool) -> Markup {
    html! {
        thead {
            tr {
                @if with_choice { th .choice { input type="checkbox" data-choose="all" aria-label="Choose all rows"; } }
                th scope="col" { "state" }
                th scope="col" { "job" }
                th scope="col" { "queue" }
                th scope="col" .number { "try" }
                th scope="col" { "when" }
                th scope="col" { "command" }
                th scope="col" { "error" }
            }
        }
    }
}

pub(crate) fn row(visit: &Visit<'_>, job: &Job, with_choice: bool) -> Markup {
    let queue = job.queue.as_str();
    let error = job.latest.error.as_deref().unwrap_or_default();
    html! {
        tr id={ "j" (job.number) } {
            @if with_choice {
                td .choice { input type="checkbox" data-choose=(job.id) aria-label={ "Choose job " (printable(&job.handle())) }; }
            }
            td { (state::of_job(job, visit.now)) }
            td { a .id href=(visit.job_url(&job.id)) title=(printable(job.id.as_str())) { (printable(&job.handle())) } }
            td { a .plain href=(visit.jobs_url(&[("queue", queue)])) { (printable(queue)) } }
            td .number { (job.life.tries()) "/" (u64::from(job.life.max_retries) + 1) }
            td { (when(visit, job)) }
            td .command title=(printable(&cut(&job.command))) {
                @if let Some(name) = job.name() { b { (printable(&cut(name))) } " " }
                (printable(&cut(&job.command)))
            }
            td .error title=(printable(&cut(error))) { (printable(&cut(error))) }
        }
    }
}

/// The time that matters in its state.
fn when(visit: &Visit<'_>, job: &Job) -> Markup {
    let now = visit.now;
    match &job.life.state {
        State::Completed { finished_at }
        | State::Dead { finished_at, .. }
        | State::Cancelled { finished_at, .. } => time::ago(now, *finished_at),
        State::Processing(lease) => time::ago(now, lease.started_at),
        State::Failed => html! { "again " (time::ago(now, job.life.due_at)) },
        State::Pending { .. } if job.life.due_at > now => time::ago(now, job.life.due_at),
        State::Pending { .. } => time::ago(now, job.created_at),
    }
}

/// The first characters.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
