//! What the verbs that enqueue take from the process that called them.

use crate::domain::environment::Environment;
use crate::ops::enqueue::Caller;
use crate::sys::user;

#[derive(Debug, Default, clap::Args)]
pub(super) struct CallerFlags {
    /// When the id is taken, return the job that has it
    #[arg(long, help_heading = "Only once")]
    if_absent: bool,
    /// Run with the worker's environment instead of this one
    #[arg(long, help_heading = "Job")]
    no_env_capture: bool,
}

impl CallerFlags {
    /// For verbs that make jobs whose ids nobody gives.
    pub(super) fn without_if_absent(no_env_capture: bool) -> Self {
        Self { if_absent: false, no_env_capture }
    }

    pub(super) fn caller(&self) -> Caller {
        Caller {
            cwd: here(),
            environment: (!self.no_env_capture).then(|| Environment::capture(user::variables())),
            if_absent: self.if_absent,
            batch: None,
        }
    }
}

/// Where the caller stands. A folder that is gone, or whose name is not text, cannot be kept.
pub(super) fn here() -> Option<String> {
    std::env::current_dir().ok()?.into_os_string().into_string().ok()
}
