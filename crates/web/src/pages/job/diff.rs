//! How the outputs of two attempts differ, line by line.

use maud::{Markup, html};

use super::lines::Wanted;
use crate::pages::view::{Place, View};
use crate::pages::visit::Visit;
use crate::parts::diff::{Step, diff};
use crate::parts::number::grouped;
use crate::parts::sgr::{self, Look};
use crate::problem::Problem;
use crate::request::query::{NUMBER, Param};
use domain::job::{Attempt, JobRecord};
use domain::text::hostile::printable;
use ops::OpError;
use ops::jobs::logs::{AttemptOutput, Piece, has_ended};

pub(in crate::pages) const PARAMS: &[Param] =
    &[Param::new("a", NUMBER, "The earlier attempt"), Param::new("b", NUMBER, "The later attempt")];

/// Of each output, at most this many bytes and lines are compared.
const MAX_BYTES: usize = 4 << 20;
const MAX_LINES: usize = 20_000;
/// Lines around a difference.
const AROUND: usize = 3;
/// More rows than this are not shown.
const MAX_ROWS: usize = 2_000;

pub(super) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let record = super::record(visit)?;
    let (a, b) = (chosen(visit, &record, "a")?, chosen(visit, &record, "b")?);
    let content = match (lines(visit, &record, a)?, lines(visit, &record, b)?) {
        (Some(old), Some(new)) => compared(&old, &new),
        (None, _) => missing(a),
        (_, None) => missing(b),
    };
    let handle = record.job.handle();
    let head = html! {
        div .bar {
            h1 { "Output of job " a .id href=(visit.job_url(&record.job.id)) { (printable(&handle)) } ": attempts " (a.number) " and " (b.number) }
            (choices(visit, &record, "a", a, b))
            (choices(visit, &record, "b", a, b))
        }
        p .note { (ended(a)) " → " (ended(b)) }
    };
    let view = View::new(format!("Attempts {} and {} of job {handle}", a.number, b.number), Place::Jobs);
    Ok(view.with("job", "Job", head).with_still("diff", "Differences", content))
}

/// The attempt in the query; without one, the last two are compared.
fn chosen<'r>(visit: &Visit<'_>, record: &'r JobRecord, name: &str) -> Result<&'r Attempt, Problem> {
    let typed: Option<u32> = visit.query.read(name)?;
    let known = || record.history.iter().map(|attempt| attempt.number).collect();
    let Some(wanted) = typed else {
        let back = usize::from(name == "a").min(record.history.len().saturating_sub(1));
        let found = record.history.iter().rev().nth(back);
        return found.ok_or_else(|| Problem::not_found("the job has not run yet"));
    };
    let found = record.history.iter().find(|attempt| attempt.number == wanted);
    let job = record.job.id.clone();
    Ok(found.ok_or_else(|| OpError::NoSuchAttempt { job, attempt: wanted, known: known() })?)
}

fn choices(visit: &Visit<'_>, record: &JobRecord, name: &str, a: &Attempt, b: &Attempt) -> Markup {
    let chosen = if name == "a" { a } else { b };
    html! {
        nav .ranges aria-label=(if name == "a" { "Earlier attempt" } else { "Later attempt" }) {
            @for known in &record.history {
                @let (left, right) = if name == "a" { (known.number, b.number) } else { (a.number, known.number) };
                a href={ (visit.job_url(&record.job.id)) "/diff?a=" (left) "&b=" (right) } aria-current=[(known.number == chosen.number).then_some("true")] { (known.number) }
            }
        }
    }
}

fn ended(attempt: &Attempt) -> String {
    let how = match &attempt.ending {
        Some(ending) => ending.outcome.to_string(),
        None => "still runs".to_owned(),
    };
    format!("attempt {}: {how}", attempt.number)
}

fn missing(attempt: &Attempt) -> Markup {
    html! { p .empty { "The output of attempt " (attempt.number) " is not kept any more." } }
}

/// The lines of an attempt; `None` if its output is gone.
fn lines(visit: &Visit<'_>, record: &JobRecord, attempt: &Attempt) -> Result<Option<Vec<Vec<u8>>>, Problem> {
    if let Err(problem) = super::lines::read(visit, record, attempt, Wanted::default()) {
        return if problem.doubts_store { Err(problem) } else { Ok(None) };
    }
    let home = &visit.server.options.location.home;
    let mut output = AttemptOutput::new(home, &record.job, attempt);
    let has_ended = has_ended(&record.job, attempt.number);
    let mut bytes: Vec<u8> = Vec::new();
    while bytes.len() < MAX_BYTES {
        let pieces = output.read(visit.store, has_ended)?;
        if pieces.is_empty() {
            break;
        }
        for piece in &pieces {
            match piece {
                Piece::Output(chunk) => bytes.extend_from_slice(&chunk.bytes),
                Piece::Cut { bytes: cut } => {
                    bytes.extend(format!("[{cut} bytes were not kept here]\n").bytes());
                }
            }
        }
    }
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let plain = |line: &[u8]| line.strip_suffix(b"\n").unwrap_or(line).to_vec();
    Ok(Some(lines.take(MAX_LINES).map(plain).collect()))
}

fn compared(old: &[Vec<u8>], new: &[Vec<u8>]) -> Markup {
    let steps = diff(old, new);
    let is_near = near(&steps);
    let removed = steps.iter().filter(|step| matches!(step, Step::Removed(_))).count();
    let added = steps.iter().filter(|step| matches!(step, Step::Added(_))).count();
    let mut shown = 0;
    let rows: Vec<Markup> = steps
        .iter()
        .enumerate()
        .filter(|(at, _)| is_near[*at])
        .take(MAX_ROWS)
        .map(|(at, step)| {
            shown += 1;
            let is_after_gap = at > 0 && !is_near[at - 1];
            html! { @if is_after_gap { li .gap { "⋯" } } (row(step, old, new)) }
        })
        .collect();
    html! {
        p { b .minus { "− " (grouped(removed as u64)) } " " b .plus { "+ " (grouped(added as u64)) } " lines" }
        @if removed + added == 0 {
            p .empty { "Both attempts printed the same." }
        } @else {
            ol .log.diff tabindex="0" aria-label="Differences" { @for row in &rows { (row) } }
            @if shown == MAX_ROWS { p .note { "Only the first " (grouped(MAX_ROWS as u64)) " rows are shown." } }
        }
    }
}

/// Which steps are near a difference.
fn near(steps: &[Step]) -> Vec<bool> {
    let mut near = vec![false; steps.len()];
    for (at, _) in steps.iter().enumerate().filter(|(_, step)| !matches!(step, Step::Same(..))) {
        let end = (at + AROUND + 1).min(steps.len());
        near[at.saturating_sub(AROUND)..end].fill(true);
    }
    near
}

fn row(step: &Step, old: &[Vec<u8>], new: &[Vec<u8>]) -> Markup {
    let text = |line: &[u8]| sgr::line(line, &mut Look::default());
    let number = |at: Option<usize>| html! { span .n { @if let Some(at) = at { (at + 1) } } };
    match *step {
        Step::Same(left, right) => {
            html! { li { (number(Some(left))) (number(Some(right))) code { "  " (text(&old[left])) } } }
        }
        Step::Removed(left) => {
            html! { li .minus { (number(Some(left))) (number(None)) code { "− " (text(&old[left])) } } }
        }
        Step::Added(right) => {
            html! { li .plus { (number(None)) (number(Some(right))) code { "+ " (text(&new[right])) } } }
        }
    }
}
