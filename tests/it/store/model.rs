//! Random histories on a store and on a model in memory: after every step both agree.

mod history;
mod lane;
mod memory;

use std::marker::PhantomData;
use std::time::Duration;

use domain::job::Job;
use domain::job::life::{State, StateName};
use domain::job::outcome::Outcome;
use domain::settings::SettingKey;
use domain::values::name::WorkerId;
use domain::values::timestamp::Timestamp;
use proptest::prelude::ProptestConfig;
use proptest_state_machine::{StateMachineTest, prop_state_machine};
use store::{
    Change, EnqueueResult, Exchange, JobFilter, LeaseRef, NewWorker, Page, Phase, Queue, ServedJobs,
    Settlement,
};

use super::fixture::new_job::{JobBuilder, job, queue_name};
use super::fixture::{Fixture, new_worker, settlement, under_boot};
use super::model::history::{ExpectedAnswer, Model, NextDue, Step};
use super::model::memory::{
    Answer, CRASH_LIMIT, LEASE_MILLIS, MAX_BACKOFF_MILLIS, Memory, MemoryJob, RETRY_DELAY_MILLIS, Request,
};

prop_state_machine! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sqlite_agrees_with_a_model_in_memory(sequential 10..50 => Machine<OnSqlite>);
}

prop_state_machine! {
    // A statement takes longer than on SQLite, where the same code runs.
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn postgres_agrees_with_a_model_in_memory(sequential 10..50 => Machine<OnPostgres>);
}

/// Creates the store that is compared with the model.
trait Constructor {
    fn fixture() -> Fixture;
}

struct OnSqlite;

impl Constructor for OnSqlite {
    fn fixture() -> Fixture {
        Fixture::sqlite()
    }
}

struct OnPostgres;

impl Constructor for OnPostgres {
    fn fixture() -> Fixture {
        Fixture::postgres()
    }
}

const QUEUES: [&str; 3] = ["a", "b", "c"];

struct Machine<C>(PhantomData<C>);

impl<C: Constructor> StateMachineTest for Machine<C> {
    type SystemUnderTest = Fixture;
    type Reference = Model;

    fn init_test(model: &Model) -> Fixture {
        let fixture = C::fixture();
        // This test has no power failures, so it does not need full durability.
        fixture.set(SettingKey::Durability, "normal");
        fixture.set(SettingKey::RetryDelay, &format!("{RETRY_DELAY_MILLIS}ms"));
        fixture.set(SettingKey::MaxBackoff, &format!("{MAX_BACKOFF_MILLIS}ms"));
        fixture.set(SettingKey::CrashLimit, &CRASH_LIMIT.to_string());
        fixture.set(SettingKey::Lease, &format!("{LEASE_MILLIS}ms"));
        for worker in 0..model.memory.workers.len() {
            register(&fixture, &model.memory, worker);
        }
        fixture
    }

    fn apply(fixture: Fixture, model: &Model, step: Step) -> Fixture {
        apply_step(&fixture, model, &step);
        fixture
    }

    fn check_invariants(fixture: &Fixture, model: &Model) {
        assert_same_jobs(fixture, &model.memory);
        assert_same_order(fixture, &model.memory);
        assert_same_workers(fixture, model);
        assert_same_counters(fixture, &model.memory);
    }

    fn teardown(fixture: Fixture, model: Model) {
        fixture.recount();
        for kept in model.memory.jobs.iter().filter(|job| !job.removed) {
            let name = &kept.request.name;
            assert_eq!(fixture.outcomes(name), kept.history, "the history of {name}");
        }
    }
}

