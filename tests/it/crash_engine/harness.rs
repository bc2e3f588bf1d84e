//! A home with a ledger, and pools of workers that can be killed. Nothing of it outlives its test.
//!
//! ```ignore
//! let ground = Ground::new();
//! ground.job("a", "first && hang");
//! let pool = ground.pool();
//! ground.runs("a", 1);
//! kill(pool.worker(&ground), Signal::KILL);
//! ground.finish();
//! assert_eq!(ground.story("a"), "completed: lost success");
//! ```

use std::cell::RefCell;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use queuectl::domain::job::Job;
use queuectl::domain::life::{State, StateName};
use queuectl::ops::alive::live_workers;
use queuectl::store::sqlite::SqliteStore;
use queuectl::store::{JobFilter, Page, Store, Worker};
use queuectl::sys::process;
use rustix::process::{Pid, Signal};

use super::ledger::{self, Line, What};
use super::processes::{LOOK, PATIENCE, is_alive, kill, kill_all, pid, wait, wait_within};
use crate::cli::harness::{Call, Home, Ran};

/// How long it may take to recover a job.
pub(super) const RECOVERY: Duration = Duration::from_secs(3);

pub(super) struct Ground {
    pub(super) home: Home,
    pub(super) store: SqliteStore,
    pools: RefCell<Vec<Child>>,
}

/// A guardian and its workers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pool {
    pub(super) guardian: Pid,
}

impl Ground {
    pub(super) fn new() -> Self {
        let home = Home::new();
        home.file("job.sh", include_str!("job.sh"));
        home.file("daemon.sh", include_str!("daemon.sh"));
        home.file("unlock.sh", include_str!("unlock.sh"));
        let store = home.store();
        Self { home, store, pools: RefCell::default() }
    }

    /// With leases that run out soon.
    pub(super) fn with_short_leases() -> Self {
        let ground = Self::new();
        ground.set("heartbeat_interval", "300ms");
        ground.set("lease", "1s");
        ground
    }

    pub(super) fn set(&self, key: &str, value: &str) {
        self.home.run(["config", "set", key, value]).ok();
    }

    // Jobs

    /// A job that writes START, does this, and writes END.
    pub(super) fn job(&self, id: &str, script: &str) {
        let command = format!(". ./job.sh; say START; {script}; say END");
        self.home.run(["enqueue", "-q", "--id", id, "--command", &command]).ok();
    }

    /// So many of them, each with the script for its number.
    pub(super) fn jobs(&self, count: usize, script: impl Fn(usize) -> &'static str) {
        (0..count).for_each(|at| self.job(&format!("j{at}"), script(at)));
    }

    /// What runs, each attempt with its worker.
    pub(super) fn processing(&self) -> Vec<(String, String)> {
        let held = |job: Job| match job.life.state {
            State::Processing(held) => {
                Some((format!("{} {}", job.id, job.life.attempts), held.worker.to_string()))
            }
            State::Pending { .. }
            | State::Completed { .. }
            | State::Failed
            | State::Dead { .. }
            | State::Cancelled { .. } => None,
        };
        self.list().into_iter().filter_map(held).collect()
    }

    pub(super) fn find(&self, id: &str) -> Job {
        self.store.find(&id.parse().expect("an id")).expect("the job is read").expect("the job is there")
    }

    pub(super) fn state(&self, id: &str) -> StateName {
        self.find(id).life.state.name()
    }

    pub(super) fn ids(&self) -> Vec<String> {
        self.list().iter().map(|job| job.id.to_string()).collect()
    }

    pub(super) fn unfinished(&self) -> Vec<String> {
        let ends = [StateName::Completed, StateName::Dead, StateName::Cancelled];
        let jobs = self.list().into_iter().filter(|job| !ends.contains(&job.life.state.name()));
        jobs.map(|job| job.id.to_string()).collect()
    }

    fn list(&self) -> Vec<Job> {
        let everything = Page { limit: usize::MAX, after: None };
        self.store.list(&JobFilter::default(), &everything).expect("the jobs are listed")
    }

    /// What became of a job: its state, and how each attempt ended.
    pub(super) fn story(&self, id: &str) -> String {
        let job = self.home.show(id);
        let mut story = format!("{}:", job["state"].as_str().expect("text"));
        for row in job["history"].as_array().expect("a list") {
            story.push(' ');
            story.push_str(row["outcome"].as_str().unwrap_or("running"));
        }
        story
    }

    // The ledger

    pub(super) fn ledger(&self) -> Vec<Line> {
        ledger::read(&self.home.folder().join("ledger"))
    }

    pub(super) fn has(&self, what: What, id: &str, attempt: u64) -> bool {
        self.ledger().iter().any(|line| line.what == what && line.job == id && line.attempt == attempt)
    }

