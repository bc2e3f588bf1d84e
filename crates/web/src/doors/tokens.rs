//! Tokens of programs, in the file `tokens.json` of the home. The file holds hashes only.

use std::fs::{File, Metadata};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::scope::Scope;
use super::secret;
use super::secret::in_hex;
use domain::text::nearest::nearest;
use domain::values::name::{HookName, NameError};
use domain::values::timestamp::Timestamp;
use ops::OpError;
use ops::upkeep::backup::NewFile;
use sys::fs::owner_only;
use sys::fs::ownership;
use sys::fs::ownership::OwnershipError;

/// The name of the file in a home.
pub const FILE: &str = "tokens.json";
/// Held while the file is changed.
const LOCK_FILE: &str = "tokens.lock";
/// What a token begins with, so that scanners for leaked secrets can find it.
const PREFIX: &str = "qctl_";
/// A longer file is not read.
const MAX_FILE_BYTES: u64 = 1 << 20;
const MAX_TOKENS: usize = 1_000;
/// Permissions of the group and of others.
const OTHERS: u32 = 0o077;

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("failed to read `{}`", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("`{}` is not a list of tokens", path.display())]
    Malformed {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    #[error(transparent)]
    NotOwn(#[from] OwnershipError),
    #[error("`{}` can be read by others (mode {mode:04o})", path.display())]
    Exposed { path: PathBuf, mode: u32 },
    #[error("invalid token name `{typed}`")]
    BadName {
        typed: String,
        #[source]
        source: NameError,
    },
    #[error("there is already a token `{0}`")]
    Taken(String),
    #[error("there is no token `{name}`")]
    Missing { name: String, nearest: Option<String> },
    #[error("there are {MAX_TOKENS} tokens already")]
    TooMany,
    #[error(transparent)]
    Write(#[from] OpError),
    #[error("failed to get random numbers")]
    Random(#[source] std::io::Error),
}

/// A token without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Token {
    pub name: String,
    pub scope: Scope,
    pub created_at: Timestamp,
    pub created_by: String,
    pub expires_at: Option<Timestamp>,
}

/// A token as the file has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredToken {
    name: String,
    scope: String,
    /// The SHA-256 of the secret, in hexadecimal.
    sha256: String,
    created_at: Timestamp,
    created_by: String,
    expires_at: Option<Timestamp>,
}

impl StoredToken {
    /// One with a scope of a later version permits nothing.
    fn shown(&self) -> Option<Token> {
        Some(Token {
            name: self.name.clone(),
            scope: Scope::from_name(&self.scope)?,
            created_at: self.created_at,
            created_by: self.created_by.clone(),
            expires_at: self.expires_at,
        })
    }
}

/// A token that is to be added.
#[derive(Clone, Debug)]
pub struct NewToken {
    pub name: String,
    pub scope: Scope,
    pub expires_in: Option<Duration>,
    pub by: String,
}

/// Adds a token and returns its secret, which is not stored.
pub fn add(home: &Path, new: NewToken, now: Timestamp) -> Result<(Token, String), TokenError> {
    // The rules of names are those of hooks: letters, digits and ._-
    if let Err(source) = new.name.parse::<HookName>() {
        return Err(TokenError::BadName { typed: new.name, source });
    }
    change(home, |tokens| {
        if tokens.iter().any(|token| token.name == new.name) {
            return Err(TokenError::Taken(new.name));
        }
        if tokens.len() >= MAX_TOKENS {
            return Err(TokenError::TooMany);
        }
        let secret = format!("{PREFIX}{}", secret::new_secret().map_err(TokenError::Random)?);
        let stored = StoredToken {
            name: new.name,
            scope: new.scope.name().to_owned(),
            sha256: in_hex(&secret::hash(&secret)),
            created_at: now,
            created_by: new.by,
            expires_at: new.expires_in.map(|length| now.saturating_add(length)),
        };
        let shown = stored.shown().expect("its scope is one of ours");
        tokens.push(stored);
        Ok((shown, secret))
    })
}

/// All tokens, the oldest first.
pub fn list(home: &Path) -> Result<Vec<Token>, TokenError> {
    let stored = read(&home.join(FILE))?;
    Ok(stored.iter().filter_map(StoredToken::shown).collect())
}

/// Removes a token; servers refuse it from now on. A token of a later version is shown with the least scope.
pub fn remove(home: &Path, name: &str) -> Result<Token, TokenError> {
    change(home, |tokens| {
        let Some(at) = tokens.iter().position(|token| token.name == name) else {
            let nearest = nearest(name, tokens.iter().map(|token| token.name.as_str())).map(str::to_owned);
            return Err(TokenError::Missing { name: name.to_owned(), nearest });
        };
        let removed = tokens.remove(at);
        let known = StoredToken { scope: Scope::Metrics.name().to_owned(), ..removed.clone() };
        Ok(removed.shown().or(known.shown()).expect("its scope is one of ours"))
    })
}

/// Reads the file, changes it, and replaces it. One process at a time.
fn change<T>(
    home: &Path,
    change: impl FnOnce(&mut Vec<StoredToken>) -> Result<T, TokenError>,
) -> Result<T, TokenError> {
    let path = home.join(FILE);
    let unreadable = |source| TokenError::Unreadable { path: path.clone(), source };
    let lock = owner_only::open_file(&home.join(LOCK_FILE)).map_err(unreadable)?;
    lock.lock().map_err(unreadable)?;
    let mut tokens = read(&path)?;
    let result = change(&mut tokens)?;
    let text = serde_json::to_vec_pretty(&tokens)
        .map_err(|source| TokenError::Malformed { path: path.clone(), source })?;
    let new = NewFile::create(&path, true)?;
    let write = || {
        let mut file = new.open()?;
        file.write_all(&text)?;
        file.sync_all()
    };
    write().map_err(unreadable)?;
    new.publish()?;
    Ok(result)
}

/// The tokens in a file that only its owner can read or write; none if there is no file.
fn read(path: &Path) -> Result<Vec<StoredToken>, TokenError> {
    let unreadable = |source| TokenError::Unreadable { path: path.to_owned(), source };
    let Some(file) = owner_only::open_regular(path).map_err(unreadable)? else {
        return match path.symlink_metadata() {
            Ok(_) => Err(unreadable(std::io::Error::other("it is not a regular file"))),
            Err(_) => Ok(Vec::new()),
        };
    };
    check(path, &file.metadata().map_err(unreadable)?)?;
    parse(path, file)
}

fn check(path: &Path, meta: &Metadata) -> Result<(), TokenError> {
    ownership::check(path, meta)?;
    let mode = meta.mode() & 0o7777;
    if mode & OTHERS != 0 { Err(TokenError::Exposed { path: path.to_owned(), mode }) } else { Ok(()) }
}

fn parse(path: &Path, file: File) -> Result<Vec<StoredToken>, TokenError> {
    let mut text = Vec::new();
    let read = file.take(MAX_FILE_BYTES).read_to_end(&mut text);
    read.map_err(|source| TokenError::Unreadable { path: path.to_owned(), source })?;
    serde_json::from_slice(&text).map_err(|source| TokenError::Malformed { path: path.to_owned(), source })
}

/// The tokens as a server knows them. The file is read again when it has changed.
#[derive(Debug)]
pub(crate) struct TokenFile {
    path: PathBuf,
    known: Mutex<KnownTokens>,
}

#[derive(Debug, Default)]
struct KnownTokens {
    /// Identifies the version of the file that was read.
    version: Option<FileVersion>,
    tokens: Vec<StoredToken>,
}

/// The inode, the times of the last changes, and the mode of a file.
type FileVersion = (u64, (i64, i64), (i64, i64), u32);

impl TokenFile {
    pub(crate) fn new(home: &Path) -> Self {
        Self { path: home.join(FILE), known: Mutex::default() }
    }

    /// The token with this secret, unless it has expired. Every stored hash is compared, each in constant time.
    pub(crate) fn find(&self, presented: &str, now: Timestamp) -> Result<Option<Token>, TokenError> {
        let hash = in_hex(&secret::hash(presented));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let version = self.path.symlink_metadata().ok().map(|meta| {
            (meta.ino(), (meta.mtime(), meta.mtime_nsec()), (meta.ctime(), meta.ctime_nsec()), meta.mode())
        });
        if version.is_none() || version != known.version {
            known.tokens = read(&self.path)?;
            known.version = version;
        }
        let mut found = None;
        for token in &known.tokens {
            if secret::is_equal(token.sha256.as_bytes(), hash.as_bytes()) {
                found = Some(token);
            }
        }
        let is_valid = |token: &&StoredToken| token.expires_at.is_none_or(|at| at > now);
        Ok(found.filter(is_valid).and_then(StoredToken::shown))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn new(name: &str, scope: Scope, expires_in: Option<Duration>) -> NewToken {
        NewToken { name: name.to_owned(), scope, expires_in, by: "ada".to_owned() }
    }

    #[test]
    fn a_token_is_found_by_its_secret_until_it_expires_or_is_removed() {
        let home = tempfile::tempdir().expect("a folder");
        let (home, now) = (home.path(), Timestamp::EPOCH.saturating_add(Duration::from_secs(1_000_000)));
        let file = TokenFile::new(home);
        assert_eq!(file.find("qctl_x", now).expect("no file"), None);
        let (token, secret) =
            add(home, new("ci", Scope::Operate, Some(Duration::from_secs(60))), now).expect("added");
        let (_, other) = add(home, new("board", Scope::Read, None), now).expect("added");
        assert_eq!(file.find(&secret, now).expect("read"), Some(token.clone()));
        assert_eq!(file.find(&other, now).expect("read").map(|token| token.scope), Some(Scope::Read));
        assert_eq!(file.find(&secret[1..], now).expect("read"), None);
        assert_eq!(file.find("", now).expect("read"), None);
        let later = now.saturating_add(Duration::from_secs(60));
        assert_eq!(file.find(&secret, later).expect("read"), None, "it has expired");
        assert_eq!(list(home).expect("read").len(), 2);
        assert_eq!(remove(home, "ci").expect("removed"), token);
        assert_eq!(file.find(&secret, now).expect("read"), None);
        let text = fs::read_to_string(home.join(FILE)).expect("text");
        assert!(!text.contains(&other) && !text.contains(&other[PREFIX.len()..]), "{text}");
    }

    #[test]
    fn bad_names_and_repeated_names_are_refused() {
        let home = tempfile::tempdir().expect("a folder");
        add(home.path(), new("ci", Scope::Read, None), Timestamp::EPOCH).expect("added");
        for (name, is_taken) in [("ci", true), ("", false), ("a b", false), ("\u{1b}[2J", false)] {
            let refused = add(home.path(), new(name, Scope::Read, None), Timestamp::EPOCH).expect_err(name);
            assert_eq!(matches!(refused, TokenError::Taken(_)), is_taken, "{refused}");
        }
        let missing = remove(home.path(), "cii").expect_err("missing");
        assert!(matches!(missing, TokenError::Missing { nearest: Some(name), .. } if name == "ci"));
    }

    #[test]
    fn a_file_that_others_can_read_or_that_is_no_file_is_refused() {
        let home = tempfile::tempdir().expect("a folder");
        let path = home.path().join(FILE);
        add(home.path(), new("ci", Scope::Read, None), Timestamp::EPOCH).expect("added");
        for mode in [0o640, 0o604, 0o660, 0o602] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("the mode is set");
            assert!(list(home.path()).is_err(), "{mode:o}");
            assert!(TokenFile::new(home.path()).find("qctl_x", Timestamp::EPOCH).is_err());
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("the mode is set");
        assert!(list(home.path()).is_ok());
        fs::rename(&path, home.path().join("elsewhere")).expect("renamed");
        std::os::unix::fs::symlink("elsewhere", &path).expect("a link");
        assert!(list(home.path()).is_err(), "a link");
        fs::remove_file(&path).expect("removed");
        fs::write(&path, "{").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("the mode is set");
        assert!(matches!(list(home.path()), Err(TokenError::Malformed { .. })));
    }
}
