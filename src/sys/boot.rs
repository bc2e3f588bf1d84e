//! Which machine this is, and which run of it.

use std::io;

/// Changes with every boot: what ran under another one cannot be alive.
pub fn id() -> io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
