//! The stored inputs: `tests/corpus/TARGET/…`.

use std::fs;
use std::path::{Path, PathBuf};

/// Limits for the size of a stored input, and for the number of inputs per target.
pub const MAX_BYTES: usize = 1_024;
pub const MAX_FILES: usize = 40;

pub fn folder() -> PathBuf {
    Path::new(crate::REPOSITORY).join("tests/corpus")
}

/// The inputs of a target with their names, sorted by name.
pub fn inputs(target: &str) -> Vec<(String, Vec<u8>)> {
    let mut inputs: Vec<(String, Vec<u8>)> = names(&folder().join(target))
        .into_iter()
        .map(|name| {
            (name.clone(), fs::read(folder().join(target).join(name)).expect("the input is readable"))
        })
        .collect();
    inputs.sort();
    inputs
}

/// The sorted names of the entries of a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
