//! Listing jobs.

use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use store::{JobFilter, Page, PageStart, Phase, Settlement, StoreError};

use crate::store::fixture::new_job::{job, job_id, queue_name};
use crate::store::fixture::{FAILURE, Fixture, every_store, settlement};

every_store!(
    every_phase_lists_its_jobs,
    queue_tag_and_phase_filters_combine,
    an_unknown_queue_or_tag_matches_no_jobs,
    a_limit_truncates_the_list,
    every_page_size_lists_every_job_once_and_in_order,
    pages_stay_complete_while_jobs_are_added_and_change,
    pages_of_ready_jobs_stay_complete_while_jobs_are_claimed,
    a_cursor_must_be_a_job,
    a_page_continues_at_the_position_of_a_removed_job,
    the_phase_ready_lists_jobs_that_could_run_now,
    dead_jobs_are_selected_with_what_they_died_of,
);

fn phase(phase: Phase) -> JobFilter {
    JobFilter::in_phase(phase)
}

/// At least one job in every phase, half of them tagged, in two queues. The pending jobs are enqueued last.
fn one_of_each(fixture: &Fixture) {
    let worker = fixture.worker("w");
    for (id, queue, outcome) in [
        ("completed-a", "a", Some(Outcome::Success)),
        ("completed-b", "b", Some(Outcome::Success)),
        ("failed-a", "a", Some(FAILURE)),
        ("failed-b", "b", Some(FAILURE)),
        ("cancelled-a", "a", Some(Outcome::Cancelled)),
        ("cancelled-b", "b", Some(Outcome::Cancelled)),
        ("dead-a", "a", Some(FAILURE)),
        ("dead-b", "b", Some(FAILURE)),
        ("processing-a", "a", None),
        ("processing-b", "b", None),
    ] {
        let retries = if id.starts_with("dead") { 0 } else { 3 };
        let tags: &[&str] = if queue == "a" { &["even", "x"] } else { &["x"] };
        fixture.enqueue(job(id).queue(queue).max_retries(retries).tags(tags));
        match outcome {
            Some(outcome) => drop(fixture.run(&worker, outcome)),
            None => drop(fixture.lease(&worker)),
        }
    }
    fixture.enqueue_all([
        job("ready-b").queue("b").tags(&["x"]),
        job("ready-a").queue("a").tags(&["even", "x"]).priority(1),
        job("scheduled-b").queue("b").tags(&["x"]).delay_secs(60),
        job("scheduled-a").queue("a").tags(&["even", "x"]).delay_secs(30),
        job("blocked-a").queue("a").tags(&["even", "x"]).after(&["ready-a"]),
        job("blocked-b").queue("b").tags(&["x"]).after(&["ready-a"]),
    ]);
}

const PENDING: [&str; 6] = ["blocked-b", "blocked-a", "scheduled-a", "scheduled-b", "ready-a", "ready-b"];

/// Every phase with its jobs, in its order.
const PHASES: [(Phase, &[&str]); 9] = [
    (Phase::State(StateName::Pending), &PENDING),
    (Phase::State(StateName::Processing), &["processing-b", "processing-a"]),
    (Phase::State(StateName::Completed), &["completed-b", "completed-a"]),
    (Phase::State(StateName::Failed), &["failed-b", "failed-a"]),
    (Phase::State(StateName::Dead), &["dead-b", "dead-a"]),
    (Phase::State(StateName::Cancelled), &["cancelled-b", "cancelled-a"]),
    (Phase::Ready, &["ready-a", "ready-b"]),
    (Phase::Scheduled, &["scheduled-a", "scheduled-b"]),
    (Phase::Blocked, &["blocked-b", "blocked-a"]),
];

fn every_phase_lists_its_jobs(fixture: &Fixture) {
    one_of_each(fixture);
    for (listed, expected) in PHASES {
        assert_eq!(fixture.list_by(&phase(listed), 100), expected, "{}", listed.name());
    }
    assert_eq!(
        fixture.list_by(&JobFilter::default(), 100).len(),
        16,
        "the unfiltered list contains every job"
    );
}

