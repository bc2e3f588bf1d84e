//! The error of this thread's last failed system call, for libraries that do not report it.

use std::io;

/// Clears the last error, so that only later ones are seen.
#[expect(unsafe_code, reason = "there is no safe way to set errno")]
pub fn clear() {
    // SAFETY: the pointer is valid for the lifetime of this thread.
    unsafe { *libc::__errno_location() = 0 };
}

/// Whether the last error came from the device: the data on it may be intact, but could not be read.
pub fn is_device_error() -> bool {
    matches!(io::Error::last_os_error().raw_os_error(), Some(libc::EIO | libc::ENXIO))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn an_error_is_seen_until_it_is_cleared() {
        clear();
        assert!(!is_device_error());
        // A process has no memory at its first address.
        let memory = File::open("/proc/self/mem").expect("open");
        std::os::unix::fs::FileExt::read_at(&memory, &mut [0], 0).expect_err("unmapped");
        assert!(is_device_error());
        assert!(File::open("/proc/self/status").is_ok() && is_device_error(), "success does not clear it");
        clear();
        assert!(!is_device_error());
    }
}
