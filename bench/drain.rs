//! A pool that drains a queue of jobs that do nothing, against a bare loop that starts the same programs.

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use rusqlite::Connection;

use crate::report::{Bar, Report, Unit};
use crate::running::Running;
use crate::sample::Sample;
use crate::tiny_jobs::{self, Drained};
use crate::workspace::Home;
use crate::{Bench, bare};

const LEAST: f64 = 0.90;
const MOST_BYTES: f64 = 600.0;
const SLOTS: u32 = 4;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let (jobs, rounds) = if bench.quick { (1_000, 3) } else { (5_000, 7) };
    let measured: Vec<Round> = (0..rounds).map(|_| measure(bench, jobs)).collect::<Result<_>>()?;

    let sample = |value: fn(&Round) -> f64| measured.iter().map(value).collect::<Sample>();
    let rate = |seconds: fn(&Round) -> f64| {
        measured.iter().map(|round| f64::from(jobs) / seconds(round)).collect::<Sample>()
    };
    Report::section(&format!("{jobs} jobs `true`, {SLOTS} slots, against a bare spawn loop"));
    let against_limit = sample(|round| round.limit / round.drain);
    report.line("rate of a drain, against the loop", &against_limit, Unit::Ratio, Bar::AtLeast(LEAST));
    let failures = sample(|round| round.failures);
    report.line("attempts that failed in a drain", &failures, Unit::Count, Bar::AtMost(0.0));
    let whole = sample(|round| round.limit / round.whole);
    report.line("with starting and ending the pool", &whole, Unit::Ratio, Bar::None);
    let piped = sample(|round| round.limit / round.piped);
    report.line("the loop with two pipes and a session, against it", &piped, Unit::Ratio, Bar::None);
    report.line("jobs drained", &rate(|round| round.drain), Unit::JobsPerSecond, Bar::None);
    report.line("the loop", &rate(|round| round.limit), Unit::JobsPerSecond, Bar::None);
    let beside = sample(|round| (round.whole - round.drain) * 1000.0);
    report.line("starting and ending the pool", &beside, Unit::Milliseconds, Bar::None);
    let bytes = sample(|round| round.bytes_per_job);
    report.line("database size for each finished job", &bytes, Unit::Bytes, Bar::AtMost(MOST_BYTES));
    Ok(())
}

/// Seconds, but for the last two.
struct Round {
    limit: f64,
    drain: f64,
    whole: f64,
    piped: f64,
    failures: f64,
    bytes_per_job: f64,
}

fn measure(bench: &Bench, jobs: u32) -> Result<Round> {
    let home = bench.workspace.home("drain")?;
    tiny_jobs::enqueue(&home, jobs)?;
    let limit = bare::plain(jobs, SLOTS)?;
    let whole = drain(&home).context("failed to drain a queue")?;
    let piped = bare::with_pipes(jobs, SLOTS)?;
    let Drained { seconds, failures } = tiny_jobs::drained(&home.open()?, jobs)?;
    let bytes_per_job = folded_bytes(&home)? / f64::from(jobs);
    Ok(Round { limit, drain: seconds, whole, piped, failures, bytes_per_job })
}

/// The seconds that the whole process took.
fn drain(home: &Home) -> Result<f64> {
    let slots = SLOTS.to_string();
    let workers = home.queuectl(&["worker", "run", "-q", "--concurrency", &slots, "--until-empty"])?;
    let began = Instant::now();
    Running::start(&workers)?.wait()?;
    Ok(began.elapsed().as_secs_f64())
}

/// The size of the database with all of its write-ahead log folded in.
fn folded_bytes(home: &Home) -> Result<f64> {
    let database = Connection::open(home.database())?;
    let is_busy: bool = database.query_row("pragma wal_checkpoint(truncate)", [], |row| row.get(0))?;
    ensure!(!is_busy, "somebody still has the database open");
    Ok(f64::from(u32::try_from(fs::metadata(home.database())?.len())?))
}
