//! Schedules: kept, held back, and fired once, whoever looks at them.

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
use store::{EnqueueResult, FireResult, LeaseRef, NewSchedule, Pause, ScheduleRefusal};

use super::fixture::{Fixture, SOMEBODY, every_store, settlement};
use super::new_job::{job, job_id};

every_store!(
    a_schedule_reads_back_as_it_was_added,
    a_second_one_of_that_name_is_refused,
    what_would_never_fire_is_refused,
    a_due_schedule_is_fired_once,
    a_run_has_what_the_schedule_says_and_the_settings_of_now,
    a_run_is_known_as_one,
    an_id_that_is_taken_is_not_used,
    what_was_missed_is_made_up_for_and_noted,
    beside_an_unfinished_run_it_is_left_out,
    in_line_runs_wait_for_each_other,
    a_line_is_only_so_long,
    a_newer_run_replaces_one_that_waits,
    a_newer_run_replaces_one_that_runs_and_waits_for_its_end,
    a_run_that_takes_long_to_end_is_waited_for_by_every_newer_one,
    a_run_that_lasts_is_seen_behind_all_that_came_later,
    a_unique_key_that_is_held_leaves_it_out,
    while_it_is_held_back_nothing_fires,
    a_resumed_schedule_goes_on_with_its_next_time,
    a_run_by_hand_changes_nothing_else,
    a_removed_schedule_leaves_its_jobs,
    a_new_schedule_has_no_runs_of_an_old_one,
    a_clock_that_is_set_back_fires_nothing_twice,
    a_clock_that_is_set_ahead_means_missed_ones,
    very_many_are_fired_in_several_transactions,
    the_next_one_is_part_of_the_orders,
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
    let added = fixture.store.add_schedule(schedule, SOMEBODY).expect("add_schedule");
    added.expect("it is not refused")
}

fn refused(fixture: &Fixture, schedule: &NewSchedule) -> ScheduleRefusal {
    let added = fixture.store.add_schedule(schedule, SOMEBODY).expect("add_schedule");
    added.expect_err("it is refused")
}

fn find(fixture: &Fixture, name_: &str) -> (Schedule, Vec<Run>) {
    fixture.store.schedule(&name(name_)).expect("schedule").expect("there is one")
}

/// Looks at the schedules, and gives the ids of what was enqueued.
fn fire(fixture: &Fixture) -> Vec<String> {
    fired(fixture).jobs.iter().map(ToString::to_string).collect()
}

fn fired(fixture: &Fixture) -> FireResult {
    fixture.store.fire_due().expect("fire_due")
}

/// A minute passes, and somebody looks at the schedules: the one run that this gives.
fn next_run(fixture: &Fixture) -> String {
    fixture.pass_secs(60);
    let runs = fire(fixture);
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs[0].clone()
}

fn pause(fixture: &Fixture, name_: &str, paused: bool) -> bool {
    let pause = Pause { by: SOMEBODY.to_owned(), reason: Some("for a reason".to_owned()) };
    fixture
        .store
        .set_schedule_pause(&name(name_), paused.then_some(&pause), SOMEBODY)
        .expect("set_schedule_pause")
}

fn minutes_after(start: Timestamp, minutes: i64) -> Timestamp {
    Timestamp::from_millis(start.as_millis() + minutes * 60_000)
}

fn a_schedule_reads_back_as_it_was_added(fixture: &Fixture) {
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
        assert_eq!((&added.created_by[..], added.created_at), (SOMEBODY, fixture.now()));
        assert_eq!((added.when.clone(), added.job.clone(), added.policy), (when, new.job, policy));
        assert_eq!(find(fixture, kind), (added, Vec::new()));
    }
    let all = fixture.store.schedules().expect("schedules");
    let names: Vec<&str> = all.iter().map(|(schedule, _)| schedule.name.as_str()).collect();
    assert_eq!(names, ["at", "cron", "every"], "by name");
    assert_eq!(fixture.store.schedule(&name("nobody")).expect("schedule"), None);
}

