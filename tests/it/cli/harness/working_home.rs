//! A home in which real workers run jobs. No worker outlives it.

use std::fs;
use std::ops::Deref;
use std::path::Path;
use std::time::Duration;

use domain::values::name::JobId;
use ops::worker::live::live_workers;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use store::Worker;
use sys::poll::Poll;

use super::Home;
use super::background::STEP_TIMEOUT;

/// How often to poll for a state.
pub(crate) const STATE_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Prints `ready`, then runs until the file `go` exists.
pub(crate) const UNTIL_GO: &str = "echo ready; until [ -e go ]; do sleep 0.02; done; echo went";

pub(crate) struct WorkingHome {
    home: Home,
}

impl Deref for WorkingHome {
    type Target = Home;

    fn deref(&self) -> &Home {
        &self.home
    }
}

impl WorkingHome {
    pub(crate) fn new() -> Self {
        Self { home: Home::new() }
    }

    /// Lets jobs that wait for the file `go` continue.
    pub(crate) fn go(&self) {
        self.file("go", "");
    }

    /// Waits until a job is in this state; it need not be enqueued yet.
    #[track_caller]
    pub(crate) fn wait_for_state(&self, id: &str, state: &str) {
        let (store, id): (_, JobId) = (self.store(), id.parse().expect("an id"));
        let is_so = || {
            let job = store.find(&id).expect("the job is read");
            job.is_some_and(|job| job.life.state.name().name() == state)
        };
        wait_until(&format!("{id} is {state}"), is_so);
    }

    pub(crate) fn workers(&self) -> Vec<Worker> {
        live_workers(self.store().as_ref()).expect("the workers are listed")
    }

    /// Waits until the last worker has ended by itself.
    #[track_caller]
    pub(crate) fn wait_until_deserted(&self) {
        wait_until("no worker is left", || self.workers().is_empty());
    }

    /// The name of the worker of the latest attempt.
    pub(crate) fn worker_of(&self, id: &str) -> String {
        let history = self.show(id)["history"].clone();
        let last = history.as_array().and_then(|history| history.last()).expect("it has run").clone();
        last["worker_id"].as_str().expect("a name").to_owned()
    }
}

/// Waits until the condition holds; panics after a generous timeout.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let mut poll = Poll::every(STATE_POLL_INTERVAL).within(STEP_TIMEOUT);
    while !is_so() {
        assert!(poll.sleep(), "timed out waiting until {what}");
    }
}

impl Drop for WorkingHome {
    /// Stops the remaining workers, and kills those that do not stop.
    fn drop(&mut self) {
        if !self.database().exists() {
            return;
        }
        let workers = self.store().workers().unwrap_or_default();
        let _ = self.call(["worker", "stop", "--now", "-q"]).into_command().status();
        for worker in &workers {
            for pid in worker.supervisor_pid.into_iter().chain([worker.pid]) {
                end(pid, &self.path());
            }
        }
    }
}

/// Waits for the end of a process of this home, and kills it after a timeout.
fn end(pid: u32, home: &Path) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid");
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    let call = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    if !call.contains(&home.display().to_string()) {
        // The pid belongs to another process by now.
        return;
    }
    let timeout = Timespec::try_from(STEP_TIMEOUT).expect("a short time");
    if poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&timeout)) == Ok(0) {
        let _ = kill_process(pid, Signal::KILL);
    }
}
