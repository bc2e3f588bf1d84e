//! The command line of the benchmarks.

use anyhow::{Result, bail};

use crate::BENCHMARKS;

const USAGE: &str = "bench/run [--quick] [--long] [--only NAME]… [--write]";

/// Benchmarks that run only on request: this one takes as long as all others together.
const LONG: [&str; 1] = ["million"];

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Arguments {
    /// `cargo bench` sets this. `cargo test --all-targets` starts this program too, and it must then do nothing.
    pub(crate) is_benchmark: bool,
    pub(crate) quick: bool,
    long: bool,
    write: bool,
    only: Vec<String>,
}

impl Arguments {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut arguments = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--bench" => arguments.is_benchmark = true,
                "--quick" => arguments.quick = true,
                "--long" => arguments.long = true,
                "--write" => arguments.write = true,
                "--only" => arguments.only.push(benchmark_name(words.next())?),
                _ => bail!("unknown argument `{word}`; {USAGE}"),
            }
        }
        Ok(arguments)
    }

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
        self.write || (self.only.is_empty() && !self.quick)
    }
}

fn benchmark_name(word: Option<String>) -> Result<String> {
    let names = BENCHMARKS.map(|(name, _)| name);
    match word {
        Some(word) if names.contains(&word.as_str()) => Ok(word),
        Some(_) | None => bail!("`--only` takes one of: {}", names.join(", ")),
    }
}
