//! Negative controls: without one of its guards queuectl breaks a promise, and the checker reports it. The control for full
//! durability is with the power cuts (`power/controls.rs`).

use std::time::Duration;

use fastrand::Rng;
use ops::home::location::DATABASE;
use proof::ProofError;
use proof::actor::Escape;
use proof::checker::Invariant;
use proof::ledger;
use proof::ledger::LedgerEvent;
use proof::nemesis::{KillBoth, KillWorker, Nemesis};
use proof::plan::Plan;
use proof::sandbox::{Sandbox, pid};
use rustix::process::Signal;
use store::Worker;
use store::sqlite::gate_path;
use sys::process::lockers_of;

use super::harness::Trials;

#[test]
fn control_without_the_cleanup_by_the_supervisor() {
    let trials = Trials::of("control_without_the_cleanup_by_the_supervisor", |_| Box::new(KillWorker));
    trials.without("orphan_cleanup").assert_violates(&[Invariant::NoOverlap]);
}

#[test]
fn control_without_the_lock_of_an_attempt() {
    let trials = Trials::of("control_without_the_lock_of_an_attempt", |_| Box::new(KillBoth));
    trials
        .with_plans(make_all_escape_bare)
        .without("attempt_lock,containment")
        .assert_violates(&[Invariant::NoOverlap]);
}

#[test]
fn fault_24_chaos_kill_both_and_find_orphans_by_their_locks() {
    let test = "fault_24_chaos_kill_both_and_find_orphans_by_their_locks";
    let trials = Trials::of(test, |_| Box::new(KillBoth)).with_plans(make_all_escape_bare);
    trials.without("containment").assert_all_hold();
}

/// Every job leaves a process that can only be found by the lock that it holds.
fn make_all_escape_bare(plan: &mut Plan) {
    plan.each_job(|job| job.escapes = vec![Escape::Bare]);
}

#[test]
fn control_without_fencing() {
    let trials = Trials::of("control_without_fencing", |_| Box::new(DeclareDead)).with_plans(remove_escapes);
    trials.without("fencing").assert_violates(&[Invariant::Fenced]);
}

#[test]
fn fault_25_chaos_declare_dead() {
    Trials::of("fault_25_chaos_declare_dead", |_| Box::new(DeclareDead))
        .with_plans(remove_escapes)
        .assert_all_hold();
}

/// A stopped worker cannot kill the orphans of its commands.
pub(in crate::chaos) fn remove_escapes(plan: &mut Plan) {
    plan.each_job(|job| job.escapes.clear());
}

#[test]
fn control_without_the_limits_of_queues() {
    let trials = Trials::of("control_without_the_limits_of_queues", |_| Box::new(KillWorker));
    trials.with_plans(use_one_queue).without("queue_limits").assert_violates(&[Invariant::WithinLimits]);
}

/// Every job goes into the queue with the lowest limit.
fn use_one_queue(plan: &mut Plan) {
    plan.each_job(|job| {
        job.queue = Some("narrow");
        job.lives = job.lives.min(Duration::from_millis(100));
    });
}

/// Declares a stopped worker dead after its commands have ended, and resumes it when others run its jobs again, so that it
/// tries to report the old results.
pub(in crate::chaos) struct DeclareDead;

const ATTEMPT_WAIT_LIMIT: Duration = Duration::from_millis(900);

impl Nemesis for DeclareDead {
    fn name(&self) -> &'static str {
        "declare-dead"
    }

    fn description(&self) -> &'static str {
        "a worker is declared dead and resumes"
    }

    fn strike(&mut self, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        let mut busy = sandbox.workers()?;
        busy.retain(|worker| worker.running > 0);
        let Some(worker) = random.choice(busy) else {
            return Ok(false);
        };
        let both = [Some(worker.pid), worker.supervisor_pid].map(|number| number.and_then(pid));
        for process in both.into_iter().flatten() {
            sandbox.signal(process, Signal::STOP);
        }
        let struck = declare(sandbox, &worker)?;
        for process in both.into_iter().flatten() {
            sandbox.signal(process, Signal::CONT);
        }
        Ok(struck)
    }
}

/// Declares the worker dead. Returns whether its jobs run again elsewhere.
fn declare(sandbox: &Sandbox, worker: &Worker) -> Result<bool, ProofError> {
    let held = held_by(sandbox, worker)?;
    if held.is_empty() {
        // The worker settled them just before it was stopped. If it holds the gate, no other process could release it.
        return Ok(false);
    }
    if !sandbox
        .wait(ATTEMPT_WAIT_LIMIT, || held.iter().all(|(job, attempt)| has_ended(sandbox, job, *attempt)))
    {
        return Ok(false);
    }
    let has_gate = || lockers_of(&gate_path(&sandbox.home().join(DATABASE))).contains(&worker.pid);
    if sandbox.server().is_none() && has_gate() {
        // It holds the gate, so no other process could write.
        return Ok(false);
    }
    sandbox.store().reap(&worker.id, None, &[])?;
    Ok(sandbox.wait(ATTEMPT_WAIT_LIMIT, || {
        held.iter().any(|(job, attempt)| has_started(sandbox, job, attempt + 1))
    }))
}

fn held_by(sandbox: &Sandbox, worker: &Worker) -> Result<Vec<(String, u32)>, ProofError> {
    use domain::job::life::State;
    use store::{JobFilter, Page};
    let everything = Page { limit: usize::MAX, after: None };
    let jobs = sandbox.store().list(&JobFilter::default(), &everything)?;
    let held = jobs
        .into_iter()
        .filter(|job| matches!(&job.life.state, State::Processing(lease) if lease.worker == worker.id));
    Ok(held.map(|job| (job.id.to_string(), job.life.attempts)).collect())
}

fn has_ended(sandbox: &Sandbox, job: &str, attempt: u32) -> bool {
    ledger_contains(sandbox, job, attempt, |what| matches!(what, LedgerEvent::End { .. }))
}

fn has_started(sandbox: &Sandbox, job: &str, attempt: u32) -> bool {
    ledger_contains(sandbox, job, attempt, |what| matches!(what, LedgerEvent::Start { .. }))
}

fn ledger_contains(sandbox: &Sandbox, job: &str, attempt: u32, matches: fn(&LedgerEvent) -> bool) -> bool {
    let lines = ledger::read(&sandbox.ledger()).unwrap_or_default();
    lines.iter().any(|line| line.job == job && line.attempt == attempt && matches(&line.event))
}
