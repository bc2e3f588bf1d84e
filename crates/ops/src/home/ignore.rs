//! The `.gitignore` of a home. A queue holds the environments of its jobs, and with them secrets: `git add` in a project
//! must not pick it up.

use std::io::{self, Write};
use std::path::Path;

use sys::fs::owner_only;

const FILE: &str = ".gitignore";
/// Excludes everything in the folder, the file itself included.
const CONTENT: &str =
    "# Created by queuectl: a queue holds environments of jobs, and with them secrets.\n*\n";

/// Adds the file, unless there is one: that may be the user's own.
pub fn add_file(home: &Path) -> io::Result<()> {
    match owner_only::add_file(&home.join(FILE))? {
        Some(mut file) => file.write_all(CONTENT.as_bytes()),
        None => Ok(()),
    }
}
