//! Enqueuing new jobs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use domain::job::backoff::{BackoffChoice, Strategy};
use domain::job::environment::Environment;
use domain::job::life::{State, StateName};
use domain::job::options::{AttemptRequests, JobOptions};
use domain::job::outcome::Outcome;
use domain::job::trace::TraceContext;
use domain::job::unique::UniqueFor;
use domain::job::{NewJob, Start};
use domain::values::timestamp::Timestamp;
use store::{Change, EnqueueRefusal, EnqueueResult, JobFilter};

use crate::store::fixture::new_job::{JobBuilder, job, job_id, queue_name};
use crate::store::fixture::{FAILURE, Fixture, every_store, settlement};

every_store!(
    every_field_of_a_job_is_stored,
    a_claim_has_everything_needed_to_run_the_job,
    jobs_share_equal_environments,
    the_answers_follow_the_order_of_the_jobs,
    one_invalid_job_refuses_all_jobs,
    if_absent_returns_the_existing_job,
    taken_ids_are_reported,
    a_unique_key_is_held_until_the_job_is_finished,
    a_unique_key_applies_among_jobs_enqueued_together,
    a_job_is_due_at_its_start_time,
    a_queue_is_created_by_its_first_job,
    enqueuing_no_jobs_succeeds,
    a_new_job_inherits_nothing_from_a_removed_one,
);

fn full_job() -> NewJob {
    NewJob {
        id: job_id("a"),
        command: "printf 'ä\u{1b}[0m\n'".to_owned(),
        queue: queue_name("media"),
        priority: i32::MIN,
        max_retries: 0,
        timeout: Some(Duration::from_millis(1_500)),
        start: Start::At(Timestamp::from_millis(5)),
        depends_on: vec![job_id("p"), job_id("q")],
        unique_key: Some("key".to_owned()),
        cwd: Some("/tmp/ä b".to_owned()),
        environment: Some(environment()),
        tags: vec!["z".to_owned(), "a".to_owned()],
        options: JobOptions {
            name: Some("all of it".to_owned()),
            backoff: Some(BackoffChoice {
                strategy: Some(Strategy::Linear),
                base: Some(1.5),
                ..BackoffChoice::default()
            }),
            env: BTreeMap::from([("NAME".to_owned(), "a=b".to_owned())]),
            run_on_dependency_failure: true,
            unique_for: UniqueFor::Started,
            limits: "memory=1G,cpu=0.1,nice=-3".parse().expect("limits"),
            retry_on: "1,75".parse().ok(),
            no_retry_on: "2".parse().ok(),
            reported: None,
            stdin_bytes: 3,
            requests: AttemptRequests::default(),
            trace: Some(Box::new(TraceContext {
                state: Some("a=b".to_owned()),
                ..TraceContext::new(&[b"all of it"])
            })),
        },
        stdin: Some(b"a\0b".as_slice().into()),
        if_absent: false,
        batch: None,
    }
}

fn environment() -> Arc<Environment> {
    let variables = [(b"PATH".to_vec(), b"/bin".to_vec()), (b"X".to_vec(), vec![0xff])];
    Arc::new(Environment::capture(variables))
}

fn every_field_of_a_job_is_stored(fixture: &Fixture) {
    fixture.enqueue_all([job("p"), job("q"), full_job().into()]);

    let (requested, stored) = (full_job(), fixture.job("a"));
    assert_eq!(stored.command, requested.command);
    assert_eq!(stored.queue, requested.queue);
    assert_eq!(stored.priority, requested.priority);
    assert_eq!(stored.life.state, State::Pending { blocked_by: 2 });
    assert_eq!(stored.life.max_retries, requested.max_retries);
    assert_eq!(stored.life.run_at, Some(Timestamp::from_millis(5)));
    assert_eq!((stored.life.attempts, stored.life.failures), (0, 0));
    assert_eq!(stored.timeout, requested.timeout);
    assert_eq!(stored.depends_on, requested.depends_on);
    assert_eq!(stored.unique_key, requested.unique_key);
    assert_eq!(stored.cwd, requested.cwd);
    assert_eq!(stored.options, requested.options);
    assert_eq!(stored.tags, requested.tags, "in the given order");
    assert_eq!((stored.created_at, stored.updated_at), (fixture.now(), fixture.now()));
    assert_eq!(stored.latest.started_at, None);
}