fn a_second_one_of_that_name_is_refused(fixture: &Fixture) {
    add(fixture, &minutely("s"));
    let before = find(fixture, "s");
    let second =
        NewSchedule { when: When::every(Duration::from_secs(5)).expect("a period"), ..minutely("s") };
    assert_eq!(refused(fixture, &second), ScheduleRefusal::NameTaken(name("s")));
    assert_eq!(find(fixture, "s"), before);
}

fn what_would_never_fire_is_refused(fixture: &Fixture) {
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
    assert_eq!(fixture.run(&worker, Outcome::Success), "s:20270115T080100Z", "it is ready");
    assert_eq!(next_run(fixture), "s:20270115T080200Z");
}

fn a_run_has_what_the_schedule_says_and_the_settings_of_now(fixture: &Fixture) {
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

fn a_run_is_known_as_one(fixture: &Fixture) {
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

fn an_id_that_is_taken_is_not_used(fixture: &Fixture) {
    fixture.enqueue_all([job("s:20270115T080100Z"), job("s:20270115T080100Z-2")]);
    add(fixture, &minutely("s"));
    assert_eq!(next_run(fixture), "s:20270115T080100Z-3");
}

fn what_was_missed_is_made_up_for_and_noted(fixture: &Fixture) {
    let start = fixture.now();
    let hour = Duration::from_secs(3_600);
    for (name_, on_missed) in [("skip", OnMissed::Skip), ("once", OnMissed::Once), ("all", OnMissed::All)] {
        let policy = Policy::new(Some(on_missed), None, None).expect("a policy");
        let when = When::every(hour).expect("a period");
        add(fixture, &NewSchedule { when, policy, ..minutely(name_) });
    }
    // Nobody is there at three of its times, and then not for some minutes.
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

fn beside_an_unfinished_run_it_is_left_out(fixture: &Fixture) {
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
        assert_eq!(fire(fixture), [""; 0], "beside one that is {state:?}");
        assert_eq!(find(fixture, "s").0.skipped_at, Some(fixture.now()));
    }
    fixture.run(&worker, Outcome::Success);
    assert_eq!(next_run(fixture), "s:20270115T080500Z");
}

fn in_line_runs_wait_for_each_other(fixture: &Fixture) {
    let worker = fixture.worker("w");
    add(fixture, &with_overlap(OnOverlap::Queue));
    let runs = [next_run(fixture), next_run(fixture), next_run(fixture)];
    assert_eq!(fixture.claim(&worker, 9), &runs[..1], "one at a time");
    let lease = |id: &str| LeaseRef { job: job_id(id), attempt: 1 };
    // However it ends.
    fixture.settle(&worker, &lease(&runs[0]), Outcome::Cancelled);
    assert_eq!(fixture.claim(&worker, 9), &runs[1..2]);
    fixture.settle(&worker, &lease(&runs[1]), Outcome::Success);
    assert_eq!(fixture.claim(&worker, 9), &runs[2..]);
}

fn a_line_is_only_so_long(fixture: &Fixture) {
    add(fixture, &with_overlap(OnOverlap::Queue));
    let full = || {
        let now = fixture.now();
        let day_ago = now.saturating_sub(Duration::from_secs(86_400));
        fixture.store.recent_problems(day_ago, day_ago).expect("troubles").full
    };
    let runs: Vec<String> = (0..MAX_UNFINISHED_RUNS).map(|_| next_run(fixture)).collect();
    assert_eq!((find(fixture, "s").0.skipped_at, full()), (None, vec![]));
    for _ in 0..3 {
        fixture.pass_secs(60);
        assert_eq!(fire(fixture), [""; 0], "the line is full");
        let schedule = find(fixture, "s").0;
        assert_eq!((schedule.skipped_at, schedule.last_at), (Some(fixture.now()), Some(fixture.now())));
        assert_eq!(full(), [("s".to_owned(), fixture.now())]);
    }
    let worker = fixture.worker("w");
    assert_eq!(fixture.claim(&worker, 9), &runs[..1]);
    fixture.settle(&worker, &LeaseRef { job: job_id(&runs[0]), attempt: 1 }, Outcome::Success);
    next_run(fixture);
    assert_eq!(full(), [], "there is room again");
    fixture.pass_secs(60);
    assert_eq!(fire(fixture), [""; 0], "and it is taken");
}

fn a_newer_run_replaces_one_that_waits(fixture: &Fixture) {
    add(fixture, &with_overlap(OnOverlap::Replace));
    let (old, new) = (next_run(fixture), next_run(fixture));
    let replaced = State::Cancelled { finished_at: fixture.now(), reason: CancelReason::Replaced };
    assert_eq!(fixture.job(&old).life.state, replaced);
    assert_eq!(fixture.claim(&fixture.worker("w"), 9), [new]);
}

fn a_newer_run_replaces_one_that_runs_and_waits_for_its_end(fixture: &Fixture) {
    let worker = fixture.worker("w");
    add(fixture, &with_overlap(OnOverlap::Replace));
    next_run(fixture);
    let lease = fixture.lease(&worker);
    let new = next_run(fixture);
    assert_eq!(fixture.orders(&worker).cancelled, std::slice::from_ref(&lease), "its worker is told");
    assert_eq!(fixture.claim(&worker, 9), [""; 0], "not while the old one runs");
    fixture.exchange(&worker, &[settlement(&lease, Outcome::Cancelled)], 0);
    let replaced = State::Cancelled { finished_at: fixture.now(), reason: CancelReason::Replaced };
    assert_eq!(fixture.job(lease.job.as_str()).life.state, replaced);
    assert_eq!(fixture.claim(&worker, 9), [new]);
}

fn a_run_that_takes_long_to_end_is_waited_for_by_every_newer_one(fixture: &Fixture) {
    let worker = fixture.worker("w");
    add(fixture, &with_overlap(OnOverlap::Replace));
    next_run(fixture);
    let lease = fixture.lease(&worker);
    let newer: Vec<String> = (0..2 * LAST_RUNS).map(|_| next_run(fixture)).collect();
    assert_eq!(fixture.claim(&worker, 9), [""; 0], "not while the old one runs");
    fixture.exchange(&worker, &[settlement(&lease, Outcome::Cancelled)], 0);
    assert_eq!(fixture.claim(&worker, 9), &newer[newer.len() - 1..]);
}

fn a_run_that_lasts_is_seen_behind_all_that_came_later(fixture: &Fixture) {
    let worker = fixture.worker("w");
    add(fixture, &with_overlap(OnOverlap::Skip));
    next_run(fixture);
    let lease = fixture.lease(&worker);
    for _ in 0..2 * LAST_RUNS {
        fixture.store.run_schedule(&name("s"), SOMEBODY).expect("run_schedule");
        fixture.run(&worker, Outcome::Success);
    }
    fixture.pass_secs(60);
    assert_eq!(fire(fixture), [""; 0]);
    fixture.exchange(&worker, &[settlement(&lease, Outcome::Success)], 0);
    next_run(fixture);
}

fn a_unique_key_that_is_held_leaves_it_out(fixture: &Fixture) {
    let job_ = serde_json::from_str(r#"{"command":"true","cwd":"/","unique_key":"k"}"#).expect("a job");
    add(fixture, &NewSchedule { job: job_, ..minutely("s") });
    fixture.enqueue(job("holder").unique_key("k"));
    fixture.pass_secs(60);
    assert_eq!(fire(fixture), [""; 0]);
    assert_eq!(find(fixture, "s").0.skipped_at, Some(fixture.now()));
    let by_hand = fixture.store.run_schedule(&name("s"), SOMEBODY).expect("run_schedule");
    assert_eq!(by_hand, Some(EnqueueResult::Existing(job_id("holder"))));
    fixture.cancel("holder");
    next_run(fixture);
}

fn while_it_is_held_back_nothing_fires(fixture: &Fixture) {
    add(fixture, &minutely("s"));
    let before = fixture.now();
    assert!(pause(fixture, "s", true));
    let held = find(fixture, "s").0.pause.expect("it is held");
    assert_eq!((held.since, held.by.as_str()), (before, SOMEBODY));
    assert_eq!(held.reason.as_deref(), Some("for a reason"));
    fixture.pass_secs(600);
    assert_eq!(fired(fixture), FireResult::default());
    assert!(!pause(fixture, "nobody", true) && !pause(fixture, "nobody", false));
}

fn a_resumed_schedule_goes_on_with_its_next_time(fixture: &Fixture) {
    let start = fixture.now();
    add(fixture, &minutely("s"));
    pause(fixture, "s", true);
    fixture.pass_secs(630);
    for _ in 0..2 {
        assert!(pause(fixture, "s", false), "also when it goes on already");
        let (schedule, _) = find(fixture, "s");
        assert_eq!((schedule.pause, schedule.next_at), (None, Some(minutes_after(start, 11))));
    }
    assert_eq!(fire(fixture), [""; 0], "what came meanwhile is not made up for");
    assert_eq!(find(fixture, "s").0.missed_at, None);
}

fn a_run_by_hand_changes_nothing_else(fixture: &Fixture) {
    add(fixture, &minutely("s"));
    pause(fixture, "s", true);
    let (before, _) = find(fixture, "s");
    for expected in ["s:20270115T080000Z", "s:20270115T080000Z-2"] {
        let run = fixture.store.run_schedule(&name("s"), SOMEBODY).expect("run_schedule");
        assert_eq!(run, Some(EnqueueResult::Created(job_id(expected))));
        let record = fixture.record(expected);
        assert_eq!((record.schedule, record.scheduled_for), (Some(name("s")), None));
        assert_eq!(record.events[0].event, "schedule_run");
    }
    assert_eq!(find(fixture, "s").0, before);
    assert_eq!(fixture.store.run_schedule(&name("nobody"), SOMEBODY).expect("run_schedule"), None);
}

fn a_removed_schedule_leaves_its_jobs(fixture: &Fixture) {
    let start = fixture.now();
    add(fixture, &minutely("s"));
    let run = next_run(fixture);
    assert!(fixture.store.remove_schedule(&name("s"), SOMEBODY).expect("remove_schedule"));
    assert!(!fixture.store.remove_schedule(&name("s"), SOMEBODY).expect("remove_schedule"), "it is gone");
    fixture.pass_secs(600);
    assert_eq!(fired(fixture), FireResult::default());
    let record = fixture.record(&run);
    assert_eq!((record.schedule, record.scheduled_for), (None, Some(minutes_after(start, 1))));
}

fn a_new_schedule_has_no_runs_of_an_old_one(fixture: &Fixture) {
    add(fixture, &minutely("s"));
    next_run(fixture);
    fixture.store.remove_schedule(&name("s"), SOMEBODY).expect("remove_schedule");
    // The clock is set back, so that the same moments come again.
    fixture.clock.jump(-60_000);
    add(fixture, &minutely("s"));
    assert_eq!(find(fixture, "s").1, []);
    assert_eq!(next_run(fixture), "s:20270115T080100Z-2");
}

fn a_clock_that_is_set_back_fires_nothing_twice(fixture: &Fixture) {
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

fn a_clock_that_is_set_ahead_means_missed_ones(fixture: &Fixture) {
    let start = fixture.now();
    add(fixture, &minutely("s"));
    fixture.clock.jump(86_400_000 + 30_000);
    assert_eq!(fire(fixture), ["s:20270116T080000Z"], "the one that is due stands for all");
    let (schedule, _) = find(fixture, "s");
    assert_eq!(schedule.missed_at, Some(minutes_after(start, 24 * 60 - 1)));
    assert_eq!(schedule.next_at, Some(minutes_after(start, 24 * 60 + 1)));
}

fn very_many_are_fired_in_several_transactions(fixture: &Fixture) {
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

fn the_next_one_is_part_of_the_orders(fixture: &Fixture) {
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
    assert_eq!(fixture.orders(&worker).next_fire, Some(b), "it is due still");
}
