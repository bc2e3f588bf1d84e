//! What can be done with a job in its state.

use maud::{Markup, html};

use crate::pages::visit::Visit;
use crate::parts::button::Act;
use crate::parts::cli;
use crate::request::query::encode;
use domain::job::JobRecord;
use domain::job::life::StateName;
use domain::text::hostile::printable_lines;

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
            @if visit.may_administer() { (edit(&path, record)) }
        }
    }
}

/// Forms whose fields become a JSON body; those that are unchanged are left out.
fn edit(path: &dyn Fn(&str) -> String, record: &JobRecord) -> Markup {
    let job = &record.job;
    let is_running = job.life.state.name() == StateName::Processing;
    html! {
        details .form {
            summary data-key="e" { @if is_running { "clone" } @else { "edit or clone" } }
            form data-form {
                @if printable_lines(&job.command) == job.command {
                    label { span { "command" } textarea name="command" rows="3" { (job.command) } }
                } @else {
                    p .note { "The command has characters that cannot be shown: " code { (cli::line(&["edit", job.id.as_str()])) } " changes it." }
                }
                label { span { "queue" } input name="queue" value=(job.queue.as_str()); }
                label { span { "priority" } input name="priority" type="number" value=(job.priority) data-number; }
                label { span { "retries" } input name="max_retries" type="number" min="0" value=(job.life.max_retries) data-number; }
                div {
                    @if !is_running {
                        button type="submit" data-act="POST" data-wrap="edit" data-path=(path("/retry")) { "save and retry" }
                        button type="submit" data-act="PATCH" data-path=(path("")) { "save" }
                    }
                    button type="submit" data-act="POST" data-path=(path("/clone")) data-open="id" { "clone" }
                }
            }
        }
    }
}
