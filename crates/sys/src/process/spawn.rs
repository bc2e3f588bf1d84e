//! Starts programs.
//!
//! The new process borrows our memory, and the thread that starts it is suspended until the program runs. This is what
//! `posix_spawn` does, but without mapping and unmapping a stack for each program, without querying the disposition of every
//! signal, and with a handle to the process from the start. It never uses fork and exec, because copying the page tables of
//! a large process is many times slower. The child gets the descriptors that are listed here and no others, because all of
//! our descriptors are closed on exec.

mod child;
mod stack;

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use super::ProcessHandle;
use super::cstr_array::CstrArray;
use super::limit;
use super::limit::OpenFiles;
use super::spawn::child::{Orders, Step};
use super::spawn::stack::Stack;
use super::user;
use crate::process;
use crate::signal::set::SignalSet;

const STDIN: RawFd = 0;

/// The program to start, and how to start it.
#[derive(Debug)]
pub struct Spawn<'a> {
    /// A path; PATH is not searched.
    pub program: &'a CStr,
    pub argv: &'a [CString],
    pub envp: &'a CstrArray,
    pub cwd: Option<&'a CStr>,
    pub scope: ProcessScope,
    /// Our descriptors and their numbers in the child. Standard input is `/dev/null` unless it is listed.
    pub descriptors: &'a [(BorrowedFd<'a>, RawFd)],
    pub limits: Limits<'a>,
}

/// The limits of the program from its start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits<'a> {
    pub open_files: Option<u64>,
    pub nice: Option<i32>,
    /// The `cgroup.procs` file of a control group.
    pub group: Option<BorrowedFd<'a>>,
}

/// A limit that cannot be applied, so that the program was not started.
#[derive(Debug, thiserror::Error)]
pub enum LimitError {
    #[error("failed to enter its cgroup: {0}")]
    Group(Errno),
    #[error("nice {nice} is not allowed here: {errno}")]
    Nice { nice: i32, errno: Errno },
    #[error("a limit of {open_files} open files is not allowed here: {errno}")]
    OpenFiles { open_files: u64, errno: Errno },
}

/// What the new process becomes the leader of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessScope {
    /// A new session: it has no controlling terminal.
    Session,
    /// A new process group: it does not get the terminal's signals.
    Group,
}

/// A started program.
#[derive(Debug)]
pub struct ChildProcess {
    pub pid: Pid,
    pub handle: ProcessHandle,
}

/// Starts the program with no signal blocked or ignored.
pub fn spawn(spawn: &Spawn<'_>) -> io::Result<ChildProcess> {
    let (argv, envp) = (pointers(spawn.argv), spawn.envp.pointers());
    let mut descriptors = Vec::with_capacity(spawn.descriptors.len() + 1);
    if !spawn.descriptors.iter().any(|(_, number)| *number == STDIN) {
        descriptors.push((dev_null()?.as_raw_fd(), STDIN));
    }
    descriptors.extend(spawn.descriptors.iter().map(|(ours, number)| (ours.as_raw_fd(), *number)));
    let mut orders = Orders {
        program: spawn.program,
        argv: &argv,
        envp: &envp,
        cwd: spawn.cwd,
        scope: spawn.scope,
        descriptors: &descriptors,
        group: spawn.limits.group.map(|group| group.as_raw_fd()),
        nice: spawn.limits.nice,
        open_files: open_files(&spawn.limits),
        failure: None,
    };
    let started = start(&mut orders)?;
    match orders.failure {
        None => Ok(started),
        Some((step, errno)) => {
            wait_for_end(started.pid);
            Err(step_error(step, errno))
        }
    }
}

/// The program's own limit, or else the original limit of this process if it was raised.
fn open_files(limits: &Limits<'_>) -> Option<OpenFiles> {
    let own = limits.open_files.map(|most| OpenFiles { soft: most, hard: most });
    own.or_else(limit::original_open_files)
}

