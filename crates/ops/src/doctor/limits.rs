//! What the system allows: open files, processes, and how long a file may be.
//!
//! These are the limits of whoever asks, which are those of the workers that are started from here.

use super::{Diagnosis, Finding};
use domain::settings::Settings;
use domain::values::size::rough_size;
use sys::process::limit::Limit;

/// What a worker has open besides its slots: the store, its own files and pipes.
const FILES_OF_A_WORKER: u64 = 32;
/// The output of a command, its log, its lock, and a handle to it.
const FILES_OF_A_SLOT: u64 = 8;
/// A supervisor, a worker, and what else this user runs.
const PROCESSES_OF_A_WORKER: u64 = 16;
/// A thread, a shell, and a few commands in it.
const PROCESSES_OF_A_SLOT: u64 = 4;

pub(super) fn check(diagnosis: &mut Diagnosis, settings: &Settings) {
    let slots = u64::from(settings.concurrency);
    let files = FILES_OF_A_WORKER + slots * FILES_OF_A_SLOT;
    // A worker raises its own limit as far as it may.
    diagnosis.add(enough("open_files", Limit::OpenFiles.hard(), files, "open files", "ulimit -n"));
    let processes = PROCESSES_OF_A_WORKER + slots * PROCESSES_OF_A_SLOT;
    diagnosis.add(enough("processes", Limit::Processes.soft(), processes, "processes", "ulimit -u"));
    diagnosis.add(file_size(Limit::FileSize.soft()));
}

fn enough(check: &'static str, limit: Option<u64>, needed: u64, what: &str, how: &str) -> Finding {
    match limit {
        None => Finding::ok(check, format!("no limit of {what}")),
        Some(limit) if limit < needed => {
            let said = format!("{limit} {what} are allowed, and a worker may need {needed}");
            Finding::warning(check, said)
                .advise(format!("raise it with `{how}`, or lower the setting `concurrency`"))
        }
        Some(limit) => Finding::ok(check, format!("{limit} {what} are allowed")),
    }
}

fn file_size(limit: Option<u64>) -> Finding {
    match limit {
        None => Finding::ok("file_size", "no limit to how long a file is"),
        Some(limit) => {
            let said = format!("no file may be longer than {}, the database neither", rough_size(limit));
            Finding::warning("file_size", said).advise("lift it with `ulimit -f unlimited`")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    #[test]
    fn a_limit_is_enough_or_not() {
        let judge = |limit| enough("processes", limit, 20, "processes", "ulimit -u");
        assert_eq!(judge(None).level, Level::Ok);
        assert_eq!(judge(Some(20)).level, Level::Ok);
        let tight = judge(Some(19));
        assert_eq!(tight.level, Level::Warning);
        assert_eq!(tight.said, "19 processes are allowed, and a worker may need 20");
    }
}
