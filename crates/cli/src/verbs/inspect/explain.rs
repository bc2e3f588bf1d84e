//! `queuectl explain`

use std::io::Write;
use sys::program::ExitCode;

use crate::context::Context;
use crate::failure::Failure;
use crate::flags::selection::resolve_id_to_show;
use crate::render::text::{printable, rough, state_style, wrap};
use ops::jobs::explain::{ExplanationJson, JobExplanation, explain};

/// Explain why a job is not running, and estimate when it will start
///
/// Lists everything that holds the job back: its start time, its dependencies, its queue, the workers, and the jobs ahead
/// of it. The start is estimated from the duration of the latest jobs in its queue.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  queuectl explain job1\n  queuectl explain job1 --json")]
pub(crate) struct Args {
    /// The job's id, or a unique prefix of it
    #[arg(value_name = "ID")]
    id: String,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let store = context.store()?;
    let explained = explain(store, &resolve_id_to_show(context, &args.id)?)?;
    if context.json {
        context.print_json(&ExplanationJson::from(&explained))?;
    } else if !context.quiet {
        print(context, &explained)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print(context: &Context, explained: &JobExplanation) -> Result<(), Failure> {
    let mut out = context.out();
    let state = explained.job.life.state.name();
    let style = state_style(state);
    writeln!(out, "Job {} is {style}{}{style:#}.", explained.job.id, state.name())?;
    let width = context.width();
    for reason in &explained.explanation.reasons {
        let marks = std::iter::once("-").chain(std::iter::repeat(" "));
        for (mark, line) in marks.zip(wrap(&printable(&reason.message), width.saturating_sub(2))) {
            writeln!(out, "{mark} {line}")?;
        }
    }
    for line in start(explained).iter().flat_map(|start| wrap(start, width)) {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}

fn start(explained: &JobExplanation) -> Option<String> {
    let at = explained.explanation.probable_start?;
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
