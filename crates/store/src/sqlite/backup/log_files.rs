//! The log files in a backup: a table of chunks, so that neither writing nor reading a backup takes much memory.
//!
//! A log that is being written may have a hole of any size in the middle; holes are not stored: see [`sparse::Parts`].

use std::fs::{DirEntry, File};
use std::path::Path;

use rusqlite::{Connection, params};

use crate::{Result, StoreError};
use domain::log::parse_file_name;
use sys::fs::{owner_only, sparse};

/// The approximate size of the files in this folder.
pub(super) fn bytes(folder: &Path) -> u64 {
    log_files(folder).iter().filter_map(|(_, entry)| Some(entry.metadata().ok()?.len())).sum()
}

/// The log files in a folder with their job numbers. Unreadable entries are skipped.
fn log_files(folder: &Path) -> Vec<(u64, DirEntry)> {
    let Ok(entries) = folder.read_dir() else {
        return Vec::new();
    };
    let number = |entry: &DirEntry| Some(parse_file_name(entry.file_name().to_str()?)?.0);
    entries.flatten().filter_map(|entry| Some((number(&entry)?, entry))).collect()
}

/// Stores the logs of the jobs that are in the backup. Newer logs belong to jobs that the backup does not contain.
pub(super) fn store(to: &Connection, folder: &Path, mut progress: impl FnMut(u64)) -> Result<()> {
    to.execute_batch(
        "begin;
         create table log_files (name text not null, offset integer not null, content blob not null,
                                 primary key (name, offset)) strict;",
    )?;
    for (number, entry) in log_files(folder) {
        let is_known = to.prepare_cached("select 1 from jobs where seq = ?1")?.exists([number])?;
        let name = entry.file_name();
        if let (true, Some(name), Ok(Some(file))) =
            (is_known, name.to_str(), owner_only::open_regular(&entry.path()))
        {
            store_file(to, name, &file, &mut progress)?;
        }
    }
    Ok(to.execute_batch("commit")?)
}

fn store_file(to: &Connection, name: &str, file: &File, progress: &mut impl FnMut(u64)) -> Result<()> {
    let mut insert =
        to.prepare_cached("insert into log_files (name, offset, content) values (?1, ?2, ?3)")?;
    let mut parts = sparse::Parts::of(file);
    while let Some((offset, content)) = parts.next_part().map_err(StoreError::unavailable)? {
        insert.execute(params![name, offset, content])?;
        progress(content.len() as u64);
    }
    Ok(())
}

/// Extracts the log files of a backup into an empty folder and drops the table, which a queue does not have.
pub(super) fn extract(from: &Connection, folder: &Path) -> Result<()> {
    if from.table_exists(None, "log_files")? {
        extract_files(from, folder)?;
        from.execute_batch("drop table log_files; pragma incremental_vacuum;")?;
    }
    Ok(())
}

fn extract_files(from: &Connection, folder: &Path) -> Result<()> {
    let mut select = from.prepare("select name, offset, content from log_files order by name, offset")?;
    let mut rows = select.query([])?;
    let mut open: Option<(String, File)> = None;
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        // A backup is untrusted input: skip names that are not log files.
        if parse_file_name(&name).is_none() {
            continue;
        }
        let file = match open.take() {
            Some((before, file)) if before == name => file,
            _ => owner_only::replace_file(&folder.join(&name)).map_err(StoreError::unavailable)?,
        };
        let content = row.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?;
        sparse::write_part(&file, row.get(1)?, content).map_err(StoreError::unavailable)?;
        open = Some((name, file));
    }
    Ok(())
}
