//! Files that are written anew for each input.

use std::fs;
use std::path::Path;

/// Writes a file in the place of another. To write over that one would take long: some filesystems sync it then.
pub fn write_new(path: &Path, bytes: &[u8]) {
    let _ = fs::remove_file(path);
    fs::write(path, bytes).expect("the file is written");
}
