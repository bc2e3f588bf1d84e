//! Schedules: stored, paused, and fired exactly once.

use std::sync::Arc;
use std::time::Duration;

use domain::job::environment::Environment;
use domain::job::life::{CancelReason, State, StateName};
use domain::job::outcome::Outcome;
use domain::schedule::{
    LAST_RUNS, MAX_UNFINISHED_RUNS, OnMissed, OnOverlap, Policy, Run, Schedule, When, WhenError,
};
use domain::settings::SettingKey;
use domain::values::name::ScheduleName;
use domain::values::timestamp::Timestamp;
use store::{EnqueueResult, FireResult, LeaseRef, NewSchedule, Pause, ScheduleRefusal, WriteError};

use super::fixture::new_job::{job, job_id};
use super::fixture::{ACTOR, Fixture, every_store, settlement};

every_store!(
    every_field_of_a_schedule_is_stored,
    a_schedule_name_is_unique,
    a_schedule_that_would_never_fire_is_refused,
    a_due_schedule_is_fired_once,
    a_run_has_the_fields_of_its_schedule_and_the_current_settings,
    a_run_refers_to_its_schedule,
    a_run_avoids_taken_ids,
    missed_runs_are_handled_by_policy_and_recorded,
    with_skip_a_run_is_skipped_while_another_is_unfinished,
    with_queue_runs_wait_for_each_other,
    with_queue_the_number_of_unfinished_runs_is_limited,
    with_replace_a_newer_run_cancels_a_waiting_one,
    with_replace_a_newer_run_cancels_a_running_one_and_waits_for_its_end,
    with_replace_every_newer_run_waits_for_a_slow_end,
    an_unfinished_run_is_found_among_many_later_ones,
    a_run_is_skipped_while_its_unique_key_is_held,
    a_paused_schedule_does_not_fire,
    a_resumed_schedule_continues_with_its_next_time,
    a_manual_run_does_not_change_the_schedule,
    removing_a_schedule_keeps_its_jobs,
    a_new_schedule_does_not_inherit_runs,
    a_clock_set_back_fires_no_run_twice,
    a_clock_set_forward_causes_missed_runs,
    very_many_schedules_are_fired_in_several_transactions,
    orders_contain_the_next_fire_time,
);

pub(crate) fn name(name: &str) -> ScheduleName {
    name.parse().expect("a schedule's name")
}

