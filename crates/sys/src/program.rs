//! The entry of the program, without the start-up code of Rust's standard library.
//!
//! That code reads `/proc/self/maps` and sets up a second stack, to print a line if the first one overflows. It takes a
//! fifth of the time in which `/bin/true` starts and ends, and `enqueue` is called in loops. [`run`] does the rest of
//! its work: it opens standard descriptors that are closed, and turns a panic into an exit code.
//!
//! Two things differ from an ordinary Rust program: the message of a panic calls the main thread `<unnamed>`, and a
//! stack overflow ends the process with SIGSEGV and no message.
//!
//! Elsewhere than with glibc, which passes the arguments to the standard library without that code, the program has an
//! ordinary `main`.

use std::panic::{UnwindSafe, catch_unwind};

use rustix::fs::{Mode, OFlags, open};

/// The exit code after a panic, as in every Rust program.
const PANICKED: u8 = 101;

/// The exit code of a verb; unlike that of the standard library it can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitCode(u8);

impl ExitCode {
    pub const SUCCESS: Self = Self(0);
    pub const FAILURE: Self = Self(1);
}

impl From<u8> for ExitCode {
    fn from(code: u8) -> Self {
        Self(code)
    }
}

/// Defines the entry of the program: a function without arguments that returns an [`ExitCode`]. The root of the crate
/// needs `#![cfg_attr(all(target_env = "gnu", not(test)), no_main)]`.
#[macro_export]
macro_rules! program {
    ($main:path) => {
        // SAFETY: the program has no other function of this name: the attribute `no_main` keeps rustc from adding one.
        #[cfg(all(target_env = "gnu", not(test)))]
        #[unsafe(no_mangle)]
        extern "C" fn main() -> ! {
            $crate::program::run($main)
        }

        #[cfg(not(all(target_env = "gnu", not(test))))]
        fn main() {
            $crate::program::run($main)
        }
    };
}

/// Runs the program and exits with its code, after the standard library has flushed standard output.
pub fn run(main: impl FnOnce() -> ExitCode + UnwindSafe) -> ! {
    open_closed_streams();
    let ExitCode(code) = catch_unwind(main).unwrap_or(ExitCode(PANICKED));
    std::process::exit(code.into());
}

/// Opens `/dev/null` for every standard stream that is closed. The next file that the program opens would get its number
/// otherwise, and output would go into that file, such as the gate of the store.
#[expect(unsafe_code, reason = "a descriptor that may be closed cannot be borrowed safely")]
fn open_closed_streams() {
    for number in [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: takes a number and touches no memory; the call fails if no descriptor has that number.
        let is_closed = unsafe { libc::fcntl(number, libc::F_GETFD) } == -1;
        if is_closed {
            match open("/dev/null", OFlags::RDWR, Mode::empty()) {
                // The lowest free number is this one; it stays open until the process ends.
                Ok(stream) => std::mem::forget(stream),
                Err(_) => std::process::abort(),
            }
        }
    }
}
