//! A store with jobs of every kind, and a use of every verb.

use std::sync::Arc;
use std::time::Duration;

use domain::hook::HookEvent;
use domain::job::NewJob;
use domain::job::edit::Edit;
use domain::job::environment::Environment;
use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use domain::job::spec::JobSpec;
use domain::schedule::{OnOverlap, Policy};
use domain::settings::SettingKey;
use domain::values::name::WorkerId;
use domain::values::timestamp::Timestamp;
use store::{
    AfterEdit, Cursor, Delivery, DeliveryReport, DeliveryResult, Duty, EnvironmentGc, EventPage, EventRange,
    JobFilter, JobVerb, LeaseRef, MoveError, NewSchedule, Order, OutputPart, Page, PageStart, PartsSize,
    Pause, Phase, Prunable, PruneStep, ScheduleEdit, Search, ServedJobs, Settlement, ShippedAttempt, Stop,
    StopScope, UnkillableProcess, WorkerSlots, WorkerState,
};

use crate::store::fixture::new_job::{JobBuilder, batch_name, job, job_id, queue_name};
use crate::store::fixture::{ACTOR, FAILURE, Fixture, serving, settlement};
use crate::store::hooks::{hook_name, new_hook};
use crate::store::schedules::{minutely, name as schedule_name};

/// More dependents of one job than one transaction unblocks.
const CHILDREN: usize = 1_002;
/// The number of jobs per page of a list.
const PAGE: usize = 5;

/// Adds this number of jobs of each kind to the store.
pub(super) fn fill(fixture: &Fixture, count: usize) {
    fixture.set(SettingKey::Durability, "normal");
    // Failed jobs must not become due again.
    fixture.set(SettingKey::MaxBackoff, "48h");
    fixture.set(SettingKey::RetryDelay, "24h");
    let worker = fixture.worker("filler");
    enqueue(fixture, "completed", count, |job| job.tags(&["old"]));
    run(fixture, &worker, count, Outcome::Success);
    enqueue(fixture, "dead", count, |job| job.max_retries(0));
    run(fixture, &worker, count, FAILURE);
    enqueue(fixture, "failed", count, |job| job);
    run(fixture, &worker, count, FAILURE);
    enqueue(fixture, "cancelled", count, |job| job);
    let ids: Vec<_> = (0..count).map(|at| job_id(&format!("cancelled-{at}"))).collect();
    fixture.change_all(JobVerb::CANCEL, &ids);
    enqueue(fixture, "scheduled", count, |job| job.delay_secs(86_400).priority(9).tags(&["later"]));
    enqueue(fixture, "blocked", count, |job| job.after(&["scheduled-0"]).tags(&["waits"]));
    enqueue(fixture, "held", count, |job| job.queue("held").priority(5));
    fixture.pause("held");
    enqueue(fixture, "unique", count, |job| job);
    enqueue(fixture, "together", count, |job| job.batch("together"));
    enqueue(fixture, "ready", count, |job| job.tags(&["soon"]));
    fixture.retire(&worker);
}

fn enqueue(fixture: &Fixture, kind: &str, count: usize, adjust: impl Fn(JobBuilder) -> JobBuilder) {
    let jobs = (0..count).map(|at| {
        let id = format!("{kind}-{at}");
        let job = if kind == "unique" { job(&id).unique_key(&id) } else { job(&id) };
        adjust(job)
    });
    fixture.enqueue_all(jobs);
}

fn run(fixture: &Fixture, worker: &WorkerId, count: usize, outcome: Outcome) {
    let settlements: Vec<Settlement> =
        fixture.leases(worker, count).iter().map(|lease| settlement(lease, outcome)).collect();
    assert_eq!(settlements.len(), count, "all jobs are ready");
    fixture.exchange(worker, &settlements, 0);
}

/// Uses every verb of the store, in every way that executes a different statement.
pub(super) fn use_every_verb(fixture: &Fixture) {
    read_all(fixture);
    enqueue_some(fixture);
    work(fixture);
    unblock_many(fixture);
    change_some(fixture);
    die(fixture);
    fire_some(fixture);
    deliver_hooks(fixture);
    measure(fixture);
    keep_tidy(fixture);
    fold(fixture);
    fixture.store.queues().expect("the queues");
    fixture.store.select_dead(&JobFilter::default(), None, PAGE).expect("dead jobs");
    fixture.store.recent_problems(fixture.now(), fixture.now()).expect("recent problems");
    fixture.store.last_stop().expect("a stop order");
    fixture.store.starved(fixture.now()).expect("starved jobs");
    move_away(fixture);
}

