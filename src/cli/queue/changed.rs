//! What is said of a queue that was changed.

use std::io::Write;
use std::process::ExitCode;

use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::text::printable;
use crate::ops::json::QueueJson;
use crate::ops::queues::Changed;

/// Says it to a person; a program reads the exit code, or asks for JSON.
pub(super) fn tell(context: &Context, changed: &Changed, what: &str) -> Result<ExitCode, Failure> {
    if context.json {
        context.print_json(&QueueJson::from(&changed.queue))?;
    } else if !context.quiet && context.person_reads {
        let mut out = context.out();
        writeln!(out, "Queue {} {}", changed.queue.name, printable(what))?;
        out.flush()?;
    }
    if let Some(other) = &changed.mistaken_for {
        context.hint(&format!("queue {} is new; did you mean {other}?", changed.queue.name))?;
    }
    Ok(ExitCode::SUCCESS)
}
