//! A worker that runs nothing: it claims through the library and settles as the test says.

use std::fs;
use std::time::{Duration, Instant};

use domain::job::Usage;
use domain::job::outcome::{Outcome, error_line};
use domain::values::name::WorkerId;
use engine::attempt::capture::{Capture, CapturedOutput};
use ops::jobs::logs::log_path;
use rusqlite::{Connection, params};
use store::{Claim, Exchange, LeaseRef, NewWorker, ServedJobs, Settlement, Store, WorkerState};
use sys::fs::liveness_lock::{LivenessLock, Role};
use sys::host::Origin;

use super::Home;

pub(crate) struct TestWorker {
    pub(crate) id: WorkerId,
    store: Box<dyn Store>,
    /// While this is held, the worker counts as alive.
    _liveness_lock: LivenessLock,
}

impl TestWorker {
    pub(crate) fn new(home: &Home, name: &str) -> Self {
        Self::serving(home, name, ServedJobs::All)
    }

    /// A worker that takes only this job.
    pub(crate) fn for_job(home: &Home, name: &str, id: &str) -> Self {
        Self::serving(home, name, ServedJobs::Job(id.parse().expect("a job id")))
    }

    pub(crate) fn serving(home: &Home, name: &str, served: ServedJobs) -> Self {
        let folder = home.path().join("workers");
        fs::create_dir_all(&folder).expect("the folder of workers");
        let liveness_lock = LivenessLock::hold(&folder, name, Role::Worker).expect("its lock is free");
        let id = name.parse().expect("a worker id");
        let worker = Self { id, store: home.store(), _liveness_lock: liveness_lock };
        let new = NewWorker {
            id: worker.id.clone(),
            host: "testhost".to_owned(),
            origin: Origin::of_worker(&folder, name).expect("its origin"),
            pid: 4242,
            supervisor_pid: None,
            served,
            concurrency: 1,
            folder,
            stop_seen: None,
        };
        worker.store.register(&new).expect("the worker registers");
        worker
    }

    pub(crate) fn claim(&self, want: usize) -> Vec<Claim> {
        self.exchange(&[], want)
    }

    /// Ends an attempt.
    pub(crate) fn settle(&self, lease: LeaseRef, outcome: Outcome, error: Option<&str>) {
        self.exchange(&[settlement(lease, outcome, error)], 0);
    }

    /// Ends an attempt that printed this.
    pub(crate) fn settle_captured(&self, lease: LeaseRef, outcome: Outcome, captured: CapturedOutput) {
        let error = error_line(outcome, captured.last_error_line.as_deref());
        let plain = settlement(lease, outcome, error.as_deref());
        let settlement = Settlement { log_bytes: captured.log_bytes, output: captured.output, ..plain };
        self.exchange(&[settlement], 0);
    }

    /// Captures the output of an attempt, as a worker does.
    pub(crate) fn capture(&self, home: &Home, lease: &LeaseRef, max_bytes: u64) -> Capture {
        let job = self.store.find(&lease.job).expect("the job is read").expect("the job is there");
        Capture::new(log_path(&home.path(), job.number, lease.attempt), max_bytes)
    }

    /// The reaper finds the worker dead.
    pub(crate) fn die(&self) {
        self.store.reap(&self.id, None, &[]).expect("it is reaped");
    }

    fn exchange(&self, settlements: &[Settlement], want: usize) -> Vec<Claim> {
        let exchange = Exchange { worker: &self.id, settlements, want, want_limited: want };
        let exchanged = self.store.exchange(&exchange).expect("the exchange succeeds");
        assert_eq!(exchanged.stale, [], "a settlement was refused");
        exchanged.claimed
    }

    /// Claims the next job, which must be this one.
    pub(crate) fn claim_job(&self, id: &str) -> LeaseRef {
        let claimed = self.claim(1);
        let claim = claimed.into_iter().next().unwrap_or_else(|| panic!("`{id}` is not ready"));
        assert_eq!(claim.lease.job.as_str(), id, "another job is first in line");
        claim.lease
    }
}

impl TestWorker {
    /// As `claim_job`, for a job that is due very soon.
    pub(crate) fn claim_soon(&self, id: &str) -> LeaseRef {
        let began = Instant::now();
        loop {
            if let Some(claim) = self.claim(1).into_iter().next() {
                assert_eq!(claim.lease.job.as_str(), id, "another job is first in line");
                return claim.lease;
            }
            assert!(began.elapsed() < Duration::from_secs(10), "`{id}` does not become ready");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for TestWorker {
    fn drop(&mut self) {
        // With a lease that the test left open, the worker stays registered, so that its job is not reaped.
        let workers = self.store.workers().unwrap_or_default();
        if workers.iter().any(|worker| worker.id == self.id && worker.running == 0) {
            let _ = self.store.set_worker_state(&self.id, WorkerState::Stopped);
        }
    }
}

fn settlement(lease: LeaseRef, outcome: Outcome, error: Option<&str>) -> Settlement {
    Settlement {
        lease,
        outcome,
        error: error.map(str::to_owned),
        duration: Duration::from_millis(1_500),
        ended: None,
        usage: Usage { cpu: Some(Duration::from_millis(20)), max_rss_bytes: Some(1 << 20) },
        log_bytes: 12,
        output: None,
    }
}

impl Home {
    /// A dead job, for homes in which no other job is ready: it failed for the first time and has no retries.
    pub(crate) fn dead_job(&self, id: &str, error: &str) {
        self.run(["enqueue", "-q", "--id", id, "--max-retries", "0", "--", "false"]).ok();
        self.kill_next(id, error);
    }

    /// Lets the next job, which must be this one, fail.
    pub(crate) fn kill_next(&self, id: &str, error: &str) {
        self.settle_next(id, Outcome::Failure { exit_code: 1 }, Some(error));
    }

    /// A failed job whose backoff is longer than any test takes.
    pub(crate) fn failed_job(&self, id: &str) {
        let backoff = r#"{"strategy":"fixed","delay":"1h","max":"1h"}"#;
        self.run(["enqueue", "-q", "--id", id, "--backoff", backoff, "--", "false"]).ok();
        self.settle_next(id, Outcome::Failure { exit_code: 2 }, Some("exit code 2: no luck"));
    }

    pub(crate) fn completed_job(&self, id: &str) {
        self.run(["enqueue", "-q", "--id", id, "--", "true"]).ok();
        self.settle_next(id, Outcome::Success, None);
    }

    /// Sets the age of a worker's last heartbeat.
    pub(crate) fn silence(&self, worker: &str, ago: Duration) {
        let ago = i64::try_from(ago.as_millis()).expect("a moment ago");
        let heard = self.store().now().expect("the time").as_millis() - ago;
        let database = Connection::open(self.database()).expect("the database opens");
        let changed = database
            .execute("update workers set last_heartbeat = ?2 where id = ?1", params![worker, heard])
            .expect("the statement is right");
        assert_eq!(changed, 1, "there is no worker {worker}");
    }

    fn settle_next(&self, id: &str, outcome: Outcome, error: Option<&str>) {
        let worker = TestWorker::new(self, &format!("worker-of-{id}"));
        let lease = worker.claim_job(id);
        worker.settle(lease, outcome, error);
    }
}
