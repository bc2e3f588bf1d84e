//! The folder of a trial.

use std::fs;
use std::path::{Path, PathBuf};

use crate::ProofError;
use sys::fs::owner_only;

/// A folder that is deleted on drop, unless it is kept.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    pub(crate) is_kept: bool,
}

impl Folder {
    /// Creates a folder in `inside`, which must exist. The paths of a trial are part of command lines in JSON, so they must be
    /// UTF-8.
    pub(crate) fn new(inside: &Path) -> Result<Self, ProofError> {
        let inside = inside
            .canonicalize()
            .map_err(|source| ProofError::CannotRead { path: inside.to_owned(), source })?;
        if inside.to_str().is_none() {
            return Err(ProofError::NotText { path: inside });
        }
        let path = inside.join(format!("queuectl-{}-{:08x}", std::process::id(), fastrand::u32(..)));
        owner_only::add_folder(&path)
            .map_err(|source| ProofError::CannotMake { path: path.clone(), source })?;
        Ok(Self { path, is_kept: false })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