fn step_error(step: Step, errno: Errno) -> io::Error {
    match step {
        Step::Start => errno.into(),
        Step::Group => io::Error::other(LimitError::Group(errno)),
        Step::Nice(nice) => io::Error::other(LimitError::Nice { nice, errno }),
        Step::OpenFiles(open_files) => io::Error::other(LimitError::OpenFiles { open_files, errno }),
    }
}

/// `/dev/null`, opened once: it has no state that concurrent users could disturb.
fn dev_null() -> io::Result<&'static File> {
    static DEV_NULL: OnceLock<File> = OnceLock::new();
    if let Some(file) = DEV_NULL.get() {
        return Ok(file);
    }
    let file = File::open("/dev/null")?;
    Ok(DEV_NULL.get_or_init(|| file))
}

/// Returns when the program runs or the process has failed to start it.
#[expect(unsafe_code, reason = "there is no safe wrapper for clone(2)")]
fn start(orders: &mut Orders<'_>) -> io::Result<ChildProcess> {
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    let mut handle: RawFd = -1;
    // The process shares our memory, so none of our handlers may run in it. SIGCHLD has no handler: unblocked, it is
    // discarded; blocked, it would wake up another thread later.
    let mask = SignalSet::all().without(Signal::CHILD).set_as_mask()?;
    let result = Stack::with(|stack| {
        let orders = std::ptr::from_mut(orders).cast::<c_void>();
        // SAFETY: this thread sleeps until the process has memory of its own or is gone. So what it borrows stays as it
        // is, the stack is nobody else's meanwhile, and `begin` keeps to what is allowed there.
        let pid = unsafe { libc::clone(child::begin, stack.top(), flags, orders, &raw mut handle) };
        if pid == -1 { Err(io::Error::last_os_error()) } else { Ok(pid) }
    });
    mask.set_as_mask()?;
    let pid = result.flatten()?;
    let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::other("clone returned an invalid pid"))?;
    if handle == -1 {
        // A kernel that does not know the flag ignores it, and no process may run without being watched.
        let _ = kill_process(pid, Signal::KILL);
        wait_for_end(pid);
        return Err(Errno::NOSYS.into());
    }
    // SAFETY: the kernel has just opened it for us.
    let handle = unsafe { OwnedFd::from_raw_fd(handle) };
    Ok(ChildProcess { pid, handle: handle.into() })
}

/// Reaps a process that is about to end.
fn wait_for_end(pid: Pid) {
    while let Ok(None) = process::reap(pid) {
        std::thread::yield_now();
    }
}

/// An array of strings for the system, with a null pointer at its end.
fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
}

/// The variables of this process, for a program that inherits them.
pub fn own_environment() -> io::Result<CstrArray> {
    let mut list = CstrArray::default();
    for (name, value) in user::variables() {
        list.push(&[&name, b"=", &value])?;
    }
    Ok(list)
}

/// Sets close-on-exec for every descriptor that this process inherited, so that no program that it starts gets one.
pub fn keep_descriptors_to_ourselves() -> io::Result<()> {
    close_range(libc::STDERR_FILENO, libc::CLOSE_RANGE_CLOEXEC.cast_signed())
}

/// Closes every descriptor with a higher number: what the caller forgot to keep to itself. To be called before anything
/// was opened.
pub fn close_descriptors_after(last: RawFd) -> io::Result<()> {
    close_range(last, 0)
}