fn read_all(fixture: &Fixture) {
    let store = &fixture.store;
    for id in ["completed-1", "blocked-1", "unknown"] {
        store.find(&job_id(id)).expect("find");
        store.summary(&job_id(id)).expect("summary");
        store.record(&job_id(id)).expect("record");
        store.output(&job_id(id), 1).expect("output");
        store.graph(&job_id(id), PAGE).expect("graph");
        store.explain_facts(&job_id(id)).expect("the facts for explain");
    }
    store.explain_facts(&job_id("ready-50")).expect("the facts for explain");
    store.existing_ids(&[job_id("dead-1"), job_id("unknown")]).expect("taken");
    store.ids_with_prefix(&job_id("failed-"), PAGE).expect("ids");
    store.ids_with_suffix(&job_id("d-1"), 10, PAGE).expect("ids");
    store.id_of_number(1).expect("an id");
    store.latest().expect("the latest job");
    store.latest_running(None).expect("the latest job that runs");
    store.select(&JobFilter::in_phase(Phase::State(StateName::Dead)), None, PAGE).expect("a selection");
    store.settings().expect("the settings");
    store.batches(PAGE).expect("the batches");
    store.batch(&batch_name("together")).expect("a batch");
    store.eta_facts(&batch_name("together")).expect("the ETA facts");
    list(fixture, &JobFilter { batch: Some(batch_name("together")), ..JobFilter::default() }, None);
    store.has_worker().expect("the workers");
    for (phase, queue, tag, after) in [
        (None, None, None, Some("ready-1")),
        (None, Some("default"), None, None),
        (None, None, Some("old"), None),
        (Some(Phase::Blocked), None, Some("waits"), None),
        (Some(Phase::Scheduled), Some("default"), Some("later"), Some("scheduled-1")),
        (Some(Phase::Ready), Some("default"), Some("soon"), Some("ready-1")),
    ] {
        let filter = JobFilter {
            phases: phase.into_iter().collect(),
            queue: queue.map(queue_name),
            tag: tag.map(str::to_owned),
            ..JobFilter::default()
        };
        list(fixture, &filter, after);
    }
    for phase in Phase::ALL {
        list(fixture, &JobFilter::in_phase(phase), None);
    }
    // Every job matches, so the first rows fill the page.
    list(fixture, &JobFilter { changed_after: Some(Timestamp::EPOCH), ..JobFilter::default() }, None);
    search(fixture);
}

/// Searches in every order, and by what has an index of its own.
fn search(fixture: &Fixture) {
    let store = fixture.store.as_ref();
    for order in Order::ALL {
        store.search(&Search { order, limit: PAGE, ..Search::default() }).expect("a search");
    }
    let causes = store.causes(None, PAGE).expect("the causes");
    let id = causes[0].cause.id();
    store.cause(id).expect("a cause");
    store.deaths(id, None, Duration::ZERO).expect("when they died");
    store.causes_beginning_with(&id.to_string(), PAGE).expect("the cause");
    store.newest_failures(None, PAGE).expect("the failures");
    let worker = Some("w".parse().expect("an id"));
    for filter in
        [JobFilter { cause: Some(id), ..JobFilter::default() }, JobFilter { worker, ..JobFilter::default() }]
    {
        store.search(&Search { filter, limit: PAGE, ..Search::default() }).expect("a search");
    }
    store.inputs(&job_id("dead-1")).expect("the inputs of a job");
    store.history(Duration::from_secs(86_400), None).expect("a history");
    store.version().expect("a version");
}

fn list(fixture: &Fixture, filter: &JobFilter, after: Option<&str>) {
    let page = Page { limit: PAGE, after: after.map(|id| PageStart::Job(job_id(id))) };
    fixture.store.list(filter, &page).expect("a list");
}

