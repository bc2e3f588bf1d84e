//! The sandbox of a trial: a folder with the homes of its hosts and a ledger, and the processes that belong to it.
//!
//! A trial on a file has one host. A trial on a server has several: all are on this machine, but each takes the others for
//! other machines, and has its own way to the server. The ledger is the record of an observer who sees them all.
//!
//! Dropping it kills the remaining processes and deletes the folder, unless it is kept for inspection.

pub(crate) mod host;
pub mod proxy;
pub mod server;

pub use host::{Host, HostSetup, host_of};
pub use server::Server;

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::ProofError;
use super::calls::{Answer, Call};
use super::evidence::{Disturbances, FrozenHost};
use super::plan::{JobPlan, PoolPlan, Request, Timing};
use super::trial::folder::Folder;
use super::trial::processes::{belongs_to, processes_of, processes_on};
use domain::values::name::WorkerId;
use ops::home::location::{DATABASE, StoreAddress};
use ops::home::open::reopen;
use ops::worker::live::live_workers;
use store::postgres::Address;
use store::{Store, StoreError, Worker};
use sys::cgroup;
use sys::clock::since_boot;
use sys::fs::{liveness_lock, owner_only};
use sys::host::SIMULATED_MACHINE;
use sys::poll::Poll;
use sys::process::ProcessHandle;

/// How often a condition is polled.
pub const SANDBOX_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// How long to wait until killed processes have disappeared.
const KILL_WAIT_LIMIT: Duration = Duration::from_secs(20);
/// For how long calls that prepare a trial are repeated.
const PREPARATION_LIMIT: Duration = Duration::from_secs(60);
/// The exit code of a call that changed nothing, because the store did not answer.
const STORE_UNAVAILABLE: i32 = 5;

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
    pub timing: Timing,
    pub hosts: Vec<Host>,
    /// How this process reaches the server. `None`: the store is a file.
    server: Option<Address>,
    store: Box<dyn Store>,
    /// Which host makes the next call.
    next_caller: AtomicUsize,
    /// Supervisors that have had a live worker.
    had_workers: Mutex<HashSet<Pid>>,
    /// Workers of hosts that have lost their power. Their locks went with their homes.
    without_power: Mutex<HashSet<WorkerId>>,
    /// In the order of their answers.
    pub calls: Mutex<Vec<Call>>,
    /// What the nemesis did that excuses violations.
    pub disturbances: Mutex<Disturbances>,
    folder: Folder,
}

impl Sandbox {
    /// Creates a folder in `inside`, with a queue in a file.
    pub fn new(inside: &Path, program: Program) -> Result<Self, ProofError> {
        let folder = Folder::new(inside)?;
        let host = Host::local(&folder.path)?;
        let store = reopen(&StoreAddress::Sqlite(host.home.join(DATABASE)))?;
        Ok(Self::with(program, Timing::ON_A_FILE, vec![host], (store, None), folder))
    }

    /// Creates a folder in `inside`, and a queue in a schema of its own on this server.
    pub fn on_server(inside: &Path, program: Program, server: Server) -> Result<Self, ProofError> {
        let folder = Folder::new(inside)?;
        let homes = folder.path.join(host::HOMES);
        owner_only::add_folder(&homes)
            .map_err(|source| ProofError::CannotMake { path: homes.clone(), source })?;
        let Server { observer, hosts } = server.with_own_schema();
        let hosts = server::HOST_NAMES.iter().zip(hosts);
        let hosts: Vec<Host> =
            hosts.map(|(name, setup)| Host::remote(homes.join(name), setup)).collect::<Result<_, _>>()?;
        let store = reopen(&StoreAddress::Postgres(Box::new(observer.clone())))?;
        Ok(Self::with(program, Timing::ON_A_SERVER, hosts, (store, Some(observer)), folder))
    }