/// A schedule that fires once a minute.
pub(crate) fn minutely(name_: &str) -> NewSchedule {
    NewSchedule {
        name: name(name_),
        when: When::every(Duration::from_secs(60)).expect("a period"),
        job: serde_json::from_str(r#"{"command":"true","cwd":"/"}"#).expect("a job"),
        environment: None,
        policy: Policy::new(None, None, None).expect("the defaults"),
    }
}

fn with_overlap(on_overlap: OnOverlap) -> NewSchedule {
    NewSchedule { policy: Policy::new(None, None, Some(on_overlap)).expect("a policy"), ..minutely("s") }
}

fn add(fixture: &Fixture, schedule: &NewSchedule) -> Schedule {
    fixture.store.add_schedule(schedule, ACTOR).expect("the schedule is accepted")
}

fn refused(fixture: &Fixture, schedule: &NewSchedule) -> ScheduleRefusal {
    match fixture.store.add_schedule(schedule, ACTOR) {
        Err(WriteError::Refused(refusal)) => refusal,
        other => panic!("the schedule is refused: {other:?}"),
    }
}

fn find(fixture: &Fixture, name_: &str) -> (Schedule, Vec<Run>) {
    fixture.store.schedule(&name(name_)).expect("schedule").expect("the schedule exists")
}

/// Fires due schedules, and returns the ids of the enqueued jobs.
fn fire(fixture: &Fixture) -> Vec<String> {
    fired(fixture).jobs.iter().map(ToString::to_string).collect()
}

fn fired(fixture: &Fixture) -> FireResult {
    fixture.store.fire_due().expect("fire_due")
}

/// Advances the clock by a minute, fires due schedules, and returns the id of the single run.
fn next_run(fixture: &Fixture) -> String {
    fixture.pass_secs(60);
    let runs = fire(fixture);
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs[0].clone()
}

fn pause(fixture: &Fixture, name_: &str, paused: bool) -> bool {
    let pause = Pause { by: ACTOR.to_owned(), reason: Some("for a reason".to_owned()) };
    fixture
        .store
        .set_schedule_pause(&name(name_), paused.then_some(&pause), ACTOR)
        .expect("set_schedule_pause")
}

fn minutes_after(start: Timestamp, minutes: i64) -> Timestamp {
    Timestamp::from_millis(start.as_millis() + minutes * 60_000)
}

fn every_field_of_a_schedule_is_stored(fixture: &Fixture) {
    let berlin = jiff::tz::TimeZone::get("Europe/Berlin").expect("a zone");
    let at = minutes_after(fixture.now(), 5);
    let whens = [
        ("cron", When::cron("30 2 * * MON-FRI", berlin).expect("a line")),
        ("every", When::every(Duration::from_millis(90_500)).expect("a period")),
        ("at", When::At(at)),
    ];
    let json = r#"{"command":"echo 'hi'","queue":"q","priority":3,"max_attempts":2,"timeout":"none","cwd":"/tmp",
                   "env":{"A":"b"},"tags":["x"],"backoff":{"strategy":"fixed","delay":"1s"}}"#;
    for (kind, when) in whens {
        let policy = Policy::new(Some(OnMissed::All), Some(7), None).expect("a policy");
        let job = serde_json::from_str(json).expect("a job");
        let new = NewSchedule { name: name(kind), when: when.clone(), job, environment: None, policy };
        let added = add(fixture, &new);
        assert_eq!(added.next_at, when.first(fixture.now()).ok());
        assert_eq!((&added.created_by[..], added.created_at), (ACTOR, fixture.now()));
        assert_eq!((added.when.clone(), added.job.clone(), added.policy), (when, new.job, policy));
        assert_eq!(find(fixture, kind), (added, Vec::new()));
    }
    let all = fixture.store.schedules().expect("schedules");
    let names: Vec<&str> = all.iter().map(|(schedule, _)| schedule.name.as_str()).collect();
    assert_eq!(names, ["at", "cron", "every"], "sorted by name");
    assert_eq!(fixture.store.schedule(&name("unknown")).expect("schedule"), None);
}

fn a_schedule_name_is_unique(fixture: &Fixture) {
    add(fixture, &minutely("s"));
    let before = find(fixture, "s");
    let second =
        NewSchedule { when: When::every(Duration::from_secs(5)).expect("a period"), ..minutely("s") };
    assert_eq!(refused(fixture, &second), ScheduleRefusal::NameTaken(name("s")));
    assert_eq!(find(fixture, "s"), before);
}

fn a_schedule_that_would_never_fire_is_refused(fixture: &Fixture) {
    let never = When::cron("0 0 30 2 *", jiff::tz::TimeZone::UTC).expect("a line");
    let past = When::At(fixture.now());
    for (when, why) in
        [(never, WhenError::Never("0 0 30 2 *".to_owned())), (past, WhenError::Past(fixture.now()))]
    {
        let new = NewSchedule { when, ..minutely("s") };
        assert_eq!(refused(fixture, &new), ScheduleRefusal::When(why));
    }
    assert_eq!(fixture.store.schedules().expect("schedules"), []);
}

fn a_due_schedule_is_fired_once(fixture: &Fixture) {
    let start = fixture.now();
    add(fixture, &minutely("s"));
    fixture.pass_millis(59_999);
    assert_eq!(
        fired(fixture),
        FireResult { next_at: Some(minutes_after(start, 1)), ..FireResult::default() }
    );
    fixture.pass_millis(1);
    assert_eq!(fire(fixture), ["s:20270115T080100Z"]);
    assert_eq!(
        fired(fixture),
        FireResult { next_at: Some(minutes_after(start, 2)), ..FireResult::default() }
    );
    let (schedule, runs) = find(fixture, "s");
    assert_eq!((schedule.last_at, schedule.next_at), (Some(fixture.now()), Some(minutes_after(start, 2))));
    assert_eq!(runs.len(), 1);
    let worker = fixture.worker("w");
    assert_eq!(fixture.run(&worker, Outcome::Success), "s:20270115T080100Z", "the run is ready");
    assert_eq!(next_run(fixture), "s:20270115T080200Z");
}

