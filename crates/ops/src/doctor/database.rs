//! The database: whether it exists, is intact, and has a schema that this program supports.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::{Diagnosis, ExamineOptions, Finding, cannot_open};
use crate::config::how_to_repair;
use crate::error::chain;
use crate::home::ownership::{advice, word};
use domain::values::size::rough_size;
use store::StoreError;
use store::sqlite::{Depth, Examination, SqliteStore, examine, is_initialized};
use sys::clock::SystemClock;
use sys::fs::{disk, owner_only};

/// A write-ahead log larger than this has not been checkpointed for a long time.
const LONG_LOG_BYTES: u64 = 64 << 20;

/// Checks the database and returns it, open for reading, if this program supports its schema.
pub(super) fn check(
    diagnosis: &mut Diagnosis,
    options: &ExamineOptions<'_>,
    path: &Path,
) -> Option<SqliteStore> {
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            diagnosis.add(missing(path));
            return None;
        }
        Err(error) => {
            refuse(diagnosis, "database", cannot_open(path, error), path);
            return None;
        }
        Ok(meta) => (options.on_full_read)(meta.len()),
    }
    match examine(path, options.depth) {
        Ok(found) => {
            diagnosis.add(Finding::ok("sqlite", format!("version {}", found.library)));
            integrity(diagnosis, &found, options.depth);
            schema(diagnosis, &found);
            diagnosis.add(log(&found, path));
            (found.schema == found.newest_schema).then(|| open(diagnosis, path))?
        }
        // The check of the filesystem reported this.
        Err(StoreError::Obstacle { .. }) if is_on_network(path) => None,
        // The file changed while it was read, so the result is meaningless.
        Err(error @ StoreError::Changing) => {
            diagnosis.add(Finding::warning("database", chain(&error)).advise(RETRY_LATER));
            None
        }
        Err(error) => {
            refuse(diagnosis, "database", error, path);
            None
        }
    }
}

fn missing(path: &Path) -> Finding {
    if is_initialized(path) {
        let message = format!(
            "{} is missing although a queue existed; the next command creates an empty one",
            path.display()
        );
        return Finding::warning("database", message)
            .advise("if you did not delete it, restore the file before running another command");
    }
    Finding::ok("database", "does not exist yet; it is created on first use")
}

fn integrity(diagnosis: &mut Diagnosis, found: &Examination, depth: Depth) {
    let Some(first) = found.damage.first() else {
        let how = match depth {
            Depth::Quick => "intact",
            Depth::Full => "intact, including its indexes",
        };
        diagnosis.add(Finding::ok("database", format!("{how} ({})", rough_size(found.database_bytes))));
        return;
    };
    // SQLite may report several problems, one per line.
    let mut message = first.lines().collect::<Vec<_>>().join(", ");
    if let more @ 1.. = found.damage.len() - 1 {
        message = format!("{message}, and {more} more");
    }
    diagnosis.refuse("database", StoreError::Corrupt { source: message.into() }, Some(COPY_FIRST));
}

const RETRY_LATER: &str =
    "the database changed too often to be checked; run `queuectl doctor` again when it is less busy";
const COPY_FIRST: &str =
    "before anything else, stop the workers and copy the whole home directory to a safe place";

fn schema(diagnosis: &mut Diagnosis, found: &Examination) {
    let (schema, newest) = (found.schema, found.newest_schema);
    if schema > newest {
        let error = StoreError::TooNew { found: schema.into(), known: newest.into() };
        diagnosis.refuse(
            "schema",
            error,
            Some("use the version of queuectl that last opened it, or a newer one"),
        );
        return;
    }
    let message = match schema {
        0 => "empty".to_owned(),
        _ if schema == newest => format!("version {schema}"),
        _ => {
            format!(
                "version {schema}; the next command upgrades it to {newest}, after which all checks can run"
            )
        }
    };
    diagnosis.add(Finding::ok("schema", message));
}

