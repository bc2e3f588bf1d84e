//! Who runs this process, and in which environment.

use std::os::unix::ffi::OsStringExt;

use rustix::process::geteuid;

/// The user's name as the environment gives it, else the number.
pub fn name() -> String {
    ["USER", "LOGNAME"]
        .into_iter()
        .find_map(|variable| std::env::var(variable).ok())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| format!("uid {}", geteuid().as_raw()))
}

/// The number of the user who may do everything.
pub const ROOT: u32 = 0;

/// The user's number.
pub fn number() -> u32 {
    geteuid().as_raw()
}

/// The variables of this process, as bytes: they need not be UTF-8.
pub fn variables() -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    std::env::vars_os().map(|(name, value)| (name.into_vec(), value.into_vec()))
}
