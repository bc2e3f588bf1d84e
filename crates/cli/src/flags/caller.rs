//! What the verbs that enqueue take from the process that called them.

use domain::job::environment::Environment;
use ops::jobs::enqueue::Caller;
use sys::process::user;

#[derive(Debug, Default, clap::Args)]
pub(crate) struct CallerFlags {
    /// When the id is taken, return the job that has it
    #[arg(long, help_heading = "Only once")]
    if_absent: bool,
    /// Run with the worker's environment instead of this one
    #[arg(long, help_heading = "Job")]
    no_env_capture: bool,
}

impl CallerFlags {
    /// For verbs that make jobs whose ids nobody gives.
    pub(crate) fn without_if_absent(no_env_capture: bool) -> Self {
        Self { if_absent: false, no_env_capture }
    }

    pub(crate) fn caller(&self) -> Caller {
        Caller {
            cwd: here(),
            environment: (!self.no_env_capture).then(|| Environment::capture(user::variables())),
            if_absent: self.if_absent,
            batch: None,
        }
    }
}

/// Where the caller stands. A folder that is gone, or whose name is not text, cannot be kept.
pub(crate) fn here() -> Option<String> {
    std::env::current_dir().ok()?.into_os_string().into_string().ok()
}
