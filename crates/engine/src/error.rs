//! Errors that end a supervisor or a worker.

use std::io;
use std::path::PathBuf;

use domain::values::name::WorkerId;
use store::StoreError;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{what}")]
    System {
        what: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("failed to create `{}`", path.display())]
    CannotMake {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "the kernel does not list the children of a process in /proc (CONFIG_PROC_CHILDREN), which workers need"
    )]
    NoChildrenList,
    #[error("the supervisor died before its worker was up")]
    NoSupervisor,
    #[error("another worker took this one for dead and reaped its jobs")]
    DeclaredDead,
    #[error("worker `{worker}` is still running")]
    WorkerLives { worker: WorkerId },
    #[error("the jobs of worker `{worker}` cannot be released ({why})")]
    CannotForget { worker: WorkerId, why: String },
    #[error("{}", cannot_start(message))]
    CannotStart {
        /// The message of the supervisor, if any.
        message: String,
    },
    #[error(
        "{crashes} workers in a row crashed before they started any command (see worker.log in the home)"
    )]
    GaveUp { crashes: u32 },
}

impl EngineError {
    pub(super) fn system(what: &'static str) -> impl Fn(io::Error) -> Self + Copy {
        move |source| Self::System { what, source }
    }
}

fn cannot_start(message: &str) -> String {
    if message.is_empty() {
        return "the workers could not be started (see worker.log in the home)".to_owned();
    }
    format!("the workers could not be started ({message})")
}