    /// Waits until this attempt has started, and all that it starts in turn, and its worker has written down its pid.
    pub(super) fn runs(&self, id: &str, attempt: u64, escapees: &[&str]) {
        self.runs_unrecorded(id, attempt, escapees);
        wait(&format!("attempt {attempt} of {id} is on record"), || self.is_on_record(id, attempt));
    }

    fn is_on_record(&self, id: &str, attempt: u64) -> bool {
        let folder = self.home.path().join("workers");
        let begins = format!("{id} {attempt} ");
        let files = self.worker_files().into_iter().map(|name| folder.join(name));
        let slots = files.filter(|path| path.extension().is_some_and(|extension| extension == "slots"));
        let mut records = slots.flat_map(fs::read);
        records.any(|bytes| bytes.chunks(256).any(|record| record.starts_with(begins.as_bytes())))
    }

    /// The same, whatever its worker knows.
    pub(super) fn runs_unrecorded(&self, id: &str, attempt: u64, escapees: &[&str]) {
        wait(&format!("attempt {attempt} of {id} starts"), || self.has(What::Start, id, attempt));
        for name in escapees {
            let ticks = |line: &Line| line.who == *name && line.job == id && line.attempt == attempt;
            wait(&format!("{name} of {id} starts"), || self.ledger().iter().any(ticks));
        }
    }

    /// Whether the shell of this attempt lives.
    pub(super) fn has_shell(&self, id: &str, attempt: u64) -> bool {
        let lines = self.ledger();
        let start = lines.iter().find(|l| l.what == What::Start && l.job == id && l.attempt == attempt);
        start.is_some_and(|line| is_alive(pid(line.who.parse().expect("a pid"))))
    }

    /// Waits until nothing of this home is alive.
    pub(super) fn is_deserted(&self) {
        wait("every process has ended", || self.leftovers().is_empty());
    }

    /// Puts a file where jobs wait for it.
    pub(super) fn put(&self, name: &str) {
        self.home.file(name, "");
    }

    // Pools

    /// One worker with one slot.
    pub(super) fn pool(&self) -> Pool {
        self.pool_of(&[])
    }

    /// A pool with these arguments, which is up.
    pub(super) fn pool_of(&self, args: &[&str]) -> Pool {
        let pool = self.start_pool(args, None);
        let count = args
            .iter()
            .position(|arg| *arg == "--count")
            .map_or(1, |at| args[at + 1].parse().expect("a number"));
        wait("a pool is up", || self.workers_of(pool).len() == count);
        pool
    }

    /// A pool that dies at a fail-point; where that is a worker's, it is one that dies once.
    pub(super) fn pool_dying_at(&self, place: &str, args: &[&str]) -> Pool {
        let armed = format!("{place}={}", self.home.folder().join("died").display());
        self.start_pool(args, Some(&armed))
    }

    pub(super) fn has_died(&self) -> bool {
        self.home.folder().join("died").exists()
    }

    pub(super) fn start_pool(&self, args: &[&str], armed: Option<&str>) -> Pool {
        let mut call =
            self.call(&["worker", "run"].into_iter().chain(args.iter().copied()).collect::<Vec<_>>());
        if let Some(armed) = armed {
            call = call.env("QUEUECTL_FAILPOINT", armed);
        }
        let log = File::create(self.home.folder().join("pool.log")).expect("a log");
        let mut command = call.into_command();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().expect("the program starts");
        let pool = Pool { guardian: pid(child.id()) };
        self.pools.borrow_mut().push(child);
        pool
    }

    /// The program on this home, which is named in the environment: so whatever it starts can be found.
    pub(super) fn call(&self, args: &[&str]) -> Call {
        self.home.call_without_home(args).env("QUEUECTL_HOME", self.home.path())
    }

    pub(super) fn run(&self, args: &[&str]) -> Ran {
        self.call(args).run()
    }

    /// The workers that are alive.
    pub(super) fn workers(&self) -> Vec<Worker> {
        live_workers(&self.store).expect("the workers are listed")
    }

    pub(super) fn workers_of(&self, pool: Pool) -> Vec<Pid> {
        let of_pool = |worker: &Worker| worker.guardian_pid.map(pid) == Some(pool.guardian);
        self.workers().into_iter().filter(of_pool).map(|worker| pid(worker.pid)).collect()
    }

