//! The most memory that a child used, where that can be told from our own.
//!
//! Until it becomes its program, a new process lives in our memory, and when it leaves that, the kernel notes our peak as
//! one of the child's. So of a child that used less than we did, nothing is known but that.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};

/// The kernel counts pages for each processor and adds them up now and then, so it gives the same peak twice with a
/// difference.
const SLACK_BYTES: u64 = 1 << 20;

/// `None` if what the kernel says of a child may be our own peak.
pub(crate) fn told_apart(child_bytes: u64) -> Option<u64> {
    /// Our own peak when it was last asked for. It only grows, so a small child costs no question.
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
    // SAFETY: the pointer is valid for writing; a usage of zeros is valid where the kernel writes none.
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
    fn a_peak_is_known_only_where_it_is_more_than_our_own() {
        let own = own_bytes();
        assert!(own > 0);
        assert_eq!(told_apart(own), None);
        assert_eq!(told_apart(own / 2), None);
        let more = own_bytes() + (64 << 30);
        assert_eq!(told_apart(more), Some(more));
    }
}
