//! `queuectl explain`

use std::io::{self, Write};

use crate::context::Context;
use crate::failure::Failure;
use crate::flags::handle::resolve_or_latest;
use crate::render::text::{printable, rough, state_style, wrap};
use ops::jobs::explain::{JobExplanation, explain};
use ops::json::ExplanationJson;

/// Explain why a job is not running, and estimate when it will start
///
/// Lists everything that holds the job back: its start time, its dependencies, its queue, the workers, and the jobs ahead
/// of it. The start is estimated from the duration of the latest jobs in its queue.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  queuectl explain job1\n  queuectl explain job1 --json")]
pub(crate) struct Args {
    /// The job's number or id, or a unique part of its id [default: the latest job]
    #[arg(value_name = "JOB")]
    id: Option<String>,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let store = context.store()?;
    let id = resolve_or_latest(context, args.id.as_deref())?;
    let explained = explain(store, &id, &context.time_format())?;
    let width = context.width();
    context.print(&ExplanationJson::from(&explained), |out| write(out, &explained, width))
}

fn write(out: &mut dyn Write, explained: &JobExplanation, width: usize) -> io::Result<()> {
    let state = explained.job.life.state.name();
    let style = state_style(state);
    writeln!(out, "Job {} is {style}{}{style:#}.", explained.job.handle(), state.name())?;
    for reason in &explained.explanation.reasons {
        let marks = std::iter::once("-").chain(std::iter::repeat(" "));
        for (mark, line) in marks.zip(wrap(&printable(&reason.message), width.saturating_sub(2))) {
            writeln!(out, "{mark} {line}")?;
        }
    }
    for line in start(explained).iter().flat_map(|start| wrap(start, width)) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn start(explained: &JobExplanation) -> Option<String> {
    let Some(at) = explained.explanation.probable_start else {
        let text = "No estimate: the running jobs already take longer than usual.";
        return explained.explanation.is_overdue.then(|| text.to_owned());
    };
    let wait = rough(at.since(explained.now));
    match explained.explanation.estimated_from {
        Some(1) => Some(format!("It should start in about {wait}, judging by the latest job in its queue.")),
        Some(count) => {
            Some(format!("It should start in about {wait}, judging by the latest {count} jobs in its queue."))
        }
        None if at > explained.now => Some(format!("It should start in {wait} if a slot is free.")),
        None => None,
    }
}
