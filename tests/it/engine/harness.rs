//! Workers that run real commands on a home, and waiting for the results.
//!
//! ```ignore
//! let home = Home::new();
//! home.enqueue("a", "echo hello > greeting");
//! Pool::drain(&home, "--concurrency 4");
//! assert_eq!(home.state_of("a"), "completed");
//! ```
//!
//! Commands run in the folder of the home. No process outlives its test: dropping the pool kills every process of the
//! home.

use std::fs::{self, File};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use domain::values::timestamp::Timestamp;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use store::{Worker, WorkerState};
use sys::poll::Poll;
use sys::process;

pub(crate) use crate::cli::harness::Home;
pub(crate) use crate::cli::harness::background::{STEP_TIMEOUT, end_of};
pub(crate) use crate::cli::harness::working_home::{STATE_POLL_INTERVAL, wait_until};

/// A command that writes its pid to `running`, and runs until the test creates the file `go`.
pub(crate) const UNTIL_GO: &str = "echo $$ > running; until [ -e go ]; do sleep 0.02; done";

/// Workers on a home. A home may have more than one pool.
pub(crate) struct Pool<'a> {
    home: &'a Home,
    supervisor: Option<Child>,
    /// It ended by itself, so there is nothing to kill.
    has_ended: bool,
}

impl<'a> Pool<'a> {
    /// Starts workers in the foreground with these additional arguments, and waits until they are up.
    #[track_caller]
    pub(crate) fn run(home: &'a Home, args: &str) -> Self {
        let pool = Self::spawn(home, home.call(words("worker run", args)).interruptible().into_command());
        pool.wait_until_up(count(args));
        pool
    }

    /// Starts one worker in the foreground by this command, and waits until it is up.
    #[track_caller]
    pub(crate) fn up(home: &'a Home, command: Command) -> Self {
        let pool = Self::spawn(home, command);
        pool.wait_until_up(1);
        pool
    }

    #[track_caller]
    fn wait_until_up(&self, count: usize) {
        let (store, supervisor) = (self.home.store(), Some(self.supervisor_pid()));
        let are_up = || {
            let workers = store.workers().expect("the workers are listed");
            workers.iter().filter(|worker| worker.supervisor_pid == supervisor).count() == count
        };
        let mut poll = Poll::every(STATE_POLL_INTERVAL).within(STEP_TIMEOUT);
        while !are_up() {
            let said = || fs::read_to_string(self.home.folder().join("said")).unwrap_or_default();
            assert!(poll.sleep(), "timed out waiting until the workers are up: {}", said());
        }
    }

    /// Starts workers in the foreground without waiting for them.
    #[track_caller]
    pub(crate) fn spawn(home: &'a Home, mut command: Command) -> Self {
        let said = File::options().append(true).create(true).open(home.folder().join("said"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said.expect("a file"));
        Self { home, supervisor: Some(command.spawn().expect("the program starts")), has_ended: false }
    }

    /// Runs workers until nothing is left to do.
    #[track_caller]
    pub(crate) fn drain(home: &'a Home, args: &str) {
        let command = home.call(words("worker run --until-empty", args)).interruptible().into_command();
        Self::spawn(home, command).ends_well();
    }

    /// Starts workers in the foreground that do not poll: they act only on a bell or a timer. So a test that passes
    /// proves that they act promptly, without measuring time on a slow machine.
    #[track_caller]
    pub(crate) fn run_without_polling(home: &'a Home, args: &str) -> Self {
        Self::make_heartbeats_rare(home);
        let pool = Self::spawn(home, without_polling(home, "worker run", args));
        pool.wait_until_up(count(args));
        pool
    }

    /// The same, until nothing is left to do.
    #[track_caller]
    pub(crate) fn drain_without_polling(home: &'a Home, args: &str) {
        Self::make_heartbeats_rare(home);
        Self::spawn(home, without_polling(home, "worker run --until-empty", args)).ends_well();
    }

    /// Heartbeats must be rare too, because they also bring orders.
    fn make_heartbeats_rare(home: &Home) {
        home.set("lease", "1h");
        home.set("heartbeat_interval", "10m");
    }

    /// Starts workers in the background.
    #[track_caller]
    pub(crate) fn start(home: &'a Home, args: &str) -> Self {
        let pool = Self::of(home);
        home.run(words("worker start", args)).ok();
        pool
    }

    /// All workers that this home has or will have.
    pub(crate) fn of(home: &'a Home) -> Self {
        Self { home, supervisor: None, has_ended: false }
    }

    pub(crate) fn supervisor_pid(&self) -> u32 {
        self.supervisor.as_ref().expect("it runs in the foreground").id()
    }

    /// Sends a signal to the supervisor.
    pub(crate) fn signal(&self, signal: Signal) {
        send(self.supervisor_pid(), signal);
    }

    pub(crate) fn is_up(&mut self) -> bool {
        let supervisor = self.supervisor.as_mut().expect("it runs in the foreground");
        supervisor.try_wait().expect("it is a child").is_none()
    }

    #[track_caller]
    pub(crate) fn end(mut self) -> ExitStatus {
        let status = end_of(self.supervisor.take().expect("it runs in the foreground"));
        self.has_ended = true;
        status
    }

    #[track_caller]
    pub(crate) fn ends_well(self) {
        let home = self.home;
        let status = self.end();
        assert!(status.success(), "{status}: {}", home.journal());
    }
}

impl Drop for Pool<'_> {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        kill_all_of(self.home);
        if let Some(mut supervisor) = self.supervisor.take() {
            let _ = supervisor.kill();
            let _ = supervisor.wait();
        }
    }
}

