//! Locating the home and the store.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::ignore;
use crate::OpError;
use domain::job::environment::Environment;
use store::StoreError;
use store::postgres::Address;
use sys::fs::owner_only;
use sys::fs::ownership;
use sys::fs::ownership::{OwnershipError, OwnershipProblem};
use sys::process::user;

/// The folder name of a home.
pub const HOME_FOLDER: &str = ".queuectl";
/// The file name of the database in a home.
pub const DATABASE: &str = "queue.db";
pub const HOME_VARIABLE: &str = "QUEUECTL_HOME";
pub const STORE_VARIABLE: &str = "QUEUECTL_STORE";
pub(crate) const CONFIG_FILE: &str = "config.toml";
/// Permissions of the group and of others.
const OTHERS: u32 = 0o077;

/// `--home` and `--store` from the command line.
#[derive(Clone, Debug, Default)]
pub struct LocationArgs {
    pub home: Option<PathBuf>,
    pub store: Option<OsString>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub home: PathBuf,
    pub store: StoreAddress,
    /// The nearest home here or above that was skipped because it belongs to another user.
    pub skipped_home: Option<OwnershipError>,
    /// Named by the user, not found: a missing one may be a typing error.
    pub is_named: bool,
}

/// A home, and the nearest one that was skipped because it belongs to another user.
#[derive(Debug)]
pub(crate) struct FoundHome {
    pub(crate) home: PathBuf,
    pub(crate) skipped_home: Option<OwnershipError>,
    pub(crate) is_named: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreAddress {
    Sqlite(PathBuf),
    Postgres(Box<Address>),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    store: Option<String>,
}

/// Finds the home: `--home`, then `QUEUECTL_HOME`, then the nearest `.queuectl/` here or above that belongs to this
/// user, then `~/.queuectl`. The store: `--store`, then `QUEUECTL_STORE`, then the home's `config.toml`, then its
/// database file.
pub fn locate(args: &LocationArgs) -> Result<Location, OpError> {
    let FoundHome { home, skipped_home, is_named } = find_home(args)?;
    let store = find_store(args, &home, ownership::check_trusted)?;
    Ok(Location { home, store, skipped_home, is_named })
}

pub(crate) fn find_home(args: &LocationArgs) -> Result<FoundHome, OpError> {
    if let Some(home) = named_home(args) {
        return Ok(FoundHome { home, skipped_home: None, is_named: true });
    }
    let (nearest, skipped_home) = nearest_home()?;
    let home = nearest.or_else(users_home).ok_or(OpError::NoHome)?;
    // `~/.queuectl` is selected even if another user owns it, and refused when it is opened.
    let skipped_home = skipped_home.filter(|skipped| skipped.path != home);
    Ok(FoundHome { home, skipped_home, is_named: false })
}

/// The home that the user names, if any.
pub fn named_home(args: &LocationArgs) -> Option<PathBuf> {
    args.home.clone().or_else(|| variable(HOME_VARIABLE).map(PathBuf::from))
}

/// The store that the user names, if any.
pub fn named_store(args: &LocationArgs) -> Result<Option<StoreAddress>, OpError> {
    args.store.clone().or_else(|| variable(STORE_VARIABLE)).map(|address| parse_address(&address)).transpose()
}

/// The same path from the root.
pub fn absolute_path(path: &Path) -> Result<PathBuf, OpError> {
    std::path::absolute(path).map_err(|source| OpError::CannotRead { path: path.to_owned(), source })
}

/// The store that a user names besides the usual one. A folder is a home, whose queue is in its file; a file `queue.db` is
/// in its home. Any other store goes with `home`.
pub fn locate_named(address: &OsStr, home: &Path) -> Result<Location, OpError> {
    let is_file = |path: &Path| path.is_file() || path.extension().is_some_and(|end| end == "db");
    let (home, store) = match parse_address(address)? {
        StoreAddress::Sqlite(path) if !is_file(&path) => {
            (path.clone(), StoreAddress::Sqlite(path.join(DATABASE)))
        }
        StoreAddress::Sqlite(path) if path.file_name() == Some(OsStr::new(DATABASE)) => {
            (owner_only::folder_of(&path).to_owned(), StoreAddress::Sqlite(path))
        }
        store @ (StoreAddress::Sqlite(_) | StoreAddress::Postgres(_)) => (home.to_owned(), store),
    };
    Location { home, store: store.resolved(), skipped_home: None, is_named: true }.absolute()
}

/// `check` decides whether to trust the settings file.
pub(crate) fn find_store(
    args: &LocationArgs,
    home: &Path,
    check: fn(&Path, &Metadata) -> Result<(), OwnershipError>,
) -> Result<StoreAddress, OpError> {
    match named_store(args)? {
        Some(address) => Ok(address.resolved()),
        None => Ok(configured_store(home, check)?
            .map_or_else(|| StoreAddress::Sqlite(home.join(DATABASE)), StoreAddress::resolved)),
    }
}

impl fmt::Display for StoreAddress {
    /// Without a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => path.display().fmt(f),
            Self::Postgres(address) => address.fmt(f),
        }
    }
}