fn log(found: &Examination, path: &Path) -> Finding {
    let message = format!("the write-ahead log is {}", rough_size(found.log_bytes));
    if found.log_bytes <= LONG_LOG_BYTES {
        return Finding::ok("wal", message);
    }
    let advice = format!("find the program that keeps the database open with `fuser -v {}`", word(path));
    Finding::warning("wal", message).advise(advice)
}

fn open(diagnosis: &mut Diagnosis, path: &Path) -> Option<SqliteStore> {
    match SqliteStore::open_read_only(path, Arc::new(SystemClock)) {
        Ok(store) => Some(store),
        Err(error) => {
            refuse(diagnosis, "queue", error, path);
            None
        }
    }
}

fn refuse(diagnosis: &mut Diagnosis, check: &'static str, error: StoreError, path: &Path) {
    let advice = advice_for(&error, path);
    diagnosis.refuse(check, error, advice.as_deref());
}

fn is_on_network(path: &Path) -> bool {
    matches!(disk::network_filesystem(owner_only::folder_of(path)), Ok(Some(_)))
}

fn advice_for(error: &StoreError, path: &Path) -> Option<String> {
    let advice = match error {
        StoreError::Corrupt { .. } | StoreError::Malformed { .. } => COPY_FIRST,
        StoreError::NotAStore { .. } => "put the right file there, or choose another with --store",
        StoreError::CannotOpen { .. } => {
            "you need permission to read it and to enter each directory above it; `namei -l` shows the permissions"
        }
        StoreError::Unavailable { .. } => "the disk may be failing; check `dmesg`",
        StoreError::Full => "free some space on its disk",
        StoreError::Obstacle { advice, .. } | StoreError::NotAllowed { advice, .. } => advice,
        StoreError::ReadOnly => {
            return Some(format!(
                "check with `findmnt -T {}` whether the disk is mounted read-only",
                word(path)
            ));
        }
        StoreError::Busy { .. } => {
            return Some(format!("find the process that holds the lock with `fuser -v {}`", word(path)));
        }
        StoreError::Changing => RETRY_LATER,
        StoreError::NotOwn(refused) => return Some(advice(refused)),
        StoreError::Unreachable(error) => return Some(error.hint()),
        StoreError::BadSetting { key, .. } => return Some(how_to_repair(key)),
        StoreError::NotPrimary
        | StoreError::Relocated(_)
        | StoreError::TooOld { .. }
        | StoreError::OutcomeUnknown { .. }
        | StoreError::TooNew { .. }
        | StoreError::NoSuchJob(_)
        | StoreError::NoSuchWorker(_) => return None,
    };
    Some(advice.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    #[test]
    fn every_error_of_opening_a_database_has_advice() {
        let path = Path::new("/a b/queue.db");
        for (error, part) in [
            (cannot_open(path, io::ErrorKind::PermissionDenied.into()), "read"),
            (StoreError::Unavailable { source: "".into() }, "dmesg"),
            (StoreError::ReadOnly, "`findmnt -T '/a b/queue.db'`"),
            (
                StoreError::Busy { waited: std::time::Duration::ZERO, holder: None },
                "`fuser -v '/a b/queue.db'`",
            ),
            (StoreError::Obstacle { problem: String::new(), advice: "use another" }, "use another"),
            (StoreError::Changing, "again when it is less busy"),
        ] {
            let advice = advice_for(&error, path).unwrap_or_default();
            assert!(advice.contains(part), "{error}: {advice}");
        }
    }

    #[test]
    fn a_large_write_ahead_log_is_a_warning() {
        let found = |log_bytes| Examination {
            library: "3",
            schema: 1,
            newest_schema: 1,
            log_bytes,
            database_bytes: 0,
            damage: Vec::new(),
        };
        let judge = |log_bytes| log(&found(log_bytes), Path::new("/a b/queue.db"));
        assert_eq!(judge(64 << 20).level, Level::Ok);
        let long = judge(65 << 20);
        assert_eq!((long.level, &*long.message), (Level::Warning, "the write-ahead log is 65 MiB"));
        assert!(long.advice.is_some_and(|advice| advice.contains("`fuser -v '/a b/queue.db'`")));
    }
}
