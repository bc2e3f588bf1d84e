//! Reports a change to a named thing (a queue, a schedule, a file): a sentence for a person, the name for a program.

use serde::Serialize;

use super::text::printable;
use crate::context::Context;
use crate::failure::Failure;

pub(crate) fn report_change(
    context: &Context,
    name: &str,
    json: &impl Serialize,
    sentence: &str,
) -> Result<(), Failure> {
    let line = if context.stdout_is_terminal { &printable(sentence) } else { name };
    context.print(json, |out| writeln!(out, "{line}"))
}
