//! A pool, which is a supervisor and its workers: how their processes are started.

use std::ffi::{CStr, CString, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::stdio;

use crate::attempt::variables;
use crate::error::EngineError;
use crate::journal::JOURNAL;
use crate::worker::files;
use domain::values::name::WorkerId;
use sys::fs::owner_only;
use sys::process::cstr_array::CstrArray;
use sys::process::spawn;
use sys::process::spawn::{
    ChildProcess, Limits, ProcessScope, REPORT_PIPE, Spawn, own_environment_and, spawn,
};
use sys::service_manager::ServiceManager;

/// This program, even if its file was replaced by a newer version.
pub(crate) const SELF: &CStr = c"/proc/self/exe";

/// An address of the store that may hold a password. It goes into the environment of a supervisor and of its workers:
/// every user can read the arguments of a process, only its own user the environment.
#[derive(Clone)]
pub struct SecretAddress(pub OsString);

impl fmt::Debug for SecretAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretAddress(…)")
    }
}

/// The workers that a supervisor runs.
#[derive(Clone, Debug)]
pub struct Pool {
    pub home: PathBuf,
    pub count: u32,
    /// Whether the journal is also written to standard error.
    pub echo: bool,
    /// The arguments by which this program becomes a worker of this pool; those of the individual worker are appended.
    pub worker_call: Vec<OsString>,
    /// Where the queue is, unless the arguments say it.
    pub store: Option<SecretAddress>,
    /// The service manager that started the supervisor and listens to it.
    pub service_manager: Option<ServiceManager>,
}

/// Starts a worker in its own process group, so that the terminal's signals reach only the supervisor. Returns the
/// process and the pipe on which it will report.
pub(crate) fn start_worker(
    pool: &Pool,
    id: &WorkerId,
    stop_seen: Option<u64>,
) -> io::Result<(ChildProcess, OwnedFd)> {
    let mut words = pool.worker_call.clone();
    words.extend(["--id".into(), id.as_str().into()]);
    words.extend(["--supervisor-pid".into(), std::process::id().to_string().into()]);
    if let Some(stop_seen) = stop_seen {
        words.extend(["--stop-seen".into(), stop_seen.to_string().into()]);
    }
    start_self(words, pool.store.as_ref(), None, ProcessScope::Group, stdio::stderr())
}

/// Starts this program as a detached supervisor: in its own session, without the caller's descriptors. Returns when all
/// of its workers are up; otherwise fails with the supervisor's message.
pub fn start_detached(
    arguments: Vec<OsString>,
    store: Option<&SecretAddress>,
    log: &File,
) -> Result<(), EngineError> {
    let system = EngineError::system("failed to start a supervisor");
    // A descriptor of the caller's that the supervisor kept open would keep the reader of `worker start | cat` waiting.
    spawn::keep_descriptors_to_ourselves().map_err(system)?;
    let (_, report) =
        start_self(arguments, store, Some(c"/"), ProcessScope::Session, log.as_fd()).map_err(system)?;
    let mut message = String::new();
    File::from(report).read_to_string(&mut message).map_err(system)?;
    if message == UP { Ok(()) } else { Err(EngineError::CannotStart { message: message.trim().to_owned() }) }
}

/// Starts this program with these arguments and both of its outputs to `output`. Returns the process and the pipe on
/// which it will report.
fn start_self(
    arguments: Vec<OsString>,
    store: Option<&SecretAddress>,
    cwd: Option<&CStr>,
    scope: ProcessScope,
    output: BorrowedFd<'_>,
) -> io::Result<(ChildProcess, OwnedFd)> {
    let argv: Vec<CString> =
        arguments.into_iter().map(|word| CString::new(word.as_bytes())).collect::<Result<_, _>>()?;
    let (report, ready) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let started = spawn(&Spawn {
        program: SELF,
        argv: &argv,
        envp: &environment(store)?,
        cwd,
        scope,
        descriptors: &[(output, 1), (output, 2), (ready.as_fd(), REPORT_PIPE)],
        limits: Limits::default(),
        group: None,
        pid_record: None,
    })?;
    Ok((started, report))
}

/// The environment of this process, with the address of the store.
fn environment(store: Option<&SecretAddress>) -> io::Result<CstrArray> {
    let added = store.map(|store| (variables::STORE.as_bytes(), store.0.as_bytes()));
    own_environment_and(added)
}

/// Opens the journal as the standard error of a supervisor and its workers, where panics and last errors appear.
pub fn open_log(home: &Path) -> Result<File, EngineError> {
    files::check_owners(home)?;
    let path = home.join(JOURNAL);
    owner_only::open_to_append(&path).map_err(|source| EngineError::CannotMake { path, source })
}

/// The report of a supervisor whose workers are all up.
pub const UP: &str = "up\n";
