//! What dead jobs died of: counted wherever a job becomes dead or stops being dead.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::job::cause::Cause;
use domain::job::edit::Edit;
use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use domain::job::spec::JobSpec;
use domain::settings::SettingKey;
use domain::values::name::{QueueName, WorkerId};
use ops::jobs::dlq::{find_cause, group_by_cause};
use store::retention::RetentionPass;
use store::{AfterEdit, CauseSummary, Deaths, JobFilter, Phase, Settlement, hour_of};

use crate::store::fixture::new_job::{job, job_id, queue_name};
use crate::store::fixture::{ACTOR, FAILURE, Fixture, every_store, settlement};

every_store!(
    each_death_counts_for_its_cause_and_queue,
    a_job_that_is_dead_no_more_is_not_counted,
    a_job_in_another_queue_is_counted_there,
    a_job_at_its_crash_limit_has_a_cause,
    the_shares_of_a_stopped_worker_stay,
    causes_are_found_by_their_beginning_and_by_a_job,
    counted_groups_equal_those_found_one_by_one,
    the_deaths_of_a_cause_are_counted_by_hour,
);

/// Runs the next job so that it dies with this error line.
fn die(fixture: &Fixture, worker: &WorkerId, exit_code: i32, error: &str) {
    let lease = fixture.lease(worker);
    let outcome = Outcome::Failure { exit_code };
    let ended = Settlement { error: Some(error.to_owned()), ..settlement(&lease, outcome) };
    assert!(fixture.exchange(worker, &[ended], 0).stale.is_empty());
    assert_eq!(fixture.state(lease.job.as_str()), StateName::Dead);
}

fn causes(fixture: &Fixture) -> Vec<CauseSummary> {
    fixture.store.causes(None, usize::MAX).expect("the causes")
}

fn by_queue(counts: &[(&str, u64)]) -> BTreeMap<QueueName, u64> {
    counts.iter().map(|(queue, count)| (queue_name(queue), *count)).collect()
}

fn fill(fixture: &Fixture) {
    let worker = fixture.worker("w");
    for (id, queue, code, error) in [
        ("a", "mail", 75, "exit code 75: smtp refused 17"),
        ("b", "mail", 75, "exit code 75: smtp refused 18"),
        ("c", "default", 75, "exit code 75: smtp refused 19"),
        ("d", "default", 1, "exit code 1: no such file"),
    ] {
        fixture.enqueue(job(id).queue(queue).max_retries(0));
        die(fixture, &worker, code, error);
        fixture.pass_secs(10);
    }
}

fn each_death_counts_for_its_cause_and_queue(fixture: &Fixture) {
    let began = fixture.now();
    fill(fixture);
    let [smtp, file] = &causes(fixture)[..] else { panic!("there are two causes: {:?}", causes(fixture)) };
    assert_eq!((smtp.count, &smtp.queues), (3, &by_queue(&[("default", 1), ("mail", 2)])));
    assert_eq!(smtp.cause.message, "exit code 75: smtp refused …");
    assert_eq!((smtp.first_at, smtp.last_at.since(began).as_secs()), (began, 20));
    assert_eq!((smtp.example.id.as_str(), file.example.id.as_str()), ("c", "d"));
    assert_eq!((file.count, &file.queues), (1, &by_queue(&[("default", 1)])));
    let of_mail = fixture.store.causes(Some(&queue_name("mail")), 9).expect("the causes of a queue");
    assert_eq!((of_mail.len(), of_mail[0].count, of_mail[0].example.id.as_str()), (1, 2, "b"));
    assert_eq!(fixture.store.causes(Some(&queue_name("x")), 9).expect("no causes"), []);
    assert_eq!(fixture.store.causes(None, 1).expect("the largest")[0].count, 3);
    let found = fixture.store.cause(smtp.cause.id()).expect("a cause");
    assert_eq!(found.as_ref(), Some(smtp));
}

fn a_job_that_is_dead_no_more_is_not_counted(fixture: &Fixture) {
    fill(fixture);
    fixture.retry("a");
    fixture.remove("b");
    assert_eq!(causes(fixture).iter().map(|cause| cause.count).collect::<Vec<_>>(), [1, 1]);
    fixture.pass_secs(100);
    fixture.set(SettingKey::RetainDead, "50s");
    let settings = store::settings::in_force(fixture.store.as_ref()).expect("the settings");
    let mut pass = RetentionPass::by_settings(&settings, fixture.now(), "/nowhere".as_ref());
    while pass.step(fixture.store.as_ref()).expect("a step") {}
    assert_eq!(causes(fixture), []);
    let worker = fixture.worker("v");
    fixture.run(&worker, FAILURE);
    assert_eq!(causes(fixture).len(), 1, "it died again");
}

fn a_job_in_another_queue_is_counted_there(fixture: &Fixture) {
    fill(fixture);
    let set = JobSpec { queue: Some(queue_name("slow")), ..JobSpec::default() };
    let edit = Edit { set, ..Edit::default() };
    fixture.store.edit(&job_id("a"), &edit, AfterEdit::Keep, ACTOR).expect("an edit");
    let smtp = &causes(fixture)[0];
    assert_eq!(smtp.queues, by_queue(&[("default", 1), ("mail", 1), ("slow", 1)]));
}

