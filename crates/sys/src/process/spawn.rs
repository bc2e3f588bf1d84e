//! Starts programs.
//!
//! The new process borrows our memory, and the thread that starts it is suspended until the program runs. This is what
//! `posix_spawn` does, but without mapping and unmapping a stack for each program, without querying the disposition of every
//! signal, and with a handle to the process from the start. It never uses fork and exec, because copying the page tables of
//! a large process is many times slower. The child gets the descriptors that are listed here and no others, because all of
//! our descriptors are closed on exec.

mod child;
pub(crate) mod clone3;
mod pid_record;
mod stack;

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::OnceLock;

use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Pid, Signal, kill_process};
use rustix::stdio::{dup2_stdin, stdin};

use self::child::{Orders, Pointers, Step};
pub use self::pid_record::PidRecord;
use super::ProcessHandle;
use super::cstr_array::CstrArray;
use super::rlimit;
use super::rlimit::OpenFiles;
use super::user;
use crate::process;
use crate::signal::set::SignalSet;

const STDIN: RawFd = 0;

/// The number under which a process of this program that another one starts finds the pipe to report to: standard
/// input, for which it has no other use.
pub const REPORT_PIPE: RawFd = STDIN;

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
    pub limits: Limits,
    /// The directory of the control group that it starts in; `None` for that of this process.
    pub group: Option<BorrowedFd<'a>>,
    pub pid_record: Option<PidRecord<'a>>,
}

/// The limits of the program from its start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    pub open_files: Option<u64>,
    pub nice: Option<i32>,
}

/// A program was not started because its control group accepts no process: it was removed or divided.
#[derive(Debug, thiserror::Error)]
#[error("failed to enter its cgroup: {0}")]
pub struct GroupError(Errno);

/// A limit that cannot be applied, so that the program was not started.
#[derive(Debug, thiserror::Error)]
pub enum LimitError {
    #[error("nice {nice} is not allowed here: {errno}")]
    Nice { nice: i32, errno: Errno },
    #[error("a limit of {open_files} open files is not allowed here: {errno}")]
    OpenFiles { open_files: u64, errno: Errno },
}

