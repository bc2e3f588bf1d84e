//! Making a home of its own for a project.

use std::path::{Path, PathBuf};

use super::location;
use super::location::{DATABASE, HOME_FOLDER, Wanted};
use crate::OpError;
use sys::fs::owner_only;

#[derive(Debug, PartialEq, Eq)]
pub enum Made {
    New(PathBuf),
    /// It was there already and was left as it is.
    Existing(PathBuf),
}

/// Makes `.queuectl/` in `folder`, with an empty queue in it.
pub fn init(folder: &Path) -> Result<Made, OpError> {
    let home = folder.join(HOME_FOLDER);
    let found = home.symlink_metadata().ok();
    // Who works below is to find it.
    location::check_found(folder, found.as_ref())?;
    let existed = found.is_some();
    if !existed {
        location::check_maker(&home)?;
        owner_only::create_folder(&home)
            .map_err(|source| OpError::CannotMake { path: home.clone(), source })?;
    }
    // Its own database, whatever the environment says about another.
    let wanted = Wanted { home: Some(home.clone()), store: Some(home.join(DATABASE).into()) };
    location::open(&location::locate(&wanted)?)?;
    Ok(if existed { Made::Existing(home) } else { Made::New(home) })
}
