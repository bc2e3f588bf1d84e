//! The queue: whether its settings are consistent, and the problems that `status` reports.

use std::path::Path;

use super::{Diagnosis, Finding};
use crate::error::chain;
use crate::status::{Problem, status};
use domain::settings::{SettingKey, Settings};
use domain::values::clock::TimeFormat;
use store::Store;

pub(super) fn check_problems(diagnosis: &mut Diagnosis, store: &dyn Store, home: &Path, format: &TimeFormat) {
    match status(store, home, format) {
        Ok(status) => {
            // The checks of home and filesystem cover these. The messages of all others contain the advice.
            let is_covered =
                |problem: &Problem| [Problem::LOW_SPACE, Problem::READ_ONLY].contains(&problem.code);
            let others = status.problems.into_iter().filter(|problem| !is_covered(problem));
            let before = diagnosis.findings.len();
            others.for_each(|problem| diagnosis.add(Finding::warning(problem.code, problem.message)));
            if diagnosis.findings.len() == before {
                diagnosis.add(Finding::ok("queue", "no queue is paused, and no job waits for a worker"));
            }
        }
        Err(error) => diagnosis.refuse("queue", error, None),
    }
}

/// Each value was parsed already. Setting one of them to its own value checks that they are consistent.
pub(super) fn check_settings(diagnosis: &mut Diagnosis, settings: &Settings) {
    let lease = settings.get(SettingKey::Lease);
    diagnosis.add(match settings.clone().set(SettingKey::Lease, &lease) {
        Ok(()) => Finding::ok("settings", "every value is valid"),
        Err(error) => Finding::error("settings", chain(&error))
            .advise("change one of these settings with `queuectl config set`"),
    });
}
