//! The benchmarks: how fast queuectl is compared with a program that does only the unavoidable part of the work.
//!
//! The compared programs take turns in one run of several rounds: on a shared machine ratios are meaningful, absolute
//! times are not. `bench/run` starts this program; `docs/benchmarks.md` explains the numbers, and a full run writes
//! them into it.

mod against;
mod arguments;
mod benchmarks;
mod output;
mod rig;

use std::env;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;

use crate::arguments::Arguments;
use crate::benchmarks::{
    dashboard, drain, enqueue_bulk, enqueue_one, graph, idle, instructions, large_store, limits,
    many_processes, million, peers, postgres, recovery, scale, start_latency, top,
};
use crate::output::machine;
use crate::output::report::Report;
use crate::rig::workspace::Workspace;

type Benchmark = fn(&Bench, &mut Report) -> Result<()>;

/// In the order in which they run and appear in the document.
const BENCHMARKS: [(&str, Benchmark); 20] = [
    ("limits", limits::run),
    ("enqueue-one", enqueue_one::run),
    ("enqueue-bulk", enqueue_bulk::run),
    ("drain", drain::run),
    ("graph", graph::run),
    ("many-processes", many_processes::run),
    ("start-latency", start_latency::run),
    ("idle", idle::run),
    ("top", top::run),
    ("recovery", recovery::run),
    ("large-store", large_store::run),
    ("dashboard", dashboard::run),
    ("pages", dashboard::in_browser),
    ("instructions", instructions::run),
    ("peers", peers::run),
    ("postgres", postgres::run),
    ("million", million::run),
    ("fleet", scale::fleet::run),
    ("ten-million", scale::ten_million::run),
    ("steady", scale::steady::run),
];

/// The context of every benchmark.
struct Bench {
    quick: bool,
    /// The size of large stores, if it was chosen.
    jobs: Option<u32>,
    workspace: Workspace,
    began: Instant,
}

impl Bench {
    /// Prints the current step, so that a long benchmark is not silent.
    fn progress(&self, what: &str) {
        eprintln!("[{:>5} s] {what}", self.began.elapsed().as_secs());
    }

    /// How many jobs the large store of a benchmark has.
    fn large_store_jobs(&self) -> u32 {
        self.jobs.unwrap_or(if self.quick { 300_000 } else { 10_000_000 })
    }
}

fn main() -> Result<ExitCode> {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [start_latency::STAMP, file] => start_latency::write_stamp(Path::new(file))?,
        [instructions::EXCHANGES, home, slots, exchanges] => {
            instructions::exchange_repeatedly(Path::new(home), slots.parse()?, exchanges.parse()?)?;
        }
        _ => return measure(&Arguments::parse()),
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(arguments: &Arguments) -> Result<ExitCode> {
    if !arguments.is_benchmark {
        return Ok(ExitCode::SUCCESS);
    }
    let bench = Bench {
        quick: arguments.quick,
        jobs: arguments.jobs,
        workspace: Workspace::new()?,
        began: Instant::now(),
    };
    let mut report = Report::default();
    if let Some(other) = &arguments.against {
        report.begin("against");
        against::run(&bench, other, &mut report)
            .with_context(|| format!("failed to compare with {}", other.display()))?;
        return Ok(if report.conclude() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    for (name, benchmark) in BENCHMARKS.into_iter().filter(|(name, _)| arguments.includes(name)) {
        bench.progress(&format!("starting {name}"));
        report.begin(name);
        benchmark(&bench, &mut report).with_context(|| format!("failed to measure {name}"))?;
    }
    if arguments.writes() {
        let docs = Path::new(REPOSITORY).join("docs");
        let origin = machine::origin(bench.workspace.path(), bench.quick)?;
        report.write(&docs, &BENCHMARKS.map(|(name, _)| name), &origin)?;
        bench.progress("wrote docs/benchmarks.md and docs/plots");
    }
    Ok(if report.conclude() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The root of the repository: this package is in `crates/cli`.
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
