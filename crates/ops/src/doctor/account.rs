//! The user account. A worker that root starts, and every job it runs, can do anything.

use super::{Diagnosis, Finding};
use sys::process::user;

pub(super) const NOT_AS_ROOT: &str =
    "use an account with only the permissions that the jobs need; SECURITY.md shows how";

pub(super) fn check(diagnosis: &mut Diagnosis) {
    diagnosis.add(if user::number() == user::ROOT {
        Finding::warning("user", "you are root, and workers that you start run every job as root")
            .advise(NOT_AS_ROOT)
    } else {
        Finding::ok("user", format!("you are {}, not root", user::name()))
    });
}
