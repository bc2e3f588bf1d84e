//! Starts a process in the cheapest way and waits for it. All compared programs use this code.

use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::ptr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use libc::{c_char, c_int, pid_t, posix_spawn_file_actions_t, rusage};

use crate::rig::sample::Sample;

/// A command line, ready to be started any number of times.
pub(crate) struct Program {
    arguments: Vec<CString>,
    environment: Vec<CString>,
    actions: Option<Box<posix_spawn_file_actions_t>>,
}

/// The cost of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) wall: Duration,
    /// Of the process and the kernel for it.
    pub(crate) cpu: Duration,
    pub(crate) max_rss_bytes: u64,
}

impl Program {
    /// A program whose output goes to `/dev/null`.
    pub(crate) fn new<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Result<Self> {
        let mut program = Self::silent(arguments)?;
        program.actions = Some(discard_output()?);
        Ok(program)
    }

    /// A program that prints nothing: its output is not redirected, which makes starting it a little cheaper.
    pub(crate) fn silent<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Result<Self> {
        let arguments: Vec<CString> = arguments
            .into_iter()
            .map(|argument| CString::new(argument.as_ref().as_bytes()))
            .collect::<Result<_, _>>()?;
        ensure!(!arguments.is_empty(), "the command line is empty");
        Ok(Self { arguments, environment: environment()?, actions: None })
    }

    /// Sets a variable in the program's environment.
    pub(crate) fn with(mut self, name: &str, value: impl AsRef<OsStr>) -> Result<Self> {
        let mut variable = OsString::from(format!("{name}="));
        self.environment.retain(|other| !other.as_bytes().starts_with(variable.as_bytes()));
        variable.push(value);
        self.environment.push(CString::new(variable.into_vec())?);
        Ok(self)
    }

    /// Starts the program, waits for it, and fails unless it exits with 0.
    pub(crate) fn run(&self) -> Result<Run> {
        let began = Instant::now();
        let (status, usage) = wait_for(self.start()?)?;
        let wall = began.elapsed();
        ensure!(
            libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
            "{:?} ended with status {status:#x}",
            self.arguments
        );
        let kilobytes = u64::try_from(usage.ru_maxrss).context("the reported size is negative")?;
        let cpu = duration(usage.ru_utime)? + duration(usage.ru_stime)?;
        Ok(Run { wall, cpu, max_rss_bytes: kilobytes * 1024 })
    }

    /// The seconds that each of `count` runs took.
    pub(crate) fn seconds(&self, count: usize) -> Result<Sample> {
        (0..count).map(|_| Ok(self.run()?.wall.as_secs_f64())).collect()
    }

    #[expect(unsafe_code, reason = "there is no safe wrapper for posix_spawnp(3)")]
    pub(crate) fn start(&self) -> Result<pid_t> {
        let argv = pointers(&self.arguments);
        let envp = pointers(&self.environment);
        let mut pid = 0;
        // SAFETY: both vectors end with a null pointer and point to strings that `self` keeps alive; the actions were
        // initialised, and are read only.
        let error = unsafe {
            libc::posix_spawnp(
                &raw mut pid,
                argv[0],
                self.actions.as_deref().map_or(ptr::null(), ptr::from_ref),
                ptr::null(),
                argv.as_ptr(),
                envp.as_ptr(),
            )
        };
        check(error).with_context(|| format!("failed to start {:?}", self.arguments))?;
        Ok(pid)
    }
}

impl Drop for Program {
    #[expect(unsafe_code, reason = "there is no safe wrapper for posix_spawn_file_actions")]
    fn drop(&mut self) {
        if let Some(actions) = &mut self.actions {
            // SAFETY: initialised in `discard_output` and not used after this.
            unsafe { libc::posix_spawn_file_actions_destroy(&raw mut **actions) };
        }
    }
}

/// This process's environment without the variables that cargo adds: its library path alone makes every dynamically
/// linked program search several folders.
pub(crate) fn environment() -> Result<Vec<CString>> {
    let added = |name: &OsStr| {
        ["CARGO", "RUST", "LD_", "QUEUECTL_"]
            .iter()
            .any(|prefix| name.as_bytes().starts_with(prefix.as_bytes()))
    };
    let variable = |(mut name, value): (OsString, OsString)| {
        name.push("=");
        name.push(value);
        Ok(CString::new(name.into_vec())?)
    };
    env::vars_os().filter(|(name, _)| !added(name)).map(variable).collect()
}

#[expect(unsafe_code, reason = "there is no safe wrapper for posix_spawn_file_actions")]
fn discard_output() -> Result<Box<posix_spawn_file_actions_t>> {
    let mut actions = Box::new(MaybeUninit::<posix_spawn_file_actions_t>::uninit());
    // SAFETY: `init` initialises the actions before anything reads them; the path is a literal.
    unsafe {
        check(libc::posix_spawn_file_actions_init(actions.as_mut_ptr()))?;
        for descriptor in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
            check(libc::posix_spawn_file_actions_addopen(
                actions.as_mut_ptr(),
                descriptor,
                c"/dev/null".as_ptr(),
                libc::O_WRONLY,
                0,
            ))?;
        }
        Ok(actions.assume_init())
    }
}

#[expect(unsafe_code, reason = "there is no safe wrapper for wait4(2)")]
fn wait_for(pid: pid_t) -> Result<(c_int, rusage)> {
    let mut status = 0;
    let mut usage = MaybeUninit::<rusage>::uninit();
    // SAFETY: both pointers are valid for writing.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) };
    if waited != pid {
        return Err(io::Error::last_os_error()).context("failed to wait for a process");
    }
    // SAFETY: wait4 succeeded, so it initialised `usage`.
    Ok((status, unsafe { usage.assume_init() }))
}

fn duration(time: libc::timeval) -> Result<Duration> {
    let context = "the reported time is negative";
    let seconds = u64::try_from(time.tv_sec).context(context)?;
    Ok(Duration::from_secs(seconds) + Duration::from_micros(u64::try_from(time.tv_usec).context(context)?))
}

fn pointers(strings: &[CString]) -> Vec<*mut c_char> {
    let ends = [ptr::null_mut()];
    strings.iter().map(|string| string.as_ptr().cast_mut()).chain(ends).collect()
}

fn check(error: c_int) -> io::Result<()> {
    if error == 0 {
        return Ok(());
    }
    Err(io::Error::from_raw_os_error(error))
}
