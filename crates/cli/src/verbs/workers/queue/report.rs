//! Reports a change to a queue.

use sys::program::ExitCode;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::report_change;
use crate::render::report_change::ChangeReport;
use ops::json::QueueJson;
use ops::queues::ChangedQueue;

pub(super) fn report_queue(
    context: &Context,
    changed: &ChangedQueue,
    what: &str,
) -> Result<ExitCode, Failure> {
    let name = changed.queue.name.as_str();
    let json = QueueJson::from(&changed.queue);
    report_change::report_change(
        context,
        &ChangeReport { name, json, sentence: format!("Queue {name} {what}") },
    )?;
    if let Some(other) = &changed.similar_queue {
        context.hint(&format!("queue `{name}` is new; did you mean `{other}`?"))?;
    }
    Ok(ExitCode::SUCCESS)
}
