//! Without hooks, jobs have no cost for them.

use domain::job::outcome::Outcome;

use super::tape;
use crate::store::fixture::new_job::job;
use crate::store::fixture::{FAILURE, Fixture, settlement};

/// The number of jobs that one exchange settles.
const JOBS: usize = 40;

#[test]
fn without_hooks_an_exchange_queries_them_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    tape::start();
    let fixture = Fixture::sqlite_in(folder.path());
    tape::take();
    let worker = fixture.worker("w");
    fixture.enqueue_all((0..JOBS).map(|at| job(&format!("j{at}")).max_retries(0)));
    assert_eq!(hook_statements(), 0, "enqueue and register do not query hooks");
    let leases = fixture.leases(&worker, JOBS);
    assert_eq!(hook_statements(), 0, "a claim does not query hooks");
    let outcome = |at| if at % 2 == 0 { Outcome::Success } else { FAILURE };
    let settlements: Vec<_> =
        leases.iter().enumerate().map(|(at, lease)| settlement(lease, outcome(at))).collect();
    fixture.exchange(&worker, &settlements, 0);
    assert_eq!(hook_statements(), 1, "one query for all settled jobs");
    tape::stop();
}

fn hook_statements() -> usize {
    let runs = tape::take();
    runs.iter().filter(|run| run.sql.contains("hooks") || run.sql.contains("deliveries")).count()
}
