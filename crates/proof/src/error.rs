//! Errors that prevent a trial. They say nothing about a promise.

use std::io;
use std::path::PathBuf;

use ops::OpError;
use store::StoreError;

#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    #[error("failed to create `{path}`")]
    CannotMake { path: PathBuf, source: io::Error },
    #[error("failed to read `{path}`")]
    CannotRead { path: PathBuf, source: io::Error },
    #[error("`{path}` cannot be used for a trial: its name is not UTF-8")]
    NotText { path: PathBuf },
    #[error("failed to start `{program}`")]
    CannotStart { program: PathBuf, source: io::Error },
    #[error("failed to {what}")]
    System { what: &'static str, source: io::Error },
    #[error("`queuectl {call}` failed before the trial began: {stderr}")]
    CannotBegin { call: String, stderr: String },
    #[error("failed to read the queue of the trial")]
    Store(#[from] StoreError),
    #[error("failed to read the output of a job")]
    Output(#[from] OpError),
    #[error("a trial panicked")]
    Panicked,
    #[error("interrupted")]
    Interrupted,
}

impl ProofError {
    pub(super) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}
