//! The home: whether it exists, who owns it, and whether other users have access.

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
use sys::fs::ownership::{OwnershipError, OwnershipProblem};
use sys::fs::{liveness_lock, owner_only};
use sys::process::user;

/// The state of the home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HomeCondition {
    Ready,
    /// Not created yet.
    Missing,
    /// Nothing in it can be examined.
    Broken,
}

/// The permission bits of group and others.
const OTHERS: u32 = 0o077;
/// How many files one message names.
const MAX_NAMED: usize = 3;
/// How many files get their own finding.
const MAX_LISTED: usize = 100;

pub(super) fn check(diagnosis: &mut Diagnosis, home: &Path) -> HomeCondition {
    let meta = match home.metadata() {
        Ok(meta) if meta.is_dir() => meta,
        Ok(_) => {
            diagnosis.refuse("home", not_a_folder(home), Some("choose another directory with --home"));
            return HomeCondition::Broken;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return missing(diagnosis, home),
        Err(error) => {
            diagnosis.refuse("home", cannot_open(home, error), None);
            return HomeCondition::Broken;
        }
    };
    folder(diagnosis, home, &meta);
    match owner_only::may_write_in(home) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
            let advice = format!("`findmnt -T {}` shows how it is mounted", word(home));
            let read_only = "the home is on a filesystem that is mounted read-only: nothing can be changed";
            diagnosis.add(Finding::error("home", read_only).advise(advice));
            diagnosis.refusal.get_or_insert(StoreError::ReadOnly.into());
        }
        Err(error) => {
            let advice = "use the account that owns it, or choose another directory with --home";
            diagnosis.refuse("home", cannot_open(home, error), Some(advice));
        }
    }
    match files(home) {
        Ok(files) => {
            owners(diagnosis, home, &meta, &files);
            diagnosis.add(modes(home, &files));
            HomeCondition::Ready
        }
        Err(error) => {
            diagnosis.refuse("files", cannot_open(home, error), None);
            HomeCondition::Broken
        }
    }
}

fn missing(diagnosis: &mut Diagnosis, home: &Path) -> HomeCondition {
    let parent = home.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    if let Err(error) = owner_only::may_write_in(parent) {
        diagnosis.refuse("home", cannot_open(home, error), Some("choose another directory with --home"));
        return HomeCondition::Broken;
    }
    let message = format!("{} does not exist yet; it is created on first use", home.display());
    diagnosis.add(Finding::ok("home", message));
    HomeCondition::Missing
}

fn folder(diagnosis: &mut Diagnosis, home: &Path, meta: &Metadata) {
    if let Err(refused) = ownership::check(home, meta) {
        let advice = advice(&refused);
        return diagnosis.refuse("home", StoreError::from(refused), Some(&advice));
    }
    let (path, mode) = (home.display(), meta.mode() & 0o777);
    diagnosis.add(if mode & OTHERS == 0 {
        Finding::ok("home", format!("{path}, accessible only to its owner"))
    } else {
        Finding::warning("home", format!("{path} is accessible to other users (mode {mode:04o})"))
            .advise(format!("run `chmod 700 {}`", word(home)))
    });
}

/// A file or folder of the home.
struct Entry {
    path: PathBuf,
    meta: Metadata,
}

/// The entries of the home and of the folders that queuectl creates in it.
fn files(home: &Path) -> io::Result<Vec<Entry>> {
    let mut found: Vec<Entry> = home.read_dir()?.flatten().filter_map(|found| entry(&found)).collect();
    for folder in [log::FOLDER, liveness_lock::FOLDER] {
        let entries = home.join(folder).read_dir().into_iter().flatten().flatten();
        found.extend(entries.filter_map(|found| entry(&found)));
    }
    Ok(found)
}

/// `None` if the file was just deleted.
fn entry(found: &DirEntry) -> Option<Entry> {
    Some(Entry { meta: found.metadata().ok()?, path: found.path() })
}

