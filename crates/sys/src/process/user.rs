//! The user of this process, and its environment.

use std::os::unix::ffi::OsStringExt;
use std::sync::OnceLock;

use rustix::process::geteuid;

/// The user's name from the environment, otherwise from `/etc/passwd`, otherwise the number.
pub fn name() -> String {
    ["USER", "LOGNAME"]
        .into_iter()
        .find_map(|variable| std::env::var(variable).ok())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| name_of(number()))
}

/// The name of a user from `/etc/passwd`, otherwise the number.
pub fn name_of(number: u32) -> String {
    listed_name(number).unwrap_or_else(|| format!("uid {number}"))
}

/// The name of a user from `/etc/passwd`.
pub fn listed_name(number: u32) -> Option<String> {
    name_in(&std::fs::read_to_string("/etc/passwd").ok()?, number)
}

/// Whether a group is the private group of a user: the group of the user's files, without another member. A user who is
/// not in the files of this machine, as with a directory service, has none.
pub fn is_private_group(number: u32, group: u32) -> bool {
    let lists = (std::fs::read_to_string("/etc/passwd"), std::fs::read_to_string("/etc/group"));
    matches!(lists, (Ok(users), Ok(groups)) if is_private_group_in(&users, &groups, number, group))
}

fn is_private_group_in(users: &str, groups: &str, number: u32, group: u32) -> bool {
    let Some(name) = name_in(users, number) else {
        return false;
    };
    let mut owners = users.lines().filter(|line| number_in(line, 3) == Some(group)).peekable();
    let is_only_ours = owners.peek().is_some() && owners.all(|line| number_in(line, 2) == Some(number));
    let mut listed = groups.lines().filter(|line| number_in(line, 2) == Some(group)).peekable();
    let members = |line: &str| line.split(':').nth(3).unwrap_or_default().to_owned();
    let is_ours = |line| members(line).split(',').all(|member| member.is_empty() || member == name);
    is_only_ours && listed.peek().is_some() && listed.all(is_ours)
}

/// The name of the user with this number, in the format of `/etc/passwd`: name, password, number, group and more, separated
/// by colons.
fn name_in(users: &str, number: u32) -> Option<String> {
    let line = users.lines().find(|line| number_in(line, 2) == Some(number))?;
    line.split(':').next().filter(|name| !name.is_empty()).map(str::to_owned)
}

/// A numeric field of a line.
fn number_in(line: &str, field: usize) -> Option<u32> {
    line.split(':').nth(field)?.parse().ok()
}

/// The number of the superuser.
pub const ROOT: u32 = 0;

/// The user's number. It is queried once, because this program never changes its user.
pub fn number() -> u32 {
    static NUMBER: OnceLock<u32> = OnceLock::new();
    *NUMBER.get_or_init(|| geteuid().as_raw())
}

/// The variables of this process as bytes, because they need not be UTF-8.
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

    #[test]
    fn a_group_is_private_if_its_user_is_the_only_member() {
        let users = "root:x:0:0::/root:/bin/sh\nada:x:7:70::/:/bin/sh\nbob:x:8:80::/:/bin/sh\neve:x:9:80::/:/bin/sh\n";
        let groups = "root:x:0:\nada:x:70:\nbob:x:80:\ndevs:x:90:ada\n";
        let is_private = |number, group| is_private_group_in(users, groups, number, group);
        assert!(is_private(7, 70) && is_private(0, 0));
        assert!(!is_private(8, 80), "another user has the same group");
        assert!(!is_private(7, 90) && !is_private(7, 80), "not the group of the user's files");
        assert!(!is_private(7, 1) && !is_private(1, 70), "not in the files");
        assert!(is_private_group_in(users, "ada:x:70:ada\n", 7, 70));
        assert!(!is_private_group_in(users, "ada:x:70:ada,bob\n", 7, 70), "it has another member");
        assert!(!is_private_group_in(users, "", 7, 70));
    }
}
