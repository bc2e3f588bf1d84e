//! Where a trial takes place: a folder of its own with a home and a ledger, and the processes that belong to it.
//!
//! Dropping it kills whatever is left and removes the folder, unless it is to be kept for a look.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::ProofError;
use super::calls::{Answer, Call, CallLog};
use super::plan::{JobPlan, PoolPlan, Wish};
use super::trial::census::{is_of, processes_of};
use super::trial::folder::Folder;
use ops::home::location::{DATABASE, StoreAddress, reopen};
use ops::worker::alive::live_workers;
use store::{Store, StoreError, Worker};
use sys::clock::since_boot;
use sys::fs::owner_only;
use sys::process::ProcessHandle;

/// How often to look where nothing tells.
pub const LOOK: Duration = Duration::from_millis(10);
/// How long to wait for killed processes to be gone.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the processes of a trial are started with.
#[derive(Clone, Debug)]
pub struct Program {
    pub path: PathBuf,
    /// Added to the environment of calls, and so of commands.
    pub for_calls: Vec<(OsString, OsString)>,
    /// Added to the environment of supervisors and workers.
    pub for_workers: Vec<(OsString, OsString)>,
}

impl Program {
    pub fn new(path: PathBuf) -> Self {
        Self { path, for_calls: Vec::new(), for_workers: Vec::new() }
    }

    /// The one that runs here.
    pub fn own() -> Result<Self, ProofError> {
        Ok(Self::new(std::env::current_exe().map_err(ProofError::system("find this program"))?))
    }
}

#[derive(Debug)]
pub struct Field {
    program: Program,
    store: Box<dyn Store>,
    pools: Mutex<Vec<Child>>,
    /// Supervisors whose workers were seen.
    were_up: Mutex<HashSet<Pid>>,
    pub calls: CallLog,
    folder: Folder,
}

impl Field {
    /// Makes the folder, inside this one, and the queue in it.
    pub fn new(inside: &Path, program: Program) -> Result<Self, ProofError> {
        let folder = Folder::new(inside)?;
        let home = folder.path.join("home");
        owner_only::add_folder(&home)
            .map_err(|source| ProofError::CannotMake { path: home.clone(), source })?;
        let store = reopen(&StoreAddress::Sqlite(home.join(DATABASE)))?;
        Ok(Self {
            store,
            program,
            pools: Mutex::default(),
            were_up: Mutex::default(),
            calls: CallLog::default(),
            folder,
        })
    }

    pub fn folder(&self) -> &Path {
        &self.folder.path
    }

    pub fn home(&self) -> PathBuf {
        self.folder().join("home")
    }

    pub fn ledger(&self) -> PathBuf {
        self.folder().join("ledger")
    }

    /// What hooks were told.
    pub fn told(&self) -> PathBuf {
        self.folder().join("told")
    }

    pub fn program(&self) -> &Path {
        &self.program.path
    }

    pub fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    /// Gives supervisors and workers these variables too.
    pub fn equip_workers(&mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) {
        self.program.for_workers.extend(variables);
    }

    /// Gives calls these variables too, and so the commands that they enqueue.
    pub fn equip_calls(&mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) {
        self.program.for_calls.extend(variables);
    }

    /// Leaves the folder behind, for somebody to look at.
    pub fn keep(&mut self) {
        self.folder.is_kept = true;
    }

    // Calls

