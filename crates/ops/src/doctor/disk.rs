//! The filesystem: whether a database can live on it, and how much room is left.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{Diagnosis, Finding, Level, cannot_open};
use crate::status::LOW_SPACE_BYTES;
use domain::values::size::rough_size;
use store::StoreError;
use sys::fs::disk::{Filesystem, free_bytes, free_inodes};

/// With less than this not even a job can be stored.
const NO_SPACE_BYTES: u64 = 1 << 20;
/// Fewer files than this that can still be made are few.
const FEW_INODES: u64 = 1_000;
const MAKE_ROOM: &str = "delete or move something away on that disk";

/// Looks at the filesystem of the home, and at that of the database where it is another.
pub(super) fn check(diagnosis: &mut Diagnosis, home: &Path, folder: &Path) {
    let (home, folder) = (nearest(home), nearest(folder));
    check_place(diagnosis, folder);
    if device(home) != device(folder) {
        check_place(diagnosis, home);
    }
}

/// A folder that is not made yet will be on the filesystem of the one above it.
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
        let error = StoreError::NetworkFilesystem { path: folder.to_owned(), kind };
        diagnosis.refuse("filesystem", error, Some("choose another folder with --home"));
    } else {
        diagnosis.add(filesystem(kind));
    }
    add_room(diagnosis, space(free_bytes(folder)?));
    if let Some(free) = free_inodes(folder)? {
        add_room(diagnosis, inodes(free));
    }
    Ok(())
}

fn filesystem(kind: Filesystem) -> Finding {
    let finding = |said: &str| Finding::ok("filesystem", said);
    match kind {
        Filesystem::Network(name) | Filesystem::Disk(name) => finding(name),
        Filesystem::Memory(name) => {
            let said = format!("{name}: all of it is gone after a reboot");
            Finding::warning("filesystem", said).advise("choose another folder with --home")
        }
        Filesystem::Overlay => finding("overlayfs: what is not in a volume is gone with its container"),
        Filesystem::Fuse => {
            let said = "FUSE: whether locks can be trusted depends on the program behind it";
            Finding::warning("filesystem", said).advise("choose a folder on a local disk with --home")
        }
        Filesystem::Unknown(magic) => finding(&format!("of a kind that queuectl does not know ({magic:#x})")),
    }
}

fn add_room(diagnosis: &mut Diagnosis, finding: Finding) {
    if finding.level == Level::Error {
        diagnosis.refusal.get_or_insert(StoreError::Full.into());
    }
    diagnosis.add(finding);
}

fn space(free: u64) -> Finding {
    let said = format!("{} free", rough_size(free));
    match free {
        ..NO_SPACE_BYTES => Finding::error("space", said).advise(MAKE_ROOM),
        NO_SPACE_BYTES..LOW_SPACE_BYTES => Finding::warning("space", said).advise(MAKE_ROOM),
        LOW_SPACE_BYTES.. => Finding::ok("space", said),
    }
}

fn inodes(free: u64) -> Finding {
    let said = format!("{free} free");
    match free {
        0 => Finding::error("inodes", said).advise(MAKE_ROOM),
        1..FEW_INODES => Finding::warning("inodes", said).advise(MAKE_ROOM),
        FEW_INODES.. => Finding::ok("inodes", said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_less_room_the_worse() {
        let levels = |judge: fn(u64) -> Finding, free: [u64; 3]| free.map(|free| judge(free).level);
        let worse = [Level::Error, Level::Warning, Level::Ok];
        assert_eq!(levels(space, [0, 63 << 20, 64 << 20]), worse);
        assert_eq!(levels(inodes, [0, 1, 1_000]), worse);
        assert_eq!(space(1_536 << 20).said, "1.5 GiB free");
    }

    #[test]
    fn what_a_reboot_takes_away_is_a_warning() {
        assert_eq!(filesystem(Filesystem::Memory("tmpfs")).level, Level::Warning);
        assert_eq!(filesystem(Filesystem::Fuse).level, Level::Warning);
        for fine in [Filesystem::Overlay, Filesystem::Disk("ext4"), Filesystem::Unknown(1)] {
            assert_eq!(filesystem(fine).level, Level::Ok, "{fine:?}");
        }
    }
}
