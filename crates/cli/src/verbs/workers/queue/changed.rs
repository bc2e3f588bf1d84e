//! What is said of a queue that was changed.

use std::process::ExitCode;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::report_name;
use crate::render::report_name::Named;
use ops::json::QueueJson;
use ops::queues::ChangedQueue;

pub(super) fn tell(context: &Context, changed: &ChangedQueue, what: &str) -> Result<ExitCode, Failure> {
    let name = changed.queue.name.as_str();
    let json = QueueJson::from(&changed.queue);
    report_name::tell(context, &Named { name, json, sentence: format!("Queue {name} {what}") })?;
    if let Some(other) = &changed.similar_queue {
        context.hint(&format!("queue {name} is new; did you mean {other}?"))?;
    }
    Ok(ExitCode::SUCCESS)
}
