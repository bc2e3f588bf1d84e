//! Who runs this process.

use rustix::process::geteuid;

/// The user's name as the environment gives it, else the number.
pub fn name() -> String {
    ["USER", "LOGNAME"]
        .into_iter()
        .find_map(|variable| std::env::var(variable).ok())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| format!("uid {}", geteuid().as_raw()))
}
