//! Checks that a file or directory belongs to this user alone. Another user who could change the queue, or replace it, would
//! run commands as this user.
//!
//! "Others" are all users except the owner and root, who is not bound by permissions. A group counts as others unless it is
//! the owner's private group: many systems give each user such a group and a umask of 002, which makes every directory
//! writable by a group with one member. An access control list can name more users, so with one the exception does not hold.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::process::user;

/// A file or directory that another user owns or can change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` {problem}", path.display())]
pub struct OwnershipError {
    pub path: PathBuf,
    pub problem: OwnershipProblem,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnershipProblem {
    #[error("belongs to {}, but {}", user::name_of(*owner), expected())]
    Foreign { owner: u32 },
    #[error("is writable by others (mode {mode:04o})")]
    Writable { mode: u32 },
    #[error("is a symlink")]
    Link,
    #[error("has more than one name (hard links)")]
    HardLink,
    #[error("is not a regular file")]
    NotFile,
}

fn expected() -> String {
    match accepted() {
        Some(owner) => format!("the home belongs to {}", user::name_of(owner.user)),
        None => format!("you are {}", user::name_of(user::number())),
    }
}

/// The owner and group of a home that this process works in on behalf of its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pub user: u32,
    pub group: u32,
}

static ACCEPTED: OnceLock<Owner> = OnceLock::new();

/// Lets this process use the files of another user, because it was asked to. Files that it creates belong to that user, who
/// could not use the home otherwise, and files of root are refused: that user may have planted them. See
/// [`super::owner_access`].
pub fn accept(owner: Owner) {
    // It works in one home, so a second call has the same owner.
    let _ = ACCEPTED.set(owner);
}

/// The user whose files this process uses, if it is another one.
pub fn accepted() -> Option<Owner> {
    ACCEPTED.get().copied()
}

const GROUP_WRITABLE: u32 = 0o020;
const WORLD_WRITABLE: u32 = 0o002;

/// Refuses a file that belongs to another user, including root, or that others can write. `meta` is that of `path`, or of
/// the file that was opened there.
pub fn check(path: &Path, meta: &Metadata) -> Result<(), OwnershipError> {
    check_owned_by(&[owner()], path, meta)
}

/// As [`check`], but root may own the file: for files that are only read, and for the directory that contains ours.
pub fn check_trusted(path: &Path, meta: &Metadata) -> Result<(), OwnershipError> {
    check_owned_by(&[owner(), user::ROOT], path, meta)
}

/// Refuses a directory of another user, whatever its permissions: files created there would get in that user's way.
pub fn check_owner(path: &Path, meta: &Metadata) -> Result<(), OwnershipError> {
    check_owner_among(&[owner(), user::ROOT], path, meta)
}

/// As [`check`], for an existing file that was opened to be written. In a home of this user it may be of any kind.
pub fn check_opened(path: &Path, meta: &Metadata) -> Result<(), OwnershipError> {
    let Some(owner) = accepted() else {
        return Ok(());
    };
    check_owner_among(&[owner.user], path, meta)?;
    let problem = if !meta.is_file() {
        OwnershipProblem::NotFile
    } else if meta.nlink() > 1 {
        OwnershipProblem::HardLink
    } else {
        return Ok(());
    };
    Err(OwnershipError { path: path.to_owned(), problem })
}

/// The user whose files this process uses.
fn owner() -> u32 {
    accepted().map_or_else(user::number, |owner| owner.user)
}

fn check_owned_by(owners: &[u32], path: &Path, meta: &Metadata) -> Result<(), OwnershipError> {
    check_owner_among(owners, path, meta)?;
    let problem = if meta.is_symlink() {
        OwnershipProblem::Link
    } else if others_write(path, meta) {
        OwnershipProblem::Writable { mode: meta.mode() & 0o7777 }
    } else {
        return Ok(());
    };
    Err(OwnershipError { path: path.to_owned(), problem })
}

fn check_owner_among(owners: &[u32], path: &Path, meta: &Metadata) -> Result<(), OwnershipError> {
    if owners.contains(&meta.uid()) {
        return Ok(());
    }
    Err(OwnershipError { path: path.to_owned(), problem: OwnershipProblem::Foreign { owner: meta.uid() } })
}

/// Whether users other than the owner and root can write to it.
pub fn others_write(path: &Path, meta: &Metadata) -> bool {
    let group_writes = meta.mode() & GROUP_WRITABLE != 0;
    meta.mode() & WORLD_WRITABLE != 0
        || group_writes && (!user::is_private_group(meta.uid(), meta.gid()) || has_access_list(path))
}

/// With an access control list, the group bits of the mode are the maximum rights of every user in the list.
fn has_access_list(path: &Path) -> bool {
    let size = rustix::fs::getxattr(path, "system.posix_acl_access", &mut [0_u8; 0]);
    size.is_ok_and(|bytes| bytes > 0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_world_writable_directory_is_refused_and_a_readable_one_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        for (mode, is_fine) in [(0o700, true), (0o755, true), (0o702, false), (0o1777, false)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the mode is set");
            let meta = path.metadata().expect("it is there");
            let expected = if is_fine {
                Ok(())
            } else {
                Err(OwnershipError { path: path.to_owned(), problem: OwnershipProblem::Writable { mode } })
            };
            assert_eq!(check(path, &meta), expected);
            assert_eq!(check_trusted(path, &meta), expected);
        }
    }

    #[test]
    fn a_link_is_refused_whatever_its_target() {
        let folder = tempfile::tempdir().expect("a folder");
        let link = folder.path().join("link");
        symlink(folder.path(), &link).expect("a link");
        let meta = link.symlink_metadata().expect("it is there");
        assert_eq!(check(&link, &meta).map_err(|refused| refused.problem), Err(OwnershipProblem::Link));
        check(&link, &link.metadata().expect("a target")).expect("its target is accepted");
    }

    #[test]
    fn a_file_of_root_is_trusted_but_not_owned() {
        let path = Path::new("/proc");
        let meta = path.metadata().expect("it is there");
        check_trusted(path, &meta).expect("root may own it");
        let owner = user::ROOT;
        let expected =
            if user::number() == owner { Ok(()) } else { Err(OwnershipProblem::Foreign { owner }) };
        assert_eq!(check(path, &meta).map_err(|refused| refused.problem), expected);
    }
}
