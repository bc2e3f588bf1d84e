//! A job for which very many wait stalls nobody when it ends: each turn tells a portion of them, and what that costs does
//! not depend on how many are left.

use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use domain::settings::SettingKey;
use domain::values::name::WorkerId;
use store::Change;
use tempfile::TempDir;

use super::tape;
use crate::store::fixture::Fixture;
use crate::store::new_job::job;

const FEW: usize = 4_000;
const MANY: usize = 100_000;
/// How many a transaction tells at most.
const PORTION: usize = 1_000;
/// How many turns are looked at; all of them have as much to tell as a turn tells. To look at all of those that a hundred
/// thousand take would be a matter of half a minute.
const TURNS: usize = 3;
/// In percent: which branches of a tree are split is not the same each time.
const TOLERANCE: u64 = 10;

/// Jobs that wait for one that has just ended, and of which the first portion was told.
struct Crowd {
    fixture: Fixture,
    worker: WorkerId,
    _folder: TempDir,
}

impl Crowd {
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

    /// The steps of the costliest of some turns. In each of them a job is claimed that came in between.
    fn cost_of_a_turn(&self) -> u64 {
        (0..TURNS).map(|at| self.turn(&format!("urgent-{at}"))).max().expect("a turn")
    }

    fn turn(&self, urgent: &str) -> u64 {
        self.fixture.enqueue(job(urgent).priority(9));
        tape::start();
        let exchanged = self.fixture.exchange(&self.worker, &[], 1);
        let runs = tape::take();
        tape::stop();
        assert_eq!(exchanged.claimed[0].lease.job.as_str(), urgent, "it is served between the portions");
        assert_eq!(exchanged.next_due, Some(self.fixture.now()), "there are more to be told");
        let count = |beginning: &str| runs.iter().filter(|run| run.sql.starts_with(beginning)).count();
        assert_eq!(count("begin "), 1, "a turn is one transaction");
        assert_eq!(count("update dependencies set blocks = 0"), PORTION, "so many are told");
        runs.iter().map(|run| u64::from(run.steps)).sum()
    }

    /// One that came when a part was told stands before all that are told later.
    fn claims_in_turn(&self) {
        let fixture = &self.fixture;
        let told = (1 + TURNS) * PORTION;
        fixture.pass_millis(1);
        fixture.enqueue("plain");
        fixture.pass_millis(1);
        let exchanged = fixture.exchange(&self.worker, &[], told + 1);
        let last = &exchanged.claimed.last().expect("many are claimed").lease.job;
        assert_eq!((exchanged.claimed.len(), last.as_str()), (told + 1, "plain"));
        assert_eq!(exchanged.next_due, Some(fixture.now()), "there are more to be told");
    }
}

#[test]
fn a_job_that_begins_again_tells_its_dependents_in_portions() {
    let crowd = Crowd::of(FEW);
    tape::start();
    let retried = crowd.fixture.retry("parent");
    let runs = tape::take();
    tape::stop();
    assert_eq!(retried, Change::Done(StateName::Pending));
    let transactions = runs.split(|run| run.sql.starts_with("begin "));
    let told = |runs: &[tape::Run]| {
        runs.iter().filter(|run| run.sql.starts_with("update dependencies set blocks = 0")).count()
    };
    let told: Vec<usize> = transactions.map(told).filter(|count| *count > 0).collect();
    assert!(told.iter().all(|count| *count <= PORTION), "{told:?}");
    assert_eq!(told.iter().sum::<usize>(), FEW - PORTION, "all who waited for its first end: {told:?}");
}

#[test]
fn while_very_many_dependents_are_released_every_turn_is_as_short_and_serves_claims() {
    let (few, many) = (Crowd::of(FEW), Crowd::of(MANY));
    let [cost_of_few, cost_of_many] = [&few, &many].map(Crowd::cost_of_a_turn);
    let tolerated = cost_of_few + cost_of_few * TOLERANCE / 100;
    assert!(cost_of_many <= tolerated, "{cost_of_few} steps became {cost_of_many}");
    many.claims_in_turn();
}
