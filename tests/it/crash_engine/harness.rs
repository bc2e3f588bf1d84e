//! A home with a ledger, and pools of workers that can be killed. No process outlives its test.
//!
//! ```ignore
//! let crash_home = CrashHome::new();
//! crash_home.job("a", "first && hang");
//! let pool = crash_home.pool();
//! crash_home.runs("a", 1);
//! kill(pool.worker(&crash_home), Signal::KILL);
//! crash_home.finish();
//! assert_eq!(crash_home.story("a"), "completed: lost success");
//! ```

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::{self, File};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use domain::job::Job;
use domain::job::life::StateName;
use ops::worker::live::live_workers;
use rustix::process::{Pid, Signal};
use store::{JobFilter, Page, Store, Worker};
use sys::host::HOME_ID;

use super::ledger;
use super::ledger::{Line, LineKind};
use super::processes::{is_alive, kill, kill_all, pid, wait, wait_within};
use crate::cli::harness::{Call, Home, RunResult};

/// How long the recovery of a job may take: less than a lease, so that it cannot have waited for the lease to expire.
pub(crate) const RECOVERY: Duration = Duration::from_secs(15);

pub(crate) struct CrashHome {
    pub(crate) home: Home,
    pub(crate) store: Box<dyn Store>,
    pools: RefCell<Vec<Child>>,
    /// Variables for every process that is started here.
    variables: Vec<(String, OsString)>,
}

/// A supervisor and its workers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pool {
    pub(crate) supervisor: Pid,
}

impl CrashHome {
    pub(crate) fn new() -> Self {
        let home = Home::new();
        home.file("job.sh", include_str!("job.sh"));
        home.file("daemon.sh", include_str!("daemon.sh"));
        home.file("unlock.sh", include_str!("unlock.sh"));
        let store = home.store();
        Self { home, store, pools: RefCell::default(), variables: Vec::new() }
    }

    /// With short leases.
    pub(crate) fn with_short_leases() -> Self {
        let crash_home = Self::new();
        crash_home.set("heartbeat_interval", "300ms");
        crash_home.set("lease", "1s");
        crash_home
    }

    /// Adds variables to the environment of pools and calls, but not of jobs that `job` enqueues.
    pub(crate) fn under(mut self, variables: Vec<(String, OsString)>) -> Self {
        self.variables = variables;
        self
    }

    pub(crate) fn set(&self, key: &str, value: &str) {
        self.home.run(["config", "set", key, value]).ok();
    }

    // Jobs

    /// Enqueues a job that writes START, runs the script, and writes END.
    pub(crate) fn job(&self, id: &str, script: &str) {
        let command = format!(". ./job.sh; say START; {script}; say END");
        self.home.run(["enqueue", "-q", "--id", id, "--command", &command]).ok();
    }

    /// Enqueues `count` jobs, each with the script for its number.
    pub(crate) fn jobs(&self, count: usize, script: impl Fn(usize) -> &'static str) {
        (0..count).for_each(|at| self.job(&format!("j{at}"), script(at)));
    }

    /// The number of jobs that are processing.
    pub(crate) fn processing(&self) -> usize {
        self.list().iter().filter(|job| job.life.state.name() == StateName::Processing).count()
    }

    pub(crate) fn find(&self, id: &str) -> Job {
        self.store.find(&id.parse().expect("an id")).expect("the job is read").expect("the job is there")
    }

    pub(crate) fn state(&self, id: &str) -> StateName {
        self.find(id).life.state.name()
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        self.list().iter().map(|job| job.id.to_string()).collect()
    }

    pub(crate) fn unfinished(&self) -> Vec<String> {
        let ends = [StateName::Completed, StateName::Dead, StateName::Cancelled];
        let jobs = self.list().into_iter().filter(|job| !ends.contains(&job.life.state.name()));
        jobs.map(|job| job.id.to_string()).collect()
    }

    fn list(&self) -> Vec<Job> {
        let everything = Page { limit: usize::MAX, after: None };
        self.store.list(&JobFilter::default(), &everything).expect("the jobs are listed")
    }

    /// The story of a job: its state, and the outcome of each attempt.
    pub(crate) fn story(&self, id: &str) -> String {
        let job = self.home.show(id);
        let mut story = format!("{}:", job["state"].as_str().expect("text"));
        for row in job["history"].as_array().expect("a list") {
            story.push(' ');
            story.push_str(row["outcome"].as_str().unwrap_or("running"));
        }
        story
    }

    /// The same without released attempts: a prefetched job may be released before it starts.
    pub(crate) fn story_of_started(&self, id: &str) -> String {
        self.story(id).replace(" released", "")
    }

    // The ledger