    fn with(
        program: Program,
        timing: Timing,
        hosts: Vec<Host>,
        (store, server): (Box<dyn Store>, Option<Address>),
        folder: Folder,
    ) -> Self {
        Self {
            program,
            timing,
            hosts,
            server,
            store,
            next_caller: AtomicUsize::default(),
            had_workers: Mutex::default(),
            without_power: Mutex::default(),
            calls: Mutex::default(),
            disturbances: Mutex::default(),
            folder,
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder.path
    }

    /// The home of the first host.
    pub fn home(&self) -> PathBuf {
        self.hosts[0].home.clone()
    }

    /// The server on which the queue is, as this process reaches it.
    pub fn server(&self) -> Option<&Address> {
        self.server.as_ref()
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

    /// The program with these arguments, on the first host.
    pub fn command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        self.command_on(&self.hosts[0], args)
    }

    /// The program with these arguments. The home is named in the environment, so that the processes it starts can be found.
    pub fn command_on<A: AsRef<OsStr>>(&self, host: &Host, args: impl IntoIterator<Item = A>) -> Command {
        let mut words = host.launcher.iter().map(OsString::as_os_str).chain([self.program.path.as_os_str()]);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).args(args).current_dir(self.folder()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.folder()).env("QUEUECTL_HOME", &host.home);
        if let Some(address) = &host.address {
            command.env("QUEUECTL_STORE", address.with_password()).env(SIMULATED_MACHINE, &host.home);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Only the process that runs the trial handles Ctrl-C.
        command.process_group(0);
        command
    }

    /// The hosts take turns.
    fn client_command(&self, args: &[&str]) -> Command {
        let turn = self.next_caller.fetch_add(1, Ordering::Relaxed);
        let mut command = self.command_on(&self.hosts[turn % self.hosts.len()], args);
        command.envs(self.program.for_calls.iter().cloned());
        command
    }

    /// Calls the program and waits for it to end.
    pub fn run(&self, args: &[&str]) -> Result<Output, ProofError> {
        self.client_command(args).output().map_err(|source| self.cannot_start(source))
    }

    /// Whether a call on this host reaches the store.
    pub(super) fn is_connected(&self, host: &Host) -> bool {
        let called = self.command_on(host, ["-q", "store", "info"]).output();
        called.is_ok_and(|output| output.status.success())
    }

    /// Calls the program to prepare the trial; fails if the call fails. On a machine that is busy with something else the
    /// store can be late with its answer, which says nothing about the faults that are to come: the call is repeated.
    pub fn run_or_fail(&self, args: &[&str]) -> Result<String, ProofError> {
        let began = Instant::now();
        loop {
            let output = self.run(args)?;
            if output.status.success() {
                return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
            }
            if output.status.code() != Some(STORE_UNAVAILABLE) || began.elapsed() > PREPARATION_LIMIT {
                let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                return Err(ProofError::CannotBegin { call: args.join(" "), stderr });
            }
        }
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

    /// Starts a pool on the first host.
    pub fn start_pool(&self, pool: PoolPlan) -> Result<(), ProofError> {
        self.start_pool_on(&self.hosts[0], pool)
    }

    pub fn start_pool_on(&self, host: &Host, pool: PoolPlan) -> Result<(), ProofError> {
        let (count, concurrency) = (pool.count.to_string(), pool.concurrency.to_string());
        let parent = std::process::id().to_string();
        let tied = ["__tied", &parent, "--"];
        let args = ["-q", "worker", "run", "--count", &count, "--concurrency", &concurrency];
        let mut command = self.command_on(host, tied.iter().chain(&args));
        let path = self.folder().join("pools.log");
        let log = File::options().append(true).create(true).open(&path);
        let log = log.map_err(|source| ProofError::CannotMake { path, source })?;
        command.envs(self.program.for_workers.iter().cloned()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().map_err(|source| self.cannot_start(source))?;
        lock(&host.pools).push(child);
        Ok(())
    }

    /// The running supervisors that this sandbox started.
    pub fn supervisors(&self) -> Vec<Pid> {
        self.hosts.iter().flat_map(Host::supervisors).collect()
    }

    /// The live workers.
    pub fn workers(&self) -> Result<Vec<Worker>, StoreError> {
        let mut workers = live_workers(self.store())?;
        let without_power = lock(&self.without_power);
        workers.retain(|worker| !without_power.contains(&worker.id));
        lock(&self.had_workers)
            .extend(workers.iter().filter_map(|worker| worker.supervisor_pid.and_then(pid)));
        Ok(workers)
    }

    /// Whether every host has a worker.
    pub fn is_staffed(&self) -> bool {
        let workers = self.workers().unwrap_or_default();
        self.hosts.iter().all(|host| workers.iter().any(|worker| worker.folder.starts_with(&host.home)))
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

    /// Sends a signal to all processes of a host, also to those that are started meanwhile. Returns how many there were.
    pub fn signal_host(&self, host: &Host, signal: Signal) -> usize {
        let mut signalled = HashSet::new();
        loop {
            let mut new = processes_on(host, self.folder());
            new.retain(|pid| !signalled.contains(pid));
            if new.is_empty() {
                return signalled.len();
            }
            for pid in new {
                self.signal(pid, signal);
                signalled.insert(pid);
            }
        }
    }

    /// Ends all processes of a host at once and deletes its home, as if it had lost its power and its disk.
    pub fn cut_power(&self, host: &Host) -> Result<usize, ProofError> {
        // Stopped first, so that none of them sees another die.
        let count = self.signal_host(host, Signal::STOP);
        let its = self.workers().unwrap_or_default().into_iter();
        let its = its.filter(|worker| worker.folder.starts_with(&host.home)).map(|worker| worker.id);
        lock(&self.without_power).extend(its);
        self.wait(KILL_WAIT_LIMIT, || {
            let left = self.signal_host(host, Signal::KILL);
            host.supervisors();
            left == 0
        });
        cgroup::end_recorded(&host.home.join(liveness_lock::FOLDER));
        std::fs::remove_dir_all(&host.home).map_err(ProofError::system("delete the home of a host"))?;
        host.make_home()?;
        Ok(count)
    }

    /// Stops all processes of a host for this long. Returns how many there were.
    pub fn freeze(&self, host: &Host, span: Duration) -> usize {
        let from = since_boot();
        let count = self.signal_host(host, Signal::STOP);
        // This sleep is the duration of the fault, not synchronisation.
        std::thread::sleep(span);
        self.signal_host(host, Signal::CONT);
        let frozen = FrozenHost { host: host.name.clone(), from, to: since_boot() };
        lock(&self.disturbances).frozen.push(frozen);
        count
    }

    /// Ends about half of these sessions of the hosts. Returns how many.
    pub fn end_sessions(&self, sessions: server::Sessions) -> Result<u64, ProofError> {
        self.server.as_ref().map_or(Ok(0), |address| server::end_sessions(address, sessions))
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
        for host in &self.hosts {
            for child in lock(&host.pools).iter_mut() {
                // Pools are killed by their handles even if they were not found as processes of the folder.
                let _ = child.kill();
                let _ = child.wait();
            }
            cgroup::end_recorded(&host.home.join(liveness_lock::FOLDER));
        }
        if let Some(address) = &self.server {
            server::drop_schema(address);
        }
    }
}
