//! A machine with a worker for a queue on a server. The worker does not outlive it.

use std::cell::RefCell;
use std::ffi::OsStr;

use crate::cli::harness::background::Background;
use crate::cli::harness::working_home::{UNTIL_GO, wait_until};
use crate::cli::harness::{Call, Home, RunResult};

pub(crate) struct WorkingMachine {
    // Ends before its home is removed.
    worker: RefCell<Option<Background>>,
    pub(crate) home: Home,
    url: String,
}

impl WorkingMachine {
    pub(crate) fn new(url: &str) -> Self {
        Self { worker: RefCell::default(), home: Home::new(), url: url.to_owned() }
    }

    pub(crate) fn call<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Call {
        self.home.call(args).env("QUEUECTL_STORE", &self.url)
    }

    pub(crate) fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> RunResult {
        self.call(args).run()
    }

    pub(crate) fn start_worker(&self) {
        self.start_worker_with(2);
    }

    pub(crate) fn start_worker_with(&self, slots: usize) {
        let slots = slots.to_string();
        let call =
            self.call(["worker", "run", "-q", "--concurrency", &slots]).env("HOME", self.home.folder());
        *self.worker.borrow_mut() = Some(Background::start(call));
    }

    pub(crate) fn show(&self, id: &str) -> serde_json::Value {
        self.run(["show", id, "--json"]).ok().json()
    }

    #[track_caller]
    pub(crate) fn wait_for_state(&self, id: &str, state: &str) {
        wait_until(&format!("{id} is {state}"), || self.show(id)["state"] == state);
    }

    /// Enqueues a job that runs until [`Self::go`].
    pub(crate) fn enqueue_until_go(&self, id: &str) {
        let folder = self.home.folder().display().to_string();
        self.run(["enqueue", "-q", "--id", id, "--cwd", &folder, "-c", UNTIL_GO]).ok();
    }

    pub(crate) fn go(&self) {
        self.home.file("go", "");
    }
}