/// Applies a step and compares the answer.
fn apply_step(fixture: &Fixture, model: &Model, step: &Step) {
    match step {
        Step::Pass { millis } => fixture.clock.advance(Duration::from_millis(*millis)),
        Step::Pause(queue) => fixture.pause(QUEUES[*queue]),
        Step::Resume(queue) => fixture.resume(QUEUES[*queue]),
        Step::Limit { queue, concurrency, rate } => {
            let concurrency = concurrency.map(|limit| u32::try_from(limit).expect("a small limit"));
            let rate = rate.map(|(count, millis)| format!("{count}/{millis}ms"));
            fixture.limit(QUEUES[*queue], concurrency, rate.as_deref());
        }
        Step::Cancel(_) => change(&model.expected, |name| fixture.cancel(name)),
        Step::Retry(_) => change(&model.expected, |name| fixture.retry(name)),
        Step::Remove(_) => change(&model.expected, |name| fixture.remove(name)),
        Step::PauseJob(_) => change(&model.expected, |name| fixture.pause_job(name)),
        Step::ResumeJob(_) => change(&model.expected, |name| fixture.resume_job(name)),
        Step::Enqueue(_) => enqueue(fixture, &model.expected),
        Step::Exchange { .. } | Step::LateSettle { .. } | Step::Extend { .. } | Step::Reap { .. } => {
            work(fixture, model);
        }
    }
}

fn enqueue(fixture: &Fixture, expected: &ExpectedAnswer) {
    let ExpectedAnswer::Enqueued { batch, answers: expected } = expected else {
        panic!("not the answer to an enqueue: {expected:?}")
    };
    let answers = fixture.try_enqueue(batch.iter().map(spec));
    let answers = answers.ok().map(|answers| {
        let answered = |answer: &EnqueueResult| {
            let is_new = matches!(answer, EnqueueResult::Created(_));
            (answer.id().to_string(), is_new)
        };
        answers.iter().map(answered).collect::<Vec<_>>()
    });
    assert_eq!(&answers, expected, "the answers to the enqueue");
}

fn spec(request: &Request) -> JobBuilder {
    let parents: Vec<&str> = request.parents.iter().map(String::as_str).collect();
    let mut spec = job(&request.name)
        .queue(QUEUES[request.queue])
        .priority(request.priority)
        .max_retries(request.max_retries)
        .after(&parents);
    if let Some(millis) = request.delay_millis {
        spec = spec.delay(Duration::from_millis(millis.unsigned_abs()));
    }
    if request.runs_anyway {
        spec = spec.run_on_dependency_failure();
    }
    if let Some(key) = &request.key {
        spec = spec.unique_key(key);
    }
    if request.if_absent {
        spec = spec.if_absent();
    }
    spec
}

/// Applies the steps of workers.
fn work(fixture: &Fixture, model: &Model) {
    match &model.expected {
        ExpectedAnswer::Exchanged {
            worker,
            settled,
            states,
            claimed,
            want,
            want_limited,
            has_left_some,
            next_due,
        } => {
            let settlements: Vec<Settlement> =
                settled.iter().map(|(lease, outcome)| settlement(lease, *outcome)).collect();
            let worker = worker_id(*worker);
            let (want, want_limited) = (*want, *want_limited);
            let exchange = Exchange { worker: &worker, settlements: &settlements, want, want_limited };
            let exchanged = fixture.store.exchange(&exchange).expect("exchange");
            let given: Vec<_> = exchanged.claimed.into_iter().map(|claim| claim.lease).collect();
            let (recorded, stale) = expected_settlements(settled, states);
            let reported: Vec<_> =
                exchanged.settled.into_iter().map(|settled| (settled.lease, settled.state)).collect();
            assert_eq!(reported, recorded, "the settled attempts and their states");
            assert_eq!(exchanged.stale, stale, "the stale settlements");
            assert_eq!(&given, claimed, "the claims and their order");
            if let Some(has_left_some) = has_left_some {
                assert_eq!(exchanged.has_left_some, *has_left_some, "whether claimable jobs remain");
            }
            assert_next_due(exchanged.next_due.map(Timestamp::as_millis), next_due);
        }
        ExpectedAnswer::Extended { worker, leases, statuses } => {
            let extended = fixture.store.extend(&worker_id(*worker), leases).expect("extend");
            assert_eq!(&extended, statuses, "the status of the leases");
        }
        ExpectedAnswer::Reaped { worker, started, reaped, successor } => {
            let taken = fixture.store.reap(&worker_id(*worker), started.as_deref(), &[]).expect("reap");
            assert_eq!(&taken, reaped, "the leases of the dead worker");
            register(fixture, &model.memory, *successor);
        }
        ExpectedAnswer::Nothing => {}
        ExpectedAnswer::Enqueued { .. } | ExpectedAnswer::Changed { .. } => {
            panic!("not a step of a worker: {:?}", model.expected)
        }
    }
}

