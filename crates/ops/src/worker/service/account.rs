//! The account that a service runs jobs as, and its home.

use std::fs;
use std::path::Path;

use rustix::fs::{Gid, Uid, chown};

use super::systemd::run;
use super::{ServiceError, text};
use sys::fs::owner_only;

/// Creates the account if it does not exist: a system account that cannot log in, with a group of its own.
pub(crate) fn ensure_account(name: &str, home: &Path) -> Result<(), ServiceError> {
    if find(name).is_some() {
        return Ok(());
    }
    let arguments =
        ["--system", "--user-group", "--home-dir", text(home)?, "--shell", "/usr/sbin/nologin", "--", name];
    run("useradd", &arguments)?;
    find(name).map(|_| ()).ok_or_else(|| ServiceError::NoAccount(name.to_owned()))
}

/// Creates the home for the account if it does not exist. An existing one keeps its owner: the workers say what is wrong
/// with it.
pub(crate) fn ensure_home(name: &str, home: &Path) -> Result<(), ServiceError> {
    let failed = |source| ServiceError::CannotWrite { path: home.to_owned(), source };
    if home.exists() {
        return Ok(());
    }
    let (user, group) = find(name).ok_or_else(|| ServiceError::NoAccount(name.to_owned()))?;
    owner_only::create_folder(home).map_err(failed)?;
    chown(home, Some(user), Some(group)).map_err(|error| failed(error.into()))
}

/// The numbers of an account on this machine, and of its group.
fn find(name: &str) -> Option<(Uid, Gid)> {
    find_in(&fs::read_to_string("/etc/passwd").ok()?, name).or_else(|| find_by_getent(name))
}

/// An account of a directory service.
fn find_by_getent(name: &str) -> Option<(Uid, Gid)> {
    find_in(&run("getent", &["passwd", "--", name]).ok()?, name)
}

fn find_in(users: &str, name: &str) -> Option<(Uid, Gid)> {
    let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut numbers = line.split(':').skip(2).map(|field| field.parse().ok());
    Some((Uid::from_raw(numbers.next()??), Gid::from_raw(numbers.next()??)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_its_whole_name() {
        let users = "root:x:0:0:root:/root:/bin/sh\njobs2:x:7:8::/:/bin/sh\njobs:x:5:6::/:/bin/sh\nbad:x\n";
        assert_eq!(find_in(users, "jobs"), Some((Uid::from_raw(5), Gid::from_raw(6))));
        assert_eq!(find_in(users, "job"), None);
        assert_eq!(find_in(users, "bad"), None);
    }
}
