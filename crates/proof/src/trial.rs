//! One trial: load, inject faults, heal, drain, gather the evidence, check.

pub(crate) mod abandonment;
pub(crate) mod folder;
pub mod processes;
pub(crate) mod progress_timeout;

use std::time::{Duration, Instant};

use fastrand::Rng;

use self::abandonment::AbandonmentMonitor;
use self::progress_timeout::ProgressTimeout;
use super::ProofError;
use super::calls::Answer;
use super::checker::{Verdict, check};
use super::evidence::{Evidence, ScheduleEvidence, counted, gather, pending_notifications};
use super::nemesis::{Nemesis, Notice};
use super::notifications;
use super::notifications::HOOKS;
use super::plan::{Action, Plan, PoolPlan, Request};
use super::sandbox::{SANDBOX_POLL_INTERVAL, Sandbox};
use domain::job::life::StateName;
use store::{Store, StoreError};
use sys::poll::Poll;

/// How long pools may take to start, and to stop.
const POOL_WAIT_LIMIT: Duration = Duration::from_secs(60);
/// How long to wait until every schedule has fired; it is exceeded only on overloaded machines.
const SCHEDULE_WAIT_LIMIT: Duration = Duration::from_secs(60);
/// How long a server may take to answer again after the last fault.
const RECOVERY_LIMIT: Duration = Duration::from_secs(60);
/// How long to wait after that for the remaining processes, including those that the sandbox did not start itself.
const EXIT_WAIT_LIMIT: Duration = Duration::from_secs(30);

/// The result of a trial.
#[derive(Debug)]
pub struct TrialOutcome {
    pub verdict: Verdict,
    pub evidence: Evidence,
    /// How often the nemesis struck.
    pub strikes: u64,
    /// A dead worker was noticed too late, but so busy a machine proves nothing.
    pub is_too_busy: bool,
}

/// Receives the progress of a trial and can interrupt it.
pub trait TrialObserver: Sync {
    fn report(&self, progress: &TrialProgress);
    fn is_interrupted(&self) -> bool;
}

/// The progress of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialProgress {
    Loading,
    Struck { strikes: u64 },
    Draining { left: u64 },
    Judging,
}

/// Limits that depend on the load of the machine.
#[derive(Clone, Copy, Debug)]
pub struct TrialLimits {
    /// The time within which a dead worker must be noticed.
    pub notice_within: Duration,
    /// How long no job may finish before the trial gives up.
    pub max_stall: Duration,
    /// Above this load per processor, a longer time is no violation.
    pub up_to_load: f64,
}

impl TrialLimits {
    /// The time within which a worker must be noticed that died in this way.
    fn notice(self, notice: Notice, sandbox: &Sandbox) -> Option<Duration> {
        let timing = sandbox.timing;
        match (notice, sandbox.server()) {
            (Notice::Unspecified, _) => None,
            (Notice::AtOnce, _) | (Notice::ByOthers, None) => Some(self.notice_within),
            (Notice::ByOthers, Some(_)) => Some(timing.lease + timing.heartbeat + self.notice_within),
        }
    }

    /// Whether a worker was noticed too late for the promise, on a machine that is too busy to tell why.
    fn is_too_busy_to_judge(self, longest: Duration, limit: Duration) -> bool {
        longest > limit && sys::process::load::per_processor().is_some_and(|load| load > self.up_to_load)
    }
}

pub fn run_trial(
    plan: &Plan,
    nemesis: &mut dyn Nemesis,
    sandbox: &Sandbox,
    limits: TrialLimits,
    observer: &dyn TrialObserver,
) -> Result<TrialOutcome, ProofError> {
    observer.report(&TrialProgress::Loading);
    let problems = load(plan, sandbox)?;
    for (pool, host) in plan.pools.iter().zip(sandbox.hosts.iter().cycle()) {
        sandbox.start_pool_on(host, *pool)?;
    }
    let wanted: u32 = plan.pools.iter().map(|pool| pool.count).sum();
    sandbox.wait(POOL_WAIT_LIMIT, || {
        observer.is_interrupted() || sandbox.workers().is_ok_and(|workers| workers.len() >= wanted as usize)
    });
    let mut abandoned = AbandonmentMonitor::default();
    let strikes = strike(plan, nemesis, sandbox, &mut abandoned, observer)?;
    nemesis.heal(sandbox);
    sandbox.start_pool(PoolPlan { count: 1, concurrency: plan.concurrency() })?;
    wait_for_server(sandbox)?;
    let schedules = end_schedules(plan, nemesis.sets_clock(), sandbox, observer)?;
    drain(nemesis.sets_clock(), plan, sandbox, (&mut abandoned, limits.max_stall), observer)?;
    observer.report(&TrialProgress::Judging);
    let mut evidence = gather(sandbox, plan.concurrency())?;
    for queue in &plan.queues {
        evidence.queue_limits.extend(queue.concurrency.map(|limit| (queue.name.to_owned(), limit)));
        evidence.rates.extend(queue.rate.map(|rate| (queue.name.to_owned(), rate)));
    }
    evidence.schedules = schedules;
    evidence.is_clock_set = nemesis.sets_clock();
    evidence.problems = problems;
    evidence.longest_abandoned = abandoned.longest;
    let limit = limits.notice(nemesis.notice(), sandbox);
    let is_too_busy = limit.is_some_and(|limit| limits.is_too_busy_to_judge(abandoned.longest, limit));
    evidence.abandoned_limit = limit.filter(|_| !is_too_busy);
    evidence.may_lose_output = nemesis.may_lose_output();
    Ok(TrialOutcome { verdict: check(&evidence), evidence, strikes, is_too_busy })
}

