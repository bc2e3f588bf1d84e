//! File access with the rights of the user on whose behalf root works in a home; see [`ownership::accept`].
//!
//! That user can replace every file and folder in the home at any moment, with a link to a file of root as well, so neither
//! a check before a file is opened nor a change of owner afterwards is safe. Instead, the kernel checks each access to the
//! files of the home as if that user asked for it, and gives that user everything that is created.
//!
//! It is bound to one thread and one scope: jobs are started, watched and limited with the rights of root.
//!
//! [`ownership::accept`]: super::ownership::accept

use std::io;
use std::marker::PhantomData;

use super::ownership;
use super::ownership::Owner;

/// While it exists, this thread accesses files with the rights of the accepted owner. Dropping it restores those of before.
#[derive(Debug)]
pub struct OwnerAccess {
    before: Owner,
    /// The kernel keeps these rights per thread.
    _thread: PhantomData<*const ()>,
}

impl OwnerAccess {
    /// `None` if this process works for its own user.
    pub fn take() -> io::Result<Option<Self>> {
        ownership::accepted().map(Self::of).transpose()
    }

    fn of(owner: Owner) -> io::Result<Self> {
        let access = Self { before: change(owner), _thread: PhantomData };
        // The system calls report no errors.
        if current() == owner {
            return Ok(access);
        }
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "root has no right to act as the owner of the home",
        ))
    }
}

impl Drop for OwnerAccess {
    fn drop(&mut self) {
        change(self.before);
    }
}

/// No user or group has this number: the system calls change nothing.
const NO_CHANGE: u32 = u32::MAX;

fn current() -> Owner {
    change(Owner { user: NO_CHANGE, group: NO_CHANGE })
}

/// Returns the user and group of before.
#[expect(unsafe_code, reason = "there are no safe wrappers for setfsuid(2) and setfsgid(2)")]
fn change(to: Owner) -> Owner {
    // SAFETY: both calls take a number and affect no memory of this process.
    let (group, user) = unsafe { (libc::setfsgid(to.group), libc::setfsuid(to.user)) };
    Owner { user: user.cast_unsigned(), group: group.cast_unsigned() }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;
    use crate::process::user;

    const OTHER: Owner = Owner { user: 65_534, group: 65_534 };

    #[test]
    fn files_are_created_and_refused_as_for_the_owner_until_it_is_dropped() {
        if user::number() != user::ROOT {
            return; // Only root can act as another user.
        }
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("the mode is set");
        let secret = folder.path().join("secret");
        fs::write(&secret, "of root").expect("a file");
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("the mode is set");

        let before = current();
        let access = OwnerAccess::of(OTHER).expect("root may do that");
        let refused = fs::read(&secret).map_err(|error| error.kind());
        assert_eq!(refused, Err(io::ErrorKind::PermissionDenied));
        drop(OwnerAccess::of(OTHER).expect("it can be nested"));
        fs::write(folder.path().join("made"), "").expect("the folder is open to all");
        let elsewhere = std::thread::spawn({
            let secret = secret.clone();
            move || (OwnerAccess::of(OTHER).map(drop), fs::read(secret).map(drop))
        });
        drop(access);

        assert_eq!(current(), before);
        fs::read(&secret).expect("root may read it");
        let made = folder.path().join("made").metadata().expect("it is there");
        assert_eq!((made.uid(), made.gid()), (OTHER.user, OTHER.group));
        drop(elsewhere.join());
    }
}