/// Asserts that the worker wakes up when it must, and at no other time without a reason.
fn assert_next_due(due: Option<i64>, next_due: &NextDue) {
    let is_early =
        |due: i64| next_due.allowed.contains(&due) && next_due.needed.is_none_or(|needed| due < needed);
    assert!(due == next_due.needed || due.is_some_and(is_early), "the next is due at {due:?}: {next_due:?}");
}

/// The recorded settlements with the resulting state, and the stale ones.
fn expected_settlements(
    settled: &[(LeaseRef, Outcome)],
    states: &[Option<StateName>],
) -> (Vec<(LeaseRef, StateName)>, Vec<LeaseRef>) {
    let (mut recorded, mut stale) = (Vec::new(), Vec::new());
    for ((lease, _), settled_as) in settled.iter().zip(states) {
        match settled_as {
            Some(name) => recorded.push((lease.clone(), *name)),
            None => stale.push(lease.clone()),
        }
    }
    (recorded, stale)
}

fn change(expected: &ExpectedAnswer, verb: impl Fn(&str) -> Change) {
    let ExpectedAnswer::Changed { name, answer: expected } = expected else {
        panic!("not the answer to a change: {expected:?}")
    };
    let answer = match verb(name) {
        Change::Done(state) => Answer::Done(state),
        Change::NotFound => Answer::NotFound,
        Change::Conflict(_) => Answer::Conflict,
    };
    assert_eq!(answer, *expected, "the result of the change");
}

/// The facts of a job that both store and model know.
#[derive(Debug, PartialEq)]
struct JobFacts {
    name: String,
    state: &'static str,
    attempts: u32,
    failures: u32,
    losses: u32,
    due_at: i64,
    blocked_by: usize,
    /// The worker that runs the job, the end of its lease, and whether a cancel is requested.
    lease: Option<(String, i64, bool)>,
}

fn assert_same_jobs(fixture: &Fixture, memory: &Memory) {
    let everything = Page { limit: usize::MAX, after: None };
    let stored = fixture.store.list(&JobFilter::default(), &everything).expect("list");
    let stored: Vec<JobFacts> = stored.iter().map(facts_from_store).collect();
    let kept = memory.jobs.iter().rev().filter(|job| !job.removed);
    let kept: Vec<JobFacts> = kept.map(facts_from_memory).collect();
    assert_eq!(stored, kept, "all jobs, the newest first");
}

fn facts_from_store(job: &Job) -> JobFacts {
    let life = &job.life;
    JobFacts {
        name: job.id.to_string(),
        state: life.state.name().name(),
        attempts: life.attempts,
        failures: life.failures,
        losses: life.losses.count,
        due_at: life.due_at.as_millis(),
        blocked_by: match life.state {
            State::Pending { blocked_by } => blocked_by as usize,
            State::Processing(_)
            | State::Completed { .. }
            | State::Failed
            | State::Dead { .. }
            | State::Cancelled { .. } => 0,
        },
        lease: match &life.state {
            State::Processing(lease) => {
                Some((lease.worker.to_string(), lease.until.as_millis(), lease.cancel_requested.is_some()))
            }
            State::Pending { .. }
            | State::Completed { .. }
            | State::Failed
            | State::Dead { .. }
            | State::Cancelled { .. } => None,
        },
    }
}

