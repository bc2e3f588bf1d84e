//! The working directory and environment that a new job inherits from the process that enqueues it.

use std::sync::Arc;

use domain::job::environment::Environment;
use ops::jobs::enqueue::Caller;
use sys::process::user;

#[derive(Debug, clap::Args)]
pub(crate) struct CallerFlags {
    /// If a job with this id exists, return it instead of failing
    #[arg(long, help_heading = "Duplicates")]
    if_absent: bool,
    /// Run with the worker's environment instead of the current one
    #[arg(long, help_heading = "Job")]
    no_env_capture: bool,
}

impl CallerFlags {
    /// For verbs whose jobs always get generated ids.
    pub(crate) fn without_if_absent(no_env_capture: bool) -> Self {
        Self { if_absent: false, no_env_capture }
    }

    pub(crate) fn caller(&self) -> Caller {
        Caller {
            cwd: working_directory(),
            environment: (!self.no_env_capture).then(|| Arc::new(Environment::capture(user::variables()))),
            if_absent: self.if_absent,
            batch: None,
        }
    }
}

/// The caller's working directory; none if it was deleted or its path is not UTF-8.
pub(crate) fn working_directory() -> Option<String> {
    std::env::current_dir().ok()?.into_os_string().into_string().ok()
}
