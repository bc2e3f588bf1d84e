//! The cost of the disk and SQLite alone: a lower bound for durable operations.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use rusqlite::{Connection, params};

use crate::rig::sample::Sample;

const PAGE: [u8; 4096] = [b'x'; 4096];

/// The seconds of each of `count` rounds of appending 4 KiB and syncing.
pub(crate) fn sync_seconds(log: &mut File, count: usize) -> Result<Sample> {
    (0..count)
        .map(|_| {
            let began = Instant::now();
            log.write_all(&PAGE)?;
            log.sync_data()?;
            Ok(began.elapsed().as_secs_f64())
        })
        .collect()
}

/// The seconds to insert `count` rows durably into a new table without an index.
pub(crate) fn insert_seconds(path: &Path, count: u32, rows_per_transaction: u32) -> Result<f64> {
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
        for _ in 0..rows_per_transaction {
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
