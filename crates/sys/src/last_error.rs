//! The error of the last system call of this thread that failed, for libraries that keep it to themselves.

use std::io;

/// Lets earlier errors be forgotten, so that a later look sees only newer ones.
#[expect(unsafe_code, reason = "there is no safe way to set errno")]
pub fn forget() {
    // SAFETY: the pointer is to a variable of this thread that is there as long as the thread is.
    unsafe { *libc::__errno_location() = 0 };
}

/// Whether it was one of the device: what is on it may be fine, but could not be read.
pub fn is_of_device() -> bool {
    matches!(io::Error::last_os_error().raw_os_error(), Some(libc::EIO | libc::ENXIO))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn an_error_is_seen_until_it_is_forgotten() {
        forget();
        assert!(!is_of_device());
        // A process has no memory at its first address.
        let memory = File::open("/proc/self/mem").expect("it is there");
        std::os::unix::fs::FileExt::read_at(&memory, &mut [0], 0).expect_err("nothing is there");
        assert!(is_of_device());
        assert!(File::open("/proc/self/status").is_ok() && is_of_device(), "what succeeds changes nothing");
        forget();
        assert!(!is_of_device());
    }
}
