//! What can be done with a job in its state.

use maud::{Markup, html};

use crate::pages::visit::Visit;
use crate::parts::button::Act;
use crate::parts::{cli, form, job_fields};
use crate::request::query::encode;
use domain::job::JobRecord;
use domain::job::life::StateName;
use ops::jobs::change::Verb;

/// Only what the state allows and the visitor may do.
pub(super) fn buttons(visit: &Visit<'_>, record: &JobRecord) -> Markup {
    if !visit.may_operate() {
        return html! {};
    }
    let job = &record.job;
    let (id, handle) = (job.id.as_str(), job.handle());
    let path = |verb: &str| visit.url(&format!("/api/v1/jobs/{}{verb}", encode(id)));
    let post = |label: &'static str, verb: &str| Act {
        label,
        method: "POST",
        key: if verb == "retry" { "r" } else { "" },
        path: path(&format!("/{verb}")),
        cli: cli::line(&[verb, id]),
        ..Act::default()
    };
    let remove = Act {
        label: "remove",
        method: "DELETE",
        path: path(""),
        ask: format!("Remove job {handle} for ever, with its history and output?"),
        cli: cli::line(&["remove", id]),
        then: visit.url("/jobs"),
        is_final: true,
        ..Act::default()
    };
    let cancel = Act { ask: format!("Cancel job {handle}?"), is_final: true, ..post("cancel", "cancel") };
    let is_paused = job.life.state.paused_at().is_some();
    let acts = match job.life.state.name() {
        StateName::Processing if is_paused => vec![post("resume", "resume"), cancel],
        StateName::Processing => vec![post("pause", "pause"), cancel],
        StateName::Pending => vec![cancel, remove],
        StateName::Failed => vec![post("retry now", "retry"), cancel, remove],
        StateName::Completed => vec![post("run again", "retry"), remove],
        StateName::Dead | StateName::Cancelled => vec![post("retry", "retry"), remove],
    };
    html! {
        div .actions {
            @for act in &acts { (act.markup()) }
        }
    }
}

/// The form that changes it, retries it with changes, or enqueues another like it: as far as its state allows.
pub(super) fn edit(visit: &Visit<'_>, record: &JobRecord) -> Markup {
    if !visit.may_administer() {
        return html! {};
    }
    let job = &record.job;
    let id = job.id.as_str();
    let path = |verb: &str| visit.url(&format!("/api/v1/jobs/{}{verb}", encode(id)));
    let state = job.life.state.name();
    let (can_edit, can_retry) =
        (!matches!(state, StateName::Processing | StateName::Completed), Verb::Retry.applies_to(state));
    let command = if can_edit { cli::line(&["edit", id]) } else { cli::line(&["retry", id, "--edit"]) };
    html! {
        details .form #edit {
            summary data-key="e" { @if can_edit || can_retry { "edit or clone" } @else { "clone" } }
            form .make data-make=(path("")) data-method="PATCH" data-command=(command) {
                div .wide { (job_fields::of_one(job)) }
                (form::problem())
                p .actions {
                    // Enter in a field presses the first button.
                    @if can_edit { button type="submit" { "save" } }
                    @if can_retry { button type="submit" data-by="POST" data-to=(path("/retry")) data-wrap="edit" data-command=(cli::line(&["retry", id, "--edit"])) { "save and retry" } }
                    button type="submit" data-by="POST" data-to=(path("/clone")) data-then=(visit.url("/jobs/{id}")) { "clone" }
                    span .note { "An empty field returns to its default." }
                }
                @if can_edit { (form::same()) }
            }
        }
    }
}
