//! The filesystem: whether it is suitable for a database, and how much space is free.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{Diagnosis, Finding, Level, cannot_open};
use crate::status::LOW_SPACE_BYTES;
use domain::values::size::rough_size;
use store::StoreError;
use store::sqlite::network_filesystem;
use sys::fs::disk::{Filesystem, free_bytes, free_inodes};

/// With less free space than this not even a job can be stored.
const MIN_FREE_BYTES: u64 = 1 << 20;
/// Fewer free inodes than this are a warning.
const FEW_INODES: u64 = 1_000;
const FREE_SPACE_ADVICE: &str = "delete or move files on that disk";

/// Checks the filesystem of the database, and that of the home if it is a different one.
pub(super) fn check(diagnosis: &mut Diagnosis, home: &Path, folder: &Path) {
    let (home, folder) = (nearest(home), nearest(folder));
    check_place(diagnosis, folder);
    if device(home) != device(folder) {
        check_place(diagnosis, home);
    }
}

/// The nearest existing ancestor: a missing folder would be created on its filesystem.
fn nearest(folder: &Path) -> &Path {
    folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."))
}

fn device(folder: &Path) -> Option<u64> {
    Some(folder.metadata().ok()?.dev())
}

fn check_place(diagnosis: &mut Diagnosis, folder: &Path) {
    if let Err(error) = try_check(diagnosis, folder) {
        diagnosis.refuse("filesystem", cannot_open(folder, error), None);
    }
}

fn try_check(diagnosis: &mut Diagnosis, folder: &Path) -> io::Result<()> {
    let kind = Filesystem::of(folder)?;
    if let Filesystem::Network(kind) = kind {
        let error = network_filesystem(folder, kind);
        diagnosis.refuse("filesystem", error, Some("choose another directory with --home"));
    } else {
        diagnosis.add(filesystem(kind));
    }
    add_free_space(diagnosis, space(free_bytes(folder)?));
    if let Some(free) = free_inodes(folder)? {
        add_free_space(diagnosis, inodes(free));
    }
    Ok(())
}

fn filesystem(kind: Filesystem) -> Finding {
    let finding = |message: &str| Finding::ok("filesystem", message);
    match kind {
        Filesystem::Network(name) | Filesystem::Disk(name) => finding(name),
        Filesystem::Memory(name) => {
            let message = format!("{name}: everything on it is lost at reboot");
            Finding::warning("filesystem", message).advise("choose another directory with --home")
        }
        Filesystem::Overlay => finding("overlayfs: data outside a volume is lost with the container"),
        Filesystem::Fuse => {
            let message = "FUSE: whether file locks are reliable depends on its implementation";
            Finding::warning("filesystem", message).advise("choose a directory on a local disk with --home")
        }
        Filesystem::Unknown(magic) => finding(&format!("unknown type ({magic:#x})")),
    }
}

fn add_free_space(diagnosis: &mut Diagnosis, finding: Finding) {
    if finding.level == Level::Error {
        diagnosis.refusal.get_or_insert(StoreError::Full.into());
    }
    diagnosis.add(finding);
}

fn space(free: u64) -> Finding {
    let message = format!("{} free", rough_size(free));
    match free {
        ..MIN_FREE_BYTES => Finding::error("space", message).advise(FREE_SPACE_ADVICE),
        MIN_FREE_BYTES..LOW_SPACE_BYTES => Finding::warning("space", message).advise(FREE_SPACE_ADVICE),
        LOW_SPACE_BYTES.. => Finding::ok("space", message),
    }
}

fn inodes(free: u64) -> Finding {
    let message = format!("{free} free");
    match free {
        0 => Finding::error("inodes", message).advise(FREE_SPACE_ADVICE),
        1..FEW_INODES => Finding::warning("inodes", message).advise(FREE_SPACE_ADVICE),
        FEW_INODES.. => Finding::ok("inodes", message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_free_space_is_a_warning_and_none_is_an_error() {
        let levels = |judge: fn(u64) -> Finding, free: [u64; 3]| free.map(|free| judge(free).level);
        let worse = [Level::Error, Level::Warning, Level::Ok];
        assert_eq!(levels(space, [0, 63 << 20, 64 << 20]), worse);
        assert_eq!(levels(inodes, [0, 1, 1_000]), worse);
        assert_eq!(space(1_536 << 20).message, "1.5 GiB free");
    }

    #[test]
    fn a_filesystem_that_can_lose_the_queue_is_a_warning() {
        assert_eq!(filesystem(Filesystem::Memory("tmpfs")).level, Level::Warning);
        assert_eq!(filesystem(Filesystem::Fuse).level, Level::Warning);
        for fine in [Filesystem::Overlay, Filesystem::Disk("ext4"), Filesystem::Unknown(1)] {
            assert_eq!(filesystem(fine).level, Level::Ok, "{fine:?}");
        }
    }
}
