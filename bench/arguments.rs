//! What was asked for on the command line.

use anyhow::{Result, bail};

use crate::BENCHMARKS;

const USAGE: &str = "bench/run [--quick] [--long] [--only NAME]… [--write]";

/// What only runs when it is asked for: it takes as long as all others together.
const LONG: [&str; 1] = ["million"];

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Arguments {
    /// `cargo bench` says so; `cargo test --all-targets` starts this program too, and wants nothing of it.
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

    /// Whether this benchmark is to run.
    pub(crate) fn includes(&self, name: &str) -> bool {
        if self.only.is_empty() {
            self.long || !LONG.contains(&name)
        } else {
            self.only.iter().any(|only| only == name)
        }
    }

    /// Whether the document gets the result: that of a full run does, any other only if that was asked for.
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