fn enqueue_some(fixture: &Fixture) {
    for (id, variables) in
        [("here", "HOME=/root\0"), ("elsewhere", "HOME=/\0"), ("here-again", "HOME=/root\0")]
    {
        let environment = Some(Arc::new(Environment::from_bytes(variables.as_bytes())));
        fixture.enqueue(NewJob { environment, ..NewJob::from(job(id).priority(7)) });
    }
    fixture.enqueue_all([
        job("new").priority(3).tags(&["soon", "new"]).unique_key("new"),
        job("again").unique_key("unique-1"),
        job("new-queue").queue("another"),
        job("new-batch").batch("another"),
        job("sweep-1").batch("sweep"),
        job("sweep-2").batch("sweep").delay_secs(80_000),
        job("soon").delay_secs(1).priority(8),
        job("child").after(&["new", "completed-1"]),
        job("dependent").after(&["again"]).delay_secs(80_000),
        job("new").if_absent(),
    ]);
}

/// Exchanges of a worker: promote, settle, claim; and its other calls.
fn work(fixture: &Fixture) {
    let worker = fixture.worker("worker");
    fixture.pass_secs(2);
    list(fixture, &JobFilter::in_phase(Phase::Ready), None);
    fixture.orders(&worker);
    let idle = fixture.worker_serving("idle", serving(&["nowhere"]));
    fixture.orders(&idle);
    fixture.is_idle(&idle);
    fixture.store.neighbours("machine").expect("the neighbours");
    fixture.store.neighbours_and_beats("machine").expect("the neighbours and the beats");
    fixture.store.set_worker_health(&idle, Some("no descriptors")).expect("the problem is recorded");
    let leases = fixture.leases(&worker, 8);
    assert_eq!(leases.len(), 8, "enough jobs are ready");
    fixture.workers();
    fixture.store.record(&leases[0].job).expect("a running job");
    fixture.change_all(JobVerb::CANCEL, &[leases[7].job.clone()]);
    fixture.change_all(JobVerb::Pause, &[leases[6].job.clone()]);
    list(fixture, &JobFilter::in_phase(Phase::Paused), None);
    fixture.orders(&worker);
    fixture.store.resume_all(&worker).expect("the paused job continues");
    fixture.store.extend(&worker, &leases).expect("a heartbeat");
    let with_output =
        Settlement { output: Some(b"hello".to_vec()), ..settlement(&leases[0], Outcome::Success) };
    fixture.exchange(&worker, &[with_output, settlement(&leases[1], FAILURE)], 2);
    ship(fixture, &leases[..2]);
    let slots = WorkerSlots { concurrency: 2, most: 3 };
    fixture.store.set_worker_slots(&worker, slots).expect("the slots change");
    fixture.store.set_worker_state(&worker, WorkerState::Draining).expect("the state changes");
    fixture.retire(&worker);
    for (name, served, want) in [
        ("in-order", serving(&["another", "default"]), 1),
        ("of-batch", ServedJobs::Batch(batch_name("sweep")), 2),
        ("one-job", ServedJobs::Job(job_id("ready-9")), 1),
    ] {
        let worker = fixture.worker_serving(name, served);
        fixture.orders(&worker);
        fixture.is_idle(&worker);
        fixture.leases(&worker, want);
        fixture.retire(&worker);
    }
    fixture.store.worker_starts(fixture.now()).expect("the starts of workers");
    // After the clock is set back, the ready jobs are not due.
    fixture.clock.jump(-3_600_000);
    let worker = fixture.worker("early");
    fixture.leases(&worker, 1);
    fixture.retire(&worker);
    fixture.clock.jump(3_600_000);
}

/// Parts of the output of two attempts, as a store of several machines keeps them.
fn ship(fixture: &Fixture, leases: &[LeaseRef]) {
    let part = OutputPart { at: 1, content: b"hello".to_vec() };
    let shipped = |lease: &LeaseRef| {
        let number = fixture.job(lease.job.as_str()).number;
        ShippedAttempt { lease: LeaseRef { attempt: 1, ..lease.clone() }, number }
    };
    for lease in leases {
        let attempt = shipped(lease);
        let put = |gone| fixture.store.put_output(&attempt, gone, std::slice::from_ref(&part));
        put(Some(&(0..1))).expect("the part is stored");
        fixture.store.output_after(&lease.job, 1, 0, 1).expect("the parts");
        let before = fixture.store.output_size_before(&lease.job, 1, 2).expect("the size of the parts");
        assert_eq!(before, PartsSize { parts: 1, bytes: 5 }, "the part at 1 begins before 2");
    }
    fixture.store.delete_output_parts(&shipped(&leases[1])).expect("the parts are deleted");
}

