//! Examining a database without touching it: whose it is, how old its schema is, and whether it is whole.

use std::io;
use std::path::Path;

use rusqlite::{Connection, ErrorCode};

use super::file_state::{look_until_undisturbed, past_the_moment};
use super::migrate;
use super::migrate::SCHEMA_VERSION;
use super::open::{check_kind, check_place, log_length};
use super::{gate, read_only};
use crate::StoreError;

/// How closely to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Every page and every row.
    Quick,
    /// Also whether every index agrees with its table.
    Full,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examination {
    /// The version of the SQLite library.
    pub library: &'static str,
    /// The version of the schema; 0 where nothing was made yet.
    pub schema: u32,
    /// The newest that this program knows.
    pub newest_schema: u32,
    /// The length of the write-ahead log.
    pub log_bytes: u64,
    pub database_bytes: u64,
    /// What is broken, in SQLite's words; empty if it is whole.
    pub damage: Vec<String>,
}

/// Whoever reads this wants to know what kind of damage it is, not each instance of it.
const MAX_DAMAGE_TOLD: u32 = 20;

/// Looks at the database. A file that is missing, cannot be read, or is no queue is an error; a damaged one is not.
pub fn examine(path: &Path, depth: Depth) -> Result<Examination, StoreError> {
    look_until_undisturbed(|| look(path, depth).unwrap_or_else(|error| Some(Err(error))))
}

/// `None`: there is damage, or so it seems, but somebody was writing.
fn look(path: &Path, depth: Depth) -> Result<Option<Result<Examination, StoreError>>, StoreError> {
    let cannot_open =
        |error: io::Error| StoreError::CannotOpen { path: path.to_owned(), source: error.into() };
    check_place(path)?;
    let meta = path.metadata().map_err(cannot_open)?;
    check_kind(path, &meta, meta.len() == 0 && gate::remembers_a_queue(path))?;
    let reader = read_only::connect(path)?;
    let found = past_the_moment(|| examine_with(&reader.connection, path, depth));
    if found.as_ref().is_ok_and(|found| found.damage.is_empty()) {
        return Ok(Some(found));
    }
    Ok(reader.answer(found))
}

fn examine_with(connection: &Connection, path: &Path, depth: Depth) -> Result<Examination, StoreError> {
    let schema = migrate::schema(connection, path)?;
    Ok(Examination {
        library: rusqlite::version(),
        schema: version(schema),
        newest_schema: version(SCHEMA_VERSION),
        log_bytes: log_length(path),
        database_bytes: path.metadata().map_or(0, |meta| meta.len()),
        damage: damage(connection, depth)?,
    })
}

fn version(schema: i64) -> u32 {
    u32::try_from(schema).unwrap_or(0)
}

/// Damage can be such that the examination itself fails; then that is what was found. That it may not write is no damage.
fn damage(connection: &Connection, depth: Depth) -> Result<Vec<String>, StoreError> {
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

/// Adds what it finds to the list.
type Check = fn(&Connection, &mut Vec<String>) -> rusqlite::Result<()>;

fn quick_check(connection: &Connection, found: &mut Vec<String>) -> rusqlite::Result<()> {
    comhealths(connection, &format!("pragma quick_check({MAX_DAMAGE_TOLD})"), found)
}

fn integrity_check(connection: &Connection, found: &mut Vec<String>) -> rusqlite::Result<()> {
    comhealths(connection, &format!("pragma integrity_check({MAX_DAMAGE_TOLD})"), found)
}

/// A row for each thing that is wrong, or one that says `ok`.
fn comhealths(connection: &Connection, sql: &str, found: &mut Vec<String>) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let said: String = row.get(0)?;
        if said != "ok" {
            found.push(said);
        }
    }
    Ok(())
}

fn foreign_key_check(connection: &Connection, found: &mut Vec<String>) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("pragma foreign_key_check")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
        found.push(format!("a row of {table} refers to a row of {parent} that is not there"));
    }
    Ok(())
}
