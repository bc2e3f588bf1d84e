//! The home: whether it is there, whose it is, and who else may look into it.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Diagnosis, Finding, Level, cannot_open, counted, word};
use crate::domain::log;
use crate::domain::size::rough_size;
use crate::ops::location::not_a_folder;
use crate::sys::{life_line, private, user};

/// What a home is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Ready,
    /// Not made yet.
    Missing,
    /// Nothing in it can be looked at.
    Broken,
}

/// Rights of anybody but the owner.
const OTHERS: u32 = 0o077;
const OTHERS_WRITE: u32 = 0o022;
const OTHERS_ENTER: u32 = 0o011;
/// How many files are named in one message.
const MAX_NAMED: usize = 3;

pub(super) fn check(diagnosis: &mut Diagnosis, home: &Path) -> Condition {
    let meta = match home.metadata() {
        Ok(meta) if meta.is_dir() => meta,
        Ok(_) => {
            diagnosis.refuse("home", not_a_folder(home), Some("name another folder with --home"));
            return Condition::Broken;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return missing(diagnosis, home),
        Err(error) => {
            diagnosis.refuse("home", cannot_open(home, error), None);
            return Condition::Broken;
        }
    };
    diagnosis.add(folder(home, &meta));
    if let Err(error) = private::may_write_in(home) {
        let advice = "use the account that it belongs to, or another folder with --home";
        diagnosis.refuse("home", cannot_open(home, error), Some(advice));
    }
    match files(home) {
        Ok(files) => {
            diagnosis.add(modes(home, &meta, &files));
            Condition::Ready
        }
        Err(error) => {
            diagnosis.refuse("files", cannot_open(home, error), None);
            Condition::Broken
        }
    }
}

fn missing(diagnosis: &mut Diagnosis, home: &Path) -> Condition {
    let parent = home.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    if let Err(error) = private::may_write_in(parent) {
        diagnosis.refuse("home", cannot_open(home, error), Some("name another folder with --home"));
        return Condition::Broken;
    }
    let said = format!("{} is not there yet; it is made on first use", home.display());
    diagnosis.add(Finding::ok("home", said));
    Condition::Missing
}

fn folder(home: &Path, meta: &Metadata) -> Finding {
    let (path, mode) = (home.display(), meta.mode() & 0o777);
    if meta.uid() != user::number() {
        let said = format!("{path} belongs to another user (uid {})", meta.uid());
        return Finding::warning("home", said).advise("use that account, or another folder with --home");
    }
    let chmod = format!("run `chmod 700 {}`", word(home));
    if mode & OTHERS_WRITE != 0 {
        let said = format!("{path} can be written by others (mode {mode:04o}): they can run commands as you");
        return Finding::error("home", said).advise(chmod);
    }
    if mode & OTHERS != 0 {
        let said = format!("{path} can be looked into by others (mode {mode:04o})");
        return Finding::warning("home", said).advise(chmod);
    }
    Finding::ok("home", format!("{path}, for its owner only"))
}

/// A file of the home, by the part of its path that follows the home's.
struct Entry {
    name: PathBuf,
    mode: u32,
}

/// What is in the home, and in the folders that queuectl makes there.
fn files(home: &Path) -> io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    for entry in home.read_dir()?.flatten() {
        add(&mut found, home, &entry.path());
    }
    for folder in [log::FOLDER, life_line::FOLDER] {
        for entry in home.join(folder).read_dir().into_iter().flatten().flatten() {
            add(&mut found, home, &entry.path());
        }
    }
    Ok(found)
}

/// One that has just gone is not missed.
fn add(found: &mut Vec<Entry>, home: &Path, path: &Path) {
    if let (Ok(meta), Ok(name)) = (path.metadata(), path.strip_prefix(home)) {
        found.push(Entry { name: name.to_owned(), mode: meta.mode() });
    }
}

fn modes(home: &Path, meta: &Metadata, files: &[Entry]) -> Finding {
    let loose: Vec<&Entry> = files.iter().filter(|file| file.mode & OTHERS != 0).collect();
    if loose.is_empty() {
        let said = format!("{}, for their owner only", counted(files.len(), "file", "files"));
        return Finding::ok("files", said);
    }
    let mut names: Vec<String> =
        loose.iter().take(MAX_NAMED).map(|file| file.name.display().to_string()).collect();
    if loose.len() > names.len() {
        names.push("…".to_owned());
    }
    let said =
        format!("others have rights to {} of {} files: {}", loose.len(), files.len(), names.join(", "));
    // Behind a folder that nobody else can enter they are out of reach.
    let in_reach = meta.mode() & OTHERS_ENTER != 0;
    let level = if in_reach && loose.iter().any(|file| file.mode & OTHERS_WRITE != 0) {
        Level::Error
    } else {
        Level::Warning
    };
    let advice = format!("run `chmod -R go-rwx {}`", word(home));
    Finding { level, ..Finding::ok("files", said).advise(advice) }
}

/// How much the output of jobs takes: for information.
pub(super) fn count_logs(diagnosis: &mut Diagnosis, home: &Path) {
    let Ok(entries) = home.join(log::FOLDER).read_dir() else {
        return;
    };
    let sizes: Vec<u64> = entries.flatten().filter_map(|entry| Some(entry.metadata().ok()?.len())).collect();
    let said = format!("{}, {}", counted(sizes.len(), "file", "files"), rough_size(sizes.iter().sum()));
    diagnosis.add(Finding::ok("logs", said));
}
