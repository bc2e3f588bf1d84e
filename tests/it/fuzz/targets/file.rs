//! Files that are written for each input.

use std::fs;
use std::path::Path;

/// Replaces a file. Overwriting it in place would be slow: some filesystems then sync it.
pub fn write_new(path: &Path, bytes: &[u8]) {
    let _ = fs::remove_file(path);
    fs::write(path, bytes).expect("the file is written");
}
