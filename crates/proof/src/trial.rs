//! One trial, top to bottom: load, let the nemesis strike, heal, drain, gather the evidence, judge.

pub(crate) mod abandoned;
pub mod census;
pub(crate) mod folder;
pub(crate) mod patience;

use std::time::{Duration, Instant};

use fastrand::Rng;

use super::ProofError;
use super::calls::Answer;
use super::checker::{Verdict, check};
use super::evidence::{Evidence, ScheduleEvidence, counted, gather, to_be_told};
use super::hook_log;
use super::hook_log::HOOKS;
use super::nemesis::Nemesis;
use super::plan::{Deed, HEARTBEAT, KILL_GRACE, LEASE, Plan, PoolPlan, Wish};
use super::sandbox::{Field, LOOK};
use super::trial::abandoned::Abandoned;
use super::trial::patience::Patience;
use domain::job::life::StateName;
use store::Store;

/// How long pools may take to be up, and to be gone.
const POOL_PATIENCE: Duration = Duration::from_secs(60);
/// How long it may take until every schedule has fired. All but the busiest machines are long past it.
const FIRE_PATIENCE: Duration = Duration::from_secs(60);
/// How long it may take until nothing is left when they are gone: those that were not started here are waited for too.
const REST_PATIENCE: Duration = Duration::from_secs(30);

/// What came of a trial.
#[derive(Debug)]
pub struct Held {
    pub verdict: Verdict,
    pub evidence: Evidence,
    /// How often the nemesis struck.
    pub strikes: u64,
}

/// Somebody who watches, and may have enough.
pub trait Audience: Sync {
    fn told(&self, news: &News);
    fn has_enough(&self) -> bool;
}

/// How far a trial is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    Loading,
    Struck { strikes: u64 },
    Draining { left: u64 },
    Judging,
}

/// How strict to be about what depends on how busy the machine is.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// How soon a dead worker must be noticed.
    pub notice_within: Duration,
    /// Where more processes than this want to run, for each processor, nobody can say how soon that should be.
    pub up_to_load: f64,
}

impl Terms {
    /// The limit on a machine that is as busy as this one.
    fn notice_limit(self) -> Option<Duration> {
        let is_busy = sys::process::load::per_processor().is_some_and(|load| load > self.up_to_load);
        (!is_busy).then_some(self.notice_within)
    }
}

pub fn hold(
    plan: &Plan,
    nemesis: &mut dyn Nemesis,
    field: &Field,
    terms: Terms,
    audience: &dyn Audience,
) -> Result<Held, ProofError> {
    audience.told(&News::Loading);
    let problems = load(plan, field)?;
    for pool in &plan.pools {
        field.start_pool(*pool)?;
    }
    let wanted: u32 = plan.pools.iter().map(|pool| pool.count).sum();
    field.wait(POOL_PATIENCE, || {
        audience.has_enough() || field.workers().is_ok_and(|workers| workers.len() >= wanted as usize)
    });
    let mut abandoned = Abandoned::default();
    let strikes = strike(plan, nemesis, field, &mut abandoned, audience)?;
    nemesis.heal(field);
    field.start_pool(PoolPlan { count: 1, concurrency: plan.concurrency() })?;
    let schedules = end_schedules(plan, nemesis.turns_clock(), field, audience)?;
    drain(nemesis.turns_clock(), field, &mut abandoned, audience)?;
    audience.told(&News::Judging);
    let mut evidence = gather(field, plan.concurrency())?;
    for queue in &plan.queues {
        evidence.queue_limits.extend(queue.concurrency.map(|limit| (queue.name.to_owned(), limit)));
        evidence.rates.extend(queue.rate.map(|rate| (queue.name.to_owned(), rate)));
    }
    evidence.schedules = schedules;
    evidence.is_clock_turned = nemesis.turns_clock();
    evidence.problems = problems;
    evidence.longest_abandoned = abandoned.longest;
    evidence.abandoned_limit = terms.notice_limit().filter(|_| nemesis.is_noticed_at_once());
    evidence.may_lose_output = nemesis.may_cost_output();
    Ok(Held { verdict: check(&evidence), evidence, strikes })
}

