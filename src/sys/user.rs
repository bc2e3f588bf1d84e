//! Who runs this process, and in which environment.

use std::os::unix::ffi::OsStringExt;

use rustix::process::geteuid;

/// The user's name as the environment gives it, else as the list of users does, else the number.
pub fn name() -> String {
    ["USER", "LOGNAME"]
        .into_iter()
        .find_map(|variable| std::env::var(variable).ok())
        .filter(|name| !name.is_empty())
        .or_else(|| name_in(&std::fs::read_to_string("/etc/passwd").ok()?, number()))
        .unwrap_or_else(|| format!("uid {}", number()))
}

/// Whose number it is, in the form of `/etc/passwd`: name, password, number and more, separated by colons.
fn name_in(users: &str, number: u32) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, of) = (fields.next()?, fields.next()?, fields.next()?);
        (of.parse() == Ok(number) && !name.is_empty()).then(|| name.to_owned())
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\n\nbad\nada:x:1000:1000::/home/ada:/bin/sh\n";
        assert_eq!(name_in(users, 0).as_deref(), Some("root"));
        assert_eq!(name_in(users, 1000).as_deref(), Some("ada"));
        assert_eq!(name_in(users, 7), None);
    }
}
