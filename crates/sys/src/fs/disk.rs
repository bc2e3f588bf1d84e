//! The filesystem of a path: its type and its free space.

use std::io;
use std::path::Path;

use rustix::fs::{statfs, statvfs};

/// Network filesystems, by the magic number that the kernel reports.
const NETWORK: [(u64, &str); 7] = [
    (0x6969, "NFS"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB"),
    (0x517B, "SMB"),
    (0x0102_1997, "9p"),
    (0x5346_414F, "AFS"),
    (0x00C3_6400, "Ceph"),
];

/// Filesystems in memory.
const MEMORY: [(u64, &str); 2] = [(0x0102_1994, "tmpfs"), (0x8584_58F6, "ramfs")];
/// A read-only lower layer with a writable one on top: the filesystem of containers.
const OVERLAY: u64 = 0x794C_7630;
/// A filesystem that a program implements.
const FUSE: u64 = 0x6573_5546;
const DISK: [(u64, &str); 6] = [
    (0xEF53, "ext4"),
    (0x9123_683E, "btrfs"),
    (0x5846_5342, "XFS"),
    (0x2FC1_2FC1, "ZFS"),
    (0xF2F5_2010, "F2FS"),
    (0xCA45_1A4E, "bcachefs"),
];

/// The type of a filesystem, as far as it matters to a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filesystem {
    /// Locks and shared memory do not work on it.
    Network(&'static str),
    /// Lost on reboot.
    Memory(&'static str),
    /// Lost with its container.
    Overlay,
    /// As reliable as the program that implements it.
    Fuse,
    Disk(&'static str),
    /// With its magic number.
    Unknown(u64),
}

impl Filesystem {
    pub fn of(path: &Path) -> io::Result<Self> {
        #[expect(clippy::cast_sign_loss, reason = "a magic number, compared bit by bit")]
        let magic = statfs(path)?.f_type as u64 & 0xFFFF_FFFF;
        Ok(Self::from_magic(magic))
    }

    fn from_magic(magic: u64) -> Self {
        let name_in = |table: &[(u64, &'static str)]| {
            table.iter().find(|(known, _)| *known == magic).map(|(_, name)| *name)
        };
        if let Some(name) = name_in(&NETWORK) {
            Self::Network(name)
        } else if let Some(name) = name_in(&MEMORY) {
            Self::Memory(name)
        } else if let Some(name) = name_in(&DISK) {
            Self::Disk(name)
        } else {
            match magic {
                OVERLAY => Self::Overlay,
                FUSE => Self::Fuse,
                _ => Self::Unknown(magic),
            }
        }
    }
}

/// The name of the network filesystem that `path` is on, if any.
pub fn network_filesystem(path: &Path) -> io::Result<Option<&'static str>> {
    Ok(match Filesystem::of(path)? {
        Filesystem::Network(name) => Some(name),
        Filesystem::Memory(_)
        | Filesystem::Overlay
        | Filesystem::Fuse
        | Filesystem::Disk(_)
        | Filesystem::Unknown(_) => None,
    })
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
