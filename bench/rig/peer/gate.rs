//! Keeps a job waiting by a lock that the benchmark holds, so that the kernel frees it even if the benchmark crashes.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Result;

/// Closed until it is dropped.
pub(crate) struct Gate {
    path: PathBuf,
    _locked: File,
}

impl Gate {
    pub(crate) fn closed(path: &Path) -> Result<Self> {
        let locked = File::create(path)?;
        locked.lock()?;
        Ok(Self { path: path.to_owned(), _locked: locked })
    }

    /// The command line that runs `program` once the gate is open.
    pub(crate) fn before<'a>(&'a self, program: &[&'a str]) -> Result<Vec<&'a str>> {
        Ok(["flock", super::utf8(&self.path)?].into_iter().chain(program.iter().copied()).collect())
    }
}
