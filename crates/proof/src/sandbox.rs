//! The sandbox of a trial: a folder with a home and a ledger, and the processes that belong to it.
//!
//! Dropping it kills the remaining processes and deletes the folder, unless it is kept for inspection.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::ProofError;
use super::calls::{Answer, Call};
use super::plan::{JobPlan, PoolPlan, Request};
use super::trial::folder::Folder;
use super::trial::processes::{belongs_to, processes_of};
use ops::home::location::{DATABASE, StoreAddress};
use ops::home::open::reopen;
use ops::worker::live::live_workers;
use store::{Store, StoreError, Worker};
use sys::cgroup;
use sys::clock::since_boot;
use sys::fs::{liveness_lock, owner_only};
use sys::poll::Poll;
use sys::process::ProcessHandle;

/// How often a condition is polled.
pub const SANDBOX_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// How long to wait until killed processes have disappeared.
const KILL_WAIT_LIMIT: Duration = Duration::from_secs(20);

/// The program under test and its environment.
#[derive(Clone, Debug)]
pub struct Program {
    pub path: PathBuf,
    /// Added to the environment of calls, and therefore of commands.
    pub for_calls: Vec<(OsString, OsString)>,
    /// Added to the environment of supervisors and workers.
    pub for_workers: Vec<(OsString, OsString)>,
}

impl Program {
    pub fn new(path: PathBuf) -> Self {
        Self { path, for_calls: Vec::new(), for_workers: Vec::new() }
    }

    /// This program.
    pub fn own() -> Result<Self, ProofError> {
        Ok(Self::new(std::env::current_exe().map_err(ProofError::system("find this program"))?))
    }
}

#[derive(Debug)]
pub struct Sandbox {
    pub program: Program,
    store: Box<dyn Store>,
    pools: Mutex<Vec<Child>>,
    /// Supervisors that have had a live worker.
    had_workers: Mutex<HashSet<Pid>>,
    /// In the order of their answers.
    pub calls: Mutex<Vec<Call>>,
    folder: Folder,
}

impl Sandbox {
    /// Creates a folder in `inside`, with a queue.
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
            had_workers: Mutex::default(),
            calls: Mutex::default(),
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

    /// The file in which hooks record their deliveries.
    pub fn notifications(&self) -> PathBuf {
        self.folder().join("notifications")
    }

    pub fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    /// Keeps the folder for inspection.
    pub fn keep(&mut self) {
        self.folder.is_kept = true;
    }

    // Calls

    /// The program with these arguments. The home is named in the environment, so that the processes it starts can be found.
    pub fn command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(&self.program.path);
        command.args(args).current_dir(self.folder()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.folder()).env("QUEUECTL_HOME", self.home());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Only the process that runs the trial handles Ctrl-C.
        command.process_group(0);
        command
    }

    fn client_command(&self, args: &[&str]) -> Command {
        let mut command = self.command(args);
        command.envs(self.program.for_calls.iter().cloned());
        command
    }

    /// Calls the program and waits for it to end.
    pub fn run(&self, args: &[&str]) -> Result<Output, ProofError> {
        self.client_command(args).output().map_err(|source| self.cannot_start(source))
    }

    /// Calls the program to prepare the trial; fails if the call fails.
    pub fn run_or_fail(&self, args: &[&str]) -> Result<String, ProofError> {
        let output = self.run(args)?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(ProofError::CannotBegin { call: args.join(" "), stderr });
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Sends a request and logs the call. With `kill_after`, the call is killed after that time.
    pub fn send(&self, request: Request, kill_after: Option<Duration>) -> Result<Answer, ProofError> {
        let (args, stdin) = self.arguments(&request);
        let mut command = self.client_command(&args.iter().map(String::as_str).collect::<Vec<_>>());
        command.stdin(Stdio::piped());
        let began = since_boot();
        let mut child = command.spawn().map_err(|source| self.cannot_start(source))?;
        if let Some(mut pipe) = child.stdin.take() {
            // A killed call reads nothing, and a call with bad input stops reading.
            let _ = pipe.write_all(stdin.as_bytes());
        }
        if let Some(time) = kill_after {
            // This sleep chooses the time of the fault; it is not synchronisation.
            std::thread::sleep(time);
            let _ = child.kill();
        }
        let output = child.wait_with_output().map_err(ProofError::system("wait for a call"))?;
        let call = Call::new(request, (began, since_boot()), &output);
        let answer = call.answer;
        lock(&self.calls).push(call);
        Ok(answer)
    }

    /// The arguments and standard input of a request. Jobs are passed in every possible way: alone, as an array, as a stream.
    fn arguments(&self, request: &Request) -> (Vec<String>, String) {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let json = |job: &JobPlan| job.to_json(&self.program.path, &self.ledger());
        let enqueue = |jobs: &[JobPlan], more: &[&str]| {
            let batch = jobs.first().and_then(|job| job.batch).map(|batch| ["--batch", batch]);
            let verb = ["enqueue"].into_iter().chain(batch.into_iter().flatten());
            words(&verb.chain(more.iter().copied()).collect::<Vec<_>>())
        };
        match request {
            Request::Cancel(id) => (words(&["--json", "cancel", id]), String::new()),
            Request::Retry(id) => (words(&["-q", "retry", id]), String::new()),
            Request::Enqueue(jobs) => match jobs.as_slice() {
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
        lock(&self.pools).push(child);
        Ok(())
    }

    /// The running supervisors that this sandbox started.
    pub fn supervisors(&self) -> Vec<Pid> {
        let mut pools = lock(&self.pools);
        pools.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        pools.iter().filter_map(|child| pid(child.id())).collect()
    }

    /// The live workers.
    pub fn workers(&self) -> Result<Vec<Worker>, StoreError> {
        let workers = live_workers(self.store())?;
        lock(&self.had_workers)
            .extend(workers.iter().filter_map(|worker| worker.supervisor_pid.and_then(pid)));
        Ok(workers)
    }

    /// Whether every pool of this sandbox has had a worker. A stop order does not reach a pool without one.
    pub fn all_pools_had_workers(&self) -> bool {
        let _ = self.workers();
        let had_workers = lock(&self.had_workers);
        self.supervisors().iter().all(|supervisor| had_workers.contains(supervisor))
    }

    // Processes

    /// Sends a signal to a process of this trial; does nothing if it has ended or its pid was reused by another process.
    pub fn signal(&self, target: Pid, signal: Signal) -> bool {
        let Ok(handle) = ProcessHandle::open(target) else {
            return false;
        };
        // Checked after the handle was opened, so it is the same process.
        belongs_to(target, self.folder()) && handle.signal(signal).is_ok()
    }

    /// Waits until the condition is true, at most for `limit`. Returns whether it became true.
    pub fn wait(&self, limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
        let mut poll = Poll::every(SANDBOX_POLL_INTERVAL).within(limit);
        while !condition() {
            if !poll.sleep() {
                return false;
            }
        }
        true
    }

    fn kill_all(&self) {
        self.wait(KILL_WAIT_LIMIT, || {
            let left = processes_of(self.folder());
            for pid in &left {
                self.signal(*pid, Signal::KILL);
            }
            self.supervisors();
            left.is_empty()
        });
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn pid(number: u32) -> Option<Pid> {
    Pid::from_raw(number.try_into().ok()?)
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.kill_all();
        for child in lock(&self.pools).iter_mut() {
            // Pools are killed by their handles even if they were not found as processes of the folder.
            let _ = child.kill();
            let _ = child.wait();
        }
        cgroup::end_recorded(&self.home().join(liveness_lock::FOLDER));
    }
}
