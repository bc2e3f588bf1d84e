//! The cost of selecting jobs is linear in the number of jobs, for every kind of filter.

use domain::job::life::StateName;
use domain::settings::SettingKey;
use ops::jobs::bulk::BulkChange;
use ops::jobs::change;
use store::{JobFilter, JobVerb};

use super::tape;
use crate::store::fixture::Fixture;
use crate::store::fixture::new_job::{batch_name, job, job_id, queue_name};

/// More jobs than one page of a selection.
const FEW_JOBS: usize = 1_500;
const MANY_JOBS: usize = 6_000;
const TOLERANCE_PERCENT: u64 = 10;

/// Half of the jobs match the filters, and half of these are cancelled.
fn filled_store(count: usize) -> (Fixture, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    tape::start();
    let fixture = Fixture::sqlite_in(folder.path());
    tape::stop();
    fixture.set(SettingKey::Durability, "normal");
    let new_job = |at: usize| {
        let plain = job(&format!("j{at}"));
        if at.is_multiple_of(2) {
            plain
        } else {
            plain.tags(&["kind"]).batch("kind").queue("kind").command("kind")
        }
    };
    fixture.enqueue_all((0..count).map(new_job));
    let cancelled: Vec<_> = (0..count).filter(|at| at % 4 < 2).map(|at| job_id(&format!("j{at}"))).collect();
    fixture.change_all(JobVerb::CANCEL, &cancelled);
    (fixture, folder)
}

fn filters(fixture: &Fixture) -> Vec<(&'static str, JobFilter)> {
    let any =
        JobFilter { phases: BulkChange::from(JobVerb::CANCEL).default_phases(), ..JobFilter::default() };
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
        ("all of these", JobFilter { tag: Some("kind".to_owned()), queue, command, changed_before, ..any }),
    ]
}

/// The steps of each selection, and the number of jobs that it finds.
fn costs(count: usize) -> Vec<(&'static str, u64, usize)> {
    let (fixture, _folder) = filled_store(count);
    fixture.pass_secs(1);
    let cost = |(by, filter): (&'static str, JobFilter)| {
        tape::start();
        let found = change::select(fixture.store.as_ref(), &filter).expect("a selection");
        let steps = tape::take().iter().map(|run| u64::from(run.steps)).sum();
        tape::stop();
        assert!(found.iter().all(|found| found.state == StateName::Pending), "{by}");
        (by, steps, found.len())
    };
    filters(&fixture).into_iter().map(cost).collect()
}

#[test]
fn with_four_times_the_jobs_a_selection_takes_four_times_the_steps() {
    let times = (MANY_JOBS / FEW_JOBS) as u64;
    for ((by, few, found_few), (_, many, found_many)) in costs(FEW_JOBS).into_iter().zip(costs(MANY_JOBS)) {
        assert_eq!(found_many, found_few * MANY_JOBS / FEW_JOBS, "{by}");
        let expected = times * few + times * few * TOLERANCE_PERCENT / 100;
        assert!(many <= expected, "by {by}: {few} steps became {many}");
    }
}
