//! The resource limits of the system: open files, processes and file size.
//!
//! These are the limits of this process, which workers started from here inherit.

use super::{Diagnosis, Finding};
use domain::settings::Settings;
use domain::values::size::rough_size;
use sys::process::load;
use sys::process::rlimit::Limit;

/// The descriptors of a worker apart from its slots: the store, its own files and pipes.
const FILES_OF_A_WORKER: u64 = 32;
/// The output pipes of a command, its log, its lock, its pidfd, and its cgroup.
const FILES_OF_A_SLOT: u64 = 10;
/// A supervisor, a worker, and other processes of this user.
const PROCESSES_OF_A_WORKER: u64 = 16;
/// A thread, a shell, and a few commands of it.
const PROCESSES_OF_A_SLOT: u64 = 4;

pub(super) fn check(diagnosis: &mut Diagnosis, settings: &Settings) {
    let slots = u64::from(settings.concurrency.slots(load::processors()));
    let files = FILES_OF_A_WORKER + slots * FILES_OF_A_SLOT;
    // A worker raises its soft limit to the hard limit.
    diagnosis.add(enough("open_files", Limit::OpenFiles.hard(), files, "open files", "ulimit -n"));
    let processes = PROCESSES_OF_A_WORKER + slots * PROCESSES_OF_A_SLOT;
    diagnosis.add(enough("processes", Limit::Processes.soft(), processes, "processes", "ulimit -u"));
    diagnosis.add(file_size(Limit::FileSize.soft()));
}

fn enough(check: &'static str, limit: Option<u64>, needed: u64, what: &str, how: &str) -> Finding {
    match limit {
        None => Finding::ok(check, format!("no limit on {what}")),
        Some(limit) if limit < needed => {
            let message = format!("{limit} {what} are allowed, but a worker may need {needed}");
            Finding::warning(check, message)
                .advise(format!("raise the limit with `{how}`, or lower the setting `concurrency`"))
        }
        Some(limit) => Finding::ok(check, format!("{limit} {what} are allowed")),
    }
}

fn file_size(limit: Option<u64>) -> Finding {
    match limit {
        None => Finding::ok("file_size", "no limit on file size"),
        Some(limit) => {
            let message = format!("files, including the database, are limited to {}", rough_size(limit));
            Finding::warning("file_size", message).advise("remove the limit with `ulimit -f unlimited`")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    #[test]
    fn a_limit_below_the_need_of_a_worker_is_a_warning() {
        let judge = |limit| enough("processes", limit, 20, "processes", "ulimit -u");
        assert_eq!(judge(None).level, Level::Ok);
        assert_eq!(judge(Some(20)).level, Level::Ok);
        let tight = judge(Some(19));
        assert_eq!(tight.level, Level::Warning);
        assert_eq!(tight.message, "19 processes are allowed, but a worker may need 20");
    }
}
