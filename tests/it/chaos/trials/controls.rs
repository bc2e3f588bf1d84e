//! Negative controls: without one of its guards queuectl breaks a promise, and the checker says so. The control for full
//! durability is where the power is cut.

use std::time::Duration;

use fastrand::Rng;
use ops::home::location::DATABASE;
use proof::ProofError;
use proof::actor::Escape;
use proof::checker::Invariant;
use proof::ledger;
use proof::ledger::What;
use proof::nemesis::{KillBoth, KillWorker, Nemesis};
use proof::plan::Plan;
use proof::sandbox::{Field, pid};
use rustix::process::Signal;
use store::Worker;
use store::sqlite::gate_path;
use sys::process::lockers_of;

use super::harness::Trials;

#[test]
fn control_without_the_sweep_of_the_supervisor() {
    let trials = Trials::of("control_without_the_sweep_of_the_supervisor", |_| Box::new(KillWorker));
    trials.without("sweep").turn_red(&[Invariant::NoOverlap]);
}

#[test]
fn control_without_the_lock_of_an_attempt() {
    let trials = Trials::of("control_without_the_lock_of_an_attempt", |_| Box::new(KillBoth));
    trials.with_plans(all_escape_bare).without("attempt_lock").turn_red(&[Invariant::NoOverlap]);
}

#[test]
fn fault_24_chaos_kill_both_and_know_them_by_their_locks() {
    let test = "fault_24_chaos_kill_both_and_know_them_by_their_locks";
    Trials::of(test, |_| Box::new(KillBoth)).with_plans(all_escape_bare).all_hold();
}

/// Every job leaves something behind that nothing gives away but the lock that it holds.
fn all_escape_bare(plan: &mut Plan) {
    plan.each_job(|job| job.escapes = vec![Escape::Bare]);
}

#[test]
fn control_without_fencing() {
    let trials = Trials::of("control_without_fencing", |_| Box::new(DeclareDead)).with_plans(nothing_escapes);
    trials.without("fencing").turn_red(&[Invariant::Fenced]);
}

#[test]
fn fault_25_chaos_declare_dead() {
    Trials::of("fault_25_chaos_declare_dead", |_| Box::new(DeclareDead))
        .with_plans(nothing_escapes)
        .all_hold();
}

/// A worker that is stopped cannot kill what its commands leave behind.
fn nothing_escapes(plan: &mut Plan) {
    plan.each_job(|job| job.escapes.clear());
}

#[test]
fn control_without_the_limits_of_queues() {
    let trials = Trials::of("control_without_the_limits_of_queues", |_| Box::new(KillWorker));
    trials.with_plans(all_in_one_lane).without("queue_limits").turn_red(&[Invariant::WithinLimits]);
}

/// Every job wants into the narrowest queue.
fn all_in_one_lane(plan: &mut Plan) {
    plan.each_job(|job| {
        job.queue = Some("narrow");
        job.lives = job.lives.min(Duration::from_millis(100));
    });
}

/// Takes a worker that is stopped for dead when its commands have ended, and lets it report them when others run its
/// jobs again.
struct DeclareDead;

const PATIENCE: Duration = Duration::from_millis(900);

impl Nemesis for DeclareDead {
    fn name(&self) -> &'static str {
        "declare-dead"
    }

    fn does(&self) -> &'static str {
        "a worker is taken for dead and comes back"
    }

    fn strike(&mut self, field: &Field, random: &mut Rng) -> Result<bool, ProofError> {
        let mut busy = field.workers()?;
        busy.retain(|worker| worker.running > 0);
        let Some(worker) = random.choice(busy) else {
            return Ok(false);
        };
        let both = [Some(worker.pid), worker.supervisor_pid].map(|number| number.and_then(pid));
        for process in both.into_iter().flatten() {
            field.signal(process, Signal::STOP);
        }
        let struck = declare(field, &worker)?;
        for process in both.into_iter().flatten() {
            field.signal(process, Signal::CONT);
        }
        Ok(struck)
    }
}

/// Whether its jobs run again elsewhere.
fn declare(field: &Field, worker: &Worker) -> Result<bool, ProofError> {
    let held = held_by(field, worker)?;
    if held.is_empty() {
        // It settled them in the last moment. Should it stand in the gate, nobody would come to clear it.
        return Ok(false);
    }
    if !field.wait(PATIENCE, || held.iter().all(|(job, attempt)| has_ended(field, job, *attempt))) {
        return Ok(false);
    }
    if lockers_of(&gate_path(&field.home().join(DATABASE))).contains(&worker.pid) {
        // Nobody could write while it sleeps there.
        return Ok(false);
    }
    field.store().reap(&worker.id, None)?;
    Ok(field.wait(PATIENCE, || held.iter().any(|(job, attempt)| has_started(field, job, attempt + 1))))
}

fn held_by(field: &Field, worker: &Worker) -> Result<Vec<(String, u32)>, ProofError> {
    use domain::job::life::State;
    use store::{JobFilter, Page};
    let everything = Page { limit: usize::MAX, after: None };
    let jobs = field.store().list(&JobFilter::default(), &everything)?;
    let held = jobs
        .into_iter()
        .filter(|job| matches!(&job.life.state, State::Processing(lease) if lease.worker == worker.id));
    Ok(held.map(|job| (job.id.to_string(), job.life.attempts)).collect())
}

fn has_ended(field: &Field, job: &str, attempt: u32) -> bool {
    says(field, job, attempt, |what| matches!(what, What::End { .. }))
}

fn has_started(field: &Field, job: &str, attempt: u32) -> bool {
    says(field, job, attempt, |what| matches!(what, What::Start { .. }))
}

fn says(field: &Field, job: &str, attempt: u32, is_it: fn(&What) -> bool) -> bool {
    let lines = ledger::read(&field.ledger()).unwrap_or_default();
    lines.iter().any(|line| line.job == job && line.attempt == attempt && is_it(&line.what))
}
