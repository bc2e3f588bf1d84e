//! Signal dispositions: defaults for the programs that we start, and the handling of SIGPIPE, SIGXFSZ and SIGTSTP.

pub mod interrupts;
pub mod keyboard;
pub(crate) mod set;

use std::mem::MaybeUninit;

use rustix::process::Signal;

use self::set::SignalSet;

/// An action that is the kernel's and runs no code of this program.
#[derive(Clone, Copy)]
enum Action {
    Default,
    Ignore,
}

#[expect(unsafe_code, reason = "there is no safe wrapper for signal(2)")]
fn set_action(number: i32, action: Action) {
    let action = match action {
        Action::Default => libc::SIG_DFL,
        Action::Ignore => libc::SIG_IGN,
    };
    // SAFETY: the action is not a function of this program, so none can run at a wrong moment.
    unsafe {
        libc::signal(number, action);
    }
}

/// Sets every ignored signal to its default: the parent process may have ignored some, and our children would inherit
/// that. Other signals are not changed.
pub fn reset_ignored() {
    for number in (1..=libc::SIGRTMAX()).filter(|number| is_ignored(*number)) {
        set_action(number, Action::Default);
    }
}

/// Whether this process ignores a signal.
#[expect(unsafe_code, reason = "there is no safe wrapper for sigaction(2)")]
pub fn is_ignored(number: i32) -> bool {
    let mut present = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action the call changes nothing. It initialises `present` where it returns 0, and only then
    // is `present` read.
    unsafe {
        libc::sigaction(number, std::ptr::null(), present.as_mut_ptr()) == 0
            && present.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Makes ended children wait to be reaped. If the parent process has set SIGCHLD to be ignored, the kernel would reap them
/// itself, and their exit status would be lost.
pub fn keep_ended_children() {
    set_action(libc::SIGCHLD, Action::Default);
}

/// Makes a write to a closed pipe fail instead of killing the process: for processes whose main purpose is not output.
pub fn survive_closed_pipe() {
    set_action(libc::SIGPIPE, Action::Ignore);
}

/// Makes a write beyond the file size limit (`ulimit -f`) fail instead of killing the process.
pub fn survive_file_limit() {
    set_action(libc::SIGXFSZ, Action::Ignore);
}

/// Makes a write to a closed pipe end this process silently, like any other tool in a pipeline, also if the
/// caller started it with that signal ignored.
pub fn end_quietly_on_closed_pipe() {
    set_action(libc::SIGPIPE, Action::Default);
}

/// While this value lives, Ctrl-Z does not stop this process, provided that this is its only thread, or that the others
/// were started under such a value too; afterwards it does.
#[derive(Debug)]
pub struct StopSignalBlock {
    /// The previous mask; `None` if blocking failed.
    before: Option<SignalSet>,
}

impl StopSignalBlock {
    #[expect(clippy::new_without_default, reason = "it has a side effect")]
    pub fn new() -> Self {
        Self { before: SignalSet::of([Signal::TSTP.as_raw()]).block().ok() }
    }
}

impl Drop for StopSignalBlock {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = before.set_as_mask();
        }
    }
}
