//! Which library unwinds the stack after a panic: libgcc's static one, where the C library is linked dynamically.
//!
//! Rust would load the shared one at each start, for a few functions that are hardly ever called. That takes a sixth of
//! the time in which `/bin/true` starts and ends.

#[cfg(all(target_os = "linux", target_env = "gnu", not(target_feature = "crt-static")))]
#[expect(
    unsafe_code,
    reason = "a library to link with can only be named by such a block; it declares nothing"
)]
#[link(name = "gcc_eh", kind = "static", modifiers = "-bundle")]
unsafe extern "C" {}
