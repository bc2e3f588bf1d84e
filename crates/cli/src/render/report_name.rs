//! What is said of a thing that was changed by its name: a sentence to a person, the name to a program.

use std::io::Write;

use serde::Serialize;

use super::text::printable;
use crate::context::Context;
use crate::failure::Failure;

/// What was changed, in each of the three ways in which it can be told.
pub(crate) struct Named<'a, J: Serialize> {
    pub(crate) name: &'a str,
    pub(crate) json: J,
    pub(crate) sentence: String,
}

pub(crate) fn tell(context: &Context, changed: &Named<'_, impl Serialize>) -> Result<(), Failure> {
    if context.json {
        return context.print_json(&changed.json);
    }
    if context.quiet {
        return Ok(());
    }
    let line = if context.person_reads { &changed.sentence } else { changed.name };
    let mut out = context.out();
    writeln!(out, "{}", printable(line))?;
    Ok(out.flush()?)
}
