//! Writing the metrics to a file, for a collector that reads files.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::OpError;
use crate::upkeep::backup::NewFile;

/// A collector runs as another user, and the names of queues are no secret on the machine of the queue.
const MODE: u32 = 0o644;

/// Replaces the file at once, so that a collector never reads half of it.
pub fn write_file(path: &Path, text: &[u8]) -> Result<(), OpError> {
    let new = NewFile::create(path, true)?;
    let write = || -> io::Result<()> {
        let mut file = new.open()?;
        file.write_all(text)?;
        file.set_permissions(Permissions::from_mode(MODE))
    };
    write().map_err(|source| OpError::CannotMake { path: path.to_owned(), source })?;
    new.publish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_is_replaced_and_can_be_read_by_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("queuectl.prom");
        for text in ["first\n", "second\n"] {
            write_file(&path, text.as_bytes()).expect("it is written");
            assert_eq!(fs::read_to_string(&path).expect("it is read"), text);
            assert_eq!(path.metadata().expect("it exists").permissions().mode() & 0o777, MODE);
        }
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 1, "nothing is left beside it");
        let missing = folder.path().join("missing").join("x.prom");
        assert!(matches!(write_file(&missing, b""), Err(OpError::CannotMake { .. })));
    }
}
