//! Locks on parts of a file that belong to an open file description.
//!
//! The kernel frees such a lock when the last descriptor of its description is closed: when everybody who inherited it
//! is gone. It can be looked at without being taken.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// Takes the lock; `false` if somebody else has it.
pub fn take(file: &File, bytes: Range<u64>) -> io::Result<bool> {
    set(file, &mut wanted(bytes))
}

/// Takes a lock that others can share; `false` if another holds it for itself alone.
#[expect(clippy::cast_possible_truncation, reason = "a constant of the system, and small")]
pub fn share(file: &File, bytes: Range<u64>) -> io::Result<bool> {
    set(file, &mut libc::flock { l_type: libc::F_RDLCK as libc::c_short, ..wanted(bytes) })
}

fn set(file: &File, lock: &mut libc::flock) -> io::Result<bool> {
    match fcntl(file, libc::F_OFD_SETLK, lock) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether another description of the same file holds a lock here.
pub fn is_held(file: &File, bytes: Range<u64>) -> io::Result<bool> {
    let mut lock = wanted(bytes);
    fcntl(file, libc::F_OFD_GETLK, &mut lock)?;
    Ok(lock.l_type != unlocked())
}

#[expect(clippy::cast_possible_truncation, reason = "constants of the system, all of them small")]
fn unlocked() -> libc::c_short {
    libc::F_UNLCK as libc::c_short
}

#[expect(
    unsafe_code,
    clippy::cast_possible_truncation,
    reason = "a plain C structure for which zeros are valid; constants of the system, all of them small"
)]
fn wanted(bytes: Range<u64>) -> libc::flock {
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
    fn a_lock_is_seen_by_others_and_ends_with_its_description() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || crate::fs::owner_only::open_file(&folder.path().join("lock")).expect("open");
        let (holder, other) = (open(), open());
        assert!(take(&holder, 0..1).expect("take"));
        assert!(is_held(&other, 0..1).expect("look"));
        assert!(!is_held(&other, 1..2).expect("look"), "only its own part is locked");
        assert!(!take(&other, 0..1).expect("take"), "a second one does not get it");

        let inherited = holder.try_clone().expect("clone");
        drop(holder);
        assert!(is_held(&other, 0..1).expect("look"), "somebody still has the description");
        drop(inherited);
        assert!(!is_held(&other, 0..1).expect("look"));

        let (one, another) = (open(), open());
        assert!(share(&one, 0..1).expect("share") && share(&another, 0..1).expect("share"));
        drop(one);
        assert!(is_held(&other, 0..1).expect("look"), "the second one still shares it");
    }
}