/// Unblocks the dependents of a job in several transactions.
fn unblock_many(fixture: &Fixture) {
    let worker = end_parent(fixture, "parent");
    fixture.orders(&worker);
    fixture.leases(&worker, 1);
    // A retry first unblocks the dependents of the job's last end.
    end_parent(fixture, "retried-parent");
    fixture.retry("retried-parent");
}

/// Cancels a job with many dependents, and returns the worker that ran it.
fn end_parent(fixture: &Fixture, parent: &str) -> WorkerId {
    fixture.enqueue(parent);
    let child = |at| job(&format!("{parent}-{at}")).after(&[parent]).delay_secs(80_000);
    fixture.enqueue_all((0..CHILDREN).map(child));
    let worker = fixture.worker_serving(&format!("worker-of-{parent}"), ServedJobs::Job(job_id(parent)));
    let lease = fixture.lease(&worker);
    assert!(fixture.settle(&worker, &lease, Outcome::Cancelled), "the lease is held");
    worker
}

fn change_some(fixture: &Fixture) {
    for id in ["scheduled-2", "failed-2", "unique-2", "new-batch", "unknown"] {
        fixture.cancel(id);
    }
    fixture.enqueue_all([job("root").delay_secs(9), job("leaf").after(&["root"])]);
    fixture.cancel("root");
    for id in ["dead-3", "unique-2", "new-batch", "child", "leaf"] {
        fixture.retry(id);
    }
    for id in ["completed-4", "new-batch", "scheduled-4", "ready-40", "scheduled-0", "blocked-1"] {
        fixture.remove(id);
    }
    let set =
        JobSpec { tags: vec!["new".to_owned()], queue: Some(queue_name("another")), ..JobSpec::default() };
    let edit = Edit { set, ..Edit::default() };
    for id in ["ready-41", "scheduled-5", "blocked-2"] {
        fixture.store.edit(&job_id(id), &edit, AfterEdit::Keep, ACTOR).expect("the job is edited");
    }
    fixture.store.edit(&job_id("dead-5"), &edit, AfterEdit::Retry, ACTOR).expect("the job is edited");
    fixture.set(SettingKey::Lease, "60s");
    fixture.store.set(SettingKey::Lease, None, ACTOR).expect("the setting has a default");
    fixture.pause("another");
    fixture.store.pause_of(&queue_name("another")).expect("the pause is read");
    fixture.resume("another");
    fixture.pause("unused");
    for name in ["unused", "another"] {
        fixture.store.remove_queue(&queue_name(name), ACTOR).expect("an unused queue is removed");
    }
    work_within_limits(fixture);
    fixture.set_queue("another", "memory=1G", "75", "2");
    let stop = Stop { scope: StopScope::Everywhere, kill_at: Some(fixture.now()) };
    fixture.store.stop(&stop, ACTOR).expect("the stop is recorded");
}

/// A queue that reaches its concurrency and rate limits, and then has capacity again.
fn work_within_limits(fixture: &Fixture) {
    for rate in ["10/h", "2/h"] {
        fixture.limit("another", Some(1), Some(rate));
    }
    fixture.enqueue_all((0..3).map(|at| job(&format!("limited-{at}")).queue("another")));
    let worker = fixture.worker_serving("limited", serving(&["another"]));
    let lease = fixture.lease(&worker);
    fixture.exchange(&worker, &[Settlement::never_started(lease)], 0);
    let lease = fixture.lease(&worker);
    fixture.settle(&worker, &lease, Outcome::Success);
    fixture.retire(&worker);
}