fn a_run_has_the_fields_of_its_schedule_and_the_current_settings(fixture: &Fixture) {
    let environment = Some(Arc::new(Environment::from_bytes(b"HOME=/root\0")));
    let json =
        r#"{"command":"echo 'hi'","queue":"q","priority":3,"cwd":"/tmp","env":{"A":"b"},"tags":["x"]}"#;
    let job = serde_json::from_str(json).expect("a job");
    add(fixture, &NewSchedule { environment: environment.clone(), job, ..minutely("s") });
    fixture.set(SettingKey::MaxRetries, "7");
    fixture.set(SettingKey::JobTimeout, "9s");
    let id = next_run(fixture);
    let run = fixture.job(&id);
    assert_eq!((&run.command[..], run.queue.as_str(), run.priority), ("echo 'hi'", "q", 3));
    assert_eq!((run.life.max_retries, run.timeout), (7, Some(Duration::from_secs(9))));
    assert_eq!((run.cwd.as_deref(), &run.tags[..]), (Some("/tmp"), &["x".to_owned()][..]));
    assert_eq!((run.life.run_at, run.created_at), (None, fixture.now()));
    let claimed = fixture.exchange(&fixture.worker("w"), &[], 1).claimed;
    assert_eq!((claimed[0].env["A"].as_str(), &claimed[0].environment), ("b", &environment));
}

fn a_run_refers_to_its_schedule(fixture: &Fixture) {
    let start = fixture.now();
    add(fixture, &minutely("s"));
    fixture.pass_millis(60_010);
    let id = fire(fixture).remove(0);
    let record = fixture.record(&id);
    assert_eq!((record.schedule, record.scheduled_for), (Some(name("s")), Some(minutes_after(start, 1))));
    let run = Run {
        id: job_id(&id),
        state: StateName::Pending,
        scheduled_for: Some(minutes_after(start, 1)),
        created_at: fixture.now(),
        finished_at: None,
    };
    assert_eq!(find(fixture, "s").1, std::slice::from_ref(&run));
    assert_eq!(fixture.store.schedules().expect("schedules")[0].1, Some(run));
    fixture.enqueue("plain");
    let plain = fixture.record("plain");
    assert_eq!((plain.schedule, plain.scheduled_for), (None, None));
}

fn a_run_avoids_taken_ids(fixture: &Fixture) {
    fixture.enqueue_all([job("s:20270115T080100Z"), job("s:20270115T080100Z-2")]);
    add(fixture, &minutely("s"));
    assert_eq!(next_run(fixture), "s:20270115T080100Z-3");
}

fn missed_runs_are_handled_by_policy_and_recorded(fixture: &Fixture) {
    let start = fixture.now();
    let hour = Duration::from_secs(3_600);
    for (name_, on_missed) in [("skip", OnMissed::Skip), ("once", OnMissed::Once), ("all", OnMissed::All)] {
        let policy = Policy::new(Some(on_missed), None, None).expect("a policy");
        let when = When::every(hour).expect("a period");
        add(fixture, &NewSchedule { when, policy, ..minutely(name_) });
    }
    // No worker fires schedules for three hours and five minutes.
    fixture.pass_secs(3 * 3_600 + 300);
    let mut runs = fire(fixture);
    runs.sort();
    let all =
        ["all:20270115T090000Z", "all:20270115T100000Z", "all:20270115T110000Z", "once:20270115T110000Z"];
    assert_eq!(runs, all);
    for name_ in ["skip", "once", "all"] {
        let (schedule, _) = find(fixture, name_);
        assert_eq!(schedule.missed_at, Some(minutes_after(start, 180)), "{name_}");
        assert_eq!(schedule.next_at, Some(minutes_after(start, 240)), "{name_}");
    }
    assert_eq!(fire(fixture), [""; 0]);
}