/// Kills every process that names this home, supervisors first, and all of their descendants.
fn kill_all_of(home: &Home) {
    let path = home.path().into_os_string().into_encoded_bytes();
    let names_home = |pid: &Pid| {
        let call = fs::read(format!("/proc/{}/cmdline", pid.as_raw_pid())).unwrap_or_default();
        contains(&call, &path) || contains(&process::environment(*pid), &path)
    };
    loop {
        let doomed: Vec<Pid> = process::all().unwrap_or_default().into_iter().filter(names_home).collect();
        let doomed = with_descendants(doomed);
        if doomed.is_empty() {
            return;
        }
        for pid in doomed {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Parents first, so that no killed worker is replaced.
fn with_descendants(mut pids: Vec<Pid>) -> Vec<Pid> {
    let parents: Vec<(Pid, i32)> = process::all()
        .unwrap_or_default()
        .into_iter()
        .filter_map(|pid| Some((pid, process::stat(pid).filter(|stat| !stat.is_zombie)?.parent)))
        .collect();
    pids.retain(|pid| parents.iter().any(|(living, _)| living == pid));
    let mut at = 0;
    while let Some(parent) = pids.get(at).map(|pid| pid.as_raw_pid()) {
        let children = parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid);
        let new: Vec<Pid> = children.filter(|pid| !pids.contains(pid)).collect();
        pids.extend(new);
        at += 1;
    }
    pids
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// How many workers these arguments ask for.
fn count(args: &str) -> usize {
    let count = args.split_whitespace().skip_while(|word| *word != "--count").nth(1);
    count.map_or(1, |count| count.parse().expect("a number"))
}

fn without_polling(home: &Home, verb: &str, args: &str) -> Command {
    home.call(words(verb, args)).env("QUEUECTL_WITHOUT", "polling").interruptible().into_command()
}

fn words<'a>(verb: &'a str, args: &'a str) -> impl Iterator<Item = &'a str> {
    verb.split_whitespace().chain(args.split_whitespace())
}

// Actions on a home

impl Home {
    /// A job without retries.
    #[track_caller]
    pub(crate) fn enqueue(&self, id: &str, command: &str) {
        self.enqueue_with(id, command, "--max-retries 0");
    }

    #[track_caller]
    pub(crate) fn enqueue_with(&self, id: &str, command: &str, flags: &str) {
        let call = ["enqueue", "-q", "--id", id, "--command", command];
        self.run(call.into_iter().chain(flags.split_whitespace())).ok();
    }

    /// Runs one command to its end; returns the job as `show --json` prints it.
    #[track_caller]
    pub(crate) fn ran(&self, command: &str) -> Value {
        self.enqueue("it", command);
        Pool::drain(self, "");
        self.show("it")
    }

    /// A home in which a command exceeded its timeout of at least 400 ms. It must have written this file before that;
    /// if the machine is too slow, it is tried again with a longer timeout.
    #[track_caller]
    pub(crate) fn after_timeout(settings: &[(&str, &str)], command: &str, file: &str) -> Self {
        for timeout in ["400ms", "4s", "20s"] {
            let home = Self::new();
            for (key, value) in settings {
                home.set(key, value);
            }
            home.enqueue_with("it", command, &format!("--max-retries 0 --timeout {timeout}"));
            Pool::drain(&home, "");
            if home.read(file).ends_with('\n') {
                return home;
            }
        }
        panic!("`{file}` was never written: {command}");
    }

    #[track_caller]
    pub(crate) fn set(&self, key: &str, value: &str) {
        self.run(["config", "set", key, value]).ok();
    }

    /// Waits until the job is in this state; returns it as `show --json` prints it.
    #[track_caller]
    pub(crate) fn wait_for(&self, id: &str, state: &str) -> Value {
        let (store, job) = (self.store(), id.parse().expect("an id"));
        let began = Instant::now();
        loop {
            let found = store.find(&job).expect("the job is read").expect("the job is there");
            if found.life.state.name().name() == state {
                return self.show(id);
            }
            assert!(began.elapsed() < STEP_TIMEOUT, "`{id}` is not {state}: {}", self.show(id));
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits until a command has written a whole line to this file; returns its contents.
    #[track_caller]
    pub(crate) fn wait_for_file(&self, name: &str) -> String {
        wait_until(&format!("`{name}` is written"), || self.read(name).ends_with('\n'));
        self.read(name).trim().to_owned()
    }

    /// The pid that a command writes to this file.
    #[track_caller]
    pub(crate) fn wait_for_pid(&self, name: &str) -> u32 {
        self.wait_for_file(name).parse().expect("a pid")
    }

    /// The contents of a file in the folder; empty if it does not exist.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder().join(name)).unwrap_or_default()
    }

    /// The output of a command, byte for byte.
    #[track_caller]
    pub(crate) fn printed(&self, id: &str) -> Vec<u8> {
        let output = self.call(["logs", id]).into_command().output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// The output of a command, as text.
    #[track_caller]
    pub(crate) fn printed_text(&self, id: &str) -> String {
        String::from_utf8(self.printed(id)).expect("it is text")
    }

    /// The workers that have not stopped.
    pub(crate) fn workers(&self) -> Vec<Worker> {
        self.store().workers().expect("the workers are listed")
    }

    /// Waits until all workers drain or have ended.
    #[track_caller]
    pub(crate) fn wait_until_draining(&self) {
        let store = self.store();
        let drains = |worker: &Worker| worker.state != WorkerState::Running;
        wait_until("the workers drain", || store.workers().expect("workers").iter().all(drains));
    }

    pub(crate) fn journal(&self) -> String {
        fs::read_to_string(self.path().join("worker.log")).unwrap_or_default()
    }
}

// Waiting

/// The pause between two checks.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Whether a process exists and is not a zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    process::stat(to_pid(pid)).is_some_and(|stat| !stat.is_zombie)
}

pub(crate) fn send(pid: u32, signal: Signal) {
    kill_process(to_pid(pid), signal).expect("the process can be signalled");
}

fn to_pid(pid: u32) -> Pid {
    Pid::from_raw(pid.cast_signed()).expect("a pid")
}

// Reading JSON output

/// The attempts of a job.
#[track_caller]
pub(crate) fn history(job: &Value) -> &[Value] {
    job["history"].as_array().expect("a history")
}

/// The milliseconds between two times.
#[track_caller]
pub(crate) fn millis_between(earlier: &Value, later: &Value) -> i64 {
    let time = |value: &Value| {
        let time: Timestamp = value.as_str().expect("a time").parse().expect("a time");
        time.as_millis()
    };
    time(later) - time(earlier)
}
