//! The database: whether it is there, whole, and of a version that this program understands.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::{Diagnosis, Examiner, Finding, cannot_open};
use crate::config::how_to_repair;
use crate::error::chain;
use crate::home::ownership::{advice, word};
use domain::values::size::rough_size;
use store::StoreError;
use store::sqlite::{Depth, Examination, SqliteStore, examine, is_initialized};
use sys::clock::SystemClock;

/// A write-ahead log longer than this was not folded in for long.
const LONG_LOG_BYTES: u64 = 64 << 20;

/// Gives the queue in it, open for reading, if there is one that this program understands.
pub(super) fn check(diagnosis: &mut Diagnosis, examiner: &Examiner<'_>, path: &Path) -> Option<SqliteStore> {
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            diagnosis.add(missing(path));
            return None;
        }
        Err(error) => {
            refuse(diagnosis, "database", cannot_open(path, error), path);
            return None;
        }
        Ok(meta) => (examiner.before_reading)(meta.len()),
    }
    match examine(path, examiner.depth) {
        Ok(found) => {
            diagnosis.add(Finding::ok("sqlite", format!("version {}", found.library)));
            integrity(diagnosis, &found, examiner.depth);
            schema(diagnosis, &found);
            diagnosis.add(log(&found, path));
            (found.schema == found.newest_schema).then(|| open(diagnosis, path))?
        }
        // That was found when the filesystem was looked at.
        Err(StoreError::NetworkFilesystem { .. }) => None,
        // What was read may have been half of this and half of that.
        Err(error @ StoreError::Changing) => {
            diagnosis.add(Finding::warning("database", chain(&error)).advise(ASK_AGAIN));
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
        let said =
            format!("{} is gone, but a queue was there; a new one is made on next use", path.display());
        return Finding::warning("database", said).advise("put it back before that, if it was lost");
    }
    Finding::ok("database", "there is none yet; it is made on first use")
}

fn integrity(diagnosis: &mut Diagnosis, found: &Examination, depth: Depth) {
    let Some(first) = found.damage.first() else {
        let how = match depth {
            Depth::Quick => "whole",
            Depth::Full => "whole, indexes too",
        };
        diagnosis.add(Finding::ok("database", format!("{how} ({})", rough_size(found.database_bytes))));
        return;
    };
    // SQLite may say several things, a line for each.
    let mut said = first.lines().collect::<Vec<_>>().join(", ");
    if let more @ 1.. = found.damage.len() - 1 {
        said = format!("{said}, and {more} more");
    }
    diagnosis.refuse("database", StoreError::Corrupt { source: said.into() }, Some(SAVE_FIRST));
}

const ASK_AGAIN: &str = "whether it is whole is not known; ask again when less is going on";
const SAVE_FIRST: &str = "stop the workers and copy the whole folder away before anything else";

fn schema(diagnosis: &mut Diagnosis, found: &Examination) {
    let (schema, newest) = (found.schema, found.newest_schema);
    if schema > newest {
        let error = StoreError::TooNew { found: schema.into(), known: newest.into() };
        diagnosis.refuse("schema", error, Some("use the queuectl that last opened it, or a newer one"));
        return;
    }
    let said = match schema {
        0 => "nothing is in it yet".to_owned(),
        _ if schema == newest => format!("version {schema}"),
        _ => {
            format!("version {schema}; it becomes {newest} when it is next used, and the rest can be checked")
        }
    };
    diagnosis.add(Finding::ok("schema", said));
}

fn log(found: &Examination, path: &Path) -> Finding {
    let said = format!("the write-ahead log is {} long", rough_size(found.log_bytes));
    if found.log_bytes <= LONG_LOG_BYTES {
        return Finding::ok("wal", said);
    }
    let advice = format!("look for a program that keeps the database open: `fuser -v {}`", word(path));
    Finding::warning("wal", said).advise(advice)
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

fn advice_for(error: &StoreError, path: &Path) -> Option<String> {
    let advice = match error {
        StoreError::Corrupt { .. } | StoreError::Malformed { .. } => SAVE_FIRST,
        StoreError::NotAStore { .. } => "put the right file there, or name another with --store",
        StoreError::CannotOpen { .. } => {
            "you must be able to read it, and to enter each folder above it: `namei -l` shows who may"
        }
        StoreError::Unavailable { .. } => "the disk may be failing: see what `dmesg` says of it",
        StoreError::Full => "make room on the disk that it is on",
        StoreError::FileLimit => "raise the limit (`ulimit -f`)",
        StoreError::ReadOnly => {
            return Some(format!("see whether the disk is mounted read-only: `findmnt -T {}`", word(path)));
        }
        StoreError::Busy { .. } => return Some(format!("see who has it locked: `fuser -v {}`", word(path))),
        StoreError::Changing => ASK_AGAIN,
        StoreError::OldLibrary { .. } => "use a queuectl that was built with the SQLite that comes with it",
        StoreError::NotOwn(refused) => return Some(advice(refused)),
        StoreError::BadSetting { key, .. } => return Some(how_to_repair(key)),
        StoreError::NetworkFilesystem { .. }
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
    fn whatever_keeps_a_database_from_being_read_comes_with_advice() {
        let path = Path::new("/a b/queue.db");
        for (error, part) in [
            (cannot_open(path, io::ErrorKind::PermissionDenied.into()), "read"),
            (StoreError::Unavailable { source: "".into() }, "dmesg"),
            (StoreError::ReadOnly, "`findmnt -T '/a b/queue.db'`"),
            (
                StoreError::Busy { waited: std::time::Duration::ZERO, holder: None },
                "`fuser -v '/a b/queue.db'`",
            ),
            (StoreError::OldLibrary { found: "1", needed: "2" }, "built with"),
            (StoreError::Changing, "ask again"),
        ] {
            let advice = advice_for(&error, path).unwrap_or_default();
            assert!(advice.contains(part), "{error}: {advice}");
        }
    }

    #[test]
    fn a_log_that_nobody_folds_in_is_a_warning() {
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
        assert_eq!((long.level, &*long.said), (Level::Warning, "the write-ahead log is 65 MiB long"));
        assert!(long.advice.is_some_and(|advice| advice.contains("`fuser -v '/a b/queue.db'`")));
    }
}