    /// The program with these arguments, on this home, which is named in the environment: so whatever it starts is found.
    pub fn command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(&self.program.path);
        command.args(args).current_dir(self.folder()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.folder()).env("QUEUECTL_HOME", self.home());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C is for the one who holds the trial.
        command.process_group(0);
        command
    }

    fn command_of_client(&self, args: &[&str]) -> Command {
        let mut command = self.command(args);
        command.envs(self.program.for_calls.iter().cloned());
        command
    }

    /// Calls the program and waits for its end.
    pub fn run(&self, args: &[&str]) -> Result<Output, ProofError> {
        self.command_of_client(args).output().map_err(|source| self.cannot_start(source))
    }

    /// Calls the program for what makes the trial possible.
    pub fn need(&self, args: &[&str]) -> Result<String, ProofError> {
        let output = self.run(args)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(ProofError::CannotBegin { call: args.join(" "), said });
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Does what somebody wishes and logs what came of it. With a deadline the call is killed when that has passed.
    pub fn ask(&self, wish: Wish, killed_after: Option<Duration>) -> Result<Answer, ProofError> {
        let (args, stdin) = self.wording(&wish);
        let mut command = self.command_of_client(&args.iter().map(String::as_str).collect::<Vec<_>>());
        command.stdin(Stdio::piped());
        let began = since_boot();
        let mut child = command.spawn().map_err(|source| self.cannot_start(source))?;
        if let Some(mut pipe) = child.stdin.take() {
            // One that was killed reads nothing, and one with bad input stops.
            let _ = pipe.write_all(stdin.as_bytes());
        }
        if let Some(time) = killed_after {
            // Not to wait for anything: this is when the fault strikes.
            std::thread::sleep(time);
            let _ = child.kill();
        }
        let output = child.wait_with_output().map_err(ProofError::system("wait for a call"))?;
        let call = Call::new(wish, (began, since_boot()), &output);
        let answer = call.answer;
        self.calls.add(call);
        Ok(answer)
    }

    /// Jobs are handed over in all the ways that there are: alone, as an array, as a stream.
    fn wording(&self, wish: &Wish) -> (Vec<String>, String) {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let json = |job: &JobPlan| job.to_json(&self.program.path, &self.ledger());
        let enqueue = |jobs: &[JobPlan], more: &[&str]| {
            let batch = jobs.first().and_then(|job| job.batch).map(|batch| ["--batch", batch]);
            let verb = ["enqueue"].into_iter().chain(batch.into_iter().flatten());
            words(&verb.chain(more.iter().copied()).collect::<Vec<_>>())
        };
        match wish {
            Wish::Cancel(id) => (words(&["--json", "cancel", id]), String::new()),
            Wish::Retry(id) => (words(&["-q", "retry", id]), String::new()),
            Wish::Enqueue(jobs) => match jobs.as_slice() {
                [job] => (enqueue(jobs, &[&json(job).to_string()]), String::new()),
                jobs if jobs.len() % 2 == 0 => {
                    let array: Vec<_> = jobs.iter().map(json).collect();
                    (enqueue(jobs, &[&serde_json::Value::from(array).to_string()]), String::new())
                }
                jobs => {
                    let lines: Vec<String> = jobs.iter().map(|job| json(job).to_string()).collect();
                    (enqueue(jobs, &["--file", "-"]), lines.join("\n"))
                }
            },
        }
    }

    fn cannot_start(&self, source: std::io::Error) -> ProofError {
        ProofError::CannotStart { program: self.program.path.clone(), source }
    }

    // Pools

    pub fn start_pool(&self, pool: PoolPlan) -> Result<(), ProofError> {
        let (count, concurrency) = (pool.count.to_string(), pool.concurrency.to_string());
        let parent = std::process::id().to_string();
        let tied = ["__tied", &parent, "--"];
        let args = ["-q", "worker", "run", "--count", &count, "--concurrency", &concurrency];
        let args = tied.iter().chain(&args);
        let mut command = self.command(args);
        let path = self.folder().join("pools.log");
        let log = File::options().append(true).create(true).open(&path);
        let log = log.map_err(|source| ProofError::CannotMake { path, source })?;
        command.envs(self.program.for_workers.iter().cloned()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().map_err(|source| self.cannot_start(source))?;
        self.pools().push(child);
        Ok(())
    }

    fn pools(&self) -> MutexGuard<'_, Vec<Child>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The supervisors that were started here and have not ended.
    pub fn supervisors(&self) -> Vec<Pid> {
        let mut pools = self.pools();
        pools.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        pools.iter().filter_map(|child| pid(child.id())).collect()
    }

    /// The workers that are alive.
    pub fn workers(&self) -> Result<Vec<Worker>, StoreError> {
        let workers = live_workers(self.store())?;
        let mut were_up = self.were_up.lock().unwrap_or_else(PoisonError::into_inner);
        were_up.extend(workers.iter().filter_map(|worker| worker.supervisor_pid.and_then(pid)));
        Ok(workers)
    }

    /// Whether every pool that was started here has had a worker. One that has not is not concerned by an order to stop.
    pub fn all_were_up(&self) -> bool {
        let _ = self.workers();
        let were_up = self.were_up.lock().unwrap_or_else(PoisonError::into_inner);
        self.supervisors().iter().all(|supervisor| were_up.contains(supervisor))
    }

    // Processes

    /// Sends a signal to a process of this trial; one that has gone, or whose pid is somebody else's by now, gets none.
    pub fn signal(&self, target: Pid, signal: Signal) -> bool {
        let Ok(handle) = ProcessHandle::open(target) else {
            return false;
        };
        // Looked at after the handle was opened: it is the same process.
        is_of(target, self.folder()) && handle.signal(signal).is_ok()
    }

    /// Waits until this is so, or for so long. Gives whether it is.
    pub fn wait(&self, patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
        let began = Instant::now();
        while !is_so() {
            if began.elapsed() > patience {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }

    fn kill_all(&self) {
        self.wait(PATIENCE, || {
            let left = processes_of(self.folder());
            for pid in &left {
                self.signal(*pid, Signal::KILL);
            }
            self.supervisors();
            left.is_empty()
        });
    }
}

pub fn pid(number: u32) -> Option<Pid> {
    Pid::from_raw(number.try_into().ok()?)
}

impl Drop for Field {
    fn drop(&mut self) {
        self.kill_all();
        for child in self.pools().iter_mut() {
            // Where nobody could be found, those that were started here are known all the same.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
