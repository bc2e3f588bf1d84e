//! Negative controls across hosts: without one of its guards queuectl breaks a promise, and the checker reports it.

use std::time::Duration;

use fastrand::Rng;
use proof::ProofError;
use proof::checker::Invariant;
use proof::ledger::CommandEnd;
use proof::nemesis::Nemesis;
use proof::plan::{Plan, Timing};
use proof::sandbox::proxy::Fault;
use proof::sandbox::{Sandbox, Server};
use proof::trial::TrialLimits;

use super::harness::Stage;
use super::scenarios::shared_server;
use crate::chaos::trials::controls::{DeclareDead, remove_escapes};
use crate::cli::harness::background::Background;
use crate::cli::postgres::Machine;
use crate::store::fixture::schema::Schema;
use crate::store::postgres::proxy::proxy_to;

/// A control gives up sooner on jobs that never finish.
const LIMITS: TrialLimits = TrialLimits {
    notice_within: Duration::from_secs(60),
    max_stall: Duration::from_secs(8),
    up_to_load: 1.0,
};
const STRIKE_TIME: Duration = Duration::from_secs(6);
/// How many seeds a control tries until it has turned red.
const MAX_SEEDS: u64 = 8;

/// Runs trials until this invariant is violated; other violations do not matter.
fn assert_violates(expected: Invariant, stage: impl Fn() -> Stage) {
    let mut found = Vec::new();
    for seed in 1..=MAX_SEEDS {
        let performance = stage().run(seed, STRIKE_TIME, LIMITS).expect("a trial");
        found.extend(performance.outcome.verdict.violations.clone());
        if let Some(violation) = found.iter().find(|one| one.invariant == expected) {
            println!("violated with seed {seed}: {violation}");
            return;
        }
    }
    panic!("{expected} was not violated with {MAX_SEEDS} seeds, only: {found:#?}");
}

/// Cuts one host after the other off from the server.
struct CutOff {
    lasts: Duration,
}

impl Nemesis for CutOff {
    fn name(&self) -> &'static str {
        "cut-off"
    }

    fn description(&self) -> &'static str {
        "a host cut off from the server"
    }

    fn strike(&mut self, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        let proxy = sandbox.hosts[random.usize(0..sandbox.hosts.len())].proxy.as_ref().expect("a proxy");
        proxy.set(Fault::BlackHole);
        // This sleep is the duration of the fault, not synchronisation.
        std::thread::sleep(self.lasts);
        proxy.set(Fault::None);
        Ok(true)
    }
}

fn cut_off(leases: f64) -> Stage {
    let lasts = Timing::ON_A_SERVER.lease.mul_f64(leases);
    Stage::new(Server::behind_proxies(&shared_server()), CutOff { lasts })
}

/// Plain jobs of one length that fill every slot.
fn plain_jobs(plan: &mut Plan, lives: Duration) {
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

/// Other hosts take them over while they run.
fn outlive_the_lease(plan: &mut Plan) {
    plain_jobs(plan, plan.timing.lease * 2);
}

#[test]
fn control_of_hosts_without_self_fencing() {
    assert_violates(Invariant::NoOverlap, || {
        cut_off(2.5).with_plans(outlive_the_lease).without("self_fencing")
    });
}

/// A command ends while its worker is stopped, and the worker continues while another host runs the job.
#[test]
fn control_of_hosts_without_fencing() {
    assert_violates(Invariant::Fenced, || {
        let server = Server::behind_proxies(&shared_server());
        Stage::new(server, DeclareDead).with_plans(remove_escapes).without("fencing")
    });
}

/// Whether a job starts whose priority puts it before the floor of its queue, which a first job has raised.
fn starts_before_the_floor(guards: &str) -> bool {
    let schema = Schema::new();
    let machine = Machine::new(&schema, "near");
    let worker = Background::start(machine.call(&["worker", "run", "-q"]));
    machine.enqueue("first", "true");
    machine.run("wait -q first").ok();
    let urgent = ["enqueue", "-q", "--id", "urgent", "--priority", "5", "-c", "true"];
    machine.call(&urgent).env("QUEUECTL_WITHOUT", guards).run().ok();
    let has_ended = machine.run(&format!("wait -q --timeout {STARTS_WITHIN} urgent")).status.success();
    drop(worker);
    has_ended
}

#[test]
fn control_of_hosts_without_the_guard_of_floors() {
    assert!(starts_before_the_floor(""), "the floor was lowered for it");
    assert!(!starts_before_the_floor("floor_guard"), "it started although the floor was not lowered");
}

/// Longer than a worker takes that hears of the job, on a busy machine. Without polls another one never starts it.
const STARTS_WITHIN: &str = "10s";
/// How far the worker is from the server: it takes this long, and more, to fall asleep.
const DISTANCE: Duration = Duration::from_millis(40);
/// Long enough that the worker claims no other job while it runs.
const COMMAND: &str = "sleep 0.2";

/// Enqueues jobs at each moment in which a worker falls asleep that does not poll. Returns whether all started.
fn all_start(rounds: u64, guards: &str) -> bool {
    let schema = Schema::new();
    let proxy = proxy_to(&schema.address);
    let (near, far) = (Machine::new(&schema, "near"), Machine::at(&proxy.address, "far"));
    near.run("config set lease 120s").ok();
    near.run("config set heartbeat_interval 30s").ok();
    let worker = Background::start(far.call(&["worker", "run", "-q"]).env("QUEUECTL_WITHOUT", guards));
    near.enqueue("first", COMMAND);
    near.run("wait -q first").ok();
    proxy.set(Fault::Delay(DISTANCE));
    let all_started = (0..rounds).all(|round| {
        let (wakes, follows) = (format!("wakes-{round}"), format!("follows-{round}"));
        near.enqueue(&wakes, COMMAND);
        // This sleep chooses the moment of the second job; it is not synchronisation.
        std::thread::sleep(Duration::from_millis(250 + round * 67 % 400));
        near.enqueue(&follows, COMMAND);
        near.run(&format!("wait -q --timeout {STARTS_WITHIN} {wakes} {follows}")).status.success()
    });
    drop(worker);
    all_started
}

#[test]
fn a_job_that_becomes_ready_while_a_worker_falls_asleep_starts() {
    assert!(all_start(6, "polling"), "a job waited although a worker slept");
}

#[test]
fn control_of_hosts_without_the_second_look() {
    assert!(!all_start(40, "polling,second_look"), "no job waited although the worker looked only once");
}
