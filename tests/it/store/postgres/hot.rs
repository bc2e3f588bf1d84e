//! The verbs that several workers run at the same time.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use domain::values::name::WorkerId;
use store::{Claim, Cursor, LeaseStatus, Prunable, PruneStep, Settlement};

use crate::engine::harness::wait_until;
use crate::store::fixture::new_job::job;
use crate::store::fixture::schema::Schema;
use crate::store::fixture::{FAILURE, Fixture, TestClock, settlement};

const CLAIMERS: usize = 8;
const JOBS: usize = 2_400;
const LIMIT: usize = 3;
/// Turns that find nothing before a claimer gives up: another may hold the last jobs for a moment.
const IDLE_TURNS: usize = 50;

pub(super) fn settle(claims: &[Claim], outcome: Outcome) -> Vec<Settlement> {
    claims.iter().map(|claim| settlement(&claim.lease, outcome)).collect()
}

#[test]
fn several_claimers_run_each_job_once() {
    let schema = Schema::new();
    let clock = Arc::new(TestClock::default());
    let observer = Fixture::postgres_in(&schema, clock.clone());
    for queue in ["a", "b", "c"] {
        observer.enqueue_all((0..JOBS / 3).map(|at| job(&format!("{queue}-{at}")).queue(queue)));
    }
    let given = Mutex::new(HashSet::new());
    thread::scope(|scope| {
        for number in 0..CLAIMERS {
            let (fixture, given) = (Fixture::postgres_in(&schema, clock.clone()), &given);
            scope.spawn(move || claim_all(&fixture, number, given));
        }
    });
    assert_eq!(given.into_inner().expect("no claimer panicked").len(), JOBS);
    observer.recount();
    let session = schema.session();
    assert_eq!(session.run("select count(*) from attempts"), [JOBS.to_string()], "one attempt for each job");
    assert_eq!(session.run("select count(*) from ready"), ["0"]);
    let worker = session.run("select seq from workers where state <> 'stopped' limit 1");
    assert_eq!(worker, [""; 0], "every claimer has stopped");
    assert_eq!(
        session.run("select 1 from counters where shard > 0"),
        [""; 0],
        "the shards of workers are folded"
    );
}

fn claim_all(fixture: &Fixture, number: usize, given: &Mutex<HashSet<String>>) {
    let worker = fixture.worker(&format!("w{number}"));
    let (mut held, mut idle) = (Vec::new(), 0);
    while idle < IDLE_TURNS || !held.is_empty() {
        let exchanged = fixture.exchange(&worker, &settle(&held, Outcome::Success), 16);
        assert_eq!(exchanged.stale, [], "no other worker has the lease");
        idle = if exchanged.claimed.is_empty() { idle + 1 } else { 0 };
        held = exchanged.claimed;
        let mut given = given.lock().expect("no claimer panicked");
        for claim in &held {
            assert!(given.insert(claim.lease.job.to_string()), "{} was given twice", claim.lease.job);
        }
    }
    fixture.retire(&worker);
}

#[test]
fn a_limit_is_exact_while_several_claim() {
    let schema = Schema::new();
    let clock = Arc::new(TestClock::default());
    let observer = Fixture::postgres_in(&schema, clock.clone());
    observer.limit("limited", u32::try_from(LIMIT).ok(), None);
    observer.enqueue_all((0..60).map(|at| job(&format!("l-{at}")).queue("limited")));
    observer.enqueue_all((0..60).map(|at| job(&format!("o-{at}"))));
    let running = AtomicUsize::new(0);
    thread::scope(|scope| {
        for number in 0..CLAIMERS {
            let (fixture, running) = (Fixture::postgres_in(&schema, clock.clone()), &running);
            scope.spawn(move || {
                let worker = fixture.worker(&format!("w{number}"));
                for _ in 0..12 {
                    let claimed = fixture.claims(&worker, 2);
                    let limited = claimed.iter().filter(|claim| claim.is_limited).count();
                    let now = running.fetch_add(limited, Ordering::SeqCst) + limited;
                    assert!(now <= LIMIT, "{now} jobs of the limited queue run");
                    running.fetch_sub(limited, Ordering::SeqCst);
                    fixture.exchange(&worker, &settle(&claimed, Outcome::Success), 0);
                }
            });
        }
    });
    observer.recount();
}

/// How often the server has read all of a table that can be large.
fn whole_scans(schema: &Schema) -> Vec<String> {
    let (name, session) = (&schema.address.schema, schema.session());
    // A server counts what a session did when the session ends, a moment after the client has left.
    let left = format!("select 1 from pg_stat_activity where application_name = '{name}'");
    wait_until("the sessions of stores have ended", || session.run(&left).is_empty());
    session.run(&format!(
        "select relname || ' ' || seq_scan from pg_stat_user_tables
         where schemaname = '{name}' and relname in ('attempts', 'jobs', 'ready', 'waiting', 'outputs', 'job_tags')
         order by relname"
    ))
}

/// Plans are made when the tables are empty, and kept: they must use indexes from the beginning. A verb that left the lane
/// would be seen too, because the plans of small tables are scans elsewhere.
#[test]
fn a_hot_verb_never_reads_a_whole_table() {
    let schema = Schema::new();
    let clock = Arc::new(TestClock::default());
    let worker = {
        let fixture = Fixture::postgres_in(&schema, clock.clone());
        fixture.enqueue(job("first"));
        fixture.worker("w")
    };
    let before = whole_scans(&schema);
    run_hot_verbs(&Fixture::postgres_in(&schema, clock), &worker);
    assert_eq!(whole_scans(&schema), before);
}

