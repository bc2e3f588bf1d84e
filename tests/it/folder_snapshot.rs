//! A snapshot of a folder, to verify that nothing in it changed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The content, modification time and permissions of every file in a folder.
pub type FolderSnapshot = BTreeMap<PathBuf, (Option<Vec<u8>>, SystemTime, u32)>;

pub fn snapshot(folder: &Path) -> FolderSnapshot {
    let mut snapshot = FolderSnapshot::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        let meta = fs::symlink_metadata(&path).expect("the path exists");
        if meta.is_dir() {
            open.extend(fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
        }
        let bytes = meta.is_file().then(|| fs::read(&path).expect("a file"));
        snapshot.insert(path, (bytes, meta.modified().expect("a time"), meta.permissions().mode()));
    }
    snapshot
}
