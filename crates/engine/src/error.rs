//! Why a supervisor or a worker could not go on.

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
    #[error("failed to make `{}`", path.display())]
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
    #[error("the worker was declared dead in its absence")]
    DeclaredDead,
    #[error("worker `{worker}` lives")]
    WorkerLives { worker: WorkerId },
    #[error("the jobs of worker `{worker}` cannot be given back ({why})")]
    CannotForget { worker: WorkerId, why: String },
    #[error("{}", cannot_start(said))]
    CannotStart {
        /// What the supervisor said, if it said anything.
        said: String,
    },
    #[error(
        "{crashes} workers in a row crashed before they had started any command (see worker.log in the home)"
    )]
    GaveUp { crashes: u32 },
}

impl EngineError {
    pub(super) fn system(what: &'static str) -> impl Fn(io::Error) -> Self + Copy {
        move |source| Self::System { what, source }
    }
}

fn cannot_start(said: &str) -> String {
    if said.is_empty() {
        return "the workers could not be started (see worker.log in the home)".to_owned();
    }
    format!("the workers could not be started ({said})")
}
