//! The queue of a benchmark: a home inside that of the user, on the same disk, or a schema in the same database.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde::Deserialize;

use super::failed;
use super::measure::{SERVED, START_TIMEOUT};
use crate::failure::Failure;
use ops::home::location::{HOME_VARIABLE, Location, STORE_VARIABLE, StoreAddress};
use ops::home::open::{StoreKind, kind};
use sys::signal::interrupts::timespec;

/// How long until a pool that has completed nothing yet is looked at again.
const NEXT_LOOK: Duration = Duration::from_millis(100);

pub(super) struct Scratch {
    program: PathBuf,
    home: PathBuf,
    store: StoreAddress,
}

impl Scratch {
    pub(super) fn create(location: &Location) -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(|error| failed("find this program", error))?;
        // The home may not exist yet, but a directory above it does.
        let above = location.home.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
        let name = format!("bench-{}-{:08x}", std::process::id(), fastrand::u32(..));
        let home = above.join(name);
        // Fails if it exists: `remove` deletes only what was created here.
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&home)
            .map_err(|error| failed(&format!("create `{}`", home.display()), error))?;
        let store = own_store(location, &home);
        Ok(Self { program, home, store })
    }

    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    pub(super) fn kind(&self) -> &'static str {
        let StoreKind { name, .. } = kind(&self.store);
        name
    }

    /// This program on this queue.
    pub(super) fn queuectl(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--home").arg(&self.home).args(arguments).current_dir(&self.home);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.env_remove(HOME_VARIABLE).env_remove(STORE_VARIABLE);
        match &self.store {
            StoreAddress::Sqlite(_) => {}
            // In the environment, which other users cannot read.
            StoreAddress::Postgres(address) => {
                command.env(STORE_VARIABLE, address.with_password());
            }
        }
        command
    }

    /// Runs this program to its end.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<(), Failure> {
        let what = || format!("run `queuectl {}`", arguments.join(" "));
        let output = self.queuectl(arguments).output().map_err(|error| failed(&what(), error))?;
        if output.status.success() {
            return Ok(());
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        let line = errors.lines().next().unwrap_or_default();
        Err(failed(&what(), line.strip_prefix("error: ").unwrap_or(line)))
    }

    /// Runs workers until this queue is empty or this time is over, but at least until a job has completed.
    pub(super) fn drain(&self, queue: &str, slots: u32, lasts: Duration) -> Result<(), Failure> {
        let slots = slots.to_string();
        let mut command =
            self.queuectl(&["worker", "run", "-q", "--until-empty", "--queue", queue, "-j", &slots]);
        command.stderr(Stdio::null());
        let began = Instant::now();
        let worker = command.spawn().map(Worker).map_err(|error| failed("start a worker", error))?;
        let mut wait = lasts;
        while !worker.ends_within(wait).map_err(|error| failed("wait for a worker", error))? {
            if self.completed(queue)? > 0 {
                break;
            }
            if began.elapsed() >= lasts + START_TIMEOUT {
                return Err(failed("run jobs", "none has completed in time"));
            }
            wait = NEXT_LOOK;
        }
        Ok(())
    }

    /// How many jobs of this queue have completed.
    pub(super) fn completed(&self, queue: &str) -> Result<u64, Failure> {
        let output = self.queuectl(&["queue", "list", "--json"]).stdout(Stdio::piped()).output();
        let output = output.map_err(|error| failed("list the queues", error))?;
        let queues: Vec<ListedQueue> =
            serde_json::from_slice(&output.stdout).map_err(|error| failed("list the queues", error))?;
        Ok(queues.iter().find(|listed| listed.name == queue).map_or(0, |listed| listed.jobs.completed))
    }

    /// Starts a worker that runs until the result is dropped.
    pub(super) fn worker(&self) -> Result<Worker, Failure> {
        let mut command = self.queuectl(&["worker", "run", "-q", "--queue", SERVED]);
        command.stderr(Stdio::null());
        command.spawn().map(Worker).map_err(|error| failed("start a worker", error))
    }

    /// Deletes the queue.
    pub(super) fn remove(self) -> Result<(), Failure> {
        self.delete()
    }

    fn delete(&self) -> Result<(), Failure> {
        #[cfg(feature = "postgres")]
        if let StoreAddress::Postgres(address) = &self.store {
            store::postgres::scratch::drop_scratch(address)?;
        }
        match fs::remove_dir_all(&self.home) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed(&format!("delete `{}`", self.home.display()), error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

impl Drop for Scratch {
    /// After a failure, which is what the user has to know.
    fn drop(&mut self) {
        let _ = self.delete();
    }
}

fn own_store(location: &Location, home: &Path) -> StoreAddress {
    match &location.store {
        #[cfg(feature = "postgres")]
        StoreAddress::Postgres(address) => {
            StoreAddress::Postgres(Box::new(store::postgres::scratch::scratch(address)))
        }
        #[cfg(not(feature = "postgres"))]
        StoreAddress::Postgres(_) => location.store.clone(),
        StoreAddress::Sqlite(_) => StoreAddress::Sqlite(home.join(ops::home::location::DATABASE)),
    }
}

/// A line of `queue list --json`.
#[derive(Deserialize)]
struct ListedQueue {
    name: String,
    jobs: ListedJobs,
}

#[derive(Deserialize)]
struct ListedJobs {
    completed: u64,
}

/// A worker in the foreground; drains when it is dropped.
pub(super) struct Worker(Child);

impl Worker {
    fn ends_within(&self, time: Duration) -> io::Result<bool> {
        let handle = pidfd_open(Pid::from_child(&self.0), PidfdFlags::empty())?;
        match poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&timespec(time))) {
            // The signal that ends the benchmark.
            Err(Errno::INTR) => Ok(false),
            ended => Ok(ended? > 0),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}