fn with_skip_a_run_is_skipped_while_another_is_unfinished(fixture: &Fixture) {
    let worker = fixture.worker("w");
    add(fixture, &with_overlap(OnOverlap::Skip));
    let first = next_run(fixture);
    for state in [StateName::Pending, StateName::Processing, StateName::Failed] {
        match state {
            StateName::Processing => drop(fixture.lease(&worker)),
            StateName::Failed => {
                let lease = LeaseRef { job: job_id(&first), attempt: 1 };
                fixture.settle(&worker, &lease, Outcome::Timeout);
            }
            StateName::Pending | StateName::Completed | StateName::Dead | StateName::Cancelled => {}
        }
        assert_eq!(fixture.state(&first), state);
        fixture.pass_secs(60);
        assert_eq!(fire(fixture), [""; 0], "while a run is {state:?}");
        assert_eq!(find(fixture, "s").0.skipped_at, Some(fixture.now()));
    }
    fixture.run(&worker, Outcome::Success);
    assert_eq!(next_run(fixture), "s:20270115T080500Z");
}

fn with_queue_runs_wait_for_each_other(fixture: &Fixture) {
    let worker = fixture.worker("w");
    add(fixture, &with_overlap(OnOverlap::Queue));
    let runs = [next_run(fixture), next_run(fixture), next_run(fixture)];
    assert_eq!(fixture.claim(&worker, 9), &runs[..1], "one run at a time");
    let lease = |id: &str| LeaseRef { job: job_id(id), attempt: 1 };
    // The outcome of the earlier run does not matter.
    fixture.settle(&worker, &lease(&runs[0]), Outcome::Cancelled);
    assert_eq!(fixture.claim(&worker, 9), &runs[1..2]);
    fixture.settle(&worker, &lease(&runs[1]), Outcome::Success);
    assert_eq!(fixture.claim(&worker, 9), &runs[2..]);
}

fn with_queue_the_number_of_unfinished_runs_is_limited(fixture: &Fixture) {
    add(fixture, &with_overlap(OnOverlap::Queue));
    let full = || {
        let now = fixture.now();
        let day_ago = now.saturating_sub(Duration::from_secs(86_400));
        fixture.store.recent_problems(day_ago, day_ago).expect("recent problems").full
    };
    let runs: Vec<String> = (0..MAX_UNFINISHED_RUNS).map(|_| next_run(fixture)).collect();
    assert_eq!((find(fixture, "s").0.skipped_at, full()), (None, vec![]));
    for _ in 0..3 {
        fixture.pass_secs(60);
        assert_eq!(fire(fixture), [""; 0], "the limit is reached");
        let schedule = find(fixture, "s").0;
        assert_eq!((schedule.skipped_at, schedule.last_at), (Some(fixture.now()), Some(fixture.now())));
        assert_eq!(full(), [("s".to_owned(), fixture.now())]);
    }
    let worker = fixture.worker("w");
    assert_eq!(fixture.claim(&worker, 9), &runs[..1]);
    fixture.settle(&worker, &LeaseRef { job: job_id(&runs[0]), attempt: 1 }, Outcome::Success);
    next_run(fixture);
    assert_eq!(full(), [], "the limit is no longer reached");
    fixture.pass_secs(60);
    assert_eq!(fire(fixture), [""; 0], "the limit is reached again");
}

fn with_replace_a_newer_run_cancels_a_waiting_one(fixture: &Fixture) {
    add(fixture, &with_overlap(OnOverlap::Replace));
    let (old, new) = (next_run(fixture), next_run(fixture));
    let replaced = State::Cancelled { finished_at: fixture.now(), reason: CancelReason::Replaced };
    assert_eq!(fixture.job(&old).life.state, replaced);
    assert_eq!(fixture.claim(&fixture.worker("w"), 9), [new]);
}

fn with_replace_a_newer_run_cancels_a_running_one_and_waits_for_its_end(fixture: &Fixture) {
    let worker = fixture.worker("w");
    add(fixture, &with_overlap(OnOverlap::Replace));
    next_run(fixture);
    let lease = fixture.lease(&worker);
    let new = next_run(fixture);
    assert_eq!(
        fixture.cancelled(&worker),
        std::slice::from_ref(&lease),
        "the worker of the old run must cancel it"
    );
    assert_eq!(fixture.claim(&worker, 9), [""; 0], "the new run waits for the old one");
    fixture.exchange(&worker, &[settlement(&lease, Outcome::Cancelled)], 0);
    let replaced = State::Cancelled { finished_at: fixture.now(), reason: CancelReason::Replaced };
    assert_eq!(fixture.job(lease.job.as_str()).life.state, replaced);
    assert_eq!(fixture.claim(&worker, 9), [new]);
}