pub(super) fn run_hot_verbs(fixture: &Fixture, worker: &WorkerId) {
    for round in 0..5 {
        let jobs = (0..40).map(|at| job(&format!("j{round}-{at}")).tags(&["t"]));
        fixture.enqueue_all(jobs);
        fixture.enqueue(job(&format!("later-{round}")).delay_secs(1));
        let claimed = fixture.claims(worker, 20);
        assert_eq!(claimed.len(), 20);
        let leases: Vec<_> = claimed.iter().map(|claim| claim.lease.clone()).collect();
        let statuses = fixture.store.extend(worker, &leases).expect("extend");
        assert!(statuses.iter().all(|status| *status == LeaseStatus::Held));
        let (failed, succeeded) = claimed.split_at(3);
        let settlements = [settle(failed, FAILURE), settle(succeeded, Outcome::Success)].concat();
        assert_eq!(fixture.exchange(worker, &settlements, 0).settled.len(), 20);
        fixture.pass_secs(1);
        let (what, before) = (Prunable::Jobs(StateName::Completed), fixture.now());
        let step = PruneStep { what, before, after: Cursor::default(), limit: 10, dry_run: false };
        assert_eq!(fixture.store.prune(&step).expect("a step of retention").count, 10);
    }
}

/// Another session stays in the gate meanwhile, so that a verb which leaves the lane would wait in vain.
#[test]
fn no_hot_verb_has_to_be_alone() {
    let schema = Schema::new();
    let fixture = Fixture::postgres_in(&schema, Arc::new(TestClock::default()));
    let worker = fixture.worker("w");
    let other = schema.session();
    other.run("begin; lock table gate_1 in row exclusive mode");
    run_hot_verbs(&fixture, &worker);
    fixture.pass_secs(60);
    assert_eq!(fixture.claims(&worker, 20).len(), 20);
    other.run("commit");
    let totals = fixture.store.total_metrics().expect("the totals");
    let activity: Vec<_> = totals.iter().map(|queue| (queue.activity.started, queue.enqueued)).collect();
    assert_eq!(activity, [(120, 205)]);
    fixture.recount();
}

/// How many statements have stored the jobs: one for each enqueue in the lane, one for each job otherwise.
fn inserts(schema: &Schema) -> Vec<String> {
    schema.session().run("select count(distinct (cast(xmin as text), cast(cmin as text))) from jobs")
}

#[test]
fn the_first_jobs_of_queues_stay_in_the_lane() {
    let schema = Schema::new();
    let fixture = Fixture::postgres_in(&schema, Arc::new(TestClock::default()));
    fixture.enqueue_all((0..30).map(|at| job(&format!("j-{at}")).queue("new")));
    assert_eq!(inserts(&schema), ["1"]);
    let queue = |at: usize| ["z", "new", "a", "m"][at % 4];
    fixture.enqueue_all((0..40).map(|at| job(&format!("k-{at}")).queue(queue(at))));
    assert_eq!(inserts(&schema), ["2"]);
    let session = schema.session();
    let created = session.run("select distinct created_at from queues");
    assert_eq!(created, [fixture.now().as_millis().to_string()]);
    // A job that is refused takes the new queue back with it.
    fixture.refused([job("l-1").queue("unused"), job("l-1").queue("unused")]);
    let queues = session.run("select name from queues order by name");
    assert_eq!(queues, ["a", "m", "new", "z"]);
    let worker = fixture.worker("w");
    assert_eq!(fixture.claims(&worker, 100).len(), 70);
    fixture.recount();
}

#[test]
fn enqueuers_that_create_the_same_queues_stay_in_the_lane() {
    const ROUNDS: usize = 10;
    let schema = Schema::new();
    let clock = Arc::new(TestClock::default());
    let observer = Fixture::postgres_in(&schema, clock.clone());
    thread::scope(|scope| {
        for number in 0..CLAIMERS {
            let fixture = Fixture::postgres_in(&schema, clock.clone());
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    // Each names the queues in another order.
                    let queue = |at: usize| format!("q{round}-{}", (at + number) % 3);
                    let jobs = (0..6).map(|at| job(&format!("j{number}-{round}-{at}")).queue(&queue(at)));
                    fixture.enqueue_all(jobs);
                }
            });
        }
    });
    assert_eq!(inserts(&schema), [(CLAIMERS * ROUNDS).to_string()]);
    let numbers = schema.session().run("select max(seq) = count(*) from jobs");
    assert_eq!(numbers, ["t"], "no enqueue was repeated");
    observer.recount();
}

/// A turn that needs more than its own rows runs alone, and has the same result.
#[test]
fn jobs_that_became_due_are_claimed_in_order_with_those_that_were_ready() {
    let fixture = Fixture::postgres();
    let worker = fixture.worker("w");
    fixture.enqueue(job("first"));
    fixture.enqueue_all([job("late").delay_secs(2), job("urgent").delay_secs(1).priority(5)]);
    fixture.pass_secs(3);
    fixture.enqueue(job("last"));
    assert_eq!(fixture.claim(&worker, 10), ["urgent", "first", "late", "last"]);
    fixture.recount();
}

/// A floor tells where claims begin. A job before it lowers it.
#[test]
fn a_job_before_the_floor_of_its_queue_is_found() {
    let schema = Schema::new();
    let fixture = Fixture::postgres_in(&schema, Arc::new(TestClock::default()));
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("a"), job("b"), job("c")]);
    assert_eq!(fixture.claim(&worker, 2), ["a", "b"]);
    // The claim has raised the floor.
    let session = schema.session();
    assert_eq!(session.run("select seq from floors"), session.run("select seq from ready"));
    fixture.enqueue(job("urgent").priority(1));
    fixture.clock.jump(-5_000);
    fixture.enqueue(job("early"));
    assert_eq!(fixture.claim(&worker, 3), ["urgent", "early", "c"]);
}
