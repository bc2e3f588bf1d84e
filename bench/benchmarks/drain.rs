//! A pool that drains a queue of almost empty jobs, compared with a bare loop that starts the same programs.

mod matrix;

use anyhow::Result;

use crate::Bench;
use crate::output::figure::count;
use crate::output::report::{Bar, Report, Unit};
use crate::rig::bare;
use crate::rig::bare::Command;
use crate::rig::sample::Sample;
use crate::rig::tiny_jobs::{self, DrainResult};

const MIN_RATIO: f64 = 0.90;
const MAX_BYTES_PER_JOB: f64 = 600.0;
const SLOTS: u32 = 4;
/// The loops that are reported for information only run this many times fewer programs.
const INFORMATION_DIVISOR: u32 = 4;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    four_slots(bench, report)?;
    matrix::run(bench, report)
}

/// The number with a target, measured over many rounds.
fn four_slots(bench: &Bench, report: &mut Report) -> Result<()> {
    let (jobs, rounds) = if bench.quick { (2_000, 5) } else { (10_000, 9) };
    let mut measured = Vec::new();
    for round in 1..=rounds {
        bench.progress(&format!("{jobs} jobs `true` with {SLOTS} slots, round {round} of {rounds}"));
        measured.push(measure(bench, jobs)?);
    }

    let sample = |value: fn(&Round) -> f64| measured.iter().map(value).collect::<Sample>();
    report.section(&format!("{} jobs `true`, {SLOTS} slots, compared with a bare spawn loop", count(jobs)));
    let ratio = sample(|round| round.drain / round.limit);
    report.line(
        "drain rate, relative to the loop of `/bin/true`",
        &ratio,
        Unit::Ratio,
        Bar::AtLeast(MIN_RATIO),
    );
    let shell = sample(|round| round.drain / round.shell);
    report.line("drain rate, relative to the loop of `sh -c true`", &shell, Unit::Ratio, Bar::None);
    let failures = sample(|round| round.failures);
    report.line("failed attempts in a drain", &failures, Unit::Count, Bar::AtMost(0.0));
    let whole = sample(|round| round.whole / round.limit);
    report.line(
        "drain rate including pool start and stop, relative to the loop",
        &whole,
        Unit::Ratio,
        Bar::None,
    );
    let piped = sample(|round| round.piped / round.limit);
    report.line(
        "the loop with two pipes and a session, relative to the loop",
        &piped,
        Unit::Ratio,
        Bar::None,
    );
    report.line("jobs drained", &sample(|round| round.drain), Unit::PerSecond, Bar::None);
    report.line("the loop of `/bin/true`", &sample(|round| round.limit), Unit::PerSecond, Bar::None);
    report.line("the loop of `sh -c true`", &sample(|round| round.shell), Unit::PerSecond, Bar::None);
    let overhead = sample(|round| round.start_stop_milliseconds);
    report.line("starting and stopping the pool", &overhead, Unit::Milliseconds, Bar::None);
    let bytes = sample(|round| round.bytes_per_job);
    report.line("database size per finished job", &bytes, Unit::Bytes, Bar::AtMost(MAX_BYTES_PER_JOB));
    Ok(())
}

/// Jobs or programs per second, except for the last three fields.
struct Round {
    limit: f64,
    shell: f64,
    piped: f64,
    drain: f64,
    whole: f64,
    start_stop_milliseconds: f64,
    failures: f64,
    bytes_per_job: f64,
}

fn measure(bench: &Bench, jobs: u32) -> Result<Round> {
    let (all, fewer) = (f64::from(jobs), jobs / INFORMATION_DIVISOR);
    let home = bench.workspace.home("drain")?;
    tiny_jobs::enqueue(&home, "true", jobs)?;
    // Half of the loop runs before the drain and half after it, so that a change in the machine's speed affects both.
    let before = bare::plain(Command::TRUE, jobs / 2, SLOTS)?;
    let whole = tiny_jobs::drain_by_slots(&home, SLOTS)?;
    let limit = before + bare::plain(Command::TRUE, jobs / 2, SLOTS)?;
    let piped = bare::with_pipes(fewer, SLOTS)?;
    let shell = bare::plain(Command::SHELL_TRUE, fewer, SLOTS)?;
    let DrainResult { seconds, failures } = tiny_jobs::drain_result(home.open()?.as_ref(), jobs)?;
    Ok(Round {
        limit: all / limit,
        shell: f64::from(fewer) / shell,
        piped: f64::from(fewer) / piped,
        drain: all / seconds,
        whole: all / whole,
        start_stop_milliseconds: (whole - seconds) * 1000.0,
        failures,
        bytes_per_job: tiny_jobs::checkpointed_bytes(&home)? / all,
    })
}