fn with_replace_every_newer_run_waits_for_a_slow_end(fixture: &Fixture) {
    let worker = fixture.worker("w");
    add(fixture, &with_overlap(OnOverlap::Replace));
    next_run(fixture);
    let lease = fixture.lease(&worker);
    let newer: Vec<String> = (0..2 * LAST_RUNS).map(|_| next_run(fixture)).collect();
    assert_eq!(fixture.claim(&worker, 9), [""; 0], "the new run waits for the old one");
    fixture.exchange(&worker, &[settlement(&lease, Outcome::Cancelled)], 0);
    assert_eq!(fixture.claim(&worker, 9), &newer[newer.len() - 1..]);
}

fn an_unfinished_run_is_found_among_many_later_ones(fixture: &Fixture) {
    let worker = fixture.worker("w");
    add(fixture, &with_overlap(OnOverlap::Skip));
    next_run(fixture);
    let lease = fixture.lease(&worker);
    for _ in 0..2 * LAST_RUNS {
        fixture.store.run_schedule(&name("s"), ACTOR).expect("run_schedule");
        fixture.run(&worker, Outcome::Success);
    }
    fixture.pass_secs(60);
    assert_eq!(fire(fixture), [""; 0]);
    fixture.exchange(&worker, &[settlement(&lease, Outcome::Success)], 0);
    next_run(fixture);
}