/// The session or group that the new process leads.
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
    let (argv, envp) =
        (Pointers::to(spawn.argv.iter().map(CString::as_c_str)), Pointers::to(spawn.envp.iter()));
    let mut descriptors = Vec::with_capacity(spawn.descriptors.len() + 1);
    if !spawn.descriptors.iter().any(|(_, number)| *number == STDIN) {
        descriptors.push((dev_null()?.as_fd(), STDIN));
    }
    descriptors.extend_from_slice(spawn.descriptors);
    let mut orders = Orders {
        spawn,
        argv: &argv,
        envp: &envp,
        descriptors: &descriptors,
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
fn open_files(limits: &Limits) -> Option<OpenFiles> {
    let own = limits.open_files.map(|most| OpenFiles { soft: most, hard: most });
    own.or_else(rlimit::original_open_files)
}

fn step_error(step: Step, errno: Errno) -> io::Error {
    match step {
        Step::Start => errno.into(),
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

/// Returns when the program runs, or the process has given up.
#[expect(unsafe_code, reason = "starts a process that shares the memory of this one for a moment")]
fn start(orders: &mut Orders<'_>) -> io::Result<ChildProcess> {
    // The new process shares this process's memory: none of its signal handlers may run there. SIGCHLD has no handler
    // and stays unblocked, so that the kernel drops it: blocked, it would wake up another thread later.
    let mask = SignalSet::all().without(Signal::CHILD).set_as_mask()?;
    // SAFETY: the mask above blocks every signal that has a handler.
    let result = unsafe { child::clone(orders) };
    mask.set_as_mask()?;
    let (pid, handle) = result.map_err(|error| start_error(orders, error))?;
    let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::other("the system gave no pid"))?;
    let Some(handle) = handle else {
        // A kernel that does not know the flag ignores it, and no process may run that cannot be watched.
        let _ = kill_process(pid, Signal::KILL);
        wait_for_end(pid);
        return Err(Errno::NOSYS.into());
    };
    Ok(ChildProcess { pid, handle: handle.into() })
}

/// A shortage is that of the system; every other error of a start in a group is due to the group.
fn start_error(orders: &Orders<'_>, error: io::Error) -> io::Error {
    match Errno::from_io_error(&error) {
        Some(errno)
            if orders.spawn.group.is_some()
                && ![Errno::AGAIN, Errno::NOMEM, Errno::MFILE].contains(&errno) =>
        {
            io::Error::other(GroupError(errno))
        }
        Some(_) | None => error,
    }
}

/// Reaps a process that is about to end.
fn wait_for_end(pid: Pid) {
    while let Ok(None) = process::reap(pid) {
        std::thread::yield_now();
    }
}

/// The variables of this process, for a program that is to have the same.
pub fn own_environment() -> io::Result<CstrArray> {
    own_environment_and(None)
}

/// As [`own_environment`], and a variable that replaces one of its name.
pub fn own_environment_and(added: Option<(&[u8], &[u8])>) -> io::Result<CstrArray> {
    let mut list = CstrArray::default();
    for (name, value) in user::variables() {
        if added.is_none_or(|(replaced, _)| name != replaced) {
            list.push(&[&name, b"=", &value])?;
        }
    }
    if let Some((name, value)) = added {
        list.push(&[name, b"=", value])?;
    }
    Ok(list)
}

/// Marks every descriptor but the standard ones as closed on exec, so that no program that is started from here on
/// inherits a descriptor that the caller of this process left open.
#[expect(unsafe_code, reason = "there is no safe wrapper for close_range(2)")]
pub fn keep_descriptors_to_ourselves() -> io::Result<()> {
    const FIRST: u32 = libc::STDERR_FILENO.cast_unsigned() + 1;
    // SAFETY: with this flag the call closes nothing and touches no memory of this process. The owners of the
    // descriptors notice nothing: the mark has an effect only in a process that becomes another program.
    let result = unsafe { libc::close_range(FIRST, u32::MAX, libc::CLOSE_RANGE_CLOEXEC.cast_signed()) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Takes over the pipe that the process which started this one put at [`REPORT_PIPE`]. Standard input is `/dev/null`
/// from then on, so a second call fails, as does a call where standard input is not the writing end of a pipe.
///
/// Standard input is always open (see [`mod@crate::program`]) and replaced as a whole, so no other owner of a descriptor can lose
/// it, as would be possible with a number that the program may have opened for itself.
pub fn take_report_pipe() -> io::Result<OwnedFd> {
    let is_pipe = FileType::from_raw_mode(fstat(stdin())?.st_mode) == FileType::Fifo;
    if !is_pipe || fcntl_getfl(stdin())? & OFlags::RWMODE != OFlags::WRONLY {
        return Err(Errno::BADF.into());
    }
    let pipe = fcntl_dupfd_cloexec(stdin(), libc::STDERR_FILENO + 1)?;
    dup2_stdin(dev_null()?)?;
    Ok(pipe)
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
        limits: Limits,
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
            group: None,
            pid_record: None,
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
    fn the_report_pipe_is_taken_once() {
        take_report_pipe().expect_err("standard input is not a pipe yet");
        let (report, end) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
        dup2_stdin(&report).expect("it is open");
        take_report_pipe().expect_err("the reading end is not for reports");
        dup2_stdin(&end).expect("it is open");
        drop(end);
        let taken = take_report_pipe().expect("standard input is the pipe");
        take_report_pipe().expect_err("standard input is /dev/null by now");
        assert_eq!(rustix::io::write(&taken, b"up"), Ok(2));
        drop(taken);
        let mut text = String::new();
        File::from(report).read_to_string(&mut text).expect("no writer is left");
        assert_eq!(text, "up");
    }

    #[test]
    fn a_program_starts_without_blocked_or_ignored_signals() {
        let text = output_of(c"/bin/cat", &[c"/proc/self/status"], None).expect("output");
        let mask = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
            u64::from_str_radix(line.trim(), 16).expect("a number")
        };
        let bit = |signal: i32| 1_u64 << (signal - 1);
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
        let limits = Limits { open_files: Some(64), nice: Some(7) };
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
    }

    #[test]
    fn threads_can_start_programs_concurrently() {
        let start = || (0..50).for_each(|_| drop(output_of(c"/bin/true", &[], None).expect("output")));
        std::thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(start)));
    }
}
