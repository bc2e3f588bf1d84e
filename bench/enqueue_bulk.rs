//! `queuectl enqueue --file` with very many lines, against bare inserts into one table.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use rusqlite::{Connection, params};

use crate::Bench;
use crate::report::{Bar, Report, Unit};
use crate::sample::Sample;

const LEAST_JOBS_PER_SECOND: f64 = 100_000.0;
const MOST_MEGABYTES: f64 = 100.0;
const ROWS_PER_TRANSACTION: u32 = 10_000;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let (jobs, rounds) = if bench.quick { (100_000, 3) } else { (1_000_000, 5) };
    let file = bench.workspace.path().join("jobs.jsonl");
    write_lines(&file, jobs)?;

    let (mut rate, mut ratio) = (Sample::default(), Sample::default());
    let (mut memory, mut bytes) = (Sample::default(), Sample::default());
    for _ in 0..rounds {
        let home = bench.workspace.home("enqueue-bulk")?;
        let file = file.to_str().context("a plain path")?;
        let run = home.queuectl(&["enqueue", "--file", file])?.run().context("failed to enqueue a file")?;
        let size = u32::try_from(fs::metadata(home.database())?.len() / u64::from(jobs))?;
        drop(home);
        let raw = insert_raw(&bench.workspace.path().join("raw.db"), jobs)?;

        let seconds = run.wall.as_secs_f64();
        rate.push(f64::from(jobs) / seconds);
        ratio.push(seconds / raw);
        memory.push(f64::from(u32::try_from(run.max_rss_bytes / 1024)?) / 1024.0);
        bytes.push(f64::from(size));
    }
    fs::remove_file(&file)?;

    Report::section(&format!("enqueue --file with {jobs} lines"));
    let least = Bar::AtLeast(LEAST_JOBS_PER_SECOND);
    report.line("jobs stored", &rate, Unit::JobsPerSecond, least);
    report.line("time, against bare inserts of the same rows", &ratio, Unit::Ratio, Bar::None);
    report.line("most memory resident", &memory, Unit::Megabytes, Bar::AtMost(MOST_MEGABYTES));
    report.line("database size for each pending job", &bytes, Unit::Bytes, Bar::None);
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

/// The seconds that it takes to insert so many rows into a table without any index.
fn insert_raw(path: &Path, count: u32) -> Result<f64> {
    let began = Instant::now();
    let connection = Connection::open(path)?;
    connection.execute_batch(
        "pragma journal_mode = wal;
         pragma synchronous = full;
         create table jobs (seq integer primary key, queue_id integer, state text, due_at integer, command text);",
    )?;
    let mut number = 0;
    while number < count {
        connection.execute_batch("begin immediate")?;
        let mut insert = connection.prepare_cached(
            "insert into jobs (seq, queue_id, state, due_at, command) values (?1, 1, 'pending', ?2, ?3)",
        )?;
        for _ in 0..ROWS_PER_TRANSACTION {
            insert.execute(params![number, 1_800_000_000_000_i64, format!("echo {number}")])?;
            number += 1;
        }
        connection.execute_batch("commit")?;
    }
    drop(connection);
    let seconds = began.elapsed().as_secs_f64();
    fs::remove_file(path)?;
    Ok(seconds)
}
