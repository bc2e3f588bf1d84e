//! The command line of the benchmarks.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::PossibleValuesParser;

use crate::BENCHMARKS;

/// Benchmarks that run only on request: together they take longer than all others.
const LONG: [&str; 4] = ["million", "fleet", "ten-million", "steady"];

#[derive(Parser)]
#[command(bin_name = "bench/run")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Arguments {
    // `cargo bench` sets this. `cargo test --all-targets` starts this program too, and it must then do nothing.
    #[arg(long = "bench", hide = true)]
    pub(crate) is_benchmark: bool,
    /// Smaller, with fewer rounds
    #[arg(long)]
    pub(crate) quick: bool,
    /// Also the benchmarks that take long
    #[arg(long)]
    long: bool,
    /// Write the results into the document, which only a full run does by itself
    #[arg(long)]
    write: bool,
    /// How many jobs the stores of `dashboard` have
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<u32>,
    /// Compare single commands and the start of a job with another build of queuectl, and nothing else
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["only", "long", "write"])]
    pub(crate) against: Option<PathBuf>,
    /// Only these benchmarks (repeatable, or separated by commas)
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = PossibleValuesParser::new(BENCHMARKS.map(|(name, _)| name)))]
    only: Vec<String>,
}

impl Arguments {
    /// Whether this benchmark is selected.
    pub(crate) fn includes(&self, name: &str) -> bool {
        if self.only.is_empty() {
            self.long || !LONG.contains(&name)
        } else {
            self.only.iter().any(|only| only == name)
        }
    }

    /// Whether to write the result into the document: always for a full run, otherwise only with `--write`.
    pub(crate) fn writes(&self) -> bool {
        self.write || (self.only.is_empty() && self.against.is_none() && !self.quick)
    }
}
