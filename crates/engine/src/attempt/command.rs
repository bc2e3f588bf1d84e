//! From a command line to the process to spawn: the program with its arguments, environment and folder.
//!
//! A command is run by `sh -c`, unless the shell would only start one program that can be found now: then that program
//! is started directly, and if that fails the shell runs the command, so that every error has the shell's wording.
//! Nothing is cached between attempts, because files come and go.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::program;
use super::traces::AttemptTrace;
use super::variables;
use super::variables::Variables;
use domain::job::environment::Environment;
use domain::text::shell::{direct_words, fixed_result};
use domain::values::name::WorkerId;
use store::Claim;
use sys::process::cstr_array::{CstrArray, NulByte};

/// The data that the commands of all attempts of a worker share.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) worker_id: WorkerId,
    /// The folder of the queue, as an absolute path.
    pub(crate) home: PathBuf,
    /// Where the queue is, if it is not the home's own database. Without a password.
    pub(crate) store: Option<OsString>,
    /// The worker's own environment, for jobs that have none.
    pub(crate) own_environment: Environment,
}

/// The arguments of `execve`, and the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Invocation {
    /// May be relative to `cwd`.
    pub(crate) program: CString,
    pub(crate) argv: Vec<CString>,
    pub(crate) envp: CstrArray,
    pub(crate) cwd: CString,
}

impl Context {
    /// The variables by which a `queuectl` inside a command finds the queue that runs it.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        let store = self.store.iter().map(|store| (variables::STORE, store.as_bytes()));
        let worker = (variables::WORKER_ID, self.worker_id.as_str().as_bytes());
        [worker, (variables::HOME, self.home.as_os_str().as_bytes())].into_iter().chain(store)
    }
}

/// A command line of a job or of a hook, and what it needs to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandLine<'a> {
    pub(crate) line: &'a str,
    pub(crate) cwd: Option<&'a str>,
    /// `None` for that of the worker.
    pub(crate) environment: Option<&'a Environment>,
    /// The variables that the job adds.
    pub(crate) added: &'a BTreeMap<String, String>,
    /// The variables that describe the attempt or the delivery.
    pub(crate) own: &'a [(&'static str, &'a [u8])],
}

/// The program to spawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) invocation: Invocation,
    /// The line for the shell, in case a program that needs no shell cannot be started.
    line: Option<CString>,
}

/// Why a command cannot even be tried.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnProblem {
    #[error("cwd {} {why}", path.display())]
    Cwd { path: PathBuf, why: CwdProblem },
    #[error("limits.cpu needs a delegated cgroup ({why})")]
    CpuLimit { why: String },
    #[error("its {what} contains a NUL byte")]
    Nul { what: &'static str },
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum CwdProblem {
    #[error("does not exist")]
    Missing,
    #[error("is not a directory")]
    NotADirectory,
    #[error("cannot be entered: {0}")]
    Inaccessible(io::Error),
}

impl Plan {
    /// Without another program to spawn if this one fails.
    pub(crate) fn of(invocation: Invocation) -> Self {
        Self { invocation, line: None }
    }

    /// The folder it starts in.
    fn cwd(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.invocation.cwd.as_bytes()))
    }

    /// The program to spawn if that failed; `None` if there is no other.
    pub(crate) fn fallback(&self) -> Option<Invocation> {
        let Invocation { envp, cwd, .. } = &self.invocation;
        self.line.clone().map(|line| in_shell(line, envp.clone(), cwd.clone()))
    }
}

pub(super) fn prepare(
    claim: &Claim,
    trace: Option<&AttemptTrace>,
    context: &Context,
) -> Result<Plan, SpawnProblem> {
    let attempt = claim.lease.attempt.to_string();
    let traced = trace.map(AttemptTrace::variables).unwrap_or_default();
    let mut own = vec![
        (variables::JOB_ID, claim.lease.job.as_str().as_bytes()),
        (variables::ATTEMPT, attempt.as_bytes()),
        (variables::QUEUE, claim.queue.as_str().as_bytes()),
    ];
    // A variable that the job names is what its caller wants.
    let is_left = |(name, _): &&(&'static str, String)| !claim.env.contains_key(*name);
    own.extend(traced.iter().filter(is_left).map(|(name, value)| (*name, value.as_bytes())));
    let command = CommandLine {
        line: &claim.command,
        cwd: claim.cwd.as_deref(),
        environment: claim.environment.as_deref(),
        added: &claim.env,
        own: &own,
    };
    command.prepare(context)
}

impl<'a> CommandLine<'a> {
    pub(crate) fn prepare(self, context: &'a Context) -> Result<Plan, SpawnProblem> {
        let variables = self.variables(context);
        let folder = folder(self.cwd, &variables);
        let has_nul = |what| SpawnProblem::Nul { what };
        let cwd = CString::new(folder.as_os_str().as_bytes()).map_err(|_| has_nul("cwd"))?;
        let envp = self.envp(context, &folder)?;
        let line = CString::new(self.line).map_err(|_| has_nul("command"))?;
        Ok(match direct(self.line, &variables, &folder) {
            Some((program, argv)) => {
                Plan { invocation: Invocation { program, argv, envp, cwd }, line: Some(line) }
            }
            None => Plan::of(in_shell(line, envp, cwd)),
        })
    }

    /// Its whole environment in this folder.
    pub(crate) fn envp(self, context: &Context, folder: &Path) -> Result<CstrArray, SpawnProblem> {
        let mut own = self.own.to_vec();
        own.extend(context.variables());
        own.push((variables::PWD, folder.as_os_str().as_bytes()));
        let envp = self.variables(context).to_envp(&own);
        envp.map_err(|NulByte| SpawnProblem::Nul { what: "environment" })
    }

    fn variables(self, context: &'a Context) -> Variables<'a> {
        Variables { base: self.environment.unwrap_or(&context.own_environment), added: self.added }
    }
}

/// Why it could not be started. The error of a spawn does not name the folder; if that is the cause, an error that does is
/// more helpful.
pub(crate) fn start_problem(plan: &Plan, error: &io::Error) -> String {
    check_cwd(plan.cwd()).map_or_else(|problem| problem.to_string(), |()| error.to_string())
}

fn check_cwd(path: &Path) -> Result<(), SpawnProblem> {
    let why = match path.metadata() {
        Ok(meta) if !meta.is_dir() => CwdProblem::NotADirectory,
        Ok(_) => match accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS) {
            Ok(()) => return Ok(()),
            Err(error) => CwdProblem::Inaccessible(error.into()),
        },
        Err(error) if is_missing(&error) => CwdProblem::Missing,
        Err(error) => CwdProblem::Inaccessible(error),
    };
    Err(SpawnProblem::Cwd { path: path.to_owned(), why })
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The folder to start in. Without a `cwd`, or relative to it, a job starts in its user's home directory, as with cron,
/// or in `/` if that does not exist.
fn folder(cwd: Option<&str>, variables: &Variables<'_>) -> PathBuf {
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

pub(crate) fn in_shell(line: CString, envp: CstrArray, cwd: CString) -> Invocation {
    let mut argv = vec![c"sh".to_owned(), c"-c".to_owned()];
    // Otherwise the shell would parse the line as options.
    if line.as_bytes().starts_with(b"-") || line.as_bytes().starts_with(b"+") {
        argv.push(c"--".to_owned());
    }
    argv.push(line);
    Invocation { program: c"/bin/sh".to_owned(), argv, envp, cwd }
}

#[cfg(test)]
mod tests;
