//! Locks on ranges of a file that belong to an open file description.
//!
//! The kernel releases such a lock when the last descriptor of its description is closed, that is, when every process that
//! inherited it is gone. A lock can be queried without being taken.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Takes the lock; `false` if another description holds it.
pub fn take(file: &File, bytes: Range<u64>) -> io::Result<bool> {
    set(file, &mut exclusive(bytes))
}

/// Takes a shared lock; `false` if another description holds an exclusive one.
#[expect(clippy::cast_possible_truncation, reason = "a small constant of the system")]
pub fn share(file: &File, bytes: Range<u64>) -> io::Result<bool> {
    set(file, &mut libc::flock { l_type: libc::F_RDLCK as libc::c_short, ..exclusive(bytes) })
}

fn set(file: &File, lock: &mut libc::flock) -> io::Result<bool> {
    match fcntl(file, libc::F_OFD_SETLK, lock) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether another description of the same file holds a lock in this range.
pub fn is_held(file: &File, bytes: Range<u64>) -> io::Result<bool> {
    let mut lock = exclusive(bytes);
    fcntl(file, libc::F_OFD_GETLK, &mut lock)?;
    Ok(lock.l_type != unlocked())
}

/// As [`is_held`], for the file at this path; a missing one has no locks.
pub fn is_held_at(path: &Path, bytes: Range<u64>) -> io::Result<bool> {
    match File::options().read(true).write(true).open(path) {
        Ok(file) => is_held(&file, bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a small constant of the system")]
fn unlocked() -> libc::c_short {
    libc::F_UNLCK as libc::c_short
}

#[expect(
    unsafe_code,
    clippy::cast_possible_truncation,
    reason = "a plain C structure for which zeros are valid; small constants of the system"
)]
fn exclusive(bytes: Range<u64>) -> libc::flock {
    // SAFETY: all bytes zero is a valid value of every field.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = bytes.start.cast_signed();
    lock.l_len = (bytes.end - bytes.start).cast_signed();
    lock
}

#[expect(unsafe_code, reason = "there is no safe wrapper for locks of open file descriptions")]
fn fcntl(file: &File, command: libc::c_int, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: the descriptor is open for the whole call and `lock` is a valid structure to read and write.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, std::ptr::from_mut(lock)) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_visible_to_others_and_ends_with_its_description() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || crate::fs::owner_only::open_file(&folder.path().join("lock")).expect("open");
        let (holder, other) = (open(), open());
        assert!(take(&holder, 0..1).expect("take"));
        assert!(is_held(&other, 0..1).expect("query"));
        assert!(!is_held(&other, 1..2).expect("query"), "only the given range is locked");
        assert!(!take(&other, 0..1).expect("take"), "a second description does not get it");

        let inherited = holder.try_clone().expect("clone");
        drop(holder);
        assert!(is_held(&other, 0..1).expect("query"), "the description is still open");
        drop(inherited);
        assert!(!is_held(&other, 0..1).expect("query"));

        let (one, another) = (open(), open());
        assert!(share(&one, 0..1).expect("share") && share(&another, 0..1).expect("share"));
        drop(one);
        assert!(is_held(&other, 0..1).expect("query"), "the second description still shares it");
    }
}
