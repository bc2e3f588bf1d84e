//! Signal dispositions: a clean slate for those who start programs, and a quiet end in a pipeline.

/// Sets every signal to its default: whoever started us may have ignored some, and our children would inherit that.
#[expect(unsafe_code, reason = "there is no safe wrapper for signal(2)")]
pub fn reset_all() {
    for number in 1..=libc::SIGRTMAX() {
        // SAFETY: sets a disposition to its default; for the few signals that cannot be set it does nothing.
        unsafe {
            libc::signal(number, libc::SIG_DFL);
        }
    }
}

/// Makes a write to a closed pipe fail, and no more: for processes that have better things to do than to print.
#[expect(unsafe_code, reason = "there is no safe wrapper for signal(2)")]
pub fn survive_closed_pipe() {
    // SAFETY: ignores a signal; no handler of ours is involved.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
    }
}

/// Makes a write to a closed pipe end this process quietly, as in any other tool of a pipeline. Rust starts programs
/// with that signal ignored.
#[expect(unsafe_code, reason = "there is no safe wrapper for signal(2)")]
pub fn end_quietly_on_closed_pipe() {
    // SAFETY: sets a disposition to its default before any thread is started; no handler of ours is involved.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }
}
