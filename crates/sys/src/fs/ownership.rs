//! Whether a file or folder is this user's alone. Another user who could change the queue, or put another one in its
//! place, would run commands as this user.
//!
//! "Others" are all users but the owner and root, to whom no permission means anything. A group counts as others unless it
//! is the owner's private group: many systems give each user such a group and a umask of 002, and then every folder is
//! writable by a group that has one member. An access control list can name more users, so it ends that exception.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::process::user;

/// A file or folder that others own, or could change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` {flaw}", path.display())]
pub struct NotOwn {
    pub path: PathBuf,
    pub flaw: Flaw,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    #[error("belongs to {}, and you are {}", user::name_of(*owner), user::name_of(user::number()))]
    Foreign { owner: u32 },
    #[error("can be written by others, its mode is {mode:04o}")]
    Writable { mode: u32 },
    #[error("is a symlink")]
    Link,
}

const GROUP_WRITES: u32 = 0o020;
const EVERYBODY_WRITES: u32 = 0o002;

/// Refuses what belongs to another user, even to root, and what others can write. `meta` is of `path`, or of the file that
/// was opened there.
pub fn check(path: &Path, meta: &Metadata) -> Result<(), NotOwn> {
    check_owned_by(&[user::number()], path, meta)
}

/// The same, but it may belong to root: for what is only read, and for the folder in which something of ours lies.
pub fn check_trusted(path: &Path, meta: &Metadata) -> Result<(), NotOwn> {
    check_owned_by(&[user::number(), user::ROOT], path, meta)
}

/// Refuses a folder of another user, whoever can write it: what is made there would be in that user's way.
pub fn check_owner(path: &Path, meta: &Metadata) -> Result<(), NotOwn> {
    check_owner_among(&[user::number(), user::ROOT], path, meta)
}

fn check_owned_by(owners: &[u32], path: &Path, meta: &Metadata) -> Result<(), NotOwn> {
    check_owner_among(owners, path, meta)?;
    let flaw = if meta.is_symlink() {
        Flaw::Link
    } else if others_write(path, meta) {
        Flaw::Writable { mode: meta.mode() & 0o7777 }
    } else {
        return Ok(());
    };
    Err(NotOwn { path: path.to_owned(), flaw })
}

fn check_owner_among(owners: &[u32], path: &Path, meta: &Metadata) -> Result<(), NotOwn> {
    if owners.contains(&meta.uid()) {
        return Ok(());
    }
    Err(NotOwn { path: path.to_owned(), flaw: Flaw::Foreign { owner: meta.uid() } })
}

/// Whether users other than its owner and root can write it.
pub fn others_write(path: &Path, meta: &Metadata) -> bool {
    let group_writes = meta.mode() & GROUP_WRITES != 0;
    meta.mode() & EVERYBODY_WRITES != 0
        || group_writes && (!user::is_private_group(meta.uid(), meta.gid()) || has_access_list(path))
}

/// What the mode shows for the group is then the most that anybody in the list may do.
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
    fn what_everybody_can_write_is_refused_and_what_they_can_read_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        for (mode, is_fine) in [(0o700, true), (0o755, true), (0o702, false), (0o1777, false)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the mode is set");
            let meta = path.metadata().expect("it is there");
            let expected = if is_fine {
                Ok(())
            } else {
                Err(NotOwn { path: path.to_owned(), flaw: Flaw::Writable { mode } })
            };
            assert_eq!(check(path, &meta), expected);
            assert_eq!(check_trusted(path, &meta), expected);
        }
    }

    #[test]
    fn a_link_is_refused_whatever_it_leads_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let link = folder.path().join("link");
        symlink(folder.path(), &link).expect("a link");
        let meta = link.symlink_metadata().expect("it is there");
        assert_eq!(check(&link, &meta).map_err(|refused| refused.flaw), Err(Flaw::Link));
        check(&link, &link.metadata().expect("it leads somewhere")).expect("its target is fine");
    }

    #[test]
    fn what_belongs_to_root_is_trusted_but_not_owned() {
        let path = Path::new("/proc");
        let meta = path.metadata().expect("it is there");
        check_trusted(path, &meta).expect("root may own it");
        let owner = user::ROOT;
        let expected = if user::number() == owner { Ok(()) } else { Err(Flaw::Foreign { owner }) };
        assert_eq!(check(path, &meta).map_err(|refused| refused.flaw), expected);
    }
}
