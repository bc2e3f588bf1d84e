//! The inputs that are kept: `tests/corpus/TARGET/…`.

use std::fs;
use std::path::{Path, PathBuf};

/// The largest file that is kept, and the most files for one target.
pub const MAX_BYTES: usize = 1_024;
pub const MAX_FILES: usize = 40;

pub fn folder() -> PathBuf {
    Path::new(crate::REPOSITORY).join("tests/corpus")
}

/// The inputs of a target with their names, in the same order each time.
pub fn inputs(target: &str) -> Vec<(String, Vec<u8>)> {
    let mut inputs: Vec<(String, Vec<u8>)> = names(&folder().join(target))
        .into_iter()
        .map(|name| (name.clone(), fs::read(folder().join(target).join(name)).expect("an input is readable")))
        .collect();
    inputs.sort();
    inputs
}

/// What is in a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
