//! A picture of a folder, to see that nothing in it was changed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Everything in a folder: what is in it, when it was changed, and who may read it.
pub type Picture = BTreeMap<PathBuf, (Option<Vec<u8>>, SystemTime, u32)>;

pub fn picture(folder: &Path) -> Picture {
    let mut picture = Picture::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        let meta = fs::symlink_metadata(&path).expect("it is there");
        if meta.is_dir() {
            open.extend(fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
        }
        let bytes = meta.is_file().then(|| fs::read(&path).expect("a file"));
        picture.insert(path, (bytes, meta.modified().expect("a time"), meta.permissions().mode()));
    }
    picture
}
