//! One trial, top to bottom: load, let the nemesis strike, heal, drain, gather the evidence, judge.

use std::time::{Duration, Instant};

use fastrand::Rng;

use super::abandoned::Abandoned;
use super::calls::Answer;
use super::checker::{Verdict, check};
use super::evidence::{Evidence, counted, gather};
use super::field::{Field, LOOK};
use super::nemesis::Nemesis;
use super::plan::{Deed, HEARTBEAT, KILL_GRACE, LEASE, Plan, PoolPlan, Wish};
use super::{ProofError, census};
use crate::domain::life::StateName;
use crate::store::Store;
use crate::sys;

/// How long jobs may take to come to an end when nobody does any more damage.
const DRAIN_PATIENCE: Duration = Duration::from_secs(60);
/// How long pools may take to be up, and to be gone.
const POOL_PATIENCE: Duration = Duration::from_secs(30);
/// How long it may take until nothing is left when they are gone: those that were not started here are waited for too.
const REST_PATIENCE: Duration = Duration::from_secs(5);

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
        let is_busy = sys::load::per_processor().is_some_and(|load| load > self.up_to_load);
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
    drain(plan, field, &mut abandoned, audience)?;
    audience.told(&News::Judging);
    let mut evidence = gather(field, plan.concurrency())?;
    evidence.queue_limits =
        plan.queues.iter().map(|queue| (queue.name.to_owned(), queue.concurrency)).collect();
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
        field.need(&["-q", "queue", "set", queue.name, "--concurrency", &queue.concurrency.to_string()])?;
    }
    let mut random = Rng::with_seed(plan.seed);
    let mut jobs = plan.jobs.as_slice();
    while !jobs.is_empty() {
        let (some, rest) = jobs.split_at(random.usize(1..=4).min(jobs.len()));
        field.ask(Wish::Enqueue(some.to_vec()), None)?;
        jobs = rest;
    }
    let status = field.need(&["status", "--json"])?;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap_or_default();
    let problems = status["problems"].as_array().cloned().unwrap_or_default();
    Ok(problems.iter().filter_map(|problem| Some(problem["problem"].as_str()?.to_owned())).collect())
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
    for pool in plan.pools.iter().skip(field.guardians().len()) {
        field.start_pool(*pool)?;
    }
    Ok(())
}

/// With one more pool, which was never hurt, every job comes to its end; then all pools are stopped.
fn drain(
    plan: &Plan,
    field: &Field,
    abandoned: &mut Abandoned,
    audience: &dyn Audience,
) -> Result<(), ProofError> {
    field.start_pool(PoolPlan { count: 1, concurrency: plan.concurrency() })?;
    let began = Instant::now();
    loop {
        if audience.has_enough() {
            return Err(ProofError::Interrupted);
        }
        abandoned.look(field)?;
        let left = unfinished(field.store())?;
        audience.told(&News::Draining { left });
        // Where some never end, that is for the checker to say.
        if left == 0 || began.elapsed() > DRAIN_PATIENCE {
            break;
        }
        std::thread::sleep(LOOK);
    }
    field.wait(POOL_PATIENCE, || field.all_were_up());
    field.run(&["-q", "worker", "stop", "--timeout", "5s"])?;
    field.wait(POOL_PATIENCE, || field.guardians().is_empty());
    field.wait(REST_PATIENCE, || census::processes_of(field.folder()).is_empty());
    Ok(())
}

fn unfinished(store: &dyn Store) -> Result<u64, ProofError> {
    let counts = counted(store)?;
    let unfinished = [StateName::Pending, StateName::Processing, StateName::Failed];
    Ok(unfinished.iter().filter_map(|state| counts.get(state)).sum())
}
