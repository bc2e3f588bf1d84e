//! What `list` shows to a person costs the same, however many jobs there are.

use ops::jobs::overview::{in_groups, overview};
use store::JobFilter;

use super::{scenario, tape};
use crate::store::fixture::Fixture;
use crate::store::fixture::new_job::queue_name;

/// Jobs of each kind: more than an overview reads.
const FEW_JOBS: usize = 150;
const MANY_JOBS: usize = 900;
const TOLERANCE_PERCENT: u64 = 10;
const PAGE: usize = 50;

/// The steps of each way to show jobs.
fn costs(jobs_of_each_kind: usize) -> Vec<(&'static str, u64)> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    tape::start();
    let fixture = Fixture::sqlite_in(folder.path());
    tape::stop();
    scenario::fill(&fixture, jobs_of_each_kind);
    let (store, all) = (fixture.store.as_ref(), JobFilter::default());
    let held = JobFilter { queue: Some(queue_name("held")), ..JobFilter::default() };
    let page = |filter: &JobFilter| in_groups(store, filter, PAGE).expect("a listing").count();
    let cost = |by: &'static str, show: &dyn Fn() -> usize| {
        tape::start();
        let shown = show();
        let steps = tape::take().iter().map(|run| u64::from(run.steps)).sum();
        tape::stop();
        assert!(shown >= PAGE, "{by} shows {shown} jobs");
        (by, steps)
    };
    vec![
        cost("an overview", &|| overview(store, &all, 10).expect("an overview").jobs.len()),
        cost("a page", &|| page(&all)),
        cost("a page of a queue", &|| page(&held)),
    ]
}

#[test]
fn with_six_times_the_jobs_an_overview_takes_no_more_steps() {
    for ((by, few), (_, many)) in costs(FEW_JOBS).into_iter().zip(costs(MANY_JOBS)) {
        assert!(many <= few + few * TOLERANCE_PERCENT / 100, "{by}: {few} became {many}");
    }
}
