//! A job with very many dependents does not stall other work when it ends: each exchange unblocks a portion of them,
//! and its cost does not depend on how many remain.

use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use domain::settings::SettingKey;
use domain::values::name::WorkerId;
use store::Change;
use tempfile::TempDir;

use super::tape;
use crate::store::fixture::Fixture;
use crate::store::fixture::new_job::job;

const FEW_DEPENDENTS: usize = 4_000;
const MANY_DEPENDENTS: usize = 100_000;
/// The most dependents that one transaction unblocks.
const PORTION_SIZE: usize = 1_000;
/// The number of exchanges measured; each of them has a full portion to unblock. Measuring all exchanges that a hundred
/// thousand dependents take would need half a minute.
const MEASURED_EXCHANGES: usize = 3;
/// In percent: which B-tree pages are split varies between runs.
const TOLERANCE_PERCENT: u64 = 10;

/// Dependents of a job that has just ended; the first portion of them is unblocked.
struct Dependents {
    fixture: Fixture,
    worker: WorkerId,
    _folder: TempDir,
}

impl Dependents {
    fn of(dependents: usize) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        tape::start();
        let fixture = Fixture::sqlite_in(folder.path());
        tape::stop();
        fixture.set(SettingKey::Durability, "normal");
        fixture.enqueue("parent");
        fixture.enqueue_all((0..dependents).map(|at| job(&format!("child-{at}")).after(&["parent"])));
        let worker = fixture.worker("worker");
        let lease = fixture.lease(&worker);
        fixture.settle(&worker, &lease, Outcome::Success);
        Self { fixture, worker, _folder: folder }
    }

    /// The steps of the most expensive of several exchanges. Each of them claims a job that was enqueued in between.
    fn max_exchange_cost(&self) -> u64 {
        (0..MEASURED_EXCHANGES)
            .map(|at| self.exchange_cost(&format!("urgent-{at}")))
            .max()
            .expect("at least one exchange")
    }

    fn exchange_cost(&self, urgent: &str) -> u64 {
        self.fixture.enqueue(job(urgent).priority(9));
        tape::start();
        let exchanged = self.fixture.exchange(&self.worker, &[], 1);
        let runs = tape::take();
        tape::stop();
        assert_eq!(
            exchanged.claimed[0].lease.job.as_str(),
            urgent,
            "the job is claimed between two portions"
        );
        assert_eq!(exchanged.next_due, Some(self.fixture.now()), "more dependents remain blocked");
        let count = |beginning: &str| runs.iter().filter(|run| run.sql.starts_with(beginning)).count();
        assert_eq!(count("begin "), 1, "an exchange is one transaction");
        assert_eq!(count("update dependencies set blocks = 0"), PORTION_SIZE, "one portion is unblocked");
        runs.iter().map(|run| u64::from(run.steps)).sum()
    }

    /// A job that is enqueued after some portions precedes all dependents that are unblocked later.
    fn claims_in_order(&self) {
        let fixture = &self.fixture;
        let unblocked = (1 + MEASURED_EXCHANGES) * PORTION_SIZE;
        fixture.pass_millis(1);
        fixture.enqueue("plain");
        fixture.pass_millis(1);
        let exchanged = fixture.exchange(&self.worker, &[], unblocked + 1);
        let last = &exchanged.claimed.last().expect("jobs are claimed").lease.job;
        assert_eq!((exchanged.claimed.len(), last.as_str()), (unblocked + 1, "plain"));
        assert_eq!(exchanged.next_due, Some(fixture.now()), "more dependents remain blocked");
    }
}

#[test]
fn a_retried_job_unblocks_the_dependents_of_its_last_end_in_portions() {
    let waiting = Dependents::of(FEW_DEPENDENTS);
    tape::start();
    let retried = waiting.fixture.retry("parent");
    let runs = tape::take();
    tape::stop();
    assert_eq!(retried, Change::Done(StateName::Pending));
    let transactions = runs.split(|run| run.sql.starts_with("begin "));
    let unblocked = |runs: &[tape::Run]| {
        runs.iter().filter(|run| run.sql.starts_with("update dependencies set blocks = 0")).count()
    };
    let unblocked: Vec<usize> = transactions.map(unblocked).filter(|count| *count > 0).collect();
    assert!(unblocked.iter().all(|count| *count <= PORTION_SIZE), "{unblocked:?}");
    assert_eq!(
        unblocked.iter().sum::<usize>(),
        FEW_DEPENDENTS - PORTION_SIZE,
        "all dependents of its first end: {unblocked:?}"
    );
}

#[test]
fn unblocking_very_many_dependents_keeps_every_exchange_short_and_serves_claims() {
    let (few, many) = (Dependents::of(FEW_DEPENDENTS), Dependents::of(MANY_DEPENDENTS));
    let [cost_of_few, cost_of_many] = [&few, &many].map(Dependents::max_exchange_cost);
    let tolerated = cost_of_few + cost_of_few * TOLERANCE_PERCENT / 100;
    assert!(cost_of_many <= tolerated, "{cost_of_few} steps became {cost_of_many}");
    many.claims_in_order();
}
