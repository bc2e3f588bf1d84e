//! The form that enqueues a job, with the command and the call that do the same.

use maud::html;

use super::view::{Place, View};
use super::visit::Visit;
use crate::problem::Problem;

#[expect(clippy::unnecessary_wraps, reason = "a page may fail; this one cannot")]
pub(super) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let content = html! {
        div .bar { h1 { "Enqueue a job" } }
        @if visit.may_administer() {
            form .wide data-form="all" {
                label { span { "command" } textarea name="command" rows="4" required placeholder="./send-mail --to a@b" {} }
                label { span { "queue" } input name="queue" placeholder="default"; }
                label { span { "name" } input name="name"; }
                label { span { "priority" } input name="priority" type="number" data-number placeholder="0"; }
                label { span { "retries" } input name="max_retries" type="number" min="0" data-number; }
                label { span { "timeout" } input name="timeout" placeholder="30m"; }
                label { span { "start after" } input name="delay" placeholder="10m"; }
                label { span { "tags, with commas" } input name="tags" data-list; }
                label { span { "batch" } input name="batch"; }
                div { button type="submit" data-act="POST" data-path=(visit.url("/api/v1/jobs")) data-open="id" { "Enqueue" } }
            }
            h2 { "The same on the command line" }
            pre #as-cli .cli { "queuectl enqueue -- COMMAND" }
            h2 { "The same over HTTP" }
            pre #as-curl .cli {}
        } @else {
            p .empty { "A new command needs the scope admin." }
        }
    };
    Ok(View::new("Enqueue", Place::Enqueue).with("enqueue", "Enqueue a job", content))
}
