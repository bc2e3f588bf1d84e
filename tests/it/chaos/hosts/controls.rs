//! Negative controls across hosts: without one of its guards queuectl breaks a promise, and the checker reports it.

use std::time::Duration;

use fastrand::Rng;
use proof::ProofError;
use proof::checker::Invariant;
use proof::nemesis::Nemesis;
use proof::plan::{Plan, PoolPlan, Timing};
use proof::sandbox::proxy::Fault;
use proof::sandbox::{Host, Sandbox, Server};
use proof::trial::TrialLimits;

use super::harness::Stage;
use super::scenarios::shared_server;
use crate::chaos::trials::controls::{DeclareDead, RUNS_FOR, plain_jobs};
use crate::cli::harness::background::Background;
use crate::cli::postgres::Machine;
use crate::engine::harness::wait_until;
use crate::store::fixture::schema::Schema;

/// A control gives up sooner on jobs that never finish.
const LIMITS: TrialLimits = TrialLimits {
    notice_within: Duration::from_secs(60),
    max_stall: Duration::from_secs(8),
    up_to_load: 1.0,
};
const STRIKE_TIME: Duration = Duration::from_secs(3);
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

/// Cuts the host off from the server that runs the most jobs.
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

    fn strike(&mut self, sandbox: &Sandbox, _random: &mut Rng) -> Result<bool, ProofError> {
        let workers = sandbox.workers()?;
        let running = |host: &&Host| {
            let its = workers.iter().filter(|worker| worker.folder.starts_with(&host.home));
            its.map(|worker| worker.running).sum::<u32>()
        };
        let Some(host) = sandbox.hosts.iter().filter(|host| running(host) > 0).max_by_key(running) else {
            return Ok(false);
        };
        let proxy = host.proxy.as_ref().expect("a proxy");
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

/// Other hosts take them over while they run.
fn outlive_the_lease(plan: &mut Plan) {
    plain_jobs(plan, plan.timing.lease * 2);
    // Half of the slots stay free for them.
    let slots: u32 = plan.pools.iter().map(|pool| pool.count * pool.concurrency).sum();
    plan.jobs.truncate(slots as usize / 2);
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
        Stage::new(server, DeclareDead).with_plans(end_while_stopped).without("fencing")
    });
}

/// Few slots, so that some jobs are left for every strike.
fn end_while_stopped(plan: &mut Plan) {
    plain_jobs(plan, RUNS_FOR);
    plan.pools.fill(PoolPlan { count: 1, concurrency: 2 });
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

/// Stores a job after a worker that falls asleep has found none, and before its mark says that it listens: a trigger holds
/// the mark back. Returns whether the job started, although the worker does not poll.
fn starts_while_a_worker_falls_asleep(guards: &str) -> bool {
    let schema = Schema::new();
    let machine = Machine::new(&schema, "near");
    machine.run("config set lease 120s").ok();
    machine.run("config set heartbeat_interval 30s").ok();
    let (session, blocker) = (schema.session(), schema.session());
    let folder = tempfile::tempdir().expect("a folder");
    let worker = machine.call(&["worker", "run", "-q", "--concurrency", "1"]);
    let worker = Background::start(worker.env("QUEUECTL_WITHOUT", guards));
    let has = |sql: &str| !session.run(sql).is_empty();
    wait_until("the worker listens", || has("select 1 from workers where listens = 1"));
    let go = folder.path().join("go");
    machine.enqueue("first", &format!("until [ -e '{}' ]; do sleep 0.02; done", go.display()));
    wait_until("the worker has no room", || {
        has("select 1 from workers where listens = 0") && has("select 1 from jobs where state = 'processing'")
    });
    let pid = blocker.run("select pg_backend_pid()").remove(0);
    blocker.run(&format!("select pg_advisory_lock({pid})"));
    session.run(&format!(
        "create function hold() returns trigger language plpgsql
         as 'begin perform pg_advisory_xact_lock_shared({pid}); return new; end';
         create trigger hold before update of listens on workers for each row when (new.listens = 1)
         execute function hold()"
    ));
    std::fs::write(&go, "").expect("the command ends");
    let waiting = format!("select 1 from pg_stat_activity where {pid} = any(pg_blocking_pids(pid))");
    wait_until("the mark waits", || has(&waiting));
    machine.enqueue("follows", "true");
    blocker.run("select pg_advisory_unlock_all()");
    let has_started = machine.run(&format!("wait -q --timeout {STARTS_WITHIN} follows")).status.success();
    drop(worker);
    has_started
}

#[test]
fn a_job_that_becomes_ready_while_a_worker_falls_asleep_starts() {
    assert!(starts_while_a_worker_falls_asleep("polling"), "the worker slept");
}

#[test]
fn control_of_hosts_without_the_second_look() {
    let has_started = starts_while_a_worker_falls_asleep("polling,second_look");
    assert!(!has_started, "it started although the worker looked only once");
}
