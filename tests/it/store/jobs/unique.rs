//! Unique keys: which job holds one, and for how long.

use std::time::Duration;

use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use domain::job::unique::UniqueFor;
use proptest::collection::vec;
use proptest::prelude::{any, prop_assert_eq, proptest};
use store::{Change, Conflict, EnqueueResult};

use crate::store::fixture::new_job::{JobBuilder, job, job_id};
use crate::store::fixture::{FAILURE, Fixture, every_store};

every_store!(
    unique_for_started_holds_the_key_until_the_first_start,
    unique_for_finished_holds_the_key_until_the_end,
    unique_for_a_span_holds_the_key_regardless_of_the_state,
    among_jobs_enqueued_together_the_first_holds_the_key,
    a_removed_job_holds_no_key,
    a_retried_job_needs_its_key,
    a_retried_job_that_had_started_does_not_take_its_key_again,
    a_retry_does_not_restart_the_span,
    unique_for_is_stored,
);

const MINUTE: UniqueFor = UniqueFor::Span(Duration::from_secs(60));

fn unique(id: &str, unique_for: UniqueFor) -> JobBuilder {
    job(id).unique_key("k").unique_for(unique_for).max_retries(0)
}

/// The holder of the key, found by enqueuing a probe, which is removed again.
fn holder(fixture: &Fixture) -> Option<String> {
    match &fixture.enqueue_all([job("probe").unique_key("k")])[..] {
        [EnqueueResult::Created(_)] => {
            fixture.remove("probe");
            None
        }
        [EnqueueResult::Existing(id)] => Some(id.to_string()),
        other => panic!("expected one answer: {other:?}"),
    }
}

fn unique_for_started_holds_the_key_until_the_first_start(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue(unique("a", UniqueFor::Started));
    assert_eq!(holder(fixture).as_deref(), Some("a"));
    let lease = fixture.lease(&worker);
    assert_eq!(holder(fixture), None);
    fixture.settle(&worker, &lease, Outcome::Lost);
    assert_eq!(
        (fixture.state("a"), holder(fixture)),
        (StateName::Pending, None),
        "a lost attempt does not take the key back"
    );
    fixture.enqueue(unique("b", UniqueFor::Started));
    fixture.run(&worker, Outcome::Success);
    assert_eq!(holder(fixture).as_deref(), Some("b"), "the end of `a` does not release the key of `b`");
    fixture.cancel("b");
    assert_eq!(holder(fixture), None, "a cancelled job never starts");
}

fn unique_for_finished_holds_the_key_until_the_end(fixture: &Fixture) {
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

fn unique_for_a_span_holds_the_key_regardless_of_the_state(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue(unique("a", MINUTE));
    fixture.run(&worker, Outcome::Success);
    fixture.pass_millis(59_999);
    assert_eq!(holder(fixture).as_deref(), Some("a"), "also after the job is finished");
    fixture.pass_millis(1);
    assert_eq!(holder(fixture), None);
    fixture.enqueue(unique("b", MINUTE));
    fixture.pass_secs(60);
    assert_eq!(
        (fixture.state("b"), holder(fixture)),
        (StateName::Pending, None),
        "although the job is unfinished"
    );
    fixture.enqueue(unique("c", UniqueFor::Finished));
    fixture.run(&worker, Outcome::Success);
    assert_eq!(fixture.state("b"), StateName::Completed);
    assert_eq!(holder(fixture).as_deref(), Some("c"));
}

fn among_jobs_enqueued_together_the_first_holds_the_key(fixture: &Fixture) {
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

fn a_removed_job_holds_no_key(fixture: &Fixture) {
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

fn a_retried_job_that_had_started_does_not_take_its_key_again(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue(unique("a", UniqueFor::Started));
    fixture.run(&worker, FAILURE);
    fixture.enqueue(unique("b", UniqueFor::Started).delay_secs(60));
    assert_eq!(fixture.retry("a"), Change::Done(StateName::Pending));
    assert_eq!(holder(fixture).as_deref(), Some("b"));
}

fn a_retry_does_not_restart_the_span(fixture: &Fixture) {
    fixture.enqueue(unique("a", MINUTE));
    fixture.cancel("a");
    assert_eq!(fixture.retry("a"), Change::Done(StateName::Pending), "the job still holds its key");
    fixture.cancel("a");
    fixture.pass_secs(61);
    assert_eq!(fixture.retry("a"), Change::Done(StateName::Pending));
    assert_eq!(holder(fixture), None, "the span has passed");
    fixture.cancel("a");
    fixture.enqueue(unique("b", MINUTE));
    let taken = Change::Conflict(Conflict::KeyTaken { holder: job_id("b") });
    assert_eq!(fixture.retry("a"), taken);
}

fn unique_for_is_stored(fixture: &Fixture) {
    for kind in [MINUTE, UniqueFor::Started, UniqueFor::Finished] {
        let id = format!("j-{kind}");
        fixture.enqueue(job(&id).unique_key(&id).unique_for(kind));
        assert_eq!(fixture.job(&id).options.unique_for, kind);
    }
}

/// A job of the model: a list in memory that is obviously correct.
struct ModelJob {
    id: String,
    key: usize,
    kind: UniqueFor,
    enqueued_at: u64,
    started: bool,
    finished: bool,
}

impl ModelJob {
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

    /// The store gives the same answers as a model in memory.
    #[test]
    fn answers_equal_those_of_a_model_in_memory(steps in vec((0..6_u8, any::<u8>()), 1..50)) {
        let fixture = Fixture::sqlite();
        let worker = fixture.worker("w");
        let (mut jobs, mut now): (Vec<ModelJob>, u64) = (Vec::new(), 0);
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
                        jobs.push(ModelJob { id, key, kind, enqueued_at: now, started: false, finished: false });
                    }
                }
                3 => {
                    if let Some(lease) = fixture.leases(&worker, 1).pop() {
                        let outcome = [Outcome::Success, FAILURE, Outcome::Lost][usize::from(die) % 3];
                        fixture.settle(&worker, &lease, outcome);
                        let ran = jobs.iter_mut().find(|job| job.id == lease.job.as_str()).expect("the model has the job");
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