impl StoreAddress {
    /// Follows a symbolic link, so that SQLite's files and ours are created next to its target.
    fn resolved(self) -> Self {
        let path = match self {
            Self::Sqlite(path) => path,
            Self::Postgres(_) => return self,
        };
        let is_link = path.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
        let target = if is_link { path.canonicalize().ok() } else { None };
        Self::Sqlite(target.unwrap_or(path))
    }
}

impl Location {
    /// The database file, if there is one and it is not the home's own.
    fn other_file(&self) -> Option<&Path> {
        match &self.store {
            StoreAddress::Sqlite(store) => (*store != self.home.join(DATABASE)).then_some(store),
            StoreAddress::Postgres(_) => None,
        }
    }

    /// The folder or the file that a queue without a job would be created in.
    pub fn place(&self) -> &Path {
        self.other_file().unwrap_or(&self.home)
    }

    /// The value of `QUEUECTL_STORE` for a command that is to use this queue, if it needs one. Without a password: a
    /// command may print its environment.
    pub fn store_variable(&self) -> Option<OsString> {
        match &self.store {
            StoreAddress::Sqlite(_) => self.other_file().map(|path| path.to_owned().into()),
            StoreAddress::Postgres(address) => Some(address.to_string().into()),
        }
    }

    /// The environment of this process as far as a command of this queue gets it.
    pub fn environment(&self) -> Environment {
        let captured = Environment::capture(user::variables());
        match &self.store {
            StoreAddress::Sqlite(_) => captured,
            StoreAddress::Postgres(_) => captured.without_server_passwords(),
        }
    }

    /// The database file, for a use case that is about the file itself.
    pub fn database_file(&self, refused: &'static str) -> Result<&Path, OpError> {
        match &self.store {
            StoreAddress::Sqlite(path) => Ok(path),
            StoreAddress::Postgres(address) => {
                Err(OpError::NotInFile { refused, schema: address.schema.clone() })
            }
        }
    }

    /// The same location with absolute paths.
    pub fn absolute(&self) -> Result<Self, OpError> {
        let store = match &self.store {
            StoreAddress::Sqlite(store) => StoreAddress::Sqlite(absolute_path(store)?),
            StoreAddress::Postgres(_) => self.store.clone(),
        };
        Ok(Self {
            home: absolute_path(&self.home)?,
            store,
            skipped_home: self.skipped_home.clone(),
            is_named: self.is_named,
        })
    }

    /// Whether the home was found above the current directory, where the user may not expect it. `~/.queuectl` is expected
    /// everywhere.
    pub fn is_found_above(&self) -> bool {
        let folder = owner_only::folder_of(&self.home);
        !self.is_named && std::env::current_dir().is_ok_and(|here| here != folder) && !is_users_folder(folder)
    }

    /// Whether there is a queue. What cannot be examined may exist; opening it reports the problem. A server is not asked
    /// here.
    pub fn has_queue(&self) -> bool {
        match &self.store {
            StoreAddress::Sqlite(database) => {
                !database.metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
            }
            StoreAddress::Postgres(_) => true,
        }
    }

    /// Refuses a home that the user named if there is no queue, neither in it nor where `--store` says.
    pub(crate) fn check_exists(&self) -> Result<(), OpError> {
        if !self.is_named || self.has_queue() {
            return Ok(());
        }
        let missing = self.place().to_owned();
        Err(OpError::NoQueue { missing, home: self.home.clone() })
    }
}

pub(crate) fn ensure_home(home: &Path) -> Result<(), OpError> {
    match home.metadata() {
        Ok(meta) if meta.is_dir() => check_home_owner(home, &meta),
        Ok(_) => Err(not_a_folder(home).into()),
        Err(_) => create_home(home),
    }
}

fn check_home_owner(home: &Path, meta: &Metadata) -> Result<(), OpError> {
    match ownership::check(home, meta) {
        Err(OwnershipError { problem: OwnershipProblem::Foreign { owner }, .. }) => {
            Err(OpError::ForeignHome { home: home.to_owned(), owner })
        }
        checked => Ok(checked.map_err(StoreError::from)?),
    }
}

fn create_home(home: &Path) -> Result<(), OpError> {
    check_creator(home)?;
    let created = owner_only::create_folder(home).and_then(|()| ignore::add_file(home));
    created.map_err(|source| StoreError::CannotOpen { path: home.to_owned(), source: source.into() }.into())
}

/// Refuses to create a home in another user's folder: root would lock that user out of it.
pub(crate) fn check_creator(home: &Path) -> Result<(), OpError> {
    let mut above = home.ancestors().map(owner_only::folder_of);
    if let Some((folder, meta)) = above.find_map(|folder| Some((folder, folder.metadata().ok()?))) {
        ownership::check_owner(folder, &meta)
            .map_err(|source| OpError::ForeignFolder { home: home.to_owned(), source })?;
    }
    Ok(())
}

pub(crate) fn not_a_folder(home: &Path) -> StoreError {
    StoreError::NotAStore { path: home.to_owned(), problem: "is a file, but the home must be a directory" }
}

pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The nearest home here or above that belongs to this user, and the nearest that belongs to another user.
fn nearest_home() -> Result<(Option<PathBuf>, Option<OwnershipError>), OpError> {
    let mut skipped_home = None;
    let Ok(here) = std::env::current_dir() else {
        return Ok((None, None));
    };
    for folder in here.ancestors() {
        let home = folder.join(HOME_FOLDER);
        let Some(meta) = home.symlink_metadata().ok().filter(|meta| meta.is_dir() || meta.is_symlink())
        else {
            continue;
        };
        if meta.uid() == user::number() {
            check_found(folder, Some(&meta))?;
            return Ok((Some(home), skipped_home));
        }
        skipped_home.get_or_insert(OwnershipError {
            path: home,
            problem: OwnershipProblem::Foreign { owner: meta.uid() },
        });
    }
    Ok((None, skipped_home))
}

/// Refuses a home in `folder` that was found without being named, if it is a symbolic link or if other users could
/// replace it. `~/.queuectl` is exempt, because it would be used anyway.
pub(crate) fn check_found(folder: &Path, home: Option<&Metadata>) -> Result<(), OpError> {
    let path = folder.join(HOME_FOLDER);
    let checked = if home.is_some_and(Metadata::is_symlink) {
        Err(OwnershipError { path: path.clone(), problem: OwnershipProblem::Link })
    } else {
        check_holder(folder)
    };
    match checked {
        Err(source) if !is_users_folder(folder) => Err(OpError::ExposedHome { home: path, source }),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Refuses a folder in which other users could create a home.
fn check_holder(folder: &Path) -> Result<(), OwnershipError> {
    // If the folder cannot be examined, opening the home reports the error.
    folder.metadata().map_or(Ok(()), |meta| ownership::check_trusted(folder, &meta))
}

fn is_users_folder(folder: &Path) -> bool {
    let canonical = |path: &Path| path.canonicalize().ok();
    variable("HOME")
        .and_then(|home| canonical(Path::new(&home)))
        .is_some_and(|home| canonical(folder) == Some(home))
}

/// A path for people: with `~` for the home directory of the user.
pub fn shortened(path: &str) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    match path.strip_prefix(&home) {
        Some(rest) if !home.is_empty() && (rest.is_empty() || rest.starts_with('/')) => format!("~{rest}"),
        Some(_) | None => path.to_owned(),
    }
}

fn users_home() -> Option<PathBuf> {
    variable("HOME").map(|home| Path::new(&home).join(HOME_FOLDER))
}

/// The store from the settings file; a path in it is relative to the home.
fn configured_store(
    home: &Path,
    check: fn(&Path, &Metadata) -> Result<(), OwnershipError>,
) -> Result<Option<StoreAddress>, OpError> {
    let path = home.join(CONFIG_FILE);
    let cannot_read = |source| OpError::CannotRead { path: path.clone(), source };
    let mut file = match File::open(&path) {
        Ok(file) => file,
        // The file is optional. If the home is not a folder, opening the store reports it.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(source) => {
            // In a home of another user the file cannot even be looked for.
            if let Ok(meta) = home.metadata() {
                check_home_owner(home, &meta)?;
            }
            return Err(cannot_read(source));
        }
    };
    let meta = file.metadata().map_err(cannot_read)?;
    check(&path, &meta).map_err(StoreError::from)?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(cannot_read)?;
    let config: ConfigFile = toml::from_str(&text)
        .map_err(|error| OpError::BadConfigFile { problem: problem(&text, &error), path: path.clone() })?;
    let Some(address) = config.store else {
        return Ok(None);
    };
    match parse_address(OsStr::new(&address))? {
        StoreAddress::Sqlite(store) => Ok(Some(StoreAddress::Sqlite(home.join(store)))),
        StoreAddress::Postgres(address) if address.has_password() && meta.mode() & OTHERS != 0 => {
            Err(OpError::ExposedPassword { path, mode: meta.mode() & 0o7777 })
        }
        store @ StoreAddress::Postgres(_) => Ok(Some(store)),
    }
}

/// The problem and its line. The error's `Display` would quote the line, which may contain a password; its message quotes
/// at most a key, and a misplaced address could be in that position.
fn problem(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let message = error.message();
    let quotes_address = ["@", "://"].iter().any(|mark| message.contains(mark));
    let message = if quotes_address { "an address is in the wrong place" } else { message };
    format!("line {}: {message}", before.matches('\n').count() + 1)
}

fn parse_address(address: &OsStr) -> Result<StoreAddress, OpError> {
    if address.is_empty() {
        return Err(OpError::EmptyStore);
    }
    match address.to_str().and_then(|text| text.split_once("://")) {
        None => Ok(StoreAddress::Sqlite(PathBuf::from(address))),
        Some(_) => match address.to_str().filter(|text| Address::is_url(text)) {
            Some(url) => Ok(StoreAddress::Postgres(Box::new(Address::parse(url)?))),
            None => Err(OpError::UnknownStore),
        },
    }
}
