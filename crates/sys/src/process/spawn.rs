//! Starting a program.
//!
//! The new process borrows our memory, and the thread that starts it stands still until the program runs: as
//! `posix_spawn` does it, but without mapping and unmapping a stack for each program, without asking for the disposition
//! of every signal, and with a handle to the process from the first moment. Never fork and exec: copying the page tables
//! of a large process makes that many times slower. The child gets what is listed here and nothing else, because every
//! descriptor of ours is closed on exec.

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
use super::cstr_array::CList;
use super::limit;
use super::limit::OpenFiles;
use super::spawn::child::{Orders, Step};
use super::spawn::stack::Stack;
use super::user;
use crate::process;
use crate::signal::set::SignalSet;

const STDIN: RawFd = 0;

/// What to start, and how.
#[derive(Debug)]
pub struct Spawn<'a> {
    /// A path; nothing is searched.
    pub program: &'a CStr,
    pub argv: &'a [CString],
    pub envp: &'a CList,
    pub cwd: Option<&'a CStr>,
    pub leads: Leads,
    /// Descriptors of ours, and the numbers they have in the child. Standard input is `/dev/null` unless it is listed.
    pub descriptors: &'a [(BorrowedFd<'a>, RawFd)],
    pub limits: Limits<'a>,
}

/// What the program is held to from its first moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits<'a> {
    pub open_files: Option<u64>,
    pub nice: Option<i32>,
    /// The entrance of a control group.
    pub group: Option<BorrowedFd<'a>>,
}

/// A limit that cannot be kept, so the program was not started.
#[derive(Debug, thiserror::Error)]
pub enum LimitError {
    #[error("its cgroup could not be entered: {0}")]
    Group(Errno),
    #[error("nice {nice} is not allowed here: {errno}")]
    Nice { nice: i32, errno: Errno },
    #[error("a limit of {open_files} open files is not allowed here: {errno}")]
    OpenFiles { open_files: u64, errno: Errno },
}

/// What the new process is the leader of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leads {
    /// A session of its own: no terminal reaches it.
    Session,
    /// A group of its own, so that the terminal's signals pass it by.
    Group,
}

/// A program that was started.
#[derive(Debug)]
pub struct Spawned {
    pub pid: Pid,
    pub handle: ProcessHandle,
}

/// Starts the program with no signal blocked and none ignored.
pub fn spawn(spawn: &Spawn<'_>) -> io::Result<Spawned> {
    let (argv, envp) = (pointers(spawn.argv), spawn.envp.pointers());
    let mut descriptors = Vec::with_capacity(spawn.descriptors.len() + 1);
    if !spawn.descriptors.iter().any(|(_, number)| *number == STDIN) {
        descriptors.push((nothing()?.as_raw_fd(), STDIN));
    }
    descriptors.extend(spawn.descriptors.iter().map(|(ours, number)| (ours.as_raw_fd(), *number)));
    let mut orders = Orders {
        program: spawn.program,
        argv: &argv,
        envp: &envp,
        cwd: spawn.cwd,
        leads: spawn.leads,
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
            Err(explained(step, errno))
        }
    }
}

/// A limit of its own, or else the one that this process has raised for itself.
fn open_files(limits: &Limits<'_>) -> Option<OpenFiles> {
    let own = limits.open_files.map(|most| OpenFiles { soft: most, hard: most });
    own.or_else(limit::open_files_before)
}

fn explained(step: Step, errno: Errno) -> io::Error {
    match step {
        Step::Start => errno.into(),
        Step::Group => io::Error::other(LimitError::Group(errno)),
        Step::Nice(nice) => io::Error::other(LimitError::Nice { nice, errno }),
        Step::OpenFiles(open_files) => io::Error::other(LimitError::OpenFiles { open_files, errno }),
    }
}

/// `/dev/null`, opened once: it has no state that those who share it could disturb.
fn nothing() -> io::Result<&'static File> {
    static NOTHING: OnceLock<File> = OnceLock::new();
    if let Some(nothing) = NOTHING.get() {
        return Ok(nothing);
    }
    let nothing = File::open("/dev/null")?;
    Ok(NOTHING.get_or_init(|| nothing))
}