    pub(crate) fn ledger(&self) -> Vec<Line> {
        ledger::read(&self.home.folder().join("ledger"))
    }

    pub(crate) fn has(&self, kind: LineKind, id: &str, attempt: u64) -> bool {
        self.ledger().iter().any(|line| line.kind == kind && line.job == id && line.attempt == attempt)
    }

    /// Waits until this attempt and these background processes have started. Its pid is on record by then.
    pub(crate) fn runs(&self, id: &str, attempt: u64, escapees: &[&str]) {
        wait(&format!("attempt {attempt} of {id} starts"), || self.has(LineKind::Start, id, attempt));
        for name in escapees {
            let ticks = |line: &Line| line.who == *name && line.job == id && line.attempt == attempt;
            wait(&format!("{name} of {id} starts"), || self.ledger().iter().any(ticks));
        }
        assert!(self.is_on_record(id, attempt), "attempt {attempt} of {id} is not on record");
    }

    fn is_on_record(&self, id: &str, attempt: u64) -> bool {
        let folder = self.home.path().join("workers");
        let begins = format!("{id} {attempt} ");
        let files = self.worker_files().into_iter().map(|name| folder.join(name));
        let slots = files.filter(|path| path.extension().is_some_and(|extension| extension == "slots"));
        let mut records = slots.flat_map(fs::read);
        records.any(|bytes| bytes.chunks(256).any(|record| record.starts_with(begins.as_bytes())))
    }

    /// Whether the shell of this attempt is alive.
    pub(crate) fn has_shell(&self, id: &str, attempt: u64) -> bool {
        let lines = self.ledger();
        let start = lines.iter().find(|l| l.kind == LineKind::Start && l.job == id && l.attempt == attempt);
        start.is_some_and(|line| is_alive(pid(line.who.parse().expect("a pid"))))
    }

    /// Waits until no process of this home is alive.
    pub(crate) fn wait_until_no_process_is_left(&self) {
        wait("every process has ended", || self.living_processes().is_empty());
    }

    /// Creates a file that jobs wait for.
    pub(crate) fn put(&self, name: &str) {
        self.home.file(name, "");
    }

    // Pools

    /// One worker with one slot.
    pub(crate) fn pool(&self) -> Pool {
        self.pool_of(&[])
    }

    /// Starts a pool with these arguments, and waits until it is up.
    pub(crate) fn pool_of(&self, args: &[&str]) -> Pool {
        let pool = self.start_pool(args, None);
        let count = args
            .iter()
            .position(|arg| *arg == "--count")
            .map_or(1, |at| args[at + 1].parse().expect("a number"));
        wait("a pool is up", || self.workers_of(pool).len() == count);
        pool
    }

    /// A pool in which a process dies once at this fail-point.
    pub(crate) fn pool_dying_at(&self, point: &str, args: &[&str]) -> Pool {
        let armed = format!("{point}={}", self.home.folder().join("died").display());
        self.start_pool(args, Some(&armed))
    }

    pub(crate) fn has_died(&self) -> bool {
        self.home.folder().join("died").exists()
    }

    pub(crate) fn start_pool(&self, args: &[&str], armed: Option<&str>) -> Pool {
        let mut call =
            self.call(&["worker", "run"].into_iter().chain(args.iter().copied()).collect::<Vec<_>>());
        if let Some(armed) = armed {
            call = call.env("QUEUECTL_FAILPOINT", armed);
        }
        self.spawn_pool(call.into_command())
    }

    pub(crate) fn spawn_pool(&self, mut command: Command) -> Pool {
        let log = File::create(self.home.folder().join("pool.log")).expect("a log");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().expect("the program starts");
        let pool = Pool { supervisor: pid(child.id()) };
        self.pools.borrow_mut().push(child);
        pool
    }

    /// A call of the program on this home. The environment names the home, so that all processes can be found.
    pub(crate) fn call(&self, args: &[&str]) -> Call {
        let variables = self.variables.iter().cloned();
        self.home.call_without_home(args).env("QUEUECTL_HOME", self.home.path()).envs(variables)
    }

    pub(crate) fn run(&self, args: &[&str]) -> RunResult {
        self.call(args).run()
    }

    /// The workers that are alive.
    pub(crate) fn workers(&self) -> Vec<Worker> {
        live_workers(self.store.as_ref()).expect("the workers are listed")
    }

    pub(crate) fn workers_of(&self, pool: Pool) -> Vec<Pid> {
        let of_pool = |worker: &Worker| worker.supervisor_pid.map(pid) == Some(pool.supervisor);
        self.workers().into_iter().filter(of_pool).map(|worker| pid(worker.pid)).collect()
    }

