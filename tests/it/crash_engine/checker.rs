//! Checks the invariants I3 to I7 and I13 against the ledger and the store after a test.

use std::collections::BTreeMap;

use domain::job::life::StateName;
use serde_json::Value;
use store::{JobFilter, Page};

use super::harness::CrashHome;
use super::ledger::{LineKind, overlaps};
use super::processes::wait;

impl CrashHome {
    /// Waits until every job has ended, stops every pool, and checks the invariants.
    pub(crate) fn finish(&self) {
        wait("every job has ended", || self.unfinished().is_empty());
        self.stop_pools();
        self.check();
    }

    pub(crate) fn check(&self) {
        let lines = self.ledger();
        assert_eq!(overlaps(&lines), Vec::<&super::ledger::Line>::new(), "attempts overlap");
        for id in self.ids() {
            self.check_history(&id);
        }
        self.recount();
        assert_eq!(self.living_processes(), [], "processes are left");
        assert_eq!(self.worker_files(), Vec::<String>::new(), "files of workers are left");
        self.assert_no_group_is_left();
    }

    fn check_history(&self, id: &str) {
        let job = self.home.show(id);
        let history = job["history"].as_array().expect("a list");
        let numbers: Vec<u64> =
            history.iter().map(|row| row["attempt"].as_u64().expect("a number")).collect();
        let expected: Vec<u64> = (1..=job["attempts"].as_u64().expect("a number")).collect();
        assert_eq!(numbers, expected, "attempts of {id} are missing (I7)");
        let successes: Vec<&Value> = history.iter().filter(|row| row["outcome"] == "success").collect();
        assert!(successes.len() <= 1, "{id} has {} successes (I4)", successes.len());
        for success in successes {
            let attempt = success["attempt"].as_u64().expect("a number");
            assert!(self.has(LineKind::End, id, attempt), "{id} succeeded without an END (I4)");
        }
        for line in self.ledger().iter().filter(|line| line.job == id) {
            assert!(expected.contains(&line.attempt), "an attempt that is not recorded: {line:?} (I7)");
        }
        self.check_unstarted(id, history);
    }

    /// A released attempt must not have started.
    fn check_unstarted(&self, id: &str, history: &[Value]) {
        for row in history.iter().filter(|row| row["outcome"] == "released") {
            let attempt = row["attempt"].as_u64().expect("a number");
            assert!(
                !self.has(LineKind::Start, id, attempt),
                "attempt {attempt} of {id} was started and released"
            );
        }
    }

    /// Compares the counters with a count of all jobs.
    fn recount(&self) {
        let everything = Page { limit: usize::MAX, after: None };
        let mut counted: BTreeMap<StateName, u64> = BTreeMap::new();
        for job in self.store.list(&JobFilter::default(), &everything).expect("the jobs are listed") {
            *counted.entry(job.life.state.name()).or_default() += 1;
        }
        let queues = self.store.queues().expect("the queues are listed");
        // All jobs of these tests are in one queue.
        let counts = queues.into_iter().next().map(|queue| queue.counts).unwrap_or_default();
        assert_eq!(counts, counted, "the counters equal a recount (I13)");
    }
}
