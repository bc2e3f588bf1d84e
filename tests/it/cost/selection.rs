//! To select all jobs of a kind costs as much as there are jobs, whatever they are selected by.

use domain::job::life::StateName;
use domain::settings::SettingKey;
use ops::jobs::bulk;
use ops::jobs::bulk::default_phases;
use store::{JobFilter, JobVerb};

use super::tape;
use crate::store::fixture::{Fixture, SOMEBODY};
use crate::store::new_job::{batch_name, job, job_id, queue_name};

/// More than one page of the old way to select.
const FEW: usize = 1_500;
const MANY: usize = 6_000;
/// In percent.
const TOLERANCE: u64 = 10;

/// Half of the jobs are of the kind, and half of these are cancelled.
fn filled(count: usize) -> (Fixture, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    tape::start();
    let fixture = Fixture::sqlite_in(folder.path());
    tape::stop();
    fixture.set(SettingKey::Durability, "normal");
    let of_the_kind = |at: usize| {
        let plain = job(&format!("j{at}"));
        if at.is_multiple_of(2) {
            plain
        } else {
            plain.tags(&["kind"]).batch("kind").queue("kind").command("kind")
        }
    };
    fixture.enqueue_all((0..count).map(of_the_kind));
    let cancelled: Vec<_> = (0..count).filter(|at| at % 4 < 2).map(|at| job_id(&format!("j{at}"))).collect();
    fixture.store.cancel(&cancelled, SOMEBODY).expect("they are cancelled");
    (fixture, folder)
}

fn filters(fixture: &Fixture) -> Vec<(&'static str, JobFilter)> {
    let any = JobFilter { phases: default_phases(JobVerb::Cancel), ..JobFilter::default() };
    let command = Some("kind".parse().expect("a pattern"));
    let queue = Some(queue_name("kind"));
    let changed_before = Some(fixture.now());
    vec![
        ("state", any.clone()),
        ("tag", JobFilter { tag: Some("kind".to_owned()), ..any.clone() }),
        ("batch", JobFilter { batch: Some(batch_name("kind")), ..any.clone() }),
        ("queue", JobFilter { queue: queue.clone(), ..any.clone() }),
        ("command", JobFilter { command: command.clone(), ..any.clone() }),
        ("age", JobFilter { changed_before, ..any.clone() }),
        ("all of it", JobFilter { tag: Some("kind".to_owned()), queue, command, changed_before, ..any }),
    ]
}

/// The steps that each selection takes, and how many jobs it finds.
fn costs(count: usize) -> Vec<(&'static str, u64, usize)> {
    let (fixture, _folder) = filled(count);
    fixture.pass_secs(1);
    let cost = |(by, filter): (&'static str, JobFilter)| {
        tape::start();
        let found = bulk::select(fixture.store.as_ref(), &filter).expect("a selection");
        let steps = tape::take().iter().map(|run| u64::from(run.steps)).sum();
        tape::stop();
        assert!(found.iter().all(|seen| seen.state == StateName::Pending), "{by}");
        (by, steps, found.len())
    };
    filters(&fixture).into_iter().map(cost).collect()
}

#[test]
fn with_four_times_the_jobs_a_selection_takes_four_times_the_steps() {
    let times = (MANY / FEW) as u64;
    for ((by, few, found_few), (_, many, found_many)) in costs(FEW).into_iter().zip(costs(MANY)) {
        assert_eq!(found_many, found_few * MANY / FEW, "{by}");
        let expected = times * few + times * few * TOLERANCE / 100;
        assert!(many <= expected, "by {by}: {few} steps became {many}");
    }
}