fn a_claim_has_everything_needed_to_run_the_job(fixture: &Fixture) {
    let requested = NewJob { depends_on: Vec::new(), ..full_job() };
    fixture.enqueue(requested.clone());
    let worker = fixture.worker("w");

    let claim = fixture.exchange(&worker, &[], 1).claimed.remove(0);
    assert_eq!((claim.lease.job, claim.lease.attempt), (requested.id, 1));
    assert_eq!(claim.lease_until, fixture.now().saturating_add(fixture.store.default_settings().lease));
    assert_eq!(claim.queue, requested.queue);
    assert_eq!(claim.command, requested.command);
    assert_eq!(claim.cwd, requested.cwd);
    assert_eq!(claim.environment.as_deref(), requested.environment.as_deref());
    assert_eq!(claim.env, requested.options.env);
    assert_eq!(claim.stdin.as_deref(), requested.stdin.as_deref());
    assert_eq!(claim.timeout, requested.timeout);
}

fn jobs_share_equal_environments(fixture: &Fixture) {
    let other = Arc::new(Environment::capture([(b"PATH".to_vec(), b"/sbin".to_vec())]));
    let in_environment =
        |id: &str, environment: Option<Arc<Environment>>| NewJob { environment, ..NewJob::from(job(id)) };
    // Equal environments, shared or not; a different one; none.
    let shared = environment();
    fixture.enqueue_all(
        [
            in_environment("a", Some(shared.clone())),
            in_environment("b", Some(shared)),
            in_environment("c", Some(other.clone())),
            in_environment("d", Some(environment())),
            in_environment("e", None),
        ]
        .map(JobBuilder::from),
    );
    let worker = fixture.worker("w");
    let claimed = fixture.exchange(&worker, &[], 9).claimed;
    let environments: Vec<_> =
        claimed.into_iter().map(|claim| claim.environment.as_deref().cloned()).collect();
    let expected = [Some(environment()), Some(environment()), Some(other), Some(environment()), None]
        .map(|environment| environment.as_deref().cloned());
    assert_eq!(environments, expected);
}

fn the_answers_follow_the_order_of_the_jobs(fixture: &Fixture) {
    fixture.enqueue(job("b").unique_key("k"));
    let answers = fixture.enqueue_all([job("a"), job("b").if_absent(), job("c").unique_key("k"), job("d")]);
    assert_eq!(
        answers,
        [
            EnqueueResult::Created(job_id("a")),
            EnqueueResult::Existing(job_id("b")),
            EnqueueResult::Existing(job_id("b")),
            EnqueueResult::Created(job_id("d")),
        ]
    );
}