fn a_run_is_skipped_while_its_unique_key_is_held(fixture: &Fixture) {
    let job_ = serde_json::from_str(r#"{"command":"true","cwd":"/","unique_key":"k"}"#).expect("a job");
    add(fixture, &NewSchedule { job: job_, ..minutely("s") });
    fixture.enqueue(job("holder").unique_key("k"));
    fixture.pass_secs(60);
    assert_eq!(fire(fixture), [""; 0]);
    assert_eq!(find(fixture, "s").0.skipped_at, Some(fixture.now()));
    let by_hand = fixture.store.run_schedule(&name("s"), ACTOR).expect("run_schedule");
    assert_eq!(by_hand, Some(EnqueueResult::Existing(job_id("holder"))));
    fixture.cancel("holder");
    next_run(fixture);
}

fn a_paused_schedule_does_not_fire(fixture: &Fixture) {
    add(fixture, &minutely("s"));
    let before = fixture.now();
    assert!(pause(fixture, "s", true));
    let (at, paused) = find(fixture, "s").0.paused.expect("the schedule is paused");
    assert_eq!((at, paused.by.as_str()), (before, ACTOR));
    assert_eq!(paused.reason.as_deref(), Some("for a reason"));
    fixture.pass_secs(600);
    assert_eq!(fired(fixture), FireResult::default());
    assert!(!pause(fixture, "unknown", true) && !pause(fixture, "unknown", false));
}

fn a_resumed_schedule_continues_with_its_next_time(fixture: &Fixture) {
    let start = fixture.now();
    add(fixture, &minutely("s"));
    pause(fixture, "s", true);
    fixture.pass_secs(630);
    for _ in 0..2 {
        assert!(pause(fixture, "s", false), "resuming twice is allowed");
        let (schedule, _) = find(fixture, "s");
        assert_eq!((schedule.paused, schedule.next_at), (None, Some(minutes_after(start, 11))));
    }
    assert_eq!(fire(fixture), [""; 0], "runs missed during the pause are not made up for");
    assert_eq!(find(fixture, "s").0.missed_at, None);
}

fn a_manual_run_does_not_change_the_schedule(fixture: &Fixture) {
    add(fixture, &minutely("s"));
    pause(fixture, "s", true);
    let (before, _) = find(fixture, "s");
    for expected in ["s:20270115T080000Z", "s:20270115T080000Z-2"] {
        let run = fixture.store.run_schedule(&name("s"), ACTOR).expect("run_schedule");
        assert_eq!(run, Some(EnqueueResult::Created(job_id(expected))));
        let record = fixture.record(expected);
        assert_eq!((record.schedule, record.scheduled_for), (Some(name("s")), None));
        assert_eq!(record.events[0].event, "schedule_run");
    }
    assert_eq!(find(fixture, "s").0, before);
    assert_eq!(fixture.store.run_schedule(&name("unknown"), ACTOR).expect("run_schedule"), None);
}

fn removing_a_schedule_keeps_its_jobs(fixture: &Fixture) {
    let start = fixture.now();
    add(fixture, &minutely("s"));
    let run = next_run(fixture);
    assert!(fixture.store.remove_schedule(&name("s"), ACTOR).expect("remove_schedule"));
    assert!(
        !fixture.store.remove_schedule(&name("s"), ACTOR).expect("remove_schedule"),
        "the schedule is already removed"
    );
    fixture.pass_secs(600);
    assert_eq!(fired(fixture), FireResult::default());
    let record = fixture.record(&run);
    assert_eq!((record.schedule, record.scheduled_for), (None, Some(minutes_after(start, 1))));
}

fn a_new_schedule_does_not_inherit_runs(fixture: &Fixture) {
    add(fixture, &minutely("s"));
    next_run(fixture);
    fixture.store.remove_schedule(&name("s"), ACTOR).expect("remove_schedule");
    // Set the clock back, so that the same times occur again.
    fixture.clock.jump(-60_000);
    add(fixture, &minutely("s"));
    assert_eq!(find(fixture, "s").1, []);
    assert_eq!(next_run(fixture), "s:20270115T080100Z-2");
}

fn a_clock_set_back_fires_no_run_twice(fixture: &Fixture) {
    let worker = fixture.worker("w");
    let start = fixture.now();
    add(fixture, &minutely("s"));
    next_run(fixture);
    fixture.run(&worker, Outcome::Success);
    fixture.clock.jump(-3_600_000);
    for _ in 0..60 {
        fixture.pass_secs(60);
        assert_eq!(fire(fixture), [""; 0]);
    }
    pause(fixture, "s", true);
    fixture.clock.jump(-3_600_000);
    pause(fixture, "s", false);
    assert_eq!(find(fixture, "s").0.next_at, Some(minutes_after(start, 2)));
    fixture.clock.jump(3_600_000);
    assert_eq!(next_run(fixture), "s:20270115T080200Z");
}

fn a_clock_set_forward_causes_missed_runs(fixture: &Fixture) {
    let start = fixture.now();
    add(fixture, &minutely("s"));
    fixture.clock.jump(86_400_000 + 30_000);
    assert_eq!(fire(fixture), ["s:20270116T080000Z"], "one run replaces all missed ones");
    let (schedule, _) = find(fixture, "s");
    assert_eq!(schedule.missed_at, Some(minutes_after(start, 24 * 60 - 1)));
    assert_eq!(schedule.next_at, Some(minutes_after(start, 24 * 60 + 1)));
}

fn very_many_schedules_are_fired_in_several_transactions(fixture: &Fixture) {
    for number in 0..250 {
        add(fixture, &minutely(&format!("s{number}")));
    }
    let due = minutes_after(fixture.now(), 1);
    fixture.pass_secs(61);
    let mut counts = Vec::new();
    loop {
        let FireResult { jobs, next_at, .. } = fired(fixture);
        counts.push(jobs.len());
        if next_at != Some(due) {
            break;
        }
    }
    assert_eq!(counts, [100, 100, 50]);
}

fn orders_contain_the_next_fire_time(fixture: &Fixture) {
    let start = fixture.now();
    let worker = fixture.worker("w");
    assert_eq!(fixture.orders(&worker).next_fire, None);
    add(fixture, &minutely("a"));
    fixture.pass_secs(30);
    add(fixture, &minutely("b"));
    assert_eq!(fixture.orders(&worker).next_fire, Some(minutes_after(start, 1)));
    pause(fixture, "a", true);
    let b = Timestamp::from_millis(minutes_after(start, 1).as_millis() + 30_000);
    assert_eq!(fixture.orders(&worker).next_fire, Some(b));
    fixture.pass_secs(600);
    assert_eq!(fixture.orders(&worker).next_fire, Some(b), "the schedule is still due");
}