/// Reports each file whose owner differs from the home's and each that other users can write.
fn owners(diagnosis: &mut Diagnosis, home: &Path, meta: &Metadata, files: &[Entry]) {
    let with_problems: Vec<OwnershipError> =
        files.iter().filter_map(|file| problem(file, meta.uid())).collect();
    for OwnershipError { path, problem } in with_problems.iter().take(MAX_LISTED) {
        let message = match problem {
            OwnershipProblem::Foreign { owner } => {
                let [owner, of_home] = [*owner, meta.uid()].map(user::name_of);
                format!("`{}` belongs to {owner}, but the home belongs to {of_home}", path.display())
            }
            OwnershipProblem::Writable { .. }
            | OwnershipProblem::Link
            | OwnershipProblem::HardLink
            | OwnershipProblem::NotFile => {
                format!("`{}` {problem}", path.display())
            }
        };
        diagnosis.add(Finding::error("owners", message));
    }
    if let more @ 1.. = with_problems.len().saturating_sub(MAX_LISTED) {
        diagnosis.add(Finding::error("owners", format!("and {more} more files")));
    }
    // Every other command opens, and would refuse, the files directly in the home.
    let refused = with_problems.iter().find(|file| file.path.parent() == Some(home)).cloned();
    let (owner, home) = (user::name_of(meta.uid()), word(home));
    if let Some(last) = diagnosis.findings.last_mut().filter(|_| !with_problems.is_empty()) {
        last.advice = Some(format!("run `sudo chown -R {owner} {home}` and `chmod -R go-w {home}`"));
    }
    if let Some(refused) = refused {
        diagnosis.refusal.get_or_insert(StoreError::from(refused).into());
    }
}

fn problem(file: &Entry, owner: u32) -> Option<OwnershipError> {
    let problem = if file.meta.uid() != owner {
        OwnershipProblem::Foreign { owner: file.meta.uid() }
    } else if !file.meta.is_symlink() && ownership::others_write(&file.path, &file.meta) {
        OwnershipProblem::Writable { mode: file.meta.mode() & 0o7777 }
    } else {
        return None;
    };
    Some(OwnershipError { path: file.path.clone(), problem })
}

fn modes(home: &Path, files: &[Entry]) -> Finding {
    let is_loose = |file: &&Entry| !file.meta.is_symlink() && file.meta.mode() & OTHERS != 0;
    let loose: Vec<&Entry> = files.iter().filter(is_loose).collect();
    if loose.is_empty() {
        let message = format!("{}, accessible only to their owner", counted(files.len(), "file", "files"));
        return Finding::ok("files", message);
    }
    let name = |file: &&Entry| file.path.strip_prefix(home).unwrap_or(&file.path).display().to_string();
    let mut names: Vec<String> = loose.iter().take(MAX_NAMED).map(name).collect();
    if loose.len() > names.len() {
        names.push("…".to_owned());
    }
    let message =
        format!("other users have access to {} of {} files: {}", loose.len(), files.len(), names.join(", "));
    Finding::warning("files", message).advise(format!("run `chmod -R go-rwx {}`", word(home)))
}

/// Checks a database outside the home, with the files next to it.
pub(super) fn check_store(diagnosis: &mut Diagnosis, database: &Path) {
    if let Err(StoreError::NotOwn(refused)) = check_files(database) {
        let advice = advice(&refused);
        diagnosis.refuse("owners", StoreError::from(refused), Some(&advice));
    }
}

/// Reports the size of the logs, for information.
pub(super) fn count_logs(diagnosis: &mut Diagnosis, home: &Path) {
    let Ok(entries) = home.join(log::FOLDER).read_dir() else {
        return;
    };
    let sizes: Vec<u64> = entries.flatten().filter_map(|entry| Some(entry.metadata().ok()?.len())).collect();
    let message = format!("{}, {}", counted(sizes.len(), "file", "files"), rough_size(sizes.iter().sum()));
    diagnosis.add(Finding::ok("logs", message));
}