    pub(super) fn states_of_workers(&self) -> Vec<&'static str> {
        self.workers().into_iter().map(|worker| worker.state.name()).collect()
    }

    pub(super) fn worker_that_runs(&self, id: &str) -> Pid {
        let name = self.home.show(id)["worker_id"].as_str().expect("it runs").to_owned();
        let worker = self.workers().into_iter().find(|worker| worker.id.as_str() == name);
        pid(worker.expect("it is alive").pid)
    }

    /// The one that was started first.
    pub(super) fn first_pool(&self) -> Pool {
        Pool { guardian: pid(self.pools.borrow()[0].id()) }
    }

    /// The one worker of this pool.
    pub(super) fn worker_of(&self, pool: Pool) -> Pid {
        let workers = self.workers_of(pool);
        assert_eq!(workers.len(), 1, "a pool with one worker");
        workers[0]
    }

    /// How a guardian ended, or will have in a moment.
    pub(super) fn ending_of(&self, pool: Pool) -> ExitStatus {
        let mut pools = self.pools.borrow_mut();
        let at =
            pools.iter().position(|child| pid(child.id()) == pool.guardian).expect("a pool of this test");
        let mut child = pools.swap_remove(at);
        drop(pools);
        let mut ended = None;
        wait("the guardian ends", || {
            ended = child.try_wait().expect("a child of ours");
            ended.is_some()
        });
        ended.expect("it was waited for")
    }

    /// Lets every pool finish what it runs and end.
    pub(super) fn stop_pools(&self) {
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
            assert!(ended.is_some_and(|status| status.success()), "a pool ends well: {ended:?}");
        }
    }

    pub(super) fn worker_files(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.home.path().join("workers")) else {
            return Vec::new();
        };
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }

    // Time

    /// Lets something crash, and waits until the job's attempt is taken back; it should be much quicker.
    #[track_caller]
    pub(super) fn recovers(&self, id: &str, crash: impl FnOnce()) {
        let attempt = self.find(id).life.attempts;
        let began = Instant::now();
        crash();
        wait_within(RECOVERY, &format!("{id} is given back"), || {
            let life = self.find(id).life;
            life.attempts > attempt || life.state.name() != StateName::Processing
        });
        println!("{id} was given back after {:?}", began.elapsed());
    }

    /// Waits until this attempt was taken from its worker, however long its lease.
    pub(super) fn loses(&self, id: &str, attempt: usize) {
        let took = wait(&format!("attempt {attempt} of {id} is lost"), || {
            self.story(id).split(' ').nth(attempt) == Some("lost")
        });
        println!("attempt {attempt} of {id} was lost after {took:?}");
    }

    /// What the workers wrote down.
    pub(super) fn journal(&self) -> String {
        fs::read_to_string(self.home.path().join("worker.log")).unwrap_or_default()
    }

    // Processes

    /// Kills a guardian and its workers as if in one moment: none sees another die.
    pub(super) fn kill_whole(&self, pool: Pool) {
        let workers = self.workers_of(pool);
        kill(pool.guardian, Signal::STOP);
        kill_all(&workers, Signal::KILL);
        kill(pool.guardian, Signal::KILL);
    }

    /// Every living process of this home: started on it, in its folder, or with its name among its arguments.
    pub(super) fn leftovers(&self) -> Vec<Pid> {
        let mut found = process::all().expect("a list of processes");
        found.retain(|pid| *pid != rustix::process::getpid() && self.belongs(*pid));
        found
    }

    fn belongs(&self, pid: Pid) -> bool {
        let is_alive = process::stat(pid).is_some_and(|stat| !stat.is_zombie);
        let file = |name: &str| PathBuf::from(format!("/proc/{}/{name}", pid.as_raw_pid()));
        let folder = self.home.folder();
        let name = folder.as_os_str().as_bytes();
        let names = |bytes: &[u8]| bytes.windows(name.len()).any(|part| part == name);
        is_alive
            && (names(&process::environment(pid))
                || fs::read(file("cmdline")).is_ok_and(|bytes| names(&bytes))
                || fs::read_link(file("cwd")).is_ok_and(|cwd| cwd.starts_with(folder)))
    }

    fn kill_leftovers(&self) {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let left = self.leftovers();
            if left.is_empty() {
                return;
            }
            kill_all(&left, Signal::KILL);
            std::thread::sleep(LOOK);
        }
    }

    fn tell_what_happened(&self) {
        for name in ["home/worker.log", "pool.log"] {
            let text = fs::read_to_string(self.home.folder().join(name)).unwrap_or_default();
            eprintln!("== {name}\n{text}");
        }
        let lines = self.ledger();
        let events = lines.iter().filter(|line| line.what != What::Tick);
        eprintln!("== ledger\n{:#?}", events.collect::<Vec<_>>());
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.tell_what_happened();
        }
        self.kill_leftovers();
        for mut child in self.pools.take() {
            let _ = child.wait();
        }
    }
}