/// Stores the first jobs and returns the problems that `status` reports while no worker is running.
fn load(plan: &Plan, sandbox: &Sandbox) -> Result<Vec<String>, ProofError> {
    let millis = |span: Duration| format!("{}ms", span.as_millis());
    // The crash limit must not be reached: jobs lose their workers through no fault of their own.
    let settings = [
        ("heartbeat_interval", millis(plan.timing.heartbeat)),
        ("lease", millis(plan.timing.lease)),
        ("kill_grace", millis(plan.timing.kill_grace)),
        ("crash_limit", "1000".to_owned()),
        ("concurrency", plan.concurrency().to_string()),
    ];
    for (key, value) in settings {
        sandbox.run_or_fail(&["-q", "config", "set", key, &value])?;
    }
    for queue in &plan.queues {
        let none = || "none".to_owned();
        let concurrency = queue.concurrency.map_or_else(none, |limit| limit.to_string());
        let rate = queue.rate.map_or_else(none, |rate| rate.to_string());
        sandbox.run_or_fail(&[
            "-q",
            "queue",
            "set",
            queue.name,
            "--concurrency",
            &concurrency,
            "--rate",
            &rate,
        ])?;
    }
    let tell = notifications::command(&sandbox.notifications());
    for (name, event) in HOOKS {
        sandbox.run_or_fail(&["-q", "hook", "add", name, "--on", event, "--command", &tell])?;
    }
    enqueue_first(plan, sandbox)?;
    for schedule in &plan.schedules {
        let words = schedule.words(&sandbox.program.path, &sandbox.ledger());
        sandbox.run_or_fail(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
    }
    let status = sandbox.run_or_fail(&["status", "--json"])?;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap_or_default();
    let problems = status["problems"].as_array().cloned().unwrap_or_default();
    Ok(problems.iter().filter_map(|problem| Some(problem["problem"].as_str()?.to_owned())).collect())
}

/// Enqueues the first jobs, a few per call; jobs in one call share a batch.
fn enqueue_first(plan: &Plan, sandbox: &Sandbox) -> Result<(), ProofError> {
    let mut random = Rng::with_seed(plan.seed);
    for mut jobs in plan.jobs.chunk_by(|one, next| one.batch == next.batch) {
        while !jobs.is_empty() {
            let (some, rest) = jobs.split_at(random.usize(1..=4).min(jobs.len()));
            sandbox.send(Request::Enqueue(some.to_vec()), None)?;
            jobs = rest;
        }
    }
    Ok(())
}

/// Runs the clients while the nemesis injects faults. Returns the number of faults.
fn strike(
    plan: &Plan,
    nemesis: &mut dyn Nemesis,
    sandbox: &Sandbox,
    abandoned: &mut AbandonmentMonitor,
    observer: &dyn TrialObserver,
) -> Result<u64, ProofError> {
    let mut random = Rng::with_seed(plan.seed ^ 0x5eed);
    let mut strikes = 0;
    std::thread::scope(|scope| {
        let clients: Vec<_> = plan
            .clients
            .iter()
            .map(|actions| scope.spawn(|| run_client(actions, sandbox, observer)))
            .collect();
        let until = Instant::now() + plan.strike_time;
        let mut next = Instant::now() + nemesis.pause(&mut random);
        while (Instant::now() < until || clients.iter().any(|client| !client.is_finished()))
            && !observer.is_interrupted()
        {
            abandoned.observe(sandbox)?;
            if next <= Instant::now() && Instant::now() < until {
                strikes += u64::from(strike_once(nemesis, sandbox, &mut random)?);
                observer.report(&TrialProgress::Struck { strikes });
                next = Instant::now() + nemesis.pause(&mut random);
            }
            replenish(plan, sandbox)?;
            std::thread::sleep(SANDBOX_POLL_INTERVAL);
        }
        for client in clients {
            client.join().unwrap_or(Err(ProofError::Panicked))?;
        }
        Ok(strikes)
    })
}

/// Injects the fault once. A nemesis that cannot ask a server, which may just have failed, does nothing.
fn strike_once(nemesis: &mut dyn Nemesis, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
    match nemesis.strike(sandbox, random) {
        Err(ProofError::Store(_)) if sandbox.server().is_some() => Ok(false),
        struck => struck,
    }
}

/// Runs one client. After an unknown outcome it enqueues each job again.
fn run_client(actions: &[Action], sandbox: &Sandbox, observer: &dyn TrialObserver) -> Result<(), ProofError> {
    for action in actions {
        if observer.is_interrupted() {
            return Ok(());
        }
        std::thread::sleep(action.pause);
        let answer = sandbox.send(action.request.clone(), None)?;
        if let (Answer::Unknown, Request::Enqueue(jobs)) = (answer, &action.request) {
            for job in jobs {
                sandbox.send(Request::Enqueue(vec![job.clone()]), None)?;
            }
        }
    }
    Ok(())
}

/// Replaces the pools that have ended.
fn replenish(plan: &Plan, sandbox: &Sandbox) -> Result<(), ProofError> {
    let hosts = &sandbox.hosts;
    for (at, host) in hosts.iter().enumerate() {
        let its = plan.pools.iter().skip(at).step_by(hosts.len());
        for pool in its.skip(host.supervisors().len()) {
            // A file never keeps a pool from starting.
            if sandbox.server().is_none() || host.may_start() {
                sandbox.start_pool_on(host, *pool)?;
            }
        }
    }
    Ok(())
}

/// Waits until the server answers this process and every host.
fn wait_for_server(sandbox: &Sandbox) -> Result<(), ProofError> {
    if sandbox.server().is_none() {
        return Ok(());
    }
    let mut poll = Poll::every(SANDBOX_POLL_INTERVAL).within(RECOVERY_LIMIT);
    loop {
        let answer = sandbox.store().queues().map(drop);
        if answer.is_ok() && sandbox.hosts.iter().all(|host| sandbox.is_connected(host)) {
            return Ok(());
        }
        if !poll.sleep() {
            return Ok(answer?);
        }
    }
}

/// Waits until each schedule has fired, removes the schedules so that the trial can end, and returns them.
fn end_schedules(
    plan: &Plan,
    is_clock_set: bool,
    sandbox: &Sandbox,
    observer: &dyn TrialObserver,
) -> Result<Vec<ScheduleEvidence>, ProofError> {
    let mut found = sandbox.store().schedules()?;
    // A schedule that fired while the clock was ahead does not fire before that time comes again.
    sandbox.wait(SCHEDULE_WAIT_LIMIT, || {
        let all_fired = found.iter().all(|(schedule, _)| schedule.last_at.is_some());
        if all_fired || is_clock_set || observer.is_interrupted() {
            return true;
        }
        found = sandbox.store().schedules().unwrap_or_default();
        false
    });
    let mut schedules = Vec::new();
    for (schedule, _) in found {
        sandbox.run_or_fail(&["-q", "schedule", "remove", schedule.name.as_str()])?;
        let planned = plan.schedules.iter().find(|planned| planned.name() == schedule.name.as_str());
        schedules.extend(planned.map(|planned| ScheduleEvidence { schedule, job: planned.job.clone() }));
    }
    Ok(schedules)
}

/// Waits until all jobs are finished, with one additional, undisturbed pool; then stops all pools.
fn drain(
    is_clock_set: bool,
    plan: &Plan,
    sandbox: &Sandbox,
    (abandoned, max_stall): (&mut AbandonmentMonitor, Duration),
    observer: &dyn TrialObserver,
) -> Result<(), ProofError> {
    let mut timeout = ProgressTimeout::new(Instant::now(), max_stall);
    loop {
        if observer.is_interrupted() {
            return Err(ProofError::Interrupted);
        }
        abandoned.observe(sandbox)?;
        // Count the jobs before the deliveries, because the last job still causes a delivery.
        let unfinished = unfinished(sandbox.store())?;
        // Deliveries that were created while the clock was ahead are due in a day.
        let pending_notifications = if is_clock_set { 0 } else { pending_notifications(sandbox.store())? };
        let left = unfinished + pending_notifications;
        observer.report(&TrialProgress::Draining { left });
        // The checker reports jobs that never end.
        if left == 0 || timeout.is_over(left, Instant::now()) {
            break;
        }
        // A pool may have ended because its host was cut off from the server.
        if sandbox.server().is_some() {
            replenish(plan, sandbox)?;
        }
        std::thread::sleep(SANDBOX_POLL_INTERVAL);
    }
    sandbox.wait(POOL_WAIT_LIMIT, || sandbox.all_pools_had_workers());
    if sandbox.server().is_some() {
        // The workers of a host without power are noticed after their leases.
        sandbox.wait(POOL_WAIT_LIMIT, || all_registered_are_live(sandbox).unwrap_or(false));
    }
    sandbox.run(&["-q", "worker", "stop", "--everywhere", "--timeout", "5s"])?;
    sandbox.wait(POOL_WAIT_LIMIT, || sandbox.supervisors().is_empty());
    sandbox.wait(EXIT_WAIT_LIMIT, || processes::processes_of(sandbox.folder()).is_empty());
    Ok(())
}

fn all_registered_are_live(sandbox: &Sandbox) -> Result<bool, StoreError> {
    let registered = sandbox.store().workers()?.len();
    Ok(sandbox.workers()?.len() == registered)
}

fn unfinished(store: &dyn Store) -> Result<u64, ProofError> {
    let counts = counted(store)?;
    let unfinished = [StateName::Pending, StateName::Processing, StateName::Failed];
    Ok(unfinished.iter().filter_map(|state| counts.get(state)).sum())
}
