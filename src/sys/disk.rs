//! What kind of filesystem a path is on, and how much room is left.

use std::io;
use std::path::Path;

use rustix::fs::{statfs, statvfs};

/// Network filesystems by the magic number that the kernel reports.
const NETWORK: [(u64, &str); 7] = [
    (0x6969, "NFS"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB"),
    (0x517B, "SMB"),
    (0x0102_1997, "9p"),
    (0x5346_414F, "AFS"),
    (0x00C3_6400, "Ceph"),
];

/// The name of the network filesystem that `path` is on, if it is on one: locks and shared memory do not work there.
pub fn network_filesystem(path: &Path) -> io::Result<Option<&'static str>> {
    #[expect(clippy::cast_sign_loss, reason = "a magic number, compared bit by bit")]
    let magic = statfs(path)?.f_type as u64 & 0xFFFF_FFFF;
    Ok(NETWORK.iter().find(|(known, _)| *known == magic).map(|(_, name)| *name))
}

/// Bytes that this user can still write to the filesystem of `path`.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let stat = statvfs(path)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}
