//! A pool that drains a queue of jobs that do next to nothing, against a bare loop that starts the same programs.

mod matrix;

use anyhow::Result;

use crate::bare::Command;
use crate::figure::count;
use crate::report::{Bar, Report, Unit};
use crate::sample::Sample;
use crate::tiny_jobs::{self, Drained};
use crate::{Bench, bare};

const LEAST: f64 = 0.90;
const MOST_BYTES: f64 = 600.0;
const SLOTS: u32 = 4;
/// The loops that are only there to be looked at run so much shorter.
const BESIDE: u32 = 4;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    four_slots(bench, report)?;
    matrix::run(bench, report)
}

/// The one number that has to be reached, in many rounds.
fn four_slots(bench: &Bench, report: &mut Report) -> Result<()> {
    let (jobs, rounds) = if bench.quick { (2_000, 5) } else { (10_000, 9) };
    let mut measured = Vec::new();
    for round in 1..=rounds {
        bench.progress(&format!("{jobs} jobs `true` with {SLOTS} slots, round {round} of {rounds}"));
        measured.push(measure(bench, jobs)?);
    }

    let sample = |value: fn(&Round) -> f64| measured.iter().map(value).collect::<Sample>();
    report.section(&format!("{} jobs `true`, {SLOTS} slots, against a bare spawn loop", count(jobs)));
    let ratio = sample(|round| round.drain / round.limit);
    report.line("rate of a drain, against the loop of `/bin/true`", &ratio, Unit::Ratio, Bar::AtLeast(LEAST));
    let shell = sample(|round| round.drain / round.shell);
    report.line("rate of a drain, against the loop of `sh -c true`", &shell, Unit::Ratio, Bar::None);
    let failures = sample(|round| round.failures);
    report.line("attempts that failed in a drain", &failures, Unit::Count, Bar::AtMost(0.0));
    let whole = sample(|round| round.whole / round.limit);
    report.line("with starting and ending the pool", &whole, Unit::Ratio, Bar::None);
    let piped = sample(|round| round.piped / round.limit);
    report.line("the loop with two pipes and a session, against it", &piped, Unit::Ratio, Bar::None);
    report.line("jobs drained", &sample(|round| round.drain), Unit::PerSecond, Bar::None);
    report.line("the loop of `/bin/true`", &sample(|round| round.limit), Unit::PerSecond, Bar::None);
    report.line("the loop of `sh -c true`", &sample(|round| round.shell), Unit::PerSecond, Bar::None);
    let beside = sample(|round| round.beside_milliseconds);
    report.line("starting and ending the pool", &beside, Unit::Milliseconds, Bar::None);
    let bytes = sample(|round| round.bytes_per_job);
    report.line("database size for each finished job", &bytes, Unit::Bytes, Bar::AtMost(MOST_BYTES));
    Ok(())
}

/// Jobs or programs per second, but for the last three.
struct Round {
    limit: f64,
    shell: f64,
    piped: f64,
    drain: f64,
    whole: f64,
    beside_milliseconds: f64,
    failures: f64,
    bytes_per_job: f64,
}

fn measure(bench: &Bench, jobs: u32) -> Result<Round> {
    let (all, fewer) = (f64::from(jobs), jobs / BESIDE);
    let home = bench.workspace.home("drain")?;
    tiny_jobs::enqueue(&home, "true", jobs)?;
    // Half of the loop before the drain and half after it, so that a machine that changes its pace does so for both.
    let before = bare::plain(Command::TRUE, jobs / 2, SLOTS)?;
    let whole = tiny_jobs::drain_by_slots(&home, SLOTS)?;
    let limit = before + bare::plain(Command::TRUE, jobs / 2, SLOTS)?;
    let piped = bare::with_pipes(fewer, SLOTS)?;
    let shell = bare::plain(Command::SHELL_TRUE, fewer, SLOTS)?;
    let Drained { seconds, failures } = tiny_jobs::drained(&home.open()?, jobs)?;
    Ok(Round {
        limit: all / limit,
        shell: f64::from(fewer) / shell,
        piped: f64::from(fewer) / piped,
        drain: all / seconds,
        whole: all / whole,
        beside_milliseconds: (whole - seconds) * 1000.0,
        failures,
        bytes_per_job: tiny_jobs::folded_bytes(&home)? / all,
    })
}