/// Schedules of every kind: added, fired, paused, run by hand and removed.
fn fire_some(fixture: &Fixture) {
    let store = &fixture.store;
    let environment = Some(Arc::new(Environment::from_bytes(b"HOME=/root\0")));
    let unique =
        serde_json::from_str(r#"{"command":"true","cwd":"/","unique_key":"unique-1"}"#).expect("a job");
    let replace = Policy::new(None, None, Some(OnOverlap::Replace)).expect("a policy");
    for schedule in [
        NewSchedule { environment, policy: replace, ..minutely("replace") },
        NewSchedule { job: unique, ..minutely("unique") },
        minutely("held"),
    ] {
        store.add_schedule(&schedule, ACTOR).expect("the schedule is valid");
    }
    for _ in 0..2 {
        fixture.pass_secs(60);
        store.fire_due().expect("fire_due");
    }
    let held = schedule_name("held");
    let pause = Pause { by: ACTOR.to_owned(), reason: None };
    store.set_schedule_pause(&held, Some(&pause), ACTOR).expect("set_schedule_pause");
    store.set_schedule_pause(&held, None, ACTOR).expect("set_schedule_pause");
    store.run_schedule(&held, ACTOR).expect("run_schedule");
    let runs = JobFilter { schedule: Some(held.clone()), ..JobFilter::default() };
    store.count(&runs, None).expect("a count");
    store.schedules().expect("schedules");
    let (seen, _) = store.schedule(&held).expect("schedule").expect("it exists");
    let edit = ScheduleEdit {
        when: seen.when.clone(),
        job: seen.job.clone(),
        policy: seen.policy,
        drops_environment: true,
    };
    store.edit_schedule(&seen, &edit, ACTOR).expect("edit_schedule");
    store.upcoming(10).expect("upcoming");
    store.schedule(&held).expect("schedule");
    store.remove_schedule(&held, ACTOR).expect("remove_schedule");
}

/// Hooks of every kind, and every result of a delivery.
fn deliver_hooks(fixture: &Fixture) {
    for (name, event, queue, threshold) in [
        ("success", HookEvent::Success, None, None),
        ("failure", HookEvent::Failure, Some("default"), None),
        ("crash", HookEvent::WorkerCrashed, None, None),
        ("dlq", HookEvent::DlqAbove, None, Some(1)),
        ("gone", HookEvent::Dead, None, None),
    ] {
        fixture.store.add_hook(&new_hook(name, event, queue, threshold), ACTOR).expect("the hook is added");
    }
    fixture.store.remove_hook(&hook_name("gone"), ACTOR).expect("the hook is removed");
    fixture.store.deliveries(&hook_name("success"), PAGE).expect("the deliveries of a hook");
    let doomed = fixture.worker("crashed");
    fixture.reap(&doomed);
    let worker = fixture.worker("delivering");
    fixture.enqueue_all(["reported-1", "reported-2"].map(|id| job(id).priority(20).max_retries(0)));
    fixture.enqueue(job("reported-3").priority(19));
    fixture.enqueue(job("reported-4").priority(18));
    for outcome in [FAILURE, Outcome::Success, FAILURE, Outcome::Success] {
        fixture.run(&worker, outcome);
    }
    fixture.orders(&worker);
    fixture.store.hooks().expect("the hooks");
    for result in [DeliveryResult::Delivered, DeliveryResult::GivenBack] {
        report_all(fixture, &worker, 1, &result);
    }
    // After a day and enough attempts a delivery is given up.
    fixture.pass_secs(86_400);
    for _ in 0..10 {
        report_all(fixture, &worker, 10, &DeliveryResult::Failed("failed".to_owned()));
        retry_waiting(fixture);
        fixture.pass_secs(3_600);
    }
    // Once a hook has failed for a day, older deliveries are given up immediately.
    fixture.pass_secs(86_400);
    report_all(fixture, &worker, 10, &DeliveryResult::Failed("failed".to_owned()));
    fixture.store.hooks().expect("the hooks");
    fixture.retire(&worker);
}

/// Makes a delivery due that waits for its next try, then all of its hook.
fn retry_waiting(fixture: &Fixture) {
    let hook = hook_name("success");
    let found = fixture.store.deliveries(&hook, PAGE).expect("the deliveries of a hook");
    if let Some(delivery) = found.and_then(|found| found.waiting.into_iter().next()) {
        fixture.store.retry_delivery(&hook, &delivery.name, ACTOR).expect("the delivery is due");
    }
    fixture.store.retry_deliveries(&hook, ACTOR).expect("the deliveries are due");
}

fn report_all(fixture: &Fixture, worker: &WorkerId, want: usize, result: &DeliveryResult) {
    let taken = fixture.store.exchange_deliveries(worker, &[], want).expect("deliveries are taken").taken;
    let report = |delivery: &Delivery| DeliveryReport {
        number: delivery.number,
        hook: delivery.hook.clone(),
        result: result.clone(),
    };
    let reports: Vec<DeliveryReport> = taken.iter().map(report).collect();
    assert!(!reports.is_empty(), "there are deliveries");
    fixture.store.exchange_deliveries(worker, &reports, 0).expect("the reports are recorded");
}

/// A worker dies, and the reaper takes back its leases.
fn die(fixture: &Fixture) {
    let worker = fixture.worker("doomed");
    let held = fixture.leases(&worker, 4);
    // The worker knows of only one lease.
    fixture.extend(&worker, &held[0]);
    let started: Vec<LeaseRef> = fixture.leases(&worker, 2);
    let why = "not permitted".to_owned();
    let found = UnkillableProcess { lease: started[0].clone(), pid: 1, start_time: 1, why };
    fixture.store.record_unkillable(&[found]).expect("noted");
    fixture.store.unkillable().expect("a list");
    fixture.reap_started(&worker, &started[..1]);
}

/// Everything that can be pruned, but jobs by their state.
const REST: [Prunable; 5] =
    [Prunable::ReportedJobs, Prunable::Outputs, Prunable::Events, Prunable::StaleRows, Prunable::Space];

/// Samples, and reads the numbers that people and monitoring systems ask for.
fn measure(fixture: &Fixture) {
    let store = &fixture.store;
    assert!(store.sample_depth().expect("a sample"), "a sample is due");
    fixture.pass_secs(60);
    assert!(store.sample_depth().expect("a sample"), "the next one is due");
    store.total_metrics().expect("the totals");
    store.recent_metrics(fixture.now().saturating_sub(Duration::from_secs(30))).expect("the metrics");
}

/// Makes the history of the minutes coarser.
fn fold(fixture: &Fixture) {
    let what = Prunable::Minutes { retain: Some(Duration::from_secs(30)) };
    let step = PruneStep { what, before: fixture.now(), after: Cursor::default(), limit: 20, dry_run: false };
    fixture.store.prune(&step).expect("a step");
}

/// Periodic duties, and verbs that a user calls by hand.
fn keep_tidy(fixture: &Fixture) {
    let store = &fixture.store;
    assert!(store.take_duty(Duty::Prune, Duration::from_secs(1)).expect("a duty"), "the duty is due");
    let dead = JobFilter::in_phase(Phase::State(StateName::Dead));
    let chosen = store.select(&dead, None, 2).expect("a selection");
    let reported = store.find(&chosen[0].id).expect("a job").expect("it is there");
    assert!(store.mark_reported(&reported.id, reported.life.attempts).expect("it is marked"));
    let old = [StateName::Completed, StateName::Dead, StateName::Cancelled].map(Prunable::Jobs);
    for dry_run in [true, false] {
        for what in old.into_iter().chain(REST) {
            let prune =
                PruneStep { what, before: fixture.now(), after: Cursor::default(), limit: 3, dry_run };
            store.prune(&prune).expect("a step");
        }
    }
    let chosen = store.select(&dead, None, 2).expect("a selection");
    for dry_run in [true, false] {
        store.prune_jobs(&chosen, dry_run).expect("the jobs are deleted");
    }
    fixture.remove("elsewhere");
    let mut gc = EnvironmentGc::default();
    while store.collect_environments(&mut gc, 1_000).expect("a step") {}
    assert!(gc.deleted > 0, "the environment is deleted");
    for job in [None, Some(job_id("dead-3"))] {
        for range in [EventRange::After(0), EventRange::Before(1_000_000)] {
            store.events(&EventPage { range, limit: PAGE, job: job.clone() }).expect("events");
        }
    }
    store.note("backup", ACTOR, "somewhere").expect("the event is recorded");
    store.expired_logs(&[(1, 1), (999_999_999, 1)], Some(fixture.now())).expect("log files");
    store.end_duty(Duty::Prune, Duration::from_secs(1), ACTOR, Some("finished")).expect("the duty ends");
}

/// The last verb: a store that has moved takes no other.
fn move_away(fixture: &Fixture) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let new = Fixture::sqlite_in(folder.path());
    let next = fixture.store.next_number().expect("a number");
    new.store.receive(&mut std::iter::empty(), "here", next, ACTOR).expect("an empty store takes it");
    let workers = fixture.store.workers().expect("the workers");
    let dead: Vec<WorkerId> = workers.into_iter().map(|worker| worker.id).collect();
    fixture.store.move_away("there", &dead, ACTOR, || Ok::<_, MoveError>(())).expect("it moves");
    new.store.end_copy().expect("it is in use");
}
