//! The benchmarks: how fast queuectl is against something that does the least it could do.
//!
//! Everything that is compared is measured in turn, in one run and over several rounds. On a shared machine a ratio
//! means something, a time does not. `bench/run` starts this; `docs/benchmarks.md` says what the numbers are.

mod bare;
mod drain;
mod enqueue_bulk;
mod enqueue_one;
mod filled;
mod idle;
mod large_store;
mod many_processes;
mod pool;
mod recovery;
mod report;
mod running;
mod sample;
mod spawn;
mod start_latency;
mod tiny_jobs;
mod workspace;

use std::env;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::report::Report;
use crate::workspace::Workspace;

type Benchmark = fn(&Bench, &mut Report) -> Result<()>;

const BENCHMARKS: [(&str, Benchmark); 8] = [
    ("enqueue-one", enqueue_one::run),
    ("enqueue-bulk", enqueue_bulk::run),
    ("large-store", large_store::run),
    ("drain", drain::run),
    ("many-processes", many_processes::run),
    ("start-latency", start_latency::run),
    ("idle", idle::run),
    ("recovery", recovery::run),
];

/// What every benchmark needs.
struct Bench {
    quick: bool,
    workspace: Workspace,
}

fn main() -> Result<ExitCode> {
    let words: Vec<String> = env::args().skip(1).collect();
    if let [start_latency::STAMP, file] = words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        start_latency::write_stamp(Path::new(file))?;
        return Ok(ExitCode::SUCCESS);
    }
    let arguments = Arguments::parse(words.into_iter())?;
    if !arguments.is_benchmark {
        return Ok(ExitCode::SUCCESS);
    }
    let bench = Bench { quick: arguments.quick, workspace: Workspace::new()? };
    let mut report = Report::default();
    for (name, benchmark) in BENCHMARKS {
        if arguments.only.as_deref().is_none_or(|only| only == name) {
            benchmark(&bench, &mut report)?;
        }
    }
    Ok(if report.conclude() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[derive(Default)]
struct Arguments {
    /// `cargo bench` says so; `cargo test --all-targets` starts this program too, and wants nothing of it.
    is_benchmark: bool,
    quick: bool,
    only: Option<String>,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut arguments = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--bench" => arguments.is_benchmark = true,
                "--quick" => arguments.quick = true,
                "--only" => arguments.only = Some(benchmark_name(words.next())?),
                _ => bail!("unknown argument `{word}`; bench/run [--quick] [--only NAME]"),
            }
        }
        Ok(arguments)
    }
}

fn benchmark_name(word: Option<String>) -> Result<String> {
    let names = BENCHMARKS.map(|(name, _)| name);
    match word {
        Some(word) if names.contains(&word.as_str()) => Ok(word),
        _ => bail!("`--only` takes one of: {}", names.join(", ")),
    }
}
