//! Where there are no hooks, jobs pay nothing for them.

use domain::job::outcome::Outcome;

use super::tape;
use crate::store::fixture::{FAILURE, Fixture, settlement};
use crate::store::new_job::job;

/// How many jobs are finished in one turn.
const JOBS: usize = 40;

#[test]
fn without_hooks_a_turn_asks_once_whether_there_are_any() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    tape::start();
    let fixture = Fixture::sqlite_in(folder.path());
    tape::take();
    let worker = fixture.worker("w");
    fixture.enqueue_all((0..JOBS).map(|at| job(&format!("j{at}")).max_retries(0)));
    assert_eq!(about_hooks(), 0, "to enqueue and to register asks nothing");
    let leases = fixture.leases(&worker, JOBS);
    assert_eq!(about_hooks(), 0, "to claim asks nothing");
    let outcome = |at| if at % 2 == 0 { Outcome::Success } else { FAILURE };
    let settlements: Vec<_> =
        leases.iter().enumerate().map(|(at, lease)| settlement(lease, outcome(at))).collect();
    fixture.exchange(&worker, &settlements, 0);
    assert_eq!(about_hooks(), 1, "however many jobs are settled");
    tape::stop();
}

fn about_hooks() -> usize {
    let runs = tape::take();
    runs.iter().filter(|run| run.sql.contains("hooks") || run.sql.contains("deliveries")).count()
}