fn queue_tag_and_phase_filters_combine(fixture: &Fixture) {
    one_of_each(fixture);
    let all = fixture.list_by(&JobFilter::default(), 100);
    let phases = PHASES
        .iter()
        .map(|(phase, ids)| (vec![*phase], ids.iter().map(|id| (*id).to_owned()).collect()))
        .chain([(Vec::new(), all)]);
    for (phases, ids) in phases {
        let ids: Vec<String> = ids;
        for (queue, tag) in [
            (Some("a"), None),
            (Some("b"), None),
            (None, Some("even")),
            (None, Some("x")),
            (Some("a"), Some("even")),
            (Some("a"), Some("x")),
            (Some("b"), Some("even")),
        ] {
            let filter = JobFilter {
                phases: phases.clone(),
                queue: queue.map(queue_name),
                tag: tag.map(str::to_owned),
                ..JobFilter::default()
            };
            let expected: Vec<&String> = ids
                .iter()
                .filter(|id| queue.is_none_or(|queue| id.ends_with(queue)))
                .filter(|id| tag != Some("even") || id.ends_with('a'))
                .collect();
            for limit in [1, 100] {
                let found = fixture.list_by(&filter, limit);
                let found: Vec<&String> = found.iter().collect();
                assert_eq!(found, expected, "{filter:?} in pages of {limit}");
            }
        }
    }
}

fn an_unknown_queue_or_tag_matches_no_jobs(fixture: &Fixture) {
    one_of_each(fixture);
    for phases in Phase::ALL.map(|phase| vec![phase]).into_iter().chain([Vec::new()]) {
        for (queue, tag) in [(Some("nowhere"), None), (None, Some("nothing"))] {
            let filter = JobFilter {
                phases: phases.clone(),
                queue: queue.map(queue_name),
                tag: tag.map(str::to_owned),
                ..JobFilter::default()
            };
            assert_eq!(fixture.list_by(&filter, 9), [""; 0], "{filter:?}");
        }
    }
}

fn a_limit_truncates_the_list(fixture: &Fixture) {
    one_of_each(fixture);
    for (listed, expected) in PHASES {
        for limit in [0, 1, 2] {
            let page = Page { limit, after: None };
            let found = fixture.store.list(&phase(listed), &page).expect("list");
            let found: Vec<&str> = found.iter().map(|job| job.id.as_str()).collect();
            assert_eq!(found, expected[..limit], "{} of {}", limit, listed.name());
        }
    }
    let everything = Page { limit: usize::MAX, after: None };
    let all = fixture.store.list(&JobFilter::default(), &everything);
    assert_eq!(all.expect("list").len(), 16, "a limit has no maximum");
}

fn every_page_size_lists_every_job_once_and_in_order(fixture: &Fixture) {
    one_of_each(fixture);
    fixture.enqueue_all((0..60).map(|n| {
        job(&format!("more{n}"))
            .queue(["a", "b", "c"][n % 3])
            .priority([0, 1, 0, -1, 2][n % 5])
            .delay_secs([0, 0, 7, 3][n % 4])
            .tags(&["x"])
    }));
    let filters = Phase::ALL.map(phase).into_iter().chain([JobFilter::default()]).flat_map(|filter| {
        let tag = Some("x".to_owned());
        let queue = Some(queue_name("a"));
        [filter.clone(), JobFilter { tag, ..filter.clone() }, JobFilter { queue, ..filter }]
    });
    for filter in filters {
        let whole = fixture.list_by(&filter, 1_000);
        for limit in [1, 2, 7, 100] {
            let paged = fixture.list_by(&filter, limit);
            assert_eq!(paged, whole, "{filter:?} in pages of {limit}");
        }
    }
}

fn pages_stay_complete_while_jobs_are_added_and_change(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all((0..30).map(|n| job(&format!("j{n}"))));
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let page = Page { limit: 4, after: after.clone() };
        let found = fixture.store.list(&JobFilter::default(), &page).expect("list");
        let Some(last) = found.last() else { break };
        after = Some(PageStart::Job(last.id.clone()));
        seen.extend(found.iter().map(|job| job.id.to_string()));
        // Between two pages, jobs are enqueued, run and end.
        fixture.enqueue(job(&format!("new{}", seen.len())).priority(-1));
        fixture.run(&worker, Outcome::Success);
        fixture.run(&worker, FAILURE);
    }
    let expected: Vec<String> = (0..30).rev().map(|n| format!("j{n}")).collect();
    assert_eq!(seen, expected);
}

fn pages_of_ready_jobs_stay_complete_while_jobs_are_claimed(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all((0..30).map(|n: i32| job(&format!("j{n}")).priority(n % 3)));
    let whole = fixture.list_by(&phase(Phase::Ready), 100);
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let page = Page { limit: 4, after: after.clone() };
        let found = fixture.store.list(&phase(Phase::Ready), &page).expect("list");
        let Some(last) = found.last() else { break };
        after = Some(PageStart::Job(last.id.clone()));
        seen.extend(found.iter().map(|job| job.id.to_string()));
        // The listed jobs are claimed, including the cursor.
        fixture.claim(&worker, 4);
    }
    assert_eq!(seen, whole);
}

