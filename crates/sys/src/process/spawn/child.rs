//! The new process before it executes the program.
//!
//! It still shares the memory of the process that started it, so nothing after [`begin`] may allocate, take a lock or
//! panic: a lock may be held by a thread that does not exist in the new process.

use std::convert::Infallible;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::Errno;

use super::clone3;
use super::stack::Stack;
use super::{ProcessScope, Spawn};
use crate::process::rlimit::OpenFiles;
use crate::signal::set::SignalSet;

/// Signals that this program may ignore, or that the Rust runtime may handle. The handler of the only other one
/// (`fs/lock.rs`) does nothing, and exec resets it.
const CHANGED_SIGNALS: [c_int; 4] = [libc::SIGPIPE, libc::SIGXFSZ, libc::SIGSEGV, libc::SIGBUS];
/// The exit code of a shell for a program that it could not start; it is never seen.
const FAILED: c_int = 127;

/// The orders of the new process. It reports a failure in the same memory.
#[derive(Debug)]
pub(super) struct Orders<'a> {
    pub(super) spawn: &'a Spawn<'a>,
    pub(super) argv: &'a Pointers<'a>,
    pub(super) envp: &'a Pointers<'a>,
    /// Our descriptors and their numbers in the program, with standard input.
    pub(super) descriptors: &'a [(BorrowedFd<'a>, RawFd)],
    pub(super) open_files: Option<OpenFiles>,
    /// Why the program was not executed.
    pub(super) failure: Option<(Step, Errno)>,
}

/// Pointers to strings as `execve` takes them: with a null pointer at the end.
#[derive(Debug)]
pub(super) struct Pointers<'a> {
    list: Vec<*const c_char>,
    strings: PhantomData<&'a CStr>,
}

impl<'a> Pointers<'a> {
    pub(super) fn to(strings: impl Iterator<Item = &'a CStr>) -> Self {
        let list = strings.map(CStr::as_ptr).chain([std::ptr::null()]).collect();
        Self { list, strings: PhantomData }
    }
}

/// The step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Start,
    Nice(c_int),
    OpenFiles(u64),
}

/// Starts a process that carries out these orders. Returns its pid, and a handle to it unless the kernel is too old for
/// one, when the process has become its program or has ended.
///
/// # Safety
///
/// The calling thread must have blocked every signal that has a handler: the new process would run the handler on the
/// memory of this one.
#[expect(unsafe_code, reason = "there is no safe wrapper for clone(2)")]
pub(super) unsafe fn clone(orders: &mut Orders<'_>) -> io::Result<(libc::pid_t, Option<OwnedFd>)> {
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD;
    let mut handle: RawFd = -1;
    let pid = Stack::with(|stack| {
        let group = orders.spawn.group;
        let orders = std::ptr::from_mut(orders).cast::<c_void>();
        if let Some(group) = group {
            let arguments = clone3::Arguments::new(flags, &mut handle, stack, group);
            // SAFETY: as below.
            return unsafe { clone3::call(&arguments, begin, orders) };
        }
        // SAFETY: CLONE_VFORK suspends this thread until the process has memory of its own or has ended. Until then
        // `orders`, all that it borrows and the stack, which belongs to this thread, are valid and used by the new
        // process only. `begin` gets a pointer to `Orders`, as it requires, and never returns into this stack.
        let pid = unsafe { libc::clone(begin, stack.top(), flags | libc::SIGCHLD, orders, &raw mut handle) };
        if pid == -1 { Err(io::Error::last_os_error()) } else { Ok(pid) }
    });
    let pid = pid.flatten()?;
    // SAFETY: CLONE_PIDFD made the kernel open this descriptor during the call, so nothing else owns it.
    let handle = (handle != -1).then(|| unsafe { OwnedFd::from_raw_fd(handle) });
    Ok((pid, handle))
}

