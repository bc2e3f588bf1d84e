//! `queuectl` without a verb: the queue at a glance.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;

use crate::context::{Context, home_line};
use crate::failure::Failure;
use crate::render::list_format;
use crate::render::text::printable;
use crate::verbs::inspect::status;
use domain::text::shell::quote_words;
use domain::values::clock::Clock;
use ops::summary::{Summary, SummaryJson, summary};
use store::postgres::Address;

/// Show the status, the latest jobs and the next schedule
///
/// This is what `queuectl` does without a command.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, context: &Context) -> Result<(), Failure> {
    let location = context.location()?;
    let home = &location.home;
    if !location.has_queue() {
        let json = SummaryJson::new(home, None);
        return context.print(&json, |out| write_welcome(out, location.place(), context));
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
    let is_file = |store: &&OsString| !store.to_str().is_some_and(Address::is_url);
    let store = flags.store.as_ref().filter(is_file).map(|store| ("--store", store.as_os_str()));
    let word = |(flag, value): (&str, &OsStr)| {
        let quoted = quote_words(&[value.to_string_lossy().into_owned()]);
        format!("{flag} {} ", printable(&quoted))
    };
    home.into_iter().chain(store).map(word).collect()
}

/// On a terminal, the jobs take as much room as the rest leaves them: the last lines are the ones that are seen.
fn write_summary(
    out: &mut dyn Write,
    home: &Path,
    summary: &Summary,
    clock: &Clock,
    context: &Context,
) -> io::Result<()> {
    let status = status::lines(&summary.status, clock, context.width());
    let end = end_lines(home, summary, clock);
    let taken = status.len() + end.len() + FURTHER_LINES;
    let room = context.height().saturating_sub(taken).max(MIN_JOBS).min(summary.jobs.len());
    let jobs = list_format::lines(context, &summary.jobs[..room], clock);
    let sections = [status, jobs, end].into_iter().filter(|lines| !lines.is_empty());
    for (at, lines) in sections.enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    }
    Ok(())
}

/// The heading of the jobs, two empty lines, the note after all of it, and the prompt of the shell.
const FURTHER_LINES: usize = 5;
/// Even a small terminal shows this many jobs.
const MIN_JOBS: usize = 3;

fn end_lines(home: &Path, summary: &Summary, clock: &Clock) -> Vec<String> {
    let next = summary.next_schedule.as_ref().and_then(|schedule| Some((&schedule.name, schedule.next_at?)));
    let next = next.map(|(name, at)| format!("Next schedule: {name} at {}", clock.moment(at)));
    next.into_iter().chain([home_line(home)]).collect()
}

fn shown(path: &Path) -> String {
    printable(&path.display().to_string()).into_owned()
}