fn one_invalid_job_refuses_all_jobs(fixture: &Fixture) {
    fixture.enqueue("taken");
    let before = fixture.record("taken");
    let cases: [(Vec<JobBuilder>, usize, EnqueueRefusal); 7] = [
        (vec![job("a"), job("taken")], 1, EnqueueRefusal::IdTaken(job_id("taken"))),
        (vec![job("a"), job("b"), job("a")], 2, EnqueueRefusal::IdTaken(job_id("a"))),
        (
            vec![job("a"), job("b").after(&["taken", "unknown"])],
            1,
            EnqueueRefusal::UnknownDependency(job_id("unknown")),
        ),
        (vec![job("a").after(&["a"])], 0, EnqueueRefusal::Cycle(job_id("a"))),
        (
            vec![job("x"), job("a").after(&["b"]), job("b").after(&["c"]), job("c").after(&["b"])],
            2,
            EnqueueRefusal::Cycle(job_id("b")),
        ),
        (vec![job("a"), job("b").delay_secs(u64::MAX)], 1, EnqueueRefusal::TooLate),
        (vec![job("a"), job("b").delay_secs(400_000_000_000)], 1, EnqueueRefusal::TooLate),
    ];
    for (batch, at, reason) in cases {
        let description = format!("{batch:?}");
        let batch = batch.into_iter().map(|job| job.queue("elsewhere").tags(&["t"]));
        let (refused_at, refused_for) = fixture.refused(batch);
        // The store may report any job of a cycle.
        match (&reason, &refused_for) {
            (EnqueueRefusal::Cycle(_), EnqueueRefusal::Cycle(_)) => {}
            _ => assert_eq!((refused_at, refused_for), (at, reason), "{description}"),
        }
        assert_eq!(fixture.list_by(&JobFilter::default(), 10), ["taken"], "nothing stored: {description}");
        assert_eq!(fixture.record("taken"), before, "the existing job is unchanged: {description}");
        let queues = fixture.store.queues().expect("queues");
        assert_eq!(queues.len(), 1, "no queue was created: {description}");
    }
    fixture.enqueue_all([job("a"), job("b")]);
}

fn if_absent_returns_the_existing_job(fixture: &Fixture) {
    fixture.enqueue(job("a").priority(1));
    let before = fixture.record("a");
    let again = fixture.enqueue_all([job("a").priority(2).if_absent()]);
    assert_eq!(again, [EnqueueResult::Existing(job_id("a"))]);
    assert_eq!(fixture.record("a"), before, "the first job is unchanged");

    // Also among jobs enqueued together, and for a finished job.
    let batch = fixture.enqueue_all([job("b"), job("b").if_absent()]);
    assert_eq!(batch, [EnqueueResult::Created(job_id("b")), EnqueueResult::Existing(job_id("b"))]);
    fixture.cancel("b");
    let finished = fixture.enqueue_all([job("b").if_absent()]);
    assert_eq!(finished, [EnqueueResult::Existing(job_id("b"))]);
    assert_eq!(fixture.state("b"), StateName::Cancelled);
}

fn taken_ids_are_reported(fixture: &Fixture) {
    fixture.enqueue_all([job("a"), job("b")]);
    let requested = ["c", "b", "d", "a"].map(job_id);
    let taken = fixture.store.existing_ids(&requested).expect("taken");
    assert_eq!(taken, [job_id("b"), job_id("a")]);
}

fn a_unique_key_is_held_until_the_job_is_finished(fixture: &Fixture) {
    let worker = fixture.worker("w");
    let settle = |outcome| {
        fixture.run(&worker, outcome);
    };
    let cases: [(&str, &dyn Fn(), bool); 7] = [
        ("pending", &|| {}, true),
        ("processing", &|| drop(fixture.lease(&worker)), true),
        ("failed", &|| settle(FAILURE), true),
        ("completed", &|| settle(Outcome::Success), false),
        ("dead", &|| (0..4).for_each(|_| fail_now(fixture, &worker)), false),
        ("cancelled", &|| drop(fixture.cancel("holder")), false),
        ("removed", &|| assert!(matches!(fixture.remove("holder"), Change::Done(_))), false),
    ];
    for (name, act, held) in cases {
        fixture.enqueue(job("holder").unique_key("k"));
        act();
        let answer = fixture.enqueue_all([job("next").unique_key("k")]).remove(0);
        let holder = if held { "holder" } else { "next" };
        assert_eq!(answer.id(), &job_id(holder), "after the holder was {name}");
        assert_eq!(matches!(answer, EnqueueResult::Existing(_)), held, "{name}");

        settle_all(fixture, &worker);
        for id in ["holder", "next"] {
            fixture.cancel(id);
            fixture.remove(id);
        }
    }
}

