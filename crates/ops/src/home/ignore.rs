//! The `.gitignore` of a home. A queue holds the environments of its jobs, and with them secrets: `git add` in a project
//! must not pick it up.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use sys::fs::owner_only;

const FILE: &str = ".gitignore";
/// Excludes everything in the folder, the file itself included.
const CONTENT: &str =
    "# Created by queuectl: a queue holds environments of jobs, and with them secrets.\n*\n";

/// Adds the file, unless there is one: that may be the user's own. An empty one is what an interrupted process left.
pub fn add_file(home: &Path) -> io::Result<()> {
    let path = home.join(FILE);
    if has_content(&path)? {
        return Ok(());
    }
    // The pid is not unique, because it may also be that of a process in another container.
    let draft = home.join(format!("{FILE}.{}-{:x}", std::process::id(), fastrand::u64(..)));
    let placed = place(&draft, &path);
    // It is still there if it was not needed, or on an error, which matters more.
    let _ = fs::remove_file(&draft);
    placed
}

/// Writes the draft and gives it its name. The file is never seen half written.
fn place(draft: &Path, path: &Path) -> io::Result<()> {
    owner_only::replace_file(draft)?.write_all(CONTENT.as_bytes())?;
    match owner_only::rename_to_free(draft, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if has_content(path)? {
                Ok(())
            } else {
                fs::rename(draft, path)
            }
        }
        result => result,
    }
}

fn has_content(path: &Path) -> io::Result<bool> {
    match path.symlink_metadata() {
        Ok(meta) => Ok(!meta.is_file() || meta.len() > 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