/// Returns when the program runs, or the process has given up.
#[expect(unsafe_code, reason = "there is no safe wrapper for clone(2)")]
fn start(orders: &mut Orders<'_>) -> io::Result<Spawned> {
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    let mut handle: RawFd = -1;
    // The process shares our memory: no handler of ours may run there. That a child has ended is told by a signal without
    // one: where it is not blocked it is dropped, else it would wake up some other thread of ours later.
    let mask = SignalSet::all().without(Signal::CHILD).be_mask()?;
    let result = Stack::with(|stack| {
        let orders = std::ptr::from_mut(orders).cast::<c_void>();
        // SAFETY: this thread sleeps until the process has memory of its own or is gone. So what it borrows stays as it
        // is, the stack is nobody else's meanwhile, and `begin` keeps to what is allowed there.
        let pid = unsafe { libc::clone(child::begin, stack.top(), flags, orders, &raw mut handle) };
        if pid == -1 { Err(io::Error::last_os_error()) } else { Ok(pid) }
    });
    mask.be_mask()?;
    let pid = result.flatten()?;
    let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::other("the system gave no pid"))?;
    if handle == -1 {
        // A kernel that does not know the flag takes no notice of it, and nothing may run that nobody watches.
        let _ = kill_process(pid, Signal::KILL);
        wait_for_end(pid);
        return Err(Errno::NOSYS.into());
    }
    // SAFETY: the kernel has just opened it for us.
    let handle = unsafe { OwnedFd::from_raw_fd(handle) };
    Ok(Spawned { pid, handle: handle.into() })
}

/// Reaps a process that has nothing more to do than to end.
fn wait_for_end(pid: Pid) {
    while let Ok(None) = process::reap(pid) {
        std::thread::yield_now();
    }
}

/// As the system takes a list of strings: with a null pointer at its end.
fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
}

/// The variables of this process, for a program that is to have the same.
pub fn own_environment() -> io::Result<CList> {
    let mut list = CList::default();
    for (name, value) in user::variables() {
        list.push(&[&name, b"=", &value])?;
    }
    Ok(list)
}

/// Makes sure that no program that is started from here on inherits a descriptor that somebody handed to us.
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

    /// What a program prints that is started like this.
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
        let mut envp = CList::default();
        envp.push(&[b"A=", b"1"])?;
        let descriptors = [(end.as_fd(), 1)];
        let started = spawn(&Spawn {
            program,
            argv: &argv,
            envp: &envp,
            cwd,
            leads: Leads::Session,
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
        let text = output_of(c"/bin/sh", &[c"-c", script], Some(c"/usr")).expect("it runs");
        assert_eq!(text.lines().collect::<Vec<_>>(), ["1", "/usr", "/dev/null"]);
    }

    #[test]
    fn no_signal_is_blocked_and_those_that_we_ignore_are_not() {
        let text = output_of(c"/bin/cat", &[c"/proc/self/status"], None).expect("it runs");
        let mask = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
            u64::from_str_radix(line.trim(), 16).expect("a number")
        };
        let bit = |signal: c_int| 1_u64 << (signal - 1);
        assert_eq!(mask("SigBlk:"), 0);
        assert_eq!(mask("SigIgn:") & (bit(libc::SIGPIPE) | bit(libc::SIGXFSZ) | bit(libc::SIGSEGV)), 0);
    }

    #[test]
    fn what_cannot_be_started_says_why() {
        for (program, cwd, error) in [
            (c"/no/such/program", None, libc::ENOENT),
            (c"/bin", None, libc::EACCES),
            (c"/bin/true", Some(c"/no/such/folder"), libc::ENOENT),
            (c"/bin/true", Some(c"/bin/sh"), libc::ENOTDIR),
        ] {
            let failure = output_of(program, &[], cwd).expect_err("nothing to start");
            assert_eq!(failure.raw_os_error(), Some(error), "{program:?} in {cwd:?}");
        }
    }

    #[test]
    fn a_program_is_held_to_its_limits_from_the_start() {
        let limits = Limits { open_files: Some(64), nice: Some(7), group: None };
        let script = c"ulimit -Sn; ulimit -Hn; cut -d' ' -f19 /proc/self/stat";
        let text = output_within(limits, c"/bin/sh", &[c"-c", script], None).expect("it runs");
        assert_eq!(text.lines().collect::<Vec<_>>(), ["64", "64", "7"]);
    }

    #[test]
    fn a_limit_that_cannot_be_kept_says_so() {
        // More than the kernel gives to anybody.
        let limits = Limits { open_files: Some(1 << 40), ..Limits::default() };
        let failure = output_within(limits, c"/bin/true", &[], None).expect_err("nobody may");
        assert!(failure.to_string().starts_with("a limit of 1099511627776 open files is not allowed here: "));
        assert_eq!(failure.raw_os_error(), None, "it is no failure of the program");
        let closed = File::open("/dev/null").expect("it is there");
        let limits = Limits { group: Some(closed.as_fd()), ..Limits::default() };
        let failure = output_within(limits, c"/bin/true", &[], None).expect_err("it is not for writing");
        assert!(failure.to_string().starts_with("its cgroup could not be entered: "), "{failure}");
    }

    #[test]
    fn threads_start_programs_at_the_same_time() {
        let start = || (0..50).for_each(|_| drop(output_of(c"/bin/true", &[], None).expect("it runs")));
        std::thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(start)));
    }
}