/// The first and only function of the process. Its argument must point to [`Orders`] that this process alone uses:
/// `libc::clone` does not take an `unsafe fn`, so only [`clone`] may name it.
#[expect(unsafe_code, reason = "gets its orders by address, and ends without unwinding")]
extern "C" fn begin(orders: *mut c_void) -> c_int {
    // SAFETY: `clone` passes a pointer to orders that it borrows mutably, and is suspended while this process uses them.
    let orders = unsafe { &mut *orders.cast::<Orders<'_>>() };
    // SAFETY: this is the new process, started by `clone`.
    let Err(failure) = unsafe { orders.carry_out() };
    orders.failure = Some(failure);
    // SAFETY: `_exit` ends this process only and, unlike `exit`, runs no exit handlers, which would work on memory that
    // belongs to the process that started this one.
    unsafe { libc::_exit(FAILED) }
}

#[expect(unsafe_code, reason = "there are no safe wrappers that guarantee not to allocate")]
impl Orders<'_> {
    /// # Safety
    ///
    /// To be called by [`begin`] only. The functions called from here replace descriptors, signal dispositions and
    /// limits of the calling process without regard to their owners; only a process that is about to become another
    /// program has none.
    unsafe fn carry_out(&self) -> Result<Infallible, (Step, Errno)> {
        let at_start = |error| (Step::Start, error);
        // SAFETY: the caller promises that this is the new process.
        unsafe { self.arrange() }.map_err(at_start)?;
        self.limit()?;
        self.become_program().map_err(at_start)
    }

    /// # Safety
    ///
    /// As for [`Self::carry_out`].
    unsafe fn arrange(&self) -> Result<(), Errno> {
        // SAFETY: neither call takes a pointer. They move this process out of its session or group.
        check(unsafe {
            match self.spawn.scope {
                ProcessScope::Session => libc::setsid(),
                ProcessScope::Group => libc::setpgid(0, 0),
            }
        })?;
        // Before the descriptors, because its own may have a number that another one is given.
        if let Some(record) = &self.spawn.pid_record {
            record.write();
        }
        for (ours, number) in self.descriptors {
            // SAFETY: the caller promises that this is the new process.
            unsafe { give(*ours, *number) }?;
        }
        if let Some(cwd) = self.spawn.cwd {
            // SAFETY: a `CStr` points to a string that ends with a NUL.
            check(unsafe { libc::chdir(cwd.as_ptr()) })?;
        }
        for signal in CHANGED_SIGNALS {
            // SAFETY: the default action needs no handler. Without CLONE_SIGHAND the dispositions are this process's own.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        SignalSet::none().set_as_mask().map(drop).map_err(|error| errno(&error))
    }

    /// Last, because a limit of open files also applies to the steps before it.
    fn limit(&self) -> Result<(), (Step, Errno)> {
        if let Some(nice) = self.spawn.limits.nice {
            // SAFETY: takes no pointer; 0 means the calling process.
            let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
            check(result).map_err(|error| (Step::Nice(nice), error))?;
        }
        if let Some(OpenFiles { soft, hard }) = self.open_files {
            let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
            // SAFETY: `limit` is initialised and lives for the whole call, which only reads it. Limits belong to a
            // process, and without CLONE_THREAD this is one of its own.
            let result = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
            check(result).map_err(|error| (Step::OpenFiles(soft), error))?;
        }
        Ok(())
    }

    fn become_program(&self) -> Result<Infallible, Errno> {
        let (argv, envp) = (self.argv.list.as_ptr(), self.envp.list.as_ptr());
        // SAFETY: `Pointers` ends each list with a null pointer and borrows its strings, which end with a NUL, as the
        // program's path does.
        check(unsafe { libc::execve(self.spawn.program.as_ptr(), argv, envp) })?;
        Err(Errno::NOEXEC)
    }
}

/// Gives the program a descriptor with this number.
///
/// # Safety
///
/// As for [`Orders::carry_out`]: the descriptor that had this number is closed, even if other code owns it.
#[expect(unsafe_code, reason = "there are no safe wrappers that guarantee not to allocate")]
unsafe fn give(ours: BorrowedFd<'_>, number: RawFd) -> Result<(), Errno> {
    let ours = ours.as_raw_fd();
    // SAFETY: the borrow keeps `ours` open. Without CLONE_FILES this process has its own table of descriptors, so the
    // process that started it keeps the one that `dup2` closes here. A descriptor that has its number already only
    // loses the mark that closes it on exec.
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
