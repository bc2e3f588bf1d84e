//! Listening sockets that the parent process has opened, by the protocol of systemd (`sd_listen_fds(3)`).

use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{FdFlags, fcntl_setfd};

/// The first socket has this number.
const FIRST: RawFd = 3;
/// More are not taken.
const MAX_SOCKETS: RawFd = 16;

/// The sockets that were passed to this process, in order. Only the first call gets them.
pub fn inherited_sockets() -> Vec<OwnedFd> {
    static WERE_TAKEN: AtomicBool = AtomicBool::new(false);
    if WERE_TAKEN.swap(true, Ordering::AcqRel) {
        return Vec::new();
    }
    let number = |name: &str| std::env::var(name).ok()?.parse::<RawFd>().ok();
    let is_for_us = number("LISTEN_PID").is_some_and(|pid| u32::try_from(pid) == Ok(std::process::id()));
    let count = number("LISTEN_FDS").filter(|_| is_for_us).unwrap_or(0).clamp(0, MAX_SOCKETS);
    (FIRST..FIRST + count).filter_map(adopt).collect()
}

#[expect(unsafe_code, reason = "a descriptor that another process has opened is known by its number only")]
fn adopt(number: RawFd) -> Option<OwnedFd> {
    // SAFETY: takes a number and touches no memory; the call fails if no descriptor has that number.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } == -1 {
        return None;
    }
    // SAFETY: the descriptor is open, and the protocol passes its ownership to this process. Nothing else in the process
    // uses it: the caller takes the sockets once.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    // Commands that the process starts must not inherit it.
    fcntl_setfd(&socket, FdFlags::CLOEXEC).ok()?;
    Some(socket)
}
