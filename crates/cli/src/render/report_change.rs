//! Reports a change to a named thing (a queue, a schedule, a hook): a sentence for a person, the name for a program.

use std::io::Write;

use serde::Serialize;

use super::text::printable;
use crate::context::Context;
use crate::failure::Failure;

/// The report in each of its three forms.
pub(crate) struct ChangeReport<'a, J: Serialize> {
    pub(crate) name: &'a str,
    pub(crate) json: J,
    pub(crate) sentence: String,
}

pub(crate) fn report_change(
    context: &Context,
    changed: &ChangeReport<'_, impl Serialize>,
) -> Result<(), Failure> {
    if context.json {
        return context.print_json(&changed.json);
    }
    if context.quiet {
        return Ok(());
    }
    let line = if context.stdout_is_terminal { &changed.sentence } else { changed.name };
    let mut out = context.out();
    writeln!(out, "{}", printable(line))?;
    Ok(out.flush()?)
}
