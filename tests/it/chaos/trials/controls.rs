//! Negative controls: without one of its guards queuectl breaks a promise, and the checker reports it. The control for full
//! durability is with the power cuts (`power/controls.rs`).
//!
//! Plain jobs of one length keep every worker busy, so that the first strikes have the effect that a guard prevents.

use std::time::Duration;

use domain::job::life::StateName;
use fastrand::Rng;
use ops::home::location::DATABASE;
use proof::ProofError;
use proof::actor::{Escape, LINGER};
use proof::checker::Invariant;
use proof::ledger;
use proof::ledger::{CommandEnd, LedgerEvent};
use proof::nemesis::{KillBoth, KillWorker, Nemesis};
use proof::plan::{Plan, PoolPlan};
use proof::sandbox::{Sandbox, pid};
use proof::trial::processes::{command_line, processes_of};
use rustix::process::Signal;
use store::sqlite::gate_path;
use store::{JobFilter, Page, Phase, Worker};
use sys::process::lockers_of;

use super::harness::Trials;

#[test]
fn control_without_the_cleanup_by_the_supervisor() {
    let trials = Trials::of("control_without_the_cleanup_by_the_supervisor", |_| Box::new(KillWorker));
    trials
        .with_plans(outlive_their_workers)
        .without("orphan_cleanup")
        .assert_violates(&[Invariant::NoOverlap]);
}

/// Jobs that still run when they are given to another worker.
fn outlive_their_workers(plan: &mut Plan) {
    plain_jobs(plan, Duration::from_secs(3));
    let slots = fill_slots(plan);
    plan.jobs.truncate(slots);
    plan.strike_time = Duration::from_secs(2);
}

/// Jobs of one length that may start at any time.
pub(in crate::chaos) fn plain_jobs(plan: &mut Plan, lives: Duration) {
    plan.schedules.clear();
    plan.clients.clear();
    plan.each_job(|job| {
        job.lives = lives;
        job.ends = vec![CommandEnd::Exit(0)];
        job.escapes.clear();
        (job.queue, job.timeout, job.delay, job.unique_key) = (None, None, None, None);
        job.depends_on.clear();
    });
}

/// Two pools with one worker each. Returns how many slots they have.
fn fill_slots(plan: &mut Plan) -> usize {
    let pool = PoolPlan { count: 1, concurrency: 3 };
    plan.pools = vec![pool; 2];
    plan.pools.iter().map(|pool| (pool.count * pool.concurrency) as usize).sum()
}

#[test]
fn control_without_the_lock_of_an_attempt() {
    let trials = Trials::of("control_without_the_lock_of_an_attempt", |_| Box::new(KillBothAndLeftovers));
    trials
        .with_plans(escape_bare_and_fill_slots)
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

fn escape_bare_and_fill_slots(plan: &mut Plan) {
    plain_jobs(plan, Duration::from_secs(1));
    let slots = fill_slots(plan);
    plan.jobs.truncate(slots);
    make_all_escape_bare(plan);
    plan.strike_time = Duration::from_secs(2);
}

/// As [`KillBoth`]. Once all jobs have ended it kills their escapees, which no worker finds without the lock: the trial would
/// wait for them.
struct KillBothAndLeftovers;

const JOBS_WAIT_LIMIT: Duration = Duration::from_secs(20);

impl Nemesis for KillBothAndLeftovers {
    fn name(&self) -> &'static str {
        KillBoth.name()
    }

    fn description(&self) -> &'static str {
        KillBoth.description()
    }

    fn strike(&mut self, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        KillBoth.strike(sandbox, random)
    }

    fn heal(&mut self, sandbox: &Sandbox) {
        let have_ended = || {
            let one = Page { limit: 1, after: None };
            [StateName::Pending, StateName::Processing, StateName::Failed].into_iter().all(|state| {
                let filter = JobFilter::in_phase(Phase::State(state));
                sandbox.store().list(&filter, &one).is_ok_and(|jobs| jobs.is_empty())
            })
        };
        sandbox.wait(JOBS_WAIT_LIMIT, have_ended);
        let left = processes_of(sandbox.folder());
        for process in left.into_iter().filter(|process| command_line(*process).contains(LINGER)) {
            sandbox.signal(process, Signal::KILL);
        }
    }
}

#[test]
fn control_without_fencing() {
    let trials =
        Trials::of("control_without_fencing", |_| Box::new(DeclareDead)).with_plans(end_while_stopped);
    trials.without("fencing").assert_violates(&[Invariant::Fenced]);
}

#[test]
fn fault_25_chaos_declare_dead() {
    Trials::of("fault_25_chaos_declare_dead", |_| Box::new(DeclareDead))
        .with_plans(remove_escapes)
        .assert_all_hold();
}

/// Jobs that end while their worker is stopped, and run again for long enough that its old result would replace the new one.
fn end_while_stopped(plan: &mut Plan) {
    plain_jobs(plan, RUNS_FOR);
    fill_slots(plan);
    plan.strike_time = Duration::from_secs(3);
}

/// Shorter than [`ATTEMPT_WAIT_LIMIT`].
pub(in crate::chaos) const RUNS_FOR: Duration = Duration::from_millis(700);

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
    plain_jobs(plan, Duration::from_millis(100));
    fill_slots(plan);
    plan.each_job(|job| job.queue = Some("narrow"));
    plan.strike_time = Duration::from_secs(1);
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
