//! `queuectl enqueue --file` with very many lines, compared with bare inserts into one table.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};

use crate::Bench;
use crate::output::figure::count;
use crate::output::report::{Bar, Report, Unit};
use crate::rig::raw;
use crate::rig::sample::Sample;

const MIN_JOBS_PER_SECOND: f64 = 100_000.0;
const MAX_MEGABYTES: f64 = 100.0;
const ROWS_PER_TRANSACTION: u32 = 10_000;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let (jobs, rounds) = if bench.quick { (100_000, 3) } else { (1_000_000, 5) };
    let file = bench.workspace.path().join("jobs.jsonl");
    write_lines(&file, jobs)?;

    let (mut rate, mut ratio) = (Sample::default(), Sample::default());
    let (mut memory, mut bytes) = (Sample::default(), Sample::default());
    for round in 1..=rounds {
        bench.progress(&format!("{jobs} lines, round {round} of {rounds}"));
        let home = bench.workspace.home("enqueue-bulk")?;
        let file = file.to_str().context("the path is not UTF-8")?;
        let run = home.queuectl(&["enqueue", "--file", file])?.run().context("failed to enqueue a file")?;
        let size = u32::try_from(fs::metadata(home.database())?.len() / u64::from(jobs))?;
        drop(home);
        let raw = raw::insert_seconds(&bench.workspace.path().join("raw.db"), jobs, ROWS_PER_TRANSACTION)?;

        let seconds = run.wall.as_secs_f64();
        rate.push(f64::from(jobs) / seconds);
        ratio.push(seconds / raw);
        memory.push(f64::from(u32::try_from(run.max_rss_bytes / 1024)?) / 1024.0);
        bytes.push(f64::from(size));
    }
    fs::remove_file(&file)?;

    report.section(&format!("enqueue --file with {} lines", count(jobs)));
    let least = Bar::AtLeast(MIN_JOBS_PER_SECOND);
    report.line("jobs stored", &rate, Unit::PerSecond, least);
    report.line("time, relative to bare inserts of the same rows", &ratio, Unit::Ratio, Bar::None);
    report.line("peak resident memory", &memory, Unit::Megabytes, Bar::AtMost(MAX_MEGABYTES));
    report.line("database size per pending job", &bytes, Unit::Bytes, Bar::None);
    Ok(())
}

fn write_lines(path: &Path, count: u32) -> Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    for number in 0..count {
        writeln!(out, r#"{{"command":"echo {number}"}}"#)?;
    }
    out.into_inner()?.sync_all()?;
    Ok(())
}
