//! Where the home and the store are.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::OpError;
use crate::store::sqlite::SqliteStore;
use crate::store::{Store, StoreError};
use crate::sys::clock::SystemClock;
use crate::sys::private;

/// The name of a home inside a folder.
pub const HOME_FOLDER: &str = ".queuectl";
/// The name of the database in a home.
pub const DATABASE: &str = "queue.db";
pub(super) const CONFIG_FILE: &str = "config.toml";

/// What was said on the command line about where things are.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub home: Option<PathBuf>,
    pub store: Option<OsString>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub home: PathBuf,
    pub store: StoreAddress,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreAddress {
    Sqlite(PathBuf),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    store: Option<String>,
}

/// Finds the home: `--home`, then `QUEUECTL_HOME`, then the nearest `.queuectl/` here or above that belongs to this
/// user, then `~/.queuectl`. The store: `--store`, then `QUEUECTL_STORE`, then the home's `config.toml`, then its
/// database file.
pub fn locate(wanted: &Wanted) -> Result<Location, OpError> {
    let home = find_home(wanted)?;
    let store = find_store(wanted, &home)?;
    Ok(Location { home, store })
}

pub(super) fn find_home(wanted: &Wanted) -> Result<PathBuf, OpError> {
    match wanted.home.clone().or_else(|| variable("QUEUECTL_HOME").map(PathBuf::from)) {
        Some(home) => Ok(home),
        None => nearest_home().or_else(users_home).ok_or(OpError::NoHome),
    }
}

pub(super) fn find_store(wanted: &Wanted, home: &Path) -> Result<StoreAddress, OpError> {
    match wanted.store.clone().or_else(|| variable("QUEUECTL_STORE")) {
        Some(address) => parse_address(&address),
        None => Ok(configured_store(home)?.unwrap_or_else(|| StoreAddress::Sqlite(home.join(DATABASE)))),
    }
}

/// Opens the store; home and database are made on first use.
pub fn open(location: &Location) -> Result<Box<dyn Store>, OpError> {
    ensure_home(&location.home)?;
    Ok(reopen(&location.store)?)
}

/// Opens a store whose home was found before. Nothing is made: a home that was deleted stays so.
pub fn reopen(store: &StoreAddress) -> Result<Box<dyn Store>, StoreError> {
    match store {
        StoreAddress::Sqlite(path) => Ok(Box::new(SqliteStore::open(path, Arc::new(SystemClock))?)),
    }
}

impl Location {
    /// The same places by paths that do not depend on where a process stands.
    pub fn absolute(&self) -> Result<Self, OpError> {
        let absolute = |path: &Path| {
            std::path::absolute(path).map_err(|source| OpError::CannotRead { path: path.to_owned(), source })
        };
        let StoreAddress::Sqlite(store) = &self.store;
        Ok(Self { home: absolute(&self.home)?, store: StoreAddress::Sqlite(absolute(store)?) })
    }
}

pub(super) fn ensure_home(home: &Path) -> Result<(), OpError> {
    match home.metadata() {
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(_) => Err(not_a_folder(home).into()),
        Err(_) => private::create_folder(home)
            .map_err(|source| StoreError::CannotOpen { path: home.to_owned(), source: source.into() }.into()),
    }
}

pub(super) fn not_a_folder(home: &Path) -> StoreError {
    StoreError::NotAStore { path: home.to_owned(), problem: "is a file, but the home must be a folder" }
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn nearest_home() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    here.ancestors().map(|folder| folder.join(HOME_FOLDER)).find(|home| private::is_own_folder(home))
}

fn users_home() -> Option<PathBuf> {
    variable("HOME").map(|home| Path::new(&home).join(HOME_FOLDER))
}

/// What the settings file says; a path in it is relative to the home.
fn configured_store(home: &Path) -> Result<Option<StoreAddress>, OpError> {
    let path = home.join(CONFIG_FILE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        // Without the file there is nothing to say; a home that is no folder shows when the store is opened.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(source) => return Err(OpError::CannotRead { path, source }),
    };
    let config: ConfigFile = toml::from_str(&text)
        .map_err(|error| OpError::BadConfigFile { problem: problem(&text, &error), path })?;
    let Some(address) = config.store else {
        return Ok(None);
    };
    let StoreAddress::Sqlite(store) = parse_address(OsStr::new(&address))?;
    Ok(Some(StoreAddress::Sqlite(home.join(store))))
}

/// What is wrong and where. The error's own text would quote the line, in which there may be a password; its message
/// quotes a key at most, and an address can stand there by mistake.
fn problem(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let message = error.message();
    let quotes_address = ["@", "://"].iter().any(|mark| message.contains(mark));
    let message = if quotes_address { "an address stands where none belongs" } else { message };
    format!("line {}: {message}", before.matches('\n').count() + 1)
}

fn parse_address(address: &OsStr) -> Result<StoreAddress, OpError> {
    if address.is_empty() {
        return Err(OpError::EmptyStore);
    }
    match address.to_str().and_then(|text| text.split_once("://")) {
        None => Ok(StoreAddress::Sqlite(PathBuf::from(address))),
        Some((scheme, _)) if matches!(&*scheme.to_ascii_lowercase(), "postgres" | "postgresql") => {
            Err(OpError::NoPostgres)
        }
        Some(_) => Err(OpError::UnknownStore),
    }
}