fn facts_from_memory(job: &MemoryJob) -> JobFacts {
    JobFacts {
        name: job.request.name.clone(),
        state: job.state.name(),
        attempts: job.attempts,
        failures: job.failures,
        losses: job.losses,
        due_at: job.due_at,
        blocked_by: job.blockers.len(),
        lease: job
            .lease
            .as_ref()
            .map(|lease| (worker_id(lease.worker).to_string(), lease.until, lease.cancel)),
    }
}

fn assert_same_order(fixture: &Fixture, memory: &Memory) {
    let ready = JobFilter::in_phase(Phase::Ready);
    let order: Vec<&str> =
        memory.ready().into_iter().map(|at| memory.jobs[at].request.name.as_str()).collect();
    assert_eq!(fixture.list_by(&ready, 3), order, "the ready jobs in claim order");
}

/// Compares the leases and the orders of each worker.
fn assert_same_workers(fixture: &Fixture, model: &Model) {
    let memory = &model.memory;
    let listed = fixture.workers();
    assert_eq!(listed.len(), model.seats.len(), "the registered workers");
    for worker in model.seats {
        let id = worker_id(worker);
        let shown = listed.iter().find(|shown| shown.id == id).expect("the worker is listed");
        let ends: Vec<i64> = memory.held_by(worker).map(|(_, lease)| lease.until).collect();
        assert_eq!(shown.held as usize, ends.len(), "the number of leases of {id}");
        let until = shown.lease_until.map(Timestamp::as_millis);
        assert_eq!(until, ends.iter().min().copied(), "the earliest lease end of {id}");
        assert_eq!(
            shown.overdue,
            ends.iter().any(|end| *end < memory.now),
            "whether a lease of {id} has expired"
        );

        let orders = fixture.orders(&id);
        let cancelled = memory.held_by(worker).filter(|(_, lease)| lease.cancel);
        let cancelled: Vec<&str> = cancelled.map(|(job, _)| job.request.name.as_str()).collect();
        let ordered: Vec<&str> = orders.cancelled.iter().map(|order| order.lease.job.as_str()).collect();
        assert_eq!(ordered, cancelled, "the jobs that {id} must cancel");
        let paused = memory.held_by(worker).filter(|(_, lease)| lease.paused);
        let paused: Vec<&str> = paused.map(|(job, _)| job.request.name.as_str()).collect();
        let ordered: Vec<&str> = orders.paused.iter().map(|lease| lease.job.as_str()).collect();
        assert_eq!(ordered, paused, "the jobs that {id} must keep stopped");
        assert_eq!(fixture.is_idle(&id), memory.is_idle(worker), "whether {id} is idle");
    }
}

/// The jobs are equal, so this is equivalent to a recount.
fn assert_same_counters(fixture: &Fixture, memory: &Memory) {
    let counted = |queue: &Queue, state: StateName| {
        let here = |job: &&MemoryJob| QUEUES[job.request.queue] == queue.name.as_str() && job.state == state;
        memory.jobs.iter().filter(|job| !job.removed).filter(here).count()
    };
    for queue in fixture.store.queues().expect("queues") {
        for state in StateName::ALL {
            let count = queue.counts.get(&state).copied().unwrap_or(0);
            let what = format!("{} jobs in {}", state.name(), queue.name);
            assert_eq!(usize::try_from(count), Ok(counted(&queue, state)), "{what}");
        }
    }
}

fn register(fixture: &Fixture, memory: &Memory, worker: usize) {
    let model = &memory.workers[worker];
    let in_order = |queues: &Vec<usize>| queues.iter().map(|queue| queue_name(QUEUES[*queue])).collect();
    fixture.register(NewWorker {
        origin: under_boot(model.boot),
        served: model.queues.as_ref().map_or(ServedJobs::All, |queues| ServedJobs::InOrder(in_order(queues))),
        ..new_worker(worker_id(worker).as_str())
    });
}

fn worker_id(worker: usize) -> WorkerId {
    format!("w{worker}").parse().expect("a worker id")
}