fn a_job_at_its_crash_limit_has_a_cause(fixture: &Fixture) {
    fixture.enqueue("killer");
    for at in 0..9 {
        if fixture.state("killer") != StateName::Dead {
            let worker = fixture.worker(&format!("w{at}"));
            let lease = fixture.lease(&worker);
            fixture.reap_started(&worker, &[lease]);
        }
    }
    let [cause] = &causes(fixture)[..] else { panic!("there is one cause") };
    assert_eq!((cause.cause.reason.as_str(), cause.count), ("crash_limit", 1));
}

fn the_shares_of_a_stopped_worker_stay(fixture: &Fixture) {
    for at in 0..3 {
        let worker = fixture.worker(&format!("w{at}"));
        fixture.enqueue(job(&format!("j{at}")).max_retries(0));
        fixture.run(&worker, FAILURE);
        fixture.retire(&worker);
        fixture.recount();
    }
    fixture.retry("j0");
    let [cause] = &causes(fixture)[..] else { panic!("there is one cause") };
    assert_eq!(cause.count, 2);
}

fn causes_are_found_by_their_beginning_and_by_a_job(fixture: &Fixture) {
    fill(fixture);
    let store = fixture.store.as_ref();
    let id = causes(fixture)[0].cause.id();
    for typed in [&id.to_string(), "c"] {
        let found = find_cause(store, typed);
        let is_prefix = |cause: &CauseSummary| cause.cause.id().begins_with(typed);
        let is_ambiguous = causes(fixture).iter().filter(|cause| cause.cause.id() != id).any(is_prefix);
        assert!(found.is_ok_and(|found| found == id) || is_ambiguous, "{typed}");
    }
    for unknown in ["zzz", "nothing", "00000000000000000"] {
        assert!(find_cause(store, unknown).is_err(), "{unknown}");
    }
}

fn counted_groups_equal_those_found_one_by_one(fixture: &Fixture) {
    fill(fixture);
    let store = fixture.store.as_ref();
    let dead = JobFilter::in_phase(Phase::State(StateName::Dead));
    let counted = group_by_cause(store, &dead).expect("groups");
    // The store has not counted by age.
    let searched = JobFilter { changed_before: Some(fixture.now()), ..dead };
    assert_eq!(counted, group_by_cause(store, &searched).expect("groups"));
}

/// Three dead jobs as the first version stored them.
pub(in crate::store) const EARLIER_DEAD_JOBS: &str = "
    insert into jobs (id, queue_id, priority, state, due_at, attempts, max_retries, failures, started_at, finished_at,
                      exit_code, signal, error, reason, created_at, updated_at, command)
    values ('a', 1, 0, 'dead', 1, 1, 0, 1, 1, 2, 75, null, 'exit code 75: refused 17', 'retries_exhausted', 1, 2, 'x'),
           ('b', 1, 0, 'dead', 1, 1, 0, 1, 1, 2, null, 9, 'killed by SIGKILL', 'not_retried', 1, 2, 'x'),
           ('c', 1, 0, 'dead', 1, 1, 0, 1, 1, 3, 75, null, 'exit code 75: refused 4', 'retries_exhausted', 1, 3, 'x');
    insert into counters (queue_id, state, count) values (1, 'dead', 3);";

/// Dead jobs of an earlier version have their causes: two of one, one of another.
pub(in crate::store) fn assert_causes_of_earlier_jobs(fixture: &Fixture) {
    let smtp = Cause::new("retries_exhausted".to_owned(), Some(75), None, "exit code 75: refused 1");
    let counts: Vec<(Cause, u64)> =
        causes(fixture).into_iter().map(|found| (found.cause, found.count)).collect();
    assert_eq!(counts.len(), 2, "{counts:?}");
    assert_eq!(counts[0], (smtp, 2));
    fixture.recount();
}

fn the_deaths_of_a_cause_are_counted_by_hour(fixture: &Fixture) {
    const HOUR: u64 = 3_600;
    let (worker, began) = (fixture.worker("w"), hour_of(fixture.now()));
    for (id, queue) in [("a", "mail"), ("b", "mail"), ("c", "default")] {
        fixture.enqueue(job(id).queue(queue).max_retries(0));
        die(fixture, &worker, 75, "exit code 75: smtp refused");
        fixture.pass_secs(2 * HOUR);
    }
    let cause = causes(fixture)[0].cause.id();
    let deaths = |queue: Option<&str>, budget| {
        let queue = queue.map(queue_name);
        fixture.store.deaths(cause, queue.as_ref(), budget).expect("the deaths")
    };
    let all = deaths(None, Duration::MAX);
    let by_hour = BTreeMap::from([(began, 1), (began + 2, 1), (began + 4, 1)]);
    assert_eq!(all, Deaths { by_hour, read: 3, is_exact: true });
    assert_eq!(deaths(None, Duration::ZERO), all, "one part is read in any case");
    assert_eq!(deaths(Some("mail"), Duration::MAX).read, 2);
    assert_eq!(deaths(Some("nowhere"), Duration::MAX), Deaths { is_exact: true, ..Deaths::default() });
    fixture.retry("a");
    assert_eq!(deaths(None, Duration::MAX).by_hour.len(), 2, "a job that is retried is not dead");
}
