//! Creating a home for a project.

use std::path::{Path, PathBuf};

use super::location::{DATABASE, HOME_FOLDER, HOME_VARIABLE, LocationArgs, STORE_VARIABLE, variable};
use super::{ignore, location, open};
use crate::OpError;
use sys::fs::owner_only;

#[derive(Debug, PartialEq, Eq)]
pub enum InitOutcome {
    New(PathBuf),
    /// It already existed and was not changed.
    Existing(PathBuf),
}

/// Creates `.queuectl/` in `folder`, with an empty queue.
pub fn init(folder: &Path) -> Result<InitOutcome, OpError> {
    let home = folder.join(HOME_FOLDER);
    let found = home.symlink_metadata().ok();
    // Refuse a folder where later commands would refuse the home.
    location::check_found(folder, found.as_ref())?;
    let existed = found.is_some();
    if !existed {
        location::check_creator(&home)?;
        owner_only::create_folder(&home)
            .map_err(|source| OpError::CannotMake { path: home.clone(), source })?;
    }
    // Always the home's own database, even if QUEUECTL_STORE names another.
    let args = LocationArgs { home: Some(home.clone()), store: Some(home.join(DATABASE).into()) };
    open::open(&location::locate(&args)?)?;
    ignore::add_file(&home).map_err(|source| OpError::CannotMake { path: home.clone(), source })?;
    Ok(if existed { InitOutcome::Existing(home) } else { InitOutcome::New(home) })
}

/// The variable that makes queuectl use another queue than that of this home.
pub fn variable_instead_of(home: &Path) -> Option<&'static str> {
    let is_other = |(name, own): &(&str, PathBuf)| {
        let used = variable(name).map(PathBuf::from);
        used.is_some_and(|used| used != *own && used.canonicalize().ok() != own.canonicalize().ok())
    };
    let variables = [(HOME_VARIABLE, home.to_owned()), (STORE_VARIABLE, home.join(DATABASE))];
    variables.into_iter().find(is_other).map(|(name, _)| name)
}
