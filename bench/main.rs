//! The benchmarks: how fast queuectl is against something that does the least it could do.
//!
//! Everything that is compared is measured in turn, in one run and over several rounds. On a shared machine a ratio
//! means something, a time does not. `bench/run` starts this; `docs/benchmarks.md` says what the numbers are, and a full
//! run writes them into it.

mod arguments;
mod bare;
mod document;
mod drain;
mod enqueue_bulk;
mod enqueue_one;
mod figure;
mod filled;
mod graph;
mod idle;
mod instructions;
mod large_store;
mod limits;
mod machine;
mod many_processes;
mod million;
mod peer;
mod peers;
mod plot;
mod pool;
mod raw;
mod recovery;
mod report;
mod running;
mod sample;
mod spawn;
mod start_latency;
mod table;
mod tiny_jobs;
mod usage;
mod workspace;

use std::env;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::arguments::Arguments;
use crate::report::Report;
use crate::workspace::Workspace;

type Benchmark = fn(&Bench, &mut Report) -> Result<()>;

/// In the order in which they run and are written down.
const BENCHMARKS: [(&str, Benchmark); 13] = [
    ("limits", limits::run),
    ("enqueue-one", enqueue_one::run),
    ("enqueue-bulk", enqueue_bulk::run),
    ("drain", drain::run),
    ("graph", graph::run),
    ("many-processes", many_processes::run),
    ("start-latency", start_latency::run),
    ("idle", idle::run),
    ("recovery", recovery::run),
    ("large-store", large_store::run),
    ("instructions", instructions::run),
    ("peers", peers::run),
    ("million", million::run),
];

/// What every benchmark needs.
struct Bench {
    quick: bool,
    workspace: Workspace,
    began: Instant,
}

impl Bench {
    /// Says what is being done now, so that nothing that takes long is silent.
    fn progress(&self, what: &str) {
        eprintln!("[{:>5} s] {what}", self.began.elapsed().as_secs());
    }
}

fn main() -> Result<ExitCode> {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [start_latency::STAMP, file] => start_latency::write_stamp(Path::new(file))?,
        [instructions::TURNS, home, slots, turns] => {
            instructions::take_turns(Path::new(home), slots.parse()?, turns.parse()?)?;
        }
        _ => return measure(&Arguments::parse(words.into_iter())?),
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(arguments: &Arguments) -> Result<ExitCode> {
    if !arguments.is_benchmark {
        return Ok(ExitCode::SUCCESS);
    }
    let bench = Bench { quick: arguments.quick, workspace: Workspace::new()?, began: Instant::now() };
    let mut report = Report::default();
    for (name, benchmark) in BENCHMARKS.into_iter().filter(|(name, _)| arguments.includes(name)) {
        bench.progress(&format!("{name} begins"));
        report.begin(name);
        benchmark(&bench, &mut report).with_context(|| format!("failed to measure {name}"))?;
    }
    if arguments.writes() {
        let docs = Path::new(REPOSITORY).join("docs");
        let origin = machine::origin(bench.workspace.path(), bench.quick)?;
        report.write(&docs, &BENCHMARKS.map(|(name, _)| name), &origin)?;
        bench.progress("docs/benchmarks.md and docs/plots are written");
    }
    Ok(if report.conclude() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The root of the repository: this package is in `crates/cli`.
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
