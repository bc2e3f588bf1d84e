//! A job for which very many wait stalls nobody when it ends: each turn tells a portion of them, and what that costs does
//! not depend on how many are left.

use queuectl::domain::outcome::Outcome;
use queuectl::domain::settings::SettingKey;

use super::tape;
use crate::store::fixture::Fixture;
use crate::store::new_job::job;

const FEW: usize = 4_000;
const MANY: usize = 40_000;
/// How many turns are looked at; all of them have as much to tell as a turn tells.
const TURNS: usize = 2;
/// In percent: which branches of a tree are split is not the same each time.
const TOLERANCE: u64 = 10;

/// The steps of the costliest of the turns after the end of a job for which so many wait. In each of them a job is claimed.
fn cost_of_a_turn(dependents: usize) -> u64 {
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
    let turn = |at| {
        let urgent = format!("urgent-{at}");
        fixture.enqueue(job(&urgent).priority(9));
        tape::start();
        let exchanged = fixture.exchange(&worker, &[], 1);
        let steps = tape::take().iter().map(|run| u64::from(run.steps)).sum();
        tape::stop();
        assert_eq!(exchanged.claimed[0].lease.job.as_str(), urgent, "it is served between the portions");
        assert_eq!(exchanged.next_due, Some(fixture.now()), "there are more to be told");
        steps
    };
    (0..TURNS).map(turn).max().expect("a turn")
}

#[test]
fn while_very_many_dependents_are_released_every_turn_is_as_short_and_serves_claims() {
    let (few, many) = (cost_of_a_turn(FEW), cost_of_a_turn(MANY));
    assert!(many <= few + few * TOLERANCE / 100, "{few} steps became {many}");
}