    pub(crate) fn states_of_workers(&self) -> Vec<&'static str> {
        self.workers().into_iter().map(|worker| worker.state.name()).collect()
    }

    pub(crate) fn worker_that_runs(&self, id: &str) -> Pid {
        let name = self.home.show(id)["worker_id"].as_str().expect("it runs").to_owned();
        let worker = self.workers().into_iter().find(|worker| worker.id.as_str() == name);
        pid(worker.expect("it is alive").pid)
    }

    /// The pool that was started first.
    pub(crate) fn first_pool(&self) -> Pool {
        Pool { supervisor: pid(self.pools.borrow()[0].id()) }
    }

    /// The only worker of this pool.
    pub(crate) fn worker_of(&self, pool: Pool) -> Pid {
        let workers = self.workers_of(pool);
        assert_eq!(workers.len(), 1, "a pool with one worker");
        workers[0]
    }

    /// Waits for the end of a supervisor; returns its exit status.
    pub(crate) fn ending_of(&self, pool: Pool) -> ExitStatus {
        let mut pools = self.pools.borrow_mut();
        let at =
            pools.iter().position(|child| pid(child.id()) == pool.supervisor).expect("a pool of this test");
        let mut child = pools.swap_remove(at);
        drop(pools);
        let mut ended = None;
        wait("the supervisor ends", || {
            ended = child.try_wait().expect("a child of ours");
            ended.is_some()
        });
        ended.expect("it was waited for")
    }

    /// Waits until every pool has ended by itself: a signal in its last moment would kill it.
    pub(crate) fn wait_for_pools(&self) {
        wait("every pool ends", || {
            let mut pools = self.pools.borrow_mut();
            pools.iter_mut().all(|child| child.try_wait().expect("a child of ours").is_some())
        });
    }

    /// Stops every pool after it has finished its running jobs.
    pub(crate) fn stop_pools(&self) {
        for mut child in self.pools.take() {
            if child.try_wait().expect("a child of ours").is_some() {
                continue;
            }
            kill(pid(child.id()), Signal::TERM);
            let mut ended = None;
            wait("a pool ends", || {
                ended = child.try_wait().expect("a child of ours");
                ended.is_some()
            });
            assert!(ended.is_some_and(|status| status.success()), "a pool exits successfully: {ended:?}");
        }
    }

    pub(crate) fn worker_files(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.home.path().join("workers")) else {
            return Vec::new();
        };
        let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        names.filter(|name| name != HOME_ID).collect()
    }

    // Time

    /// Causes a crash, and waits until the job's attempt is reaped, within [`RECOVERY`].
    #[track_caller]
    pub(crate) fn recovers(&self, id: &str, crash: impl FnOnce()) {
        let attempt = self.find(id).life.attempts;
        let began = Instant::now();
        crash();
        wait_within(RECOVERY, &format!("{id} is reaped"), || {
            let life = self.find(id).life;
            life.attempts > attempt || life.state.name() != StateName::Processing
        });
        println!("{id} was reaped after {:?}", began.elapsed());
    }

    /// Waits until this attempt is lost, no matter how long its lease is.
    pub(crate) fn loses(&self, id: &str, attempt: usize) {
        let took = wait(&format!("attempt {attempt} of {id} is lost"), || {
            self.story(id).split(' ').nth(attempt) == Some("lost")
        });
        println!("attempt {attempt} of {id} was lost after {took:?}");
    }

    /// The journal of the workers.
    pub(crate) fn journal(&self) -> String {
        fs::read_to_string(self.home.path().join("worker.log")).unwrap_or_default()
    }

    /// The standard error of the last pool.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.home.folder().join("pool.log")).unwrap_or_default()
    }

    // Processes

    /// Kills a supervisor and its workers as if at the same moment: none notices the death of another.
    pub(crate) fn kill_pool(&self, pool: Pool) {
        let workers = self.workers_of(pool);
        kill(pool.supervisor, Signal::STOP);
        kill_all(&workers, Signal::KILL);
        kill(pool.supervisor, Signal::KILL);
    }

    fn print_diagnostics(&self) {
        for name in ["home/worker.log", "pool.log"] {
            let text = fs::read_to_string(self.home.folder().join(name)).unwrap_or_default();
            eprintln!("== {name}\n{text}");
        }
        let lines = self.ledger();
        let events = lines.iter().filter(|line| line.kind != LineKind::Tick);
        eprintln!("== ledger\n{:#?}", events.collect::<Vec<_>>());
    }
}

impl Drop for CrashHome {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.print_diagnostics();
        }
        self.kill_living_processes();
        for mut child in self.pools.take() {
            let _ = child.wait();
        }
    }
}
