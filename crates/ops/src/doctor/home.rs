//! The home: whether it is there, whose it is, and who else may look into it.

use std::fs::{DirEntry, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Diagnosis, Finding, cannot_open, counted};
use crate::home::location::not_a_folder;
use crate::home::ownership::{advice, word};
use domain::log;
use domain::values::size::rough_size;
use store::StoreError;
use store::sqlite::check_files;
use sys::fs::ownership;
use sys::fs::ownership::{Flaw, OwnershipError};
use sys::fs::{liveness_lock, owner_only};
use sys::process::user;

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
/// How many files are named in one message.
const MAX_NAMED: usize = 3;
/// How many files have a line of their own.
const MAX_LISTED: usize = 100;

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
    folder(diagnosis, home, &meta);
    if let Err(error) = owner_only::may_write_in(home) {
        let advice = "use the account that it belongs to, or another folder with --home";
        diagnosis.refuse("home", cannot_open(home, error), Some(advice));
    }
    match files(home) {
        Ok(files) => {
            owners(diagnosis, home, &meta, &files);
            diagnosis.add(modes(home, &files));
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
    if let Err(error) = owner_only::may_write_in(parent) {
        diagnosis.refuse("home", cannot_open(home, error), Some("name another folder with --home"));
        return Condition::Broken;
    }
    let said = format!("{} is not there yet; it is made on first use", home.display());
    diagnosis.add(Finding::ok("home", said));
    Condition::Missing
}

fn folder(diagnosis: &mut Diagnosis, home: &Path, meta: &Metadata) {
    if let Err(refused) = ownership::check(home, meta) {
        let advice = advice(&refused);
        return diagnosis.refuse("home", StoreError::from(refused), Some(&advice));
    }
    let (path, mode) = (home.display(), meta.mode() & 0o777);
    diagnosis.add(if mode & OTHERS == 0 {
        Finding::ok("home", format!("{path}, for its owner only"))
    } else {
        Finding::warning("home", format!("{path} can be looked into by others (mode {mode:04o})"))
            .advise(format!("run `chmod 700 {}`", word(home)))
    });
}

/// A file or folder of the home.
struct Entry {
    path: PathBuf,
    meta: Metadata,
}

/// What is in the home, and in the folders that queuectl makes there.
fn files(home: &Path) -> io::Result<Vec<Entry>> {
    let mut found: Vec<Entry> = home.read_dir()?.flatten().filter_map(|found| entry(&found)).collect();
    for folder in [log::FOLDER, liveness_lock::FOLDER] {
        let entries = home.join(folder).read_dir().into_iter().flatten().flatten();
        found.extend(entries.filter_map(|found| entry(&found)));
    }
    Ok(found)
}

/// One that has just gone is not missed.
fn entry(found: &DirEntry) -> Option<Entry> {
    Some(Entry { meta: found.metadata().ok()?, path: found.path() })
}

/// Names each file of another owner than the home's, and each that others can write.
fn owners(diagnosis: &mut Diagnosis, home: &Path, meta: &Metadata, files: &[Entry]) {
    let flawed: Vec<OwnershipError> = files.iter().filter_map(|file| flaw(file, meta.uid())).collect();
    for OwnershipError { path, flaw } in flawed.iter().take(MAX_LISTED) {
        let said = match flaw {
            Flaw::Foreign { owner } => {
                let [owner, of_home] = [*owner, meta.uid()].map(user::name_of);
                format!("`{}` belongs to {owner}, and the home to {of_home}", path.display())
            }
            Flaw::Writable { .. } | Flaw::Link => format!("`{}` {flaw}", path.display()),
        };
        diagnosis.add(Finding::error("owners", said));
    }
    if let more @ 1.. = flawed.len().saturating_sub(MAX_LISTED) {
        diagnosis.add(Finding::error("owners", format!("the same goes for {more} more")));
    }
    // What lies in the home itself every other verb opens, and refuses.
    let refused = flawed.iter().find(|flawed| flawed.path.parent() == Some(home)).cloned();
    let (owner, home) = (user::name_of(meta.uid()), word(home));
    if let Some(last) = diagnosis.findings.last_mut().filter(|_| !flawed.is_empty()) {
        last.advice = Some(format!("run `sudo chown -R {owner} {home}` and `chmod -R go-w {home}`"));
    }
    if let Some(refused) = refused {
        diagnosis.refusal.get_or_insert(StoreError::from(refused).into());
    }
}

fn flaw(file: &Entry, owner: u32) -> Option<OwnershipError> {
    let flaw = if file.meta.uid() != owner {
        Flaw::Foreign { owner: file.meta.uid() }
    } else if !file.meta.is_symlink() && ownership::others_write(&file.path, &file.meta) {
        Flaw::Writable { mode: file.meta.mode() & 0o7777 }
    } else {
        return None;
    };
    Some(OwnershipError { path: file.path.clone(), flaw })
}

fn modes(home: &Path, files: &[Entry]) -> Finding {
    let is_loose = |file: &&Entry| !file.meta.is_symlink() && file.meta.mode() & OTHERS != 0;
    let loose: Vec<&Entry> = files.iter().filter(is_loose).collect();
    if loose.is_empty() {
        let said = format!("{}, for their owner only", counted(files.len(), "file", "files"));
        return Finding::ok("files", said);
    }
    let name = |file: &&Entry| file.path.strip_prefix(home).unwrap_or(&file.path).display().to_string();
    let mut names: Vec<String> = loose.iter().take(MAX_NAMED).map(name).collect();
    if loose.len() > names.len() {
        names.push("…".to_owned());
    }
    let said =
        format!("others have rights to {} of {} files: {}", loose.len(), files.len(), names.join(", "));
    Finding::warning("files", said).advise(format!("run `chmod -R go-rwx {}`", word(home)))
}

/// A database outside the home, with what lies beside it.
pub(super) fn check_store(diagnosis: &mut Diagnosis, database: &Path) {
    if let Err(StoreError::NotOwn(refused)) = check_files(database) {
        let advice = advice(&refused);
        diagnosis.refuse("owners", StoreError::from(refused), Some(&advice));
    }
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
