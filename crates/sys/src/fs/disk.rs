//! The filesystem of a path: its type and its free space.

use std::io;
use std::path::Path;

use rustix::fs::{statfs, statvfs};

/// The type of a filesystem, as far as it matters to a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filesystem {
    /// Locks and shared memory do not work on it.
    Network(&'static str),
    /// Lost on reboot.
    Memory(&'static str),
    /// The filesystem of containers, a writable layer on a read-only one: lost with its container.
    Overlay,
    /// A program implements it: as reliable as that program.
    Fuse,
    Disk(&'static str),
    /// With its magic number.
    Unknown(u64),
}

/// Filesystems by the magic number that the kernel reports.
const KNOWN: [(u64, Filesystem); 17] = [
    (0x6969, Filesystem::Network("NFS")),
    (0xFF53_4D42, Filesystem::Network("CIFS")),
    (0xFE53_4D42, Filesystem::Network("SMB")),
    (0x517B, Filesystem::Network("SMB")),
    (0x0102_1997, Filesystem::Network("9p")),
    (0x5346_414F, Filesystem::Network("AFS")),
    (0x00C3_6400, Filesystem::Network("Ceph")),
    (0x0102_1994, Filesystem::Memory("tmpfs")),
    (0x8584_58F6, Filesystem::Memory("ramfs")),
    (0x794C_7630, Filesystem::Overlay),
    (0x6573_5546, Filesystem::Fuse),
    (0xEF53, Filesystem::Disk("ext4")),
    (0x9123_683E, Filesystem::Disk("btrfs")),
    (0x5846_5342, Filesystem::Disk("XFS")),
    (0x2FC1_2FC1, Filesystem::Disk("ZFS")),
    (0xF2F5_2010, Filesystem::Disk("F2FS")),
    (0xCA45_1A4E, Filesystem::Disk("bcachefs")),
];

impl Filesystem {
    pub fn of(path: &Path) -> io::Result<Self> {
        #[expect(clippy::cast_sign_loss, reason = "a magic number, compared bit by bit")]
        let magic = statfs(path)?.f_type as u64 & 0xFFFF_FFFF;
        Ok(Self::from_magic(magic))
    }

    fn from_magic(magic: u64) -> Self {
        let known = KNOWN.iter().find(|(known, _)| *known == magic);
        known.map_or(Self::Unknown(magic), |(_, filesystem)| *filesystem)
    }
}

/// The name of the network filesystem that `path` is on, if any.
pub fn network_filesystem(path: &Path) -> io::Result<Option<&'static str>> {
    let Filesystem::Network(name) = Filesystem::of(path)? else {
        return Ok(None);
    };
    Ok(Some(name))
}

/// How many files this user can still create on it; `None` if the filesystem does not count them.
pub fn free_inodes(path: &Path) -> io::Result<Option<u64>> {
    let stat = statvfs(path)?;
    Ok((stat.f_files > 0).then_some(stat.f_favail))
}

/// Bytes that this user can still write to the filesystem of `path`.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let stat = statvfs(path)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filesystem_is_recognised_by_its_magic_number() {
        for (magic, expected) in [
            (0x6969, Filesystem::Network("NFS")),
            (0x0102_1994, Filesystem::Memory("tmpfs")),
            (0x794C_7630, Filesystem::Overlay),
            (0x6573_5546, Filesystem::Fuse),
            (0xEF53, Filesystem::Disk("ext4")),
            (0x4D44, Filesystem::Unknown(0x4D44)),
        ] {
            assert_eq!(Filesystem::from_magic(magic), expected);
        }
        assert_eq!(network_filesystem(Path::new("/proc")).expect("it is mounted"), None);
    }
}
