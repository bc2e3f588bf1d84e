//! The new process before it executes the program.
//!
//! It still shares the memory of the process that started it, so nothing here may allocate, take a lock or panic.

use std::convert::Infallible;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::os::fd::RawFd;

use rustix::io::Errno;

use super::ProcessScope;
use crate::process::limit::OpenFiles;
use crate::signal::set::SignalSet;

/// Signals that this program ignores, or that the Rust runtime handles. All others are at their default.
const CHANGED_SIGNALS: [c_int; 4] = [libc::SIGPIPE, libc::SIGXFSZ, libc::SIGSEGV, libc::SIGBUS];
/// The exit code of a shell for a program that it could not start; it is never seen.
const FAILED: c_int = 127;

/// What the process must do. It reports a failure in the same memory.
#[derive(Debug)]
pub(super) struct Orders<'a> {
    pub(super) program: &'a CStr,
    /// With a null pointer at the end; so is `envp`.
    pub(super) argv: &'a [*const c_char],
    pub(super) envp: &'a [*const c_char],
    pub(super) cwd: Option<&'a CStr>,
    pub(super) scope: ProcessScope,
    /// Our descriptors and their numbers in the program.
    pub(super) descriptors: &'a [(RawFd, RawFd)],
    /// The `cgroup.procs` file of the control group to join.
    pub(super) group: Option<RawFd>,
    pub(super) nice: Option<c_int>,
    pub(super) open_files: Option<OpenFiles>,
    /// Why the program was not executed.
    pub(super) failure: Option<(Step, Errno)>,
}

/// The step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Start,
    Group,
    Nice(c_int),
    OpenFiles(u64),
}

/// The entry point of the process; its argument points to [`Orders`].
#[expect(unsafe_code, reason = "receives its arguments by address, and ends without unwinding")]
pub(super) extern "C" fn begin(orders: *mut c_void) -> c_int {
    // SAFETY: the thread that made this process waits, and its orders with it.
    let orders = unsafe { &mut *orders.cast::<Orders<'_>>() };
    let Err(failure) = orders.carry_out();
    orders.failure = Some(failure);
    // SAFETY: ends this process and nothing else; what is to be done at exit is not for it.
    unsafe { libc::_exit(FAILED) }
}

#[expect(unsafe_code, reason = "there are no safe wrappers that guarantee not to allocate")]
impl Orders<'_> {
    fn carry_out(&self) -> Result<Infallible, (Step, Errno)> {
        let at_start = |error| (Step::Start, error);
        // First, because the descriptor of the group may have a number that another one is to get.
        self.join_group().map_err(|error| (Step::Group, error))?;
        self.arrange().map_err(at_start)?;
        self.limit()?;
        self.become_program().map_err(at_start)
    }

    fn join_group(&self) -> Result<(), Errno> {
        let Some(procs_file) = self.group else {
            return Ok(());
        };
        // SAFETY: the one byte is there.
        let written = unsafe { libc::write(procs_file, b"0".as_ptr().cast(), 1) };
        check(if written == 1 { 0 } else { -1 }).map(drop)
    }

    fn arrange(&self) -> Result<(), Errno> {
        // SAFETY: changes what belongs to this process alone.
        check(unsafe {
            match self.scope {
                ProcessScope::Session => libc::setsid(),
                ProcessScope::Group => libc::setpgid(0, 0),
            }
        })?;
        self.descriptors.iter().try_for_each(|(ours, number)| give(*ours, *number))?;
        if let Some(cwd) = self.cwd {
            // SAFETY: the path ends with a NUL.
            check(unsafe { libc::chdir(cwd.as_ptr()) })?;
        }
        // SAFETY: no handler of ours is involved; this process has dispositions of its own.
        for signal in CHANGED_SIGNALS {
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        SignalSet::none().set_as_mask().map(drop).map_err(|error| errno(&error))
    }

    /// Last, because the limit of open files would apply to the previous steps.
    fn limit(&self) -> Result<(), (Step, Errno)> {
        if let Some(nice) = self.nice {
            // SAFETY: changes what belongs to this process alone.
            let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
            check(result).map_err(|error| (Step::Nice(nice), error))?;
        }
        if let Some(OpenFiles { soft, hard }) = self.open_files {
            let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
            // SAFETY: the same.
            let result = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
            check(result).map_err(|error| (Step::OpenFiles(soft), error))?;
        }
        Ok(())
    }

    fn become_program(&self) -> Result<Infallible, Errno> {
        // SAFETY: both lists end with a null pointer, and all else with a NUL.
        check(unsafe { libc::execve(self.program.as_ptr(), self.argv.as_ptr(), self.envp.as_ptr()) })?;
        Err(Errno::NOEXEC)
    }
}

/// Gives the program a descriptor with this number.
#[expect(unsafe_code, reason = "there are no safe wrappers that guarantee not to allocate")]
fn give(ours: RawFd, number: RawFd) -> Result<(), Errno> {
    // SAFETY: the table of descriptors is this process's own. One that has its number already is only to survive.
    check(unsafe {
        if ours == number { libc::fcntl(ours, libc::F_SETFD, 0) } else { libc::dup2(ours, number) }
    })
    .map(drop)
}

fn check(result: c_int) -> Result<c_int, Errno> {
    if result == -1 { Err(errno(&io::Error::last_os_error())) } else { Ok(result) }
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
