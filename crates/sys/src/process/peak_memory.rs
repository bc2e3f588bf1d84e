//! The peak memory of a child, if it can be distinguished from our own.
//!
//! Until it executes its program, a new process shares our memory, and when it leaves it, the kernel records our peak as
//! the child's. Of a child that used less memory than this process, only that is known.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};

/// The kernel counts pages per processor and sums them up occasionally, so it may report the same peak with a small
/// difference.
const SLACK_BYTES: u64 = 1 << 20;

/// The child's peak, or `None` if the reported value may be our own peak.
pub(crate) fn of_child(child_bytes: u64) -> Option<u64> {
    /// Our own peak when it was last queried. It only grows, so a small child needs no query.
    static OWN_BYTES: AtomicU64 = AtomicU64::new(0);
    let is_more = |own: u64| child_bytes > own.saturating_add(SLACK_BYTES);
    if !is_more(OWN_BYTES.load(Ordering::Relaxed)) {
        return None;
    }
    let own = own_bytes();
    OWN_BYTES.fetch_max(own, Ordering::Relaxed);
    is_more(own).then_some(child_bytes)
}

#[expect(unsafe_code, reason = "there is no safe wrapper for getrusage(2)")]
fn own_bytes() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is valid for writing for the whole call. All bytes zero are a valid usage, which is what is read
    // where the kernel writes none.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    usage.ru_maxrss.cast_unsigned() * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_known_only_if_it_exceeds_our_own() {
        let own = own_bytes();
        assert!(own > 0);
        assert_eq!(of_child(own), None);
        assert_eq!(of_child(own / 2), None);
        let more = own_bytes() + (64 << 30);
        assert_eq!(of_child(more), Some(more));
    }
}