#[expect(unsafe_code, reason = "there is no safe wrapper for close_range(2)")]
fn close_range(after: RawFd, flags: c_int) -> io::Result<()> {
    // SAFETY: either only marks descriptors, or is called before anybody owns those that it closes.
    let result = unsafe { libc::close_range(after.cast_unsigned() + 1, u32::MAX, flags) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A pipe that this process was started with under an agreed number. To be asked for once.
#[expect(unsafe_code, reason = "takes over a descriptor by its number")]
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: only looks at the descriptor, which may well not be open.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    if flags == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and nobody else in this process knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsFd;

    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    /// The output of a program.
    fn output_of(program: &CStr, arguments: &[&CStr], cwd: Option<&CStr>) -> io::Result<String> {
        output_within(Limits::default(), program, arguments, cwd)
    }

    fn output_within(
        limits: Limits<'_>,
        program: &CStr,
        arguments: &[&CStr],
        cwd: Option<&CStr>,
    ) -> io::Result<String> {
        let (out, end) = pipe_with(PipeFlags::CLOEXEC)?;
        let argv: Vec<CString> =
            [program].iter().chain(arguments).map(|argument| (*argument).to_owned()).collect();
        let mut envp = CstrArray::default();
        envp.push(&[b"A=", b"1"])?;
        let descriptors = [(end.as_fd(), 1)];
        let started = spawn(&Spawn {
            program,
            argv: &argv,
            envp: &envp,
            cwd,
            scope: ProcessScope::Session,
            descriptors: &descriptors,
            limits,
        })?;
        drop(end);
        let mut text = String::new();
        File::from(out).read_to_string(&mut text)?;
        assert!(started.handle.ends_within(std::time::Duration::from_secs(60))?);
        assert!(process::reap(started.pid)?.is_some_and(|ended| ended.status.success()));
        Ok(text)
    }

    #[test]
    fn a_program_gets_what_it_is_given() {
        let script = c"echo $A; pwd; cat; readlink /proc/self/fd/0";
        let text = output_of(c"/bin/sh", &[c"-c", script], Some(c"/usr")).expect("output");
        assert_eq!(text.lines().collect::<Vec<_>>(), ["1", "/usr", "/dev/null"]);
    }

    #[test]
    fn a_program_starts_without_blocked_or_ignored_signals() {
        let text = output_of(c"/bin/cat", &[c"/proc/self/status"], None).expect("output");
        let mask = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
            u64::from_str_radix(line.trim(), 16).expect("a number")
        };
        let bit = |signal: c_int| 1_u64 << (signal - 1);
        assert_eq!(mask("SigBlk:"), 0);
        assert_eq!(mask("SigIgn:") & (bit(libc::SIGPIPE) | bit(libc::SIGXFSZ) | bit(libc::SIGSEGV)), 0);
    }

    #[test]
    fn a_failed_start_reports_the_cause() {
        for (program, cwd, error) in [
            (c"/no/such/program", None, libc::ENOENT),
            (c"/bin", None, libc::EACCES),
            (c"/bin/true", Some(c"/no/such/folder"), libc::ENOENT),
            (c"/bin/true", Some(c"/bin/sh"), libc::ENOTDIR),
        ] {
            let failure = output_of(program, &[], cwd).expect_err("it cannot be started");
            assert_eq!(failure.raw_os_error(), Some(error), "{program:?} in {cwd:?}");
        }
    }

    #[test]
    fn a_program_has_its_limits_from_the_start() {
        let limits = Limits { open_files: Some(64), nice: Some(7), group: None };
        let script = c"ulimit -Sn; ulimit -Hn; cut -d' ' -f19 /proc/self/stat";
        let text = output_within(limits, c"/bin/sh", &[c"-c", script], None).expect("output");
        assert_eq!(text.lines().collect::<Vec<_>>(), ["64", "64", "7"]);
    }

    #[test]
    fn a_limit_that_cannot_be_applied_is_reported() {
        // More than the kernel allows any process.
        let limits = Limits { open_files: Some(1 << 40), ..Limits::default() };
        let failure = output_within(limits, c"/bin/true", &[], None).expect_err("it is not allowed");
        assert!(failure.to_string().starts_with("a limit of 1099511627776 open files is not allowed here: "));
        assert_eq!(failure.raw_os_error(), None, "the program is not at fault");
        let closed = File::open("/dev/null").expect("open");
        let limits = Limits { group: Some(closed.as_fd()), ..Limits::default() };
        let failure = output_within(limits, c"/bin/true", &[], None).expect_err("it is not writable");
        assert!(failure.to_string().starts_with("failed to enter its cgroup: "), "{failure}");
    }

    #[test]
    fn threads_can_start_programs_concurrently() {
        let start = || (0..50).for_each(|_| drop(output_of(c"/bin/true", &[], None).expect("output")));
        std::thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(start)));
    }
}
