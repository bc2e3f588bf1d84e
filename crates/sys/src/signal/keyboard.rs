//! The signals of the keyboard, SIGINT and SIGQUIT, while another program has the terminal.

use std::mem::MaybeUninit;

/// While it exists, these signals do not end this process. Programs that it starts have the default again, because a signal
/// that is handled, other than one that is ignored, returns to its default in a new program. Signals that are ignored stay
/// ignored, as with `nohup`.
#[derive(Debug)]
pub struct KeyboardSignals {
    before: Vec<(i32, Action)>,
}

struct Action(libc::sigaction);

impl std::fmt::Debug for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Action")
    }
}

impl KeyboardSignals {
    pub fn leave_to_children() -> Self {
        let numbers = [libc::SIGINT, libc::SIGQUIT].into_iter().filter(|number| !super::is_ignored(*number));
        Self { before: numbers.filter_map(|number| Some((number, handle(number)?))).collect() }
    }
}

impl Drop for KeyboardSignals {
    #[expect(unsafe_code, reason = "there is no safe wrapper for sigaction(2)")]
    fn drop(&mut self) {
        for (number, Action(before)) in &self.before {
            // SAFETY: the action is the one that was in force before.
            unsafe { libc::sigaction(*number, before, std::ptr::null_mut()) };
        }
    }
}

extern "C" fn do_nothing(_number: i32) {}

/// Returns the action of before.
#[expect(unsafe_code, reason = "there is no safe wrapper for sigaction(2)")]
fn handle(number: i32) -> Option<Action> {
    let mut before = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a `sigaction` of zeros is valid: no flags and an empty set. The handler does nothing, so it can run at any
    // moment. The call initialises `before` where it returns 0, and only then is `before` read.
    unsafe {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        action.sa_sigaction = do_nothing as extern "C" fn(i32) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        (libc::sigaction(number, &raw const action, before.as_mut_ptr()) == 0)
            .then(|| Action(before.assume_init()))
    }
}
