//! What a new process does before it becomes the program.
//!
//! It still lives in the memory of the process that started it. So nothing here allocates, takes a lock, or can panic.

use std::convert::Infallible;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::os::fd::RawFd;

use rustix::io::Errno;

use super::Leads;
use crate::process::limit::OpenFiles;
use crate::signal::set::SignalSet;

/// Signals that this program ignores, or handles because Rust does. All others are at their default.
const CHANGED_SIGNALS: [c_int; 4] = [libc::SIGPIPE, libc::SIGXFSZ, libc::SIGSEGV, libc::SIGBUS];
/// What a shell says of a program that it could not start; nobody sees it.
const FAILED: c_int = 127;

/// What the process is to do. It answers in the same memory.
#[derive(Debug)]
pub(super) struct Orders<'a> {
    pub(super) program: &'a CStr,
    /// With a null pointer at the end, as the next.
    pub(super) argv: &'a [*const c_char],
    pub(super) envp: &'a [*const c_char],
    pub(super) cwd: Option<&'a CStr>,
    pub(super) leads: Leads,
    /// Descriptors as they are, and as they are to be.
    pub(super) descriptors: &'a [(RawFd, RawFd)],
    /// The entrance of the control group that it is to be in.
    pub(super) group: Option<RawFd>,
    pub(super) nice: Option<c_int>,
    pub(super) open_files: Option<OpenFiles>,
    /// Why the program does not run.
    pub(super) failure: Option<(Step, Errno)>,
}

/// What was being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Start,
    Group,
    Nice(c_int),
    OpenFiles(u64),
}

/// The first and only function of the process; its argument points to [`Orders`].
#[expect(unsafe_code, reason = "gets what it needs by address, and ends without unwinding")]
pub(super) extern "C" fn begin(orders: *mut c_void) -> c_int {
    // SAFETY: the thread that made this process waits, and its orders with it.
    let orders = unsafe { &mut *orders.cast::<Orders<'_>>() };
    let Err(failure) = orders.carry_out();
    orders.failure = Some(failure);
    // SAFETY: ends this process and nothing else; what is to be done at exit is not for it.
    unsafe { libc::_exit(FAILED) }
}

#[expect(unsafe_code, reason = "there are no safe wrappers that promise not to allocate")]
impl Orders<'_> {
    fn carry_out(&self) -> Result<Infallible, (Step, Errno)> {
        let at_start = |error| (Step::Start, error);
        // First, because its entrance may have a number that is to be something else.
        self.join_group().map_err(|error| (Step::Group, error))?;
        self.arrange().map_err(at_start)?;
        self.limit()?;
        self.become_program().map_err(at_start)
    }

    fn join_group(&self) -> Result<(), Errno> {
        let Some(entrance) = self.group else {
            return Ok(());
        };
        // SAFETY: the one byte is there.
        let written = unsafe { libc::write(entrance, b"0".as_ptr().cast(), 1) };
        check(if written == 1 { 0 } else { -1 }).map(drop)
    }

    fn arrange(&self) -> Result<(), Errno> {
        // SAFETY: changes what belongs to this process alone.
        check(unsafe {
            match self.leads {
                Leads::Session => libc::setsid(),
                Leads::Group => libc::setpgid(0, 0),
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
        SignalSet::none().be_mask().map(drop).map_err(|error| errno(&error))
    }

    /// Last, because a limit of open files is one to whatever opens more.
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

/// Makes a descriptor known to the program under this number.
#[expect(unsafe_code, reason = "there are no safe wrappers that promise not to allocate")]
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