fn a_cursor_must_be_a_job(fixture: &Fixture) {
    fixture.enqueue("a");
    let page = Page { limit: 9, after: Some(PageStart::Job(job_id("gone"))) };
    let listed = fixture.store.list(&JobFilter::default(), &page);
    assert!(matches!(listed, Err(StoreError::NoSuchJob(_))), "{listed:?}");
}

fn a_page_continues_at_the_position_of_a_removed_job(fixture: &Fixture) {
    fixture.enqueue_all((0..9).map(|n: i32| job(&format!("j{n}")).priority(n % 3)));
    fixture.enqueue_all((0..9).map(|n| job(&format!("s{n}")).delay_secs(60 + n % 3)));
    for filter in [JobFilter::default(), phase(Phase::Ready), phase(Phase::Scheduled)] {
        let whole = fixture.list_by(&filter, 100);
        let page = Page { limit: 4, after: None };
        let first = fixture.store.list(&filter, &page).expect("list");
        let last = first.last().expect("a job");
        fixture.remove(last.id.as_str());
        let rest = Page { limit: 100, after: Some(PageStart::from(last)) };
        let rest = fixture.store.list(&filter, &rest).expect("list");
        let rest: Vec<String> = rest.iter().map(|job| job.id.to_string()).collect();
        assert_eq!(rest, whole[4..], "{filter:?}");
    }
}

fn the_phase_ready_lists_jobs_that_could_run_now(fixture: &Fixture) {
    let worker = fixture.worker("w");
    let ready = || fixture.list_by(&phase(Phase::Ready), 9);
    let scheduled = || fixture.list_by(&phase(Phase::Scheduled), 9);
    fixture.enqueue(job("failed").queue("b"));
    fixture.run(&worker, FAILURE);
    fixture.enqueue_all([job("later").delay_secs(2), job("plain")]);
    assert_eq!((ready(), scheduled()), (vec!["plain".to_owned()], vec!["later".to_owned()]));
    fixture.pass_secs(2);
    assert_eq!(ready(), ["plain", "failed", "later"], "before any worker promotes them");
    assert_eq!(scheduled(), [""; 0]);
    fixture.exchange(&worker, &[], 0);
    assert_eq!(ready(), ["plain", "failed", "later"], "after they were promoted");
    fixture.pause("default");
    assert_eq!(ready(), ["failed"], "jobs of a paused queue are not ready");
}

fn dead_jobs_are_selected_with_what_they_died_of(fixture: &Fixture) {
    let worker = fixture.worker("w");
    for (id, queue, error) in
        [("a1", "a", Some("no route")), ("b1", "b", None), ("a2", "a", Some("no space"))]
    {
        fixture.pass_secs(1);
        fixture.enqueue(job(id).queue(queue).max_retries(0));
        let lease = fixture.lease(&worker);
        let settled = Settlement { error: error.map(str::to_owned), ..settlement(&lease, FAILURE) };
        fixture.exchange(&worker, &[settled], 0);
    }
    fixture.enqueue("alive");
    let select = |filter: &JobFilter, below, limit| {
        let dead = fixture.store.select_dead(filter, below, limit).expect("dead jobs");
        dead.into_iter().map(|dead| dead.job.id.to_string()).collect::<Vec<_>>()
    };
    let all = JobFilter::default();
    assert_eq!(select(&all, None, 9), ["a2", "b1", "a1"], "newest first");
    assert_eq!(select(&all, None, 2), ["a2", "b1"]);
    assert_eq!(select(&all, Some(2), 9), ["a1"]);
    assert_eq!(
        select(&JobFilter { queue: Some(queue_name("a")), ..JobFilter::default() }, None, 9),
        ["a2", "a1"]
    );
    assert_eq!(select(&JobFilter { queue: Some(queue_name("x")), ..JobFilter::default() }, None, 9), [""; 0]);
    let dead = fixture.store.select_dead(&all, None, 1).expect("dead jobs").remove(0);
    assert_eq!((dead.queue, dead.reason.as_str()), (queue_name("a"), "retries_exhausted"));
    assert_eq!((dead.exit_code, dead.signal), (Some(1), None));
    assert_eq!((dead.error.as_deref(), dead.finished_at), (Some("no space"), fixture.now()));
}
