//! Unique keys: who holds one, and for how long.

use std::time::Duration;

use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use domain::job::unique::UniqueFor;
use proptest::collection::vec;
use proptest::prelude::{any, prop_assert_eq, proptest};
use store::{Change, Conflict, EnqueueResult};

use super::fixture::{FAILURE, Fixture, every_store};
use super::new_job::{JobSpec, job, job_id};

every_store!(
    until_it_has_started,
    until_it_is_finished,
    for_a_time_whatever_becomes_of_it,
    within_one_batch_the_first_is_returned,
    a_job_that_is_removed_holds_nothing,
    a_retried_job_needs_its_key,
    a_job_that_had_started_runs_again_without_its_key,
    a_time_does_not_begin_again,
    how_long_it_holds_is_shown,
);

const MINUTE: UniqueFor = UniqueFor::Span(Duration::from_secs(60));

fn unique(id: &str, unique_for: UniqueFor) -> JobSpec {
    job(id).unique_key("k").unique_for(unique_for).max_retries(0)
}

/// Whether a job with the key can be enqueued now, or who stands in for it; it is removed again.
fn holder(fixture: &Fixture) -> Option<String> {
    match &fixture.enqueue_all([job("probe").unique_key("k")])[..] {
        [EnqueueResult::Created(_)] => {
            fixture.remove("probe");
            None
        }
        [EnqueueResult::Existing(id)] => Some(id.to_string()),
        other => panic!("one answer: {other:?}"),
    }
}

fn until_it_has_started(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue(unique("a", UniqueFor::Started));
    assert_eq!(holder(fixture).as_deref(), Some("a"));
    let lease = fixture.lease(&worker);
    assert_eq!(holder(fixture), None);
    fixture.settle(&worker, &lease, Outcome::Lost);
    assert_eq!((fixture.state("a"), holder(fixture)), (StateName::Pending, None), "for good");
    fixture.enqueue(unique("b", UniqueFor::Started));
    fixture.run(&worker, Outcome::Success);
    assert_eq!(holder(fixture).as_deref(), Some("b"), "the end of a does not give the key of b back");
    fixture.cancel("b");
    assert_eq!(holder(fixture), None, "one that never starts");
}

fn until_it_is_finished(fixture: &Fixture) {
    let worker = fixture.worker("w");
    for outcome in [Outcome::Success, FAILURE, Outcome::Cancelled] {
        let id = outcome.name();
        fixture.enqueue(unique(id, UniqueFor::Finished));
        let lease = fixture.lease(&worker);
        assert_eq!(holder(fixture).as_deref(), Some(id));
        fixture.settle(&worker, &lease, outcome);
        assert_eq!(holder(fixture), None, "{id}");
    }
}

fn for_a_time_whatever_becomes_of_it(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue(unique("a", MINUTE));
    fixture.run(&worker, Outcome::Success);
    fixture.pass_millis(59_999);
    assert_eq!(holder(fixture).as_deref(), Some("a"), "also after it is finished");
    fixture.pass_millis(1);
    assert_eq!(holder(fixture), None);
    fixture.enqueue(unique("b", MINUTE));
    fixture.pass_secs(60);
    assert_eq!((fixture.state("b"), holder(fixture)), (StateName::Pending, None), "though it is unfinished");
    fixture.enqueue(unique("c", UniqueFor::Finished));
    fixture.run(&worker, Outcome::Success);
    assert_eq!(fixture.state("b"), StateName::Completed);
    assert_eq!(holder(fixture).as_deref(), Some("c"));
}

fn within_one_batch_the_first_is_returned(fixture: &Fixture) {
    let kinds = [MINUTE, UniqueFor::Started, UniqueFor::Finished];
    let jobs = kinds.iter().enumerate().map(|(at, kind)| unique(&format!("j{at}"), *kind));
    let answers = fixture.enqueue_all(jobs);
    let first = job_id("j0");
    let expected = [
        EnqueueResult::Created(first.clone()),
        EnqueueResult::Existing(first.clone()),
        EnqueueResult::Existing(first),
    ];
    assert_eq!(answers, expected);
}

fn a_job_that_is_removed_holds_nothing(fixture: &Fixture) {
    for kind in [MINUTE, UniqueFor::Started, UniqueFor::Finished] {
        fixture.enqueue(unique("a", kind));
        fixture.remove("a");
        assert_eq!(holder(fixture), None, "{kind}");
    }
}

