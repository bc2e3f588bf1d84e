//! Examining a database without changing it: whether it is a queue, its schema version, and its integrity.

use std::path::Path;

use rusqlite::{Connection, ErrorCode};

use super::file_state::{retry_while_changing, retry_while_readonly};
use super::migrate;
use super::open::{check_kind, check_place, log_length};
use super::{gate, read_only};
use crate::{Result, StoreError};

/// How thorough the examination is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Every page and every row.
    Quick,
    /// Also whether every index agrees with its table.
    Full,
}

/// The result of an examination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examination {
    /// The version of the SQLite library.
    pub library: &'static str,
    /// The version of the schema; 0 for an empty database.
    pub schema: u32,
    /// The newest version that this program supports.
    pub newest_schema: u32,
    /// The length of the write-ahead log.
    pub log_bytes: u64,
    pub database_bytes: u64,
    /// The damage in SQLite's words; empty if there is none.
    pub damage: Vec<String>,
}

/// The kind of damage matters, not each instance of it.
const MAX_PROBLEMS_LISTED: u32 = 20;

/// Examines the database. A file that is missing, unreadable or not a queue is an error; a damaged one is not.
pub fn examine(path: &Path, depth: Depth) -> Result<Examination> {
    retry_while_changing(|| try_examine(path, depth))
}

/// `None` if damage was found while another process was writing, so that it may be spurious.
fn try_examine(path: &Path, depth: Depth) -> Result<Option<Result<Examination>>> {
    check_place(path)?;
    let meta = path.metadata().map_err(StoreError::cannot_open(path))?;
    check_kind(path, &meta, meta.len() == 0 && gate::is_initialized(path))?;
    let opened = read_only::connect(path)?;
    let found = retry_while_readonly(|| examine_with(&opened.connection, path, depth));
    let is_sound = found.as_ref().is_ok_and(|found| found.damage.is_empty());
    Ok((is_sound || !opened.has_changed()).then_some(found))
}

fn examine_with(connection: &Connection, path: &Path, depth: Depth) -> Result<Examination> {
    let schema = migrate::schema(connection, path)?;
    Ok(Examination {
        library: rusqlite::version(),
        schema: version(schema),
        newest_schema: version(migrate::newest_version()),
        log_bytes: log_length(path),
        database_bytes: path.metadata().map_or(0, |meta| meta.len()),
        damage: damage(connection, depth)?,
    })
}

fn version(schema: i64) -> u32 {
    u32::try_from(schema).unwrap_or(0)
}

/// Damage may make a check itself fail; the error is then the finding. A refused write is not damage.
fn damage(connection: &Connection, depth: Depth) -> Result<Vec<String>> {
    let checks: &[Check] = match depth {
        Depth::Quick => &[quick_check],
        Depth::Full => &[integrity_check, foreign_key_check],
    };
    let mut found = Vec::new();
    for check in checks {
        match check(connection, &mut found) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ReadOnly) => return Err(error.into()),
            Err(error) => found.push(error.to_string()),
            Ok(()) => {}
        }
    }
    Ok(found)
}

/// Appends its findings to the list.
type Check = fn(&Connection, &mut Vec<String>) -> rusqlite::Result<()>;

fn quick_check(connection: &Connection, found: &mut Vec<String>) -> rusqlite::Result<()> {
    read_problems(connection, &format!("pragma quick_check({MAX_PROBLEMS_LISTED})"), found)
}

fn integrity_check(connection: &Connection, found: &mut Vec<String>) -> rusqlite::Result<()> {
    read_problems(connection, &format!("pragma integrity_check({MAX_PROBLEMS_LISTED})"), found)
}

/// Such a pragma returns one row per problem, or a single row `ok`.
fn read_problems(connection: &Connection, sql: &str, found: &mut Vec<String>) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let problem: String = row.get(0)?;
        if problem != "ok" {
            found.push(problem);
        }
    }
    Ok(())
}

fn foreign_key_check(connection: &Connection, found: &mut Vec<String>) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("pragma foreign_key_check")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
        found.push(format!("a row of {table} refers to a missing row of {parent}"));
    }
    Ok(())
}
