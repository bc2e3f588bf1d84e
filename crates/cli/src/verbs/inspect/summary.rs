//! `queuectl` without a verb: the queue at a glance.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::list_format;
use crate::render::text::printable;
use crate::verbs::inspect::status;
use domain::text::shell::quote_words;
use domain::values::clock::Clock;
use ops::summary::{Summary, SummaryJson, summary};

/// Show the status, the latest jobs and the next schedule
///
/// This is what `queuectl` does without a command.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, context: &Context) -> Result<(), Failure> {
    let location = context.location()?;
    let home = &location.home;
    if !location.has_queue() {
        let missing = location.other_store().unwrap_or(home);
        return context.print(&SummaryJson::new(home, None), |out| write_welcome(out, missing, context));
    }
    let store = context.store()?;
    let summary = summary(store, home, &context.time_format())?;
    let clock = &context.clock(store.now()?);
    let json = SummaryJson::new(home, Some(&summary));
    context.print(&json, |out| write_summary(out, home, &summary, clock, context))?;
    context.note("`queuectl -h` lists the commands")
}

/// Nothing is created before the first job.
fn write_welcome(out: &mut dyn Write, missing: &Path, context: &Context) -> io::Result<()> {
    writeln!(out, "There is no queue in {} yet. The first job creates it:", shown(missing))?;
    writeln!(out, "\n  queuectl {}run echo hello\n", location_words(context))?;
    writeln!(out, "`queuectl -h` lists the commands.")
}

/// `--home` and `--store` as they were given, for a command that means the same queue.
fn location_words(context: &Context) -> String {
    let flags = context.location_flags();
    let home = flags.home.as_ref().map(|home| ("--home", home.as_os_str()));
    let store = flags.store.as_ref().map(|store| ("--store", store.as_os_str()));
    let word = |(flag, value): (&str, &OsStr)| {
        let quoted = quote_words(&[value.to_string_lossy().into_owned()]);
        format!("{flag} {} ", printable(&quoted))
    };
    home.into_iter().chain(store).map(word).collect()
}

fn write_summary(
    out: &mut dyn Write,
    home: &Path,
    summary: &Summary,
    clock: &Clock,
    context: &Context,
) -> io::Result<()> {
    writeln!(out, "Home: {}\n", shown(home))?;
    for line in status::lines(&summary.status, clock, context.width()) {
        writeln!(out, "{line}")?;
    }
    if !summary.jobs.is_empty() {
        writeln!(out)?;
    }
    for line in list_format::lines(context, &summary.jobs, clock) {
        writeln!(out, "{line}")?;
    }
    let next = summary.next_schedule.as_ref();
    if let Some((schedule, at)) = next.and_then(|schedule| Some((schedule, schedule.next_at?))) {
        writeln!(out, "\nNext schedule: {} at {}", schedule.name, clock.moment(at))?;
    }
    Ok(())
}

fn shown(path: &Path) -> String {
    printable(&path.display().to_string()).into_owned()
}
