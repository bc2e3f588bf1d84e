//! Signal dispositions: a clean slate for those who start programs, and a quiet end in a pipeline.

pub mod interrupts;
pub(crate) mod set;

use std::mem::MaybeUninit;

use rustix::process::Signal;

use super::signal::set::SignalSet;

/// Sets every ignored signal to its default: whoever started us may have ignored some, and our children would inherit
/// that. Signals that nobody ignored are not touched.
#[expect(unsafe_code, reason = "there is no safe wrapper for signal(2)")]
pub fn reset_ignored() {
    for number in (1..=libc::SIGRTMAX()).filter(|number| is_ignored(*number)) {
        // SAFETY: sets a disposition to its default; no handler of ours is involved.
        unsafe {
            libc::signal(number, libc::SIG_DFL);
        }
    }
}

/// Whether this process ignores a signal.
#[expect(unsafe_code, reason = "there is no safe wrapper for sigaction(2)")]
pub fn is_ignored(number: i32) -> bool {
    let mut present = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: only asks; the answer is read only where there is one.
    unsafe {
        libc::sigaction(number, std::ptr::null(), present.as_mut_ptr()) == 0
            && present.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Lets children wait to be reaped. Where the signal of their end is ignored, which whoever started us may have wanted, the
/// kernel reaps them itself, and nobody learns how they ended.
#[expect(unsafe_code, reason = "there is no safe wrapper for signal(2)")]
pub fn keep_ended_children() {
    // SAFETY: sets a disposition to its default; no handler of ours is involved.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
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

/// Makes a write beyond the limit of file sizes (`ulimit -f`) fail, and no more: it would kill this process.
#[expect(unsafe_code, reason = "there is no safe wrapper for signal(2)")]
pub fn survive_file_limit() {
    // SAFETY: ignores a signal; no handler of ours is involved.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
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

/// While this lives, Ctrl-Z does not stop this process where this thread is its only one; then it does.
#[derive(Debug)]
pub struct HeldStops {
    /// What was blocked before; `None` where nothing could be.
    before: Option<SignalSet>,
}

impl HeldStops {
    #[expect(clippy::new_without_default, reason = "it does something")]
    pub fn new() -> Self {
        Self { before: SignalSet::of([Signal::TSTP].into_iter()).block().ok() }
    }
}

impl Drop for HeldStops {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = before.be_mask();
        }
    }
}
