//! Schedules: changed, and listed with what else happens next.

use std::sync::Arc;
use std::time::Duration;

use domain::job::environment::Environment;
use domain::schedule::{Schedule, When, WhenError};
use domain::values::timestamp::Timestamp;
use store::{NewSchedule, Pause, ScheduleEdit, ScheduleRefusal, WriteError};

use super::fixture::new_job::job;
use super::fixture::{ACTOR, Fixture, every_store};
use super::schedules::{minutely, name};

every_store!(
    an_edit_changes_the_next_run_only_if_it_changes_the_times,
    an_edit_of_a_version_that_is_not_current_is_refused,
    an_edit_can_move_a_single_run_that_is_paused,
    an_edit_can_drop_the_environment,
    upcoming_is_limited_and_in_the_order_of_time,
);

fn add(fixture: &Fixture, schedule: &NewSchedule) -> Schedule {
    fixture.store.add_schedule(schedule, ACTOR).expect("the schedule is accepted")
}

fn same(schedule: &Schedule) -> ScheduleEdit {
    let Schedule { when, job, policy, .. } = schedule.clone();
    ScheduleEdit { when, job, policy, drops_environment: false }
}

fn edit(fixture: &Fixture, seen: &Schedule, edit: &ScheduleEdit) -> Schedule {
    fixture.store.edit_schedule(seen, edit, ACTOR).expect("edit_schedule").expect("the schedule exists")
}

fn refused(fixture: &Fixture, seen: &Schedule, edit: &ScheduleEdit) -> ScheduleRefusal {
    match fixture.store.edit_schedule(seen, edit, ACTOR) {
        Err(WriteError::Refused(refusal)) => refusal,
        other => panic!("the edit is refused: {other:?}"),
    }
}

fn stored(fixture: &Fixture) -> Schedule {
    fixture.store.schedule(&name("s")).expect("schedule").expect("the schedule exists").0
}

fn in_hours(fixture: &Fixture, hours: u64) -> Timestamp {
    fixture.now().saturating_add(Duration::from_secs(hours * 3_600))
}

fn an_edit_changes_the_next_run_only_if_it_changes_the_times(fixture: &Fixture) {
    let added = add(fixture, &minutely("s"));
    fixture.pass_secs(30);
    let job = serde_json::from_str(r#"{"command":"false","cwd":"/"}"#).expect("a job");
    let changed = edit(fixture, &added, &ScheduleEdit { job, ..same(&added) });
    assert_eq!((changed.next_at, changed.job.command.as_deref()), (added.next_at, Some("false")));
    assert_eq!(stored(fixture), changed);
    let when = When::every(Duration::from_secs(7)).expect("a period");
    let often = edit(fixture, &changed, &ScheduleEdit { when, ..same(&changed) });
    let expected = added.created_at.saturating_add(Duration::from_secs(35));
    assert_eq!(often.next_at, Some(expected), "counted from when it was added");
    assert_eq!(stored(fixture), often);
    fixture.pass_secs(5);
    assert_eq!(fixture.store.fire_due().expect("fire_due").jobs.len(), 1);
}

fn an_edit_of_a_version_that_is_not_current_is_refused(fixture: &Fixture) {
    let added = add(fixture, &minutely("s"));
    let when = When::every(Duration::from_secs(7)).expect("a period");
    let changed = edit(fixture, &added, &ScheduleEdit { when: when.clone(), ..same(&added) });
    let job = serde_json::from_str(r#"{"command":"false","cwd":"/"}"#).expect("a job");
    let refusal = refused(fixture, &added, &ScheduleEdit { job, ..same(&added) });
    assert_eq!(refusal, ScheduleRefusal::Changed(name("s")));
    let past = ScheduleEdit { when: When::At(Timestamp::EPOCH), ..same(&changed) };
    assert_eq!(refused(fixture, &changed, &past), ScheduleRefusal::When(WhenError::Past(Timestamp::EPOCH)));
    assert_eq!(stored(fixture), changed);
    assert!(fixture.store.remove_schedule(&name("s"), ACTOR).expect("remove_schedule"));
    assert_eq!(fixture.store.edit_schedule(&changed, &same(&changed), ACTOR).expect("edit_schedule"), None);
}

fn an_edit_can_move_a_single_run_that_is_paused(fixture: &Fixture) {
    add(fixture, &NewSchedule { when: When::At(in_hours(fixture, 1)), ..minutely("s") });
    fixture.pass_secs(3_600);
    assert_eq!(fixture.store.fire_due().expect("fire_due").jobs.len(), 1);
    let fired = stored(fixture);
    assert_eq!(fired.next_at, None);
    let pause = Pause { by: ACTOR.to_owned(), reason: None };
    fixture.store.set_schedule_pause(&name("s"), Some(&pause), ACTOR).expect("set_schedule_pause");
    let later = in_hours(fixture, 2);
    edit(fixture, &stored(fixture), &ScheduleEdit { when: When::At(later), ..same(&fired) });
    fixture.store.set_schedule_pause(&name("s"), None, ACTOR).expect("set_schedule_pause");
    assert_eq!(stored(fixture).next_at, Some(later));
}

fn an_edit_can_drop_the_environment(fixture: &Fixture) {
    let environment = Some(Arc::new(Environment::from_bytes(b"HOME=/root\0")));
    let added = add(fixture, &NewSchedule { environment, ..minutely("s") });
    edit(fixture, &added, &ScheduleEdit { drops_environment: true, ..same(&added) });
    let enqueued = fixture.store.run_schedule(&name("s"), ACTOR).expect("run_schedule").expect("it exists");
    assert!(enqueued.is_created());
}

fn upcoming_is_limited_and_in_the_order_of_time(fixture: &Fixture) {
    for hours in [3, 1, 2] {
        fixture.enqueue(job(&format!("in-{hours}")).at(in_hours(fixture, hours)));
    }
    fixture.enqueue(job("now"));
    for (name, hours) in [("late", 4), ("soon", 2)] {
        add(fixture, &NewSchedule { when: When::At(in_hours(fixture, hours)), ..minutely(name) });
    }
    let next = fixture.store.upcoming(2).expect("upcoming");
    let ids: Vec<&str> = next.jobs.iter().map(|job| job.id.as_str()).collect();
    let names: Vec<&str> = next.schedules.iter().map(|schedule| schedule.name.as_str()).collect();
    assert_eq!((ids, names), (vec!["in-1", "in-2"], vec!["soon", "late"]));
    let one = fixture.store.upcoming(1).expect("upcoming");
    assert_eq!((one.jobs.len(), one.schedules.len()), (1, 1));
}