fn a_retried_job_needs_its_key(fixture: &Fixture) {
    let taken = |holder: &str| Change::Conflict(Conflict::KeyTaken { holder: job_id(holder) });
    for kind in [UniqueFor::Finished, UniqueFor::Started] {
        let [first, second] = ["first", "second"].map(|name| format!("{name}-{kind}"));
        fixture.enqueue(unique(&first, kind));
        fixture.cancel(&first);
        fixture.enqueue(unique(&second, kind));
        assert_eq!(fixture.retry(&first), taken(&second), "{kind}");
        fixture.cancel(&second);
        assert_eq!(fixture.retry(&first), Change::Done(StateName::Pending), "{kind}");
        assert_eq!(holder(fixture), Some(first.clone()), "{kind}");
        fixture.cancel(&first);
    }
}

fn a_job_that_had_started_runs_again_without_its_key(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue(unique("a", UniqueFor::Started));
    fixture.run(&worker, FAILURE);
    fixture.enqueue(unique("b", UniqueFor::Started).delay_secs(60));
    assert_eq!(fixture.retry("a"), Change::Done(StateName::Pending));
    assert_eq!(holder(fixture).as_deref(), Some("b"));
}

fn a_time_does_not_begin_again(fixture: &Fixture) {
    fixture.enqueue(unique("a", MINUTE));
    fixture.cancel("a");
    assert_eq!(fixture.retry("a"), Change::Done(StateName::Pending), "it still holds its key");
    fixture.cancel("a");
    fixture.pass_secs(61);
    assert_eq!(fixture.retry("a"), Change::Done(StateName::Pending));
    assert_eq!(holder(fixture), None, "its time has passed");
    fixture.cancel("a");
    fixture.enqueue(unique("b", MINUTE));
    let taken = Change::Conflict(Conflict::KeyTaken { holder: job_id("b") });
    assert_eq!(fixture.retry("a"), taken);
}

fn how_long_it_holds_is_shown(fixture: &Fixture) {
    for kind in [MINUTE, UniqueFor::Started, UniqueFor::Finished] {
        let id = format!("j-{kind}");
        fixture.enqueue(job(&id).unique_key(&id).unique_for(kind));
        assert_eq!(fixture.job(&id).unique_for, kind);
    }
}

/// A job of the model: a list in memory that is obviously right.
struct Remembered {
    id: String,
    key: usize,
    kind: UniqueFor,
    enqueued_at: u64,
    started: bool,
    finished: bool,
}

impl Remembered {
    fn holds(&self, now: u64) -> bool {
        match self.kind {
            UniqueFor::Started => !self.started && !self.finished,
            UniqueFor::Finished => !self.finished,
            UniqueFor::Span(span) => now < self.enqueued_at + span.as_secs(),
        }
    }
}

proptest! {
    #![proptest_config(proptest::test_runner::Config { cases: 32, ..Default::default() })]

    /// The store gives the same answers as a list in memory.
    #[test]
    fn answers_are_those_of_a_list_in_memory(steps in vec((0..6_u8, any::<u8>()), 1..50)) {
        let fixture = Fixture::sqlite();
        let worker = fixture.worker("w");
        let (mut jobs, mut now): (Vec<Remembered>, u64) = (Vec::new(), 0);
        for (at, (step, die)) in steps.into_iter().enumerate() {
            match step {
                0..=2 => {
                    let (id, key) = (format!("j{at}"), usize::from(die) % 2);
                    let kind = [UniqueFor::Started, UniqueFor::Finished, UniqueFor::Span(Duration::from_secs(5))]
                        [usize::from(die / 2) % 3];
                    let new = job(&id).unique_key(&format!("k{key}")).unique_for(kind).max_retries(0);
                    let answer = fixture.enqueue_all([new]).remove(0);
                    let holder = jobs.iter().find(|job| job.key == key && job.holds(now));
                    let expected = match holder {
                        Some(holder) => EnqueueResult::Existing(job_id(&holder.id)),
                        None => EnqueueResult::Created(job_id(&id)),
                    };
                    prop_assert_eq!(answer, expected);
                    if holder.is_none() {
                        jobs.push(Remembered { id, key, kind, enqueued_at: now, started: false, finished: false });
                    }
                }
                3 => {
                    if let Some(lease) = fixture.leases(&worker, 1).pop() {
                        let outcome = [Outcome::Success, FAILURE, Outcome::Lost][usize::from(die) % 3];
                        fixture.settle(&worker, &lease, outcome);
                        let ran = jobs.iter_mut().find(|job| job.id == lease.job.as_str()).expect("it is known");
                        ran.started = true;
                        ran.finished = fixture.state(&ran.id).is_finished();
                    }
                }
                4 => {
                    if let Some(index) = usize::from(die).checked_rem(jobs.len()) {
                        fixture.cancel(&jobs[index].id);
                        jobs[index].finished = true;
                    }
                }
                _ => {
                    fixture.pass_secs(u64::from(die % 4));
                    now += u64::from(die % 4);
                }
            }
        }
        fixture.recount();
    }
}
