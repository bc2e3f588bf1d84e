//! Signal dispositions.

/// Makes a write to a closed pipe end this process quietly, as in any other tool of a pipeline. Rust starts programs
/// with that signal ignored.
#[expect(unsafe_code, reason = "there is no safe wrapper for signal(2)")]
pub fn end_quietly_on_closed_pipe() {
    // SAFETY: sets a disposition to its default before any thread is started; no handler of ours is involved.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }
}