/// Fails the next job, and lets its backoff pass.
fn fail_now(fixture: &Fixture, worker: &domain::values::name::WorkerId) {
    fixture.run(worker, FAILURE);
    fixture.pass_secs(300);
}

/// Completes the jobs that the worker still holds.
fn settle_all(fixture: &Fixture, worker: &domain::values::name::WorkerId) {
    for id in ["holder", "next"] {
        let found = fixture.store.find(&job_id(id)).expect("find");
        let Some(job) = found.filter(|job| job.life.state.name() == StateName::Processing) else {
            continue;
        };
        let lease = store::LeaseRef { job: job.id, attempt: job.life.attempts };
        fixture.exchange(worker, &[settlement(&lease, Outcome::Success)], 0);
    }
}

fn a_unique_key_applies_among_jobs_enqueued_together(fixture: &Fixture) {
    let answers = fixture.enqueue_all([
        job("a").unique_key("k"),
        job("b").unique_key("k"),
        job("c").unique_key("other"),
    ]);
    assert_eq!(
        answers,
        [
            EnqueueResult::Created(job_id("a")),
            EnqueueResult::Existing(job_id("a")),
            EnqueueResult::Created(job_id("c")),
        ]
    );
    assert_eq!(fixture.list_by(&JobFilter::default(), 10), ["c", "a"]);
}

fn a_job_is_due_at_its_start_time(fixture: &Fixture) {
    let now = fixture.now();
    let later = now.saturating_add(Duration::from_secs(60));
    let earlier = Timestamp::from_millis(now.as_millis() - 60_000);
    for (id, spec, run_at, due_at) in [
        ("now", job("now"), None, now),
        ("at", job("at").at(later), Some(later), later),
        ("past", job("past").at(earlier), Some(earlier), now),
        ("delay", job("delay").delay_secs(60), Some(later), later),
        ("last", job("last").at(Timestamp::MAX), Some(Timestamp::MAX), Timestamp::MAX),
    ] {
        fixture.enqueue(spec);
        let life = fixture.job(id).life;
        assert_eq!((life.run_at, life.due_at), (run_at, due_at), "{id}");
    }
}

fn a_queue_is_created_by_its_first_job(fixture: &Fixture) {
    assert_eq!(fixture.store.queues().expect("queues"), []);
    fixture.enqueue_all([job("a").queue("q"), job("b").queue("q"), job("c").queue("p")]);
    let queues = fixture.store.queues().expect("queues");
    let counts: Vec<_> =
        queues.iter().map(|queue| (queue.name.as_str(), queue.counts[&StateName::Pending])).collect();
    assert_eq!(counts, [("p", 1), ("q", 2)], "sorted by name");
}

fn enqueuing_no_jobs_succeeds(fixture: &Fixture) {
    assert_eq!(fixture.enqueue_all([]), []);
}

fn a_new_job_inherits_nothing_from_a_removed_one(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("first");
    fixture.enqueue(job("a").tags(&["old"]).unique_key("k").priority(1));
    let lease = fixture.lease(&worker);
    let mut settled = settlement(&lease, Outcome::Success);
    settled.output = Some(b"said".to_vec());
    fixture.exchange(&worker, &[settled], 0);
    fixture.retry("a");
    fixture.cancel("a");
    assert_eq!(fixture.remove("a"), Change::Done(StateName::Cancelled));

    fixture.enqueue("a");
    let record = fixture.record("a");
    assert_eq!((record.events, record.history), (vec![], vec![]));
    assert_eq!(record.job.life.attempts, 0);
    assert_eq!(record.job.tags, [""; 0]);
    let output = fixture.store.output(&job_id("a"), 1).expect("output");
    assert_eq!(output, None, "the output of the removed job is deleted");
    let tagged = JobFilter { tag: Some("old".to_owned()), ..JobFilter::default() };
    assert_eq!(fixture.list_by(&tagged, 10), [""; 0]);
    assert_eq!(fixture.list_by(&JobFilter::default(), 10), ["a", "first"], "the new job is the newest");
}
