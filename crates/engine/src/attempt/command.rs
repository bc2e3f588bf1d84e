//! From a claim to what is spawned: the program with its arguments, environment and folder.
//!
//! A command goes to `sh -c`, unless a shell would do nothing but start one program that can be found now: then it is
//! started directly, and the shell is what to fall back to when that fails, so that every failure is told in the
//! shell's words. Nothing is remembered from one attempt to the next; files come and go.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::program;
use super::variables;
use super::variables::Variables;
use domain::job::environment::Environment;
use domain::text::shell::{direct_words, fixed_result};
use domain::values::name::WorkerId;
use store::Claim;
use sys::process::cstr_array::{CstrArray, NulByte};

/// What is the same for all attempts of a worker.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) worker_id: WorkerId,
    /// The folder of the queue, as an absolute path.
    pub(crate) home: PathBuf,
    /// The database as an absolute path, where it is another than the home's own.
    pub(crate) store: Option<PathBuf>,
    /// The worker's own environment, for jobs that came without one.
    pub(crate) own_environment: Environment,
}

/// All that the kernel wants to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prepared {
    /// May be relative, to `cwd`.
    pub(crate) program: CString,
    pub(crate) argv: Vec<CString>,
    pub(crate) envp: CstrArray,
    pub(crate) cwd: CString,
}

impl Context {
    /// What leads a `queuectl` in a command to the queue that it came from.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        let store = self.store.iter().map(|store| (variables::STORE, store.as_os_str().as_bytes()));
        let worker = (variables::WORKER_ID, self.worker_id.as_str().as_bytes());
        [worker, (variables::HOME, self.home.as_os_str().as_bytes())].into_iter().chain(store)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    Shell(Prepared),
    /// A program that needs no shell, and the line for the shell if it cannot be started.
    Direct {
        prepared: Prepared,
        line: CString,
    },
}

/// Why a command cannot even be tried.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnProblem {
    #[error("cwd {} {why}", path.display())]
    Cwd { path: PathBuf, why: CwdProblem },
    #[error("its {what} contains a NUL byte")]
    Nul { what: &'static str },
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum CwdProblem {
    #[error("does not exist")]
    Missing,
    #[error("is no folder")]
    NoFolder,
    #[error("cannot be entered: {0}")]
    Closed(io::Error),
}

impl Plan {
    /// What to spawn first.
    pub(crate) fn prepared(&self) -> &Prepared {
        match self {
            Self::Shell(prepared) | Self::Direct { prepared, .. } => prepared,
        }
    }

    /// The folder it starts in.
    pub(crate) fn cwd(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.prepared().cwd.as_bytes()))
    }

    /// What to spawn when that failed; `None` when it was the shell that failed.
    pub(crate) fn fallback(&self) -> Option<Prepared> {
        match self {
            Self::Shell(_) => None,
            Self::Direct { prepared, line } => {
                Some(in_shell(line.clone(), prepared.envp.clone(), prepared.cwd.clone()))
            }
        }
    }
}

pub(crate) fn prepare(claim: &Claim, context: &Context) -> Result<Plan, SpawnProblem> {
    let base = claim.environment.as_deref().unwrap_or(&context.own_environment);
    let variables = Variables { base, added: &claim.env };
    let folder = folder(claim.cwd.as_deref(), &variables);
    let has_nul = |what| SpawnProblem::Nul { what };
    let cwd = CString::new(folder.as_os_str().as_bytes()).map_err(|_| has_nul("cwd"))?;
    let envp = envp(claim, context, variables, &folder).map_err(|_| has_nul("environment"))?;
    let line = CString::new(claim.command.as_str()).map_err(|_| has_nul("command"))?;
    let direct = direct(&claim.command, &variables, &folder);
    Ok(match direct {
        Some((program, argv)) => Plan::Direct { prepared: Prepared { program, argv, envp, cwd }, line },
        None => Plan::Shell(in_shell(line, envp, cwd)),
    })
}

/// Says which folder is the problem, which an error from the spawn itself does not.
pub(crate) fn check_cwd(path: &Path) -> Result<(), SpawnProblem> {
    let why = match path.metadata() {
        Ok(meta) if !meta.is_dir() => CwdProblem::NoFolder,
        Ok(_) => match accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS) {
            Ok(()) => return Ok(()),
            Err(error) => CwdProblem::Closed(error.into()),
        },
        Err(error) if is_missing(&error) => CwdProblem::Missing,
        Err(error) => CwdProblem::Closed(error),
    };
    Err(SpawnProblem::Cwd { path: path.to_owned(), why })
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The folder to start in. A job that names none, or only a relative one, begins where the login of its user would, as
/// with cron; a user without a folder begins at the root.
pub(crate) fn folder(cwd: Option<&str>, variables: &Variables<'_>) -> PathBuf {
    match cwd.map(Path::new) {
        Some(cwd) if cwd.is_absolute() => cwd.to_owned(),
        Some(cwd) => login_folder(variables).join(cwd),
        None => login_folder(variables).to_owned(),
    }
}

fn login_folder<'a>(variables: &Variables<'a>) -> &'a Path {
    let home = variables.get("HOME").map(|home| Path::new(OsStr::from_bytes(home)));
    home.filter(|home| home.is_absolute() && home.is_dir()).unwrap_or(Path::new("/"))
}

fn envp(
    claim: &Claim,
    context: &Context,
    variables: Variables<'_>,
    cwd: &Path,
) -> Result<CstrArray, NulByte> {
    let attempt = claim.lease.attempt.to_string();
    let mut own = vec![
        (variables::JOB_ID, claim.lease.job.as_str().as_bytes()),
        (variables::ATTEMPT, attempt.as_bytes()),
        (variables::QUEUE, claim.queue.as_str().as_bytes()),
    ];
    own.extend(context.variables());
    own.push((variables::PWD, cwd.as_os_str().as_bytes()));
    variables.to_envp(&own)
}

/// The program and its arguments, if no shell is needed.
fn direct(command: &str, variables: &Variables<'_>, cwd: &Path) -> Option<(CString, Vec<CString>)> {
    if !variables.pass_through_shells() {
        return None;
    }
    match fixed_result(command) {
        Some(true) => Some((c"/bin/true".to_owned(), vec![c"true".to_owned()])),
        Some(false) => Some((c"/bin/false".to_owned(), vec![c"false".to_owned()])),
        None => {
            let words = direct_words(command)?;
            let program = program::find(words.first()?, variables.get("PATH"), cwd)?;
            let argv = words.into_iter().map(CString::new).collect::<Result<_, _>>().ok()?;
            Some((program, argv))
        }
    }
}

pub(crate) fn in_shell(line: CString, envp: CstrArray, cwd: CString) -> Prepared {
    let mut argv = vec![c"sh".to_owned(), c"-c".to_owned()];
    // Else the line itself would be read as more options.
    if line.as_bytes().starts_with(b"-") || line.as_bytes().starts_with(b"+") {
        argv.push(c"--".to_owned());
    }
    argv.push(line);
    Prepared { program: c"/bin/sh".to_owned(), argv, envp, cwd }
}

#[cfg(test)]
mod tests;
