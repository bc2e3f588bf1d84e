//! The account: a worker that is started by root can do everything, and so can its jobs.

use super::{Diagnosis, Finding};
use sys::process::user;

pub(super) const NOT_AS_ROOT: &str =
    "use an account that may do only what the jobs need; SECURITY.md shows how";

pub(super) fn check(diagnosis: &mut Diagnosis) {
    diagnosis.add(if user::number() == user::ROOT {
        Finding::warning("user", "you are root, and so is each job of a worker that you start")
            .advise(NOT_AS_ROOT)
    } else {
        Finding::ok("user", format!("you are {}, not root", user::name()))
    });
}
