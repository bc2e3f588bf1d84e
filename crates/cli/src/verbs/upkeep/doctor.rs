//! `queuectl doctor`

use std::cell::RefCell;
use std::io::Write;

use anstyle::{AnsiColor, Style};

use crate::confirm::ask;
use crate::context::Context;
use crate::failure::{Failure, exit_of_diagnosis};
use crate::render::progress::Bar;
use crate::render::text::{grouped, printable, rough_size, wrap};
use ops::doctor::{Diagnosis, DiagnosisJson, Finding, Level, diagnose, repair};
use store::sqlite::Depth;
use sys::process::user;

/// Check the queue, its workers and this machine
///
/// Changes nothing unless --repair is given. The exit code is 0 if no error was found, 7 if the database is corrupt or of a
/// newer version, 5 if it cannot be used, 1 for any other error. Warnings are not errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl doctor
  queuectl doctor --full
  queuectl doctor --repair --yes
  queuectl doctor --json | jq '.findings[] | select(.level != \"ok\")'")]
pub(crate) struct Args {
    /// Check everything, which takes longer: every index, and that counters, waiting lists, dependencies, keys and tags agree
    /// with the jobs
    #[arg(long)]
    full: bool,
    /// Rebuild derived data that disagrees with the jobs
    ///
    /// The queue is checked as with --full, repaired, and checked again; remaining errors are shown and decide the exit
    /// code. No job is removed, and jobs change only in what they wait for; a job that waits for a failed job is cancelled.
    /// The repair uses short transactions, so workers can keep running. A damaged database file is not repaired.
    #[arg(long)]
    repair: bool,
    /// Do not ask before repairing more than one thing
    #[arg(short, long, requires = "repair")]
    yes: bool,
}

/// A message is shown while a database of at least this size is read.
const LARGE_BYTES: u64 = 64 << 20;

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let mut diagnosis = check(args, context);
    let found = diagnosis.contradictions.len();
    let mut repaired = None;
    if args.repair && found > 0 && diagnosis.is_database_whole() {
        repair_contradictions(args, context, &diagnosis)?;
        diagnosis = check(args, context);
        repaired = Some(found.saturating_sub(diagnosis.contradictions.len()));
    }
    if context.json {
        context.print_json(&DiagnosisJson::new(&diagnosis, repaired))?;
    } else if !context.quiet {
        print(&diagnosis, repaired, context)?;
    }
    if diagnosis.is_ok() {
        return Ok(());
    }
    Err(Failure::new(exit_of_diagnosis(diagnosis.refusal.as_ref()), error_message(&diagnosis, context)))
}

fn check(args: &Args, context: &Context) -> Diagnosis {
    let depth = if args.full || args.repair { Depth::Full } else { Depth::Quick };
    let bar = RefCell::new(Bar::new(context, "", None));
    let on_full_read = |bytes: u64| {
        if bytes >= LARGE_BYTES {
            bar.borrow_mut().say(|| format!("reading the database ({})", rough_size(bytes)));
        }
    };
    diagnose(context.location_flags(), depth, &on_full_read, &context.time_format())
}

/// Repairs the contradictions, after asking.
fn repair_contradictions(args: &Args, context: &Context, diagnosis: &Diagnosis) -> Result<(), Failure> {
    let found = &diagnosis.contradictions;
    if found.len() > 1 {
        ask(context, &format!("repair {}", contradictions(found.len())), args.yes)?;
    }
    Ok(repair(context.store()?, found, &user::name())?)
}

/// `1 contradiction`, `2 contradictions`
fn contradictions(count: usize) -> String {
    format!("{} contradiction{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}

fn print(diagnosis: &Diagnosis, repaired: Option<usize>, context: &Context) -> Result<(), Failure> {
    let mut out = context.out();
    let column = diagnosis.findings.iter().map(|finding| finding.check.len()).max().unwrap_or(0);
    for line in diagnosis.findings.iter().flat_map(|finding| lines(finding, column, context.width())) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    if let Some(repaired) = repaired {
        writeln!(out, "{} repaired", contradictions(repaired))?;
    }
    // Otherwise the error message is the summary.
    if diagnosis.is_ok() {
        writeln!(out, "{}", summary(diagnosis))?;
    }
    Ok(out.flush()?)
}

/// The width of the longest level.
const LEVEL_COLUMN: usize = 7;
const GAP: usize = 2;

/// `warning  space  63 MiB free`, with the advice below.
fn lines(finding: &Finding, column: usize, width: usize) -> Vec<String> {
    let style = level_style(finding.level);
    let (level, check) = (finding.level.name(), finding.check);
    let indent = LEVEL_COLUMN + GAP + column + GAP;
    let room = width.saturating_sub(indent);
    let head = format!("{style}{level:LEVEL_COLUMN$}{style:#}  {check:column$}  ");
    let heads = std::iter::once(head).chain(std::iter::repeat(" ".repeat(indent)));
    let mut lines: Vec<String> =
        heads.zip(wrap(&printable(&finding.message), room)).map(|(head, line)| head + &line).collect();
    let dim = Style::new().dimmed();
    let advice = finding.advice.iter().flat_map(|advice| wrap(&printable(&format!("hint: {advice}")), room));
    lines.extend(advice.map(|line| format!("{}{dim}{line}{dim:#}", " ".repeat(indent))));
    lines
}

fn level_style(level: Level) -> Style {
    match level {
        Level::Ok => AnsiColor::Green.on_default(),
        Level::Warning => AnsiColor::Yellow.on_default(),
        Level::Error => AnsiColor::Red.on_default().bold(),
    }
}

fn summary(diagnosis: &Diagnosis) -> String {
    match diagnosis.count(Level::Warning) {
        0 => "No problems found.".to_owned(),
        1 => "No errors, 1 warning.".to_owned(),
        warnings => format!("No errors, {warnings} warnings."),
    }
}

/// The error message. With `--quiet` the list of findings was not printed, so the message contains the findings.
fn error_message(diagnosis: &Diagnosis, context: &Context) -> String {
    let errors = diagnosis.findings.iter().filter(|finding| finding.level == Level::Error);
    let (count, were) = match diagnosis.count(Level::Error) {
        1 => ("1 error".to_owned(), "was"),
        errors => (format!("{errors} errors"), "were"),
    };
    if context.quiet {
        let findings: Vec<String> =
            errors.map(|finding| format!("{}: {}", finding.check, finding.message)).collect();
        return format!("{count} {were} found ({})", findings.join("; "));
    }
    let mut checks: Vec<&str> = errors.map(|finding| finding.check).collect();
    checks.dedup();
    format!("{count} {were} found ({})", checks.join(", "))
}