/// Stores the first jobs, and asks what is wrong while no worker runs.
fn load(plan: &Plan, field: &Field) -> Result<Vec<String>, ProofError> {
    let millis = |span: Duration| format!("{}ms", span.as_millis());
    // Commands that are killed with their workers are no fault of theirs, however often it happens.
    let settings = [
        ("heartbeat_interval", millis(HEARTBEAT)),
        ("lease", millis(LEASE)),
        ("kill_grace", millis(KILL_GRACE)),
        ("crash_limit", "1000".to_owned()),
        ("concurrency", plan.concurrency().to_string()),
    ];
    for (key, value) in settings {
        field.need(&["-q", "config", "set", key, &value])?;
    }
    for queue in &plan.queues {
        let none = || "none".to_owned();
        let concurrency = queue.concurrency.map_or_else(none, |limit| limit.to_string());
        let rate = queue.rate.map_or_else(none, |rate| rate.to_string());
        field.need(&["-q", "queue", "set", queue.name, "--concurrency", &concurrency, "--rate", &rate])?;
    }
    let tell = hook_log::command(&field.told());
    for (name, event) in HOOKS {
        field.need(&["-q", "hook", "add", name, "--on", event, "--command", &tell])?;
    }
    enqueue_first(plan, field)?;
    for schedule in &plan.schedules {
        let words = schedule.words(field.program(), &field.ledger());
        field.need(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
    }
    let status = field.need(&["status", "--json"])?;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap_or_default();
    let problems = status["problems"].as_array().cloned().unwrap_or_default();
    Ok(problems.iter().filter_map(|problem| Some(problem["problem"].as_str()?.to_owned())).collect())
}

/// A few at a time, and only such together as are of one batch.
fn enqueue_first(plan: &Plan, field: &Field) -> Result<(), ProofError> {
    let mut random = Rng::with_seed(plan.seed);
    for mut jobs in plan.jobs.chunk_by(|one, next| one.batch == next.batch) {
        while !jobs.is_empty() {
            let (some, rest) = jobs.split_at(random.usize(1..=4).min(jobs.len()));
            field.ask(Wish::Enqueue(some.to_vec()), None)?;
            jobs = rest;
        }
    }
    Ok(())
}

/// Clients go about their business while the nemesis strikes. Gives how often it did.
fn strike(
    plan: &Plan,
    nemesis: &mut dyn Nemesis,
    field: &Field,
    abandoned: &mut Abandoned,
    audience: &dyn Audience,
) -> Result<u64, ProofError> {
    let mut random = Rng::with_seed(plan.seed ^ 0x5eed);
    let mut strikes = 0;
    std::thread::scope(|scope| {
        let clients: Vec<_> =
            plan.clients.iter().map(|deeds| scope.spawn(|| serve(deeds, field, audience))).collect();
        let until = Instant::now() + plan.strikes_for;
        let mut next = Instant::now() + nemesis.pause(&mut random);
        while (Instant::now() < until || clients.iter().any(|client| !client.is_finished()))
            && !audience.has_enough()
        {
            abandoned.look(field)?;
            if next <= Instant::now() && Instant::now() < until {
                strikes += u64::from(nemesis.strike(field, &mut random)?);
                audience.told(&News::Struck { strikes });
                next = Instant::now() + nemesis.pause(&mut random);
            }
            replenish(plan, field)?;
            std::thread::sleep(LOOK);
        }
        for client in clients {
            client.join().unwrap_or(Err(ProofError::Panicked))?;
        }
        Ok(strikes)
    })
}

/// What one client does. Whoever gets no clear answer asks again.
fn serve(deeds: &[Deed], field: &Field, audience: &dyn Audience) -> Result<(), ProofError> {
    for deed in deeds {
        if audience.has_enough() {
            return Ok(());
        }
        std::thread::sleep(deed.pause);
        let answer = field.ask(deed.what.clone(), None)?;
        if let (Answer::Unknown, Wish::Enqueue(jobs)) = (answer, &deed.what) {
            for job in jobs {
                field.ask(Wish::Enqueue(vec![job.clone()]), None)?;
            }
        }
    }
    Ok(())
}

/// Starts a pool for each that has ended.
fn replenish(plan: &Plan, field: &Field) -> Result<(), ProofError> {
    for pool in plan.pools.iter().skip(field.supervisors().len()) {
        field.start_pool(*pool)?;
    }
    Ok(())
}

/// Removes the schedules when each has fired, so that there is an end to it. Gives what they were.
fn end_schedules(
    plan: &Plan,
    is_clock_turned: bool,
    field: &Field,
    audience: &dyn Audience,
) -> Result<Vec<ScheduleEvidence>, ProofError> {
    let mut found = field.store().schedules()?;
    // One that fired while the clock was ahead waits for that time to come again.
    field.wait(FIRE_PATIENCE, || {
        let all_fired = found.iter().all(|(schedule, _)| schedule.last_at.is_some());
        if all_fired || is_clock_turned || audience.has_enough() {
            return true;
        }
        found = field.store().schedules().unwrap_or_default();
        false
    });
    let mut schedules = Vec::new();
    for (schedule, _) in found {
        field.need(&["-q", "schedule", "remove", schedule.name.as_str()])?;
        let planned = plan.schedules.iter().find(|planned| planned.name() == schedule.name.as_str());
        schedules.extend(planned.map(|planned| ScheduleEvidence { schedule, job: planned.job.clone() }));
    }
    Ok(schedules)
}

/// With one more pool, which was never hurt, every job comes to its end; then all pools are stopped.
fn drain(
    is_clock_turned: bool,
    field: &Field,
    abandoned: &mut Abandoned,
    audience: &dyn Audience,
) -> Result<(), ProofError> {
    let mut patience = Patience::new(Instant::now());
    loop {
        if audience.has_enough() {
            return Err(ProofError::Interrupted);
        }
        abandoned.look(field)?;
        // First the jobs: the end of the last one is still to be told.
        let unfinished = unfinished(field.store())?;
        // What was to be told while the clock was ahead is due in a day.
        let to_be_told = if is_clock_turned { 0 } else { to_be_told(field.store())? };
        let left = unfinished + to_be_told;
        audience.told(&News::Draining { left });
        // Where some never end, that is for the checker to say.
        if left == 0 || patience.is_over(left, Instant::now()) {
            break;
        }
        std::thread::sleep(LOOK);
    }
    field.wait(POOL_PATIENCE, || field.all_were_up());
    field.run(&["-q", "worker", "stop", "--timeout", "5s"])?;
    field.wait(POOL_PATIENCE, || field.supervisors().is_empty());
    field.wait(REST_PATIENCE, || census::processes_of(field.folder()).is_empty());
    Ok(())
}

fn unfinished(store: &dyn Store) -> Result<u64, ProofError> {
    let counts = counted(store)?;
    let unfinished = [StateName::Pending, StateName::Processing, StateName::Failed];
    Ok(unfinished.iter().filter_map(|state| counts.get(state)).sum())
}
