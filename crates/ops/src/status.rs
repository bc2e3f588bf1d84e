//! The status of the queue: counts, queues, workers and problems.

pub mod problem;
pub mod throughput;
pub mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use self::problem::{HOW_TO_START_A_WORKER, Problem};
use super::OpError;
use super::worker::live::{any_takes_new_jobs, is_served, live_and_dead_workers};

use domain::explain::STARVED_AFTER;
use domain::job::Job;
use domain::job::life::StateName;
use domain::settings::{Durability, Settings};
use domain::values::clock::{Clock, TimeFormat};
use domain::values::timestamp::Timestamp;
use store::settings::in_force;
use store::{
    Hook, JobFilter, LastStop, MAX_DEATHS_COUNTED, OUTDATED, Page, Phase, Queue, RecentProblems, ServedJobs,
    Store, UnkillableProcess, Worker, WorkerState,
};
use sys::fs::{disk, liveness_lock};
use sys::host;
use sys::host::Observer;
use sys::process;

/// Less free space than this is reported as a problem.
pub(super) const LOW_SPACE_BYTES: u64 = 64 << 20;
/// A worker that missed more heartbeats than this is reported as silent.
const MISSED_HEARTBEATS: u32 = 3;
/// How many running jobs of draining workers are read, and how many of them the message names.
const MAX_RUNNING_LISTED: usize = 1_000;
const MAX_RUNNING_NAMED: usize = 3;
/// How long the death of a job is reported.
const DEATH_WINDOW: Duration = Duration::from_secs(3_600);
/// How long a missed run of a schedule or an abandoned hook delivery is reported.
const RECENT_PROBLEM_WINDOW: Duration = Duration::from_secs(24 * 3_600);

#[derive(Clone, Debug)]
pub struct Status {
    pub jobs: BTreeMap<StateName, u64>,
    pub queues: Vec<Queue>,
    pub workers: Vec<Worker>,
    pub problems: Vec<Problem>,
}

/// The sentences show times in this format.
pub fn status(store: &dyn Store, home: &Path, format: &TimeFormat) -> Result<Status, OpError> {
    let queues = store.queues()?;
    let (workers, dead) =
        if store.has_worker()? { live_and_dead_workers(store)? } else { Default::default() };
    let settings = in_force(store)?;
    let now = store.now()?;
    let clock = &Clock::new(now, format.clone());
    let recent =
        store.recent_problems(now.saturating_sub(DEATH_WINDOW), now.saturating_sub(RECENT_PROBLEM_WINDOW))?;
    let mut jobs: BTreeMap<StateName, u64> = StateName::ALL.into_iter().map(|state| (state, 0)).collect();
    for (state, count) in queues.iter().flat_map(|queue| &queue.counts) {
        *jobs.entry(*state).or_default() += count;
    }
    let mut problems: Vec<Problem> = store.is_read_only().then(Problem::read_only).into_iter().collect();
    problems.extend(queues.iter().filter_map(paused));
    problems.extend(paused_jobs(store, &jobs, clock)?);
    problems.extend(starved(store, &jobs, now)?);
    problems.extend(unserved_jobs(store, &jobs, &queues, &workers)?);
    problems.extend(schedule_problems(&recent, &workers));
    let writer = store.writer().filter(|holder| holder.is_stopped);
    problems.extend(writer.map(|holder| Problem::stopped_writer(holder.pid, &holder.name)));
    problems.extend(draining(store, &workers, &jobs)?);
    problems.extend(
        workers
            .iter()
            .filter_map(|worker| outdated(worker).or(hindered(worker)).or(silent(worker, &settings, now))),
    );
    problems.extend(dead.iter().filter_map(|worker| outdated(worker).or(unheard(worker, now))));
    problems.extend(shared_home(store, home, &workers));
    problems.extend(replaced_programs(&workers));
    problems.extend(store.unkillable()?.iter().filter(|found| found.is_alive()).map(unkillable));
    problems.extend(recent_deaths(store, recent.deaths, now)?);
    problems.extend(recent_problems(&recent, &workers, clock));
    problems.extend(Some(store.lagging_standbys()?).filter(|count| *count > 0).map(Problem::lagging_standby));
    problems.extend(environment_problems(&settings, home));
    Ok(Status { jobs, queues, workers, problems })
}

/// Jobs that would have been started long ago, but for jobs with a higher priority.
fn starved(
    store: &dyn Store,
    jobs: &BTreeMap<StateName, u64>,
    now: Timestamp,
) -> Result<Vec<Problem>, OpError> {
    if waiting(jobs) == 0 || jobs.get(&StateName::Processing) == Some(&0) {
        return Ok(Vec::new());
    }
    let found = store.starved(now.saturating_sub(STARVED_AFTER))?;
    let problem =
        |(job, since): &(Job, Timestamp)| Problem::starved(&job.handle(), &job.queue, now.since(*since));
    Ok(found.iter().map(problem).collect())
}

/// Jobs that no worker serves, because there is no worker at all or none for their queue.
fn unserved_jobs(
    store: &dyn Store,
    jobs: &BTreeMap<StateName, u64>,
    queues: &[Queue],
    workers: &[Worker],
) -> Result<Vec<Problem>, OpError> {
    if !any_takes_new_jobs(workers) {
        let waiting = (waiting(jobs) + orphaned(jobs)).saturating_sub(served_jobs(store, workers)?);
        return Ok((waiting > 0).then(|| Problem::no_worker(waiting)).into_iter().collect());
    }
    Ok(queues.iter().filter_map(|queue| unserved(queue, workers)).collect())
}

/// How many unfinished jobs have a worker that runs only certain jobs.
fn served_jobs(store: &dyn Store, workers: &[Worker]) -> Result<u64, OpError> {
    let (mut single, mut batches) = (0, BTreeSet::new());
    for worker in workers {
        match &worker.served {
            ServedJobs::Job(_) => single += 1,
            ServedJobs::Batch(name) => {
                batches.insert(name);
            }
            ServedJobs::All | ServedJobs::InOrder(_) => {}
        }
    }
    for name in batches {
        single += store.batch(name)?.map_or(0, |batch| batch.total() - batch.finished());
    }
    Ok(single)
}

/// Schedules that fire nothing: the paused ones and, without a worker, all of them.
fn schedule_problems(recent: &RecentProblems, workers: &[Worker]) -> Vec<Problem> {
    let paused = recent
        .paused
        .iter()
        .map(|(schedule, pause)| Problem::schedule_paused(schedule, &pause.by, pause.reason.as_deref()));
    let idle = (recent.active > 0 && workers.is_empty()).then(|| Problem::schedule_no_worker(recent.active));
    paused.chain(idle).collect()
}

/// Workers that finish their running jobs and start no more. Idle ones exit at once and are not reported.
fn draining(
    store: &dyn Store,
    workers: &[Worker],
    jobs: &BTreeMap<StateName, u64>,
) -> Result<Option<Problem>, OpError> {
    let is_one = |worker: &&Worker| worker.state == WorkerState::Draining && worker.running > 0;
    let draining: Vec<&Worker> = workers.iter().filter(is_one).collect();
    let Some(first) = draining.first() else {
        return Ok(None);
    };
    let is_for_it = |stop: &LastStop| {
        stop.at >= first.started_at
            && stop.home_id.as_ref().is_none_or(|addressed| {
                *addressed == first.origin.key.home_id || addressed == first.id.as_str()
            })
    };
    let stop = store.last_stop()?.filter(is_for_it);
    let processing = JobFilter::in_phase(Phase::State(StateName::Processing));
    let mut running = store.list(&processing, &Page { limit: MAX_RUNNING_LISTED, after: None })?;
    running.retain(|job| {
        job.life.state.lease().is_some_and(|lease| draining.iter().any(|worker| worker.id == lease.worker))
    });
    running.reverse();
    let named: Vec<String> = running.iter().take(MAX_RUNNING_NAMED).map(Job::handle).collect();
    let running = draining.iter().map(|worker| u64::from(worker.running)).sum();
    let (count, by) = (draining.len() as u64, stop.as_ref().map(|stop| stop.by.as_str()));
    Ok(Some(Problem::draining(count, by, running, &named, waiting(jobs))))
}

fn unserved(queue: &Queue, workers: &[Worker]) -> Option<Problem> {
    let waiting = waiting(&queue.counts);
    let is_one = queue.paused.is_none() && waiting > 0 && !is_served(&queue.name, workers);
    is_one.then(|| Problem::queue_unserved(&queue.name, waiting))
}

fn paused(queue: &Queue) -> Option<Problem> {
    let (_, pause) = queue.paused.as_ref()?;
    let (reason, waiting) = (pause.reason.as_deref(), waiting(&queue.counts));
    Some(Problem::queue_paused(&queue.name, &pause.by, reason, waiting))
}

/// Each of a few paused jobs, or the number of many. Only a job in state processing can be paused.
fn paused_jobs(
    store: &dyn Store,
    jobs: &BTreeMap<StateName, u64>,
    clock: &Clock,
) -> Result<Vec<Problem>, OpError> {
    if jobs.get(&StateName::Processing) == Some(&0) {
        return Ok(Vec::new());
    }
    let paused = JobFilter::in_phase(Phase::Paused);
    let found = store.list(&paused, &Page { limit: MAX_RUNNING_LISTED, after: None })?;
    if found.len() > MAX_RUNNING_NAMED {
        let is_all = found.len() < MAX_RUNNING_LISTED;
        return Ok(vec![Problem::jobs_paused(found.len() as u64, is_all)]);
    }
    let problem = |job: &Job| {
        let since = job.life.state.paused_at()?;
        Some(Problem::job_paused(&job.handle(), &clock.time(since)))
    };
    Ok(found.iter().filter_map(problem).collect())
}

fn hindered(worker: &Worker) -> Option<Problem> {
    // The lock file is newer than the store, which may itself be the problem.
    let why = if is_elsewhere(worker) {
        worker.health.clone()
    } else {
        liveness_lock::reported_problem(&worker.folder, worker.id.as_str())
    };
    Some(Problem::hindered_worker(&worker.id, &why?))
}

/// Whether this process sees neither its lock file nor its processes.
fn is_elsewhere(worker: &Worker) -> bool {
    !host::finds_lock_of(&worker.origin, &worker.folder, worker.id.as_str())
        && !Observer::here().is_ok_and(|observer| observer.sees_processes_of(&worker.origin))
}

/// A worker on another machine or in another container that no longer sends heartbeats.
fn unheard(worker: &Worker, now: Timestamp) -> Option<Problem> {
    let since = now.since(worker.last_heartbeat);
    is_elsewhere(worker).then(|| Problem::unheard_worker(&worker.id, &worker.host, since))
}

/// A worker that a migration of the schema has ended.
fn outdated(worker: &Worker) -> Option<Problem> {
    let is_one = worker.health.as_deref() == Some(OUTDATED);
    is_one.then(|| Problem::outdated_worker(&worker.id, &worker.host))
}

/// Workers of this home whose processes this process cannot see.
fn shared_home(store: &dyn Store, home: &Path, workers: &[Worker]) -> Option<Problem> {
    let observer = Observer::here().ok()?;
    let home_id = host::home_id(&home.join(liveness_lock::FOLDER));
    // Homes on several machines are normal for a store that spans them.
    let is_of_home = |worker: &Worker| {
        !store.spans_machines() || home_id.as_ref().is_some_and(|id| *id == worker.origin.key.home_id)
    };
    let unseen: Vec<&Worker> = workers
        .iter()
        .filter(|worker| is_of_home(worker) && !observer.sees_processes_of(&worker.origin))
        .collect();
    let names: Vec<&str> = unseen.iter().map(|worker| worker.id.as_str()).collect();
    let hosts: BTreeSet<&str> = unseen.iter().map(|worker| worker.host.as_str()).collect();
    (!unseen.is_empty()).then(|| Problem::shared_home(&names, &Vec::from_iter(hosts)))
}

/// Workers on this machine whose program was replaced by another version since they started.
fn replaced_programs(workers: &[Worker]) -> Vec<Problem> {
    if workers.is_empty() {
        return Vec::new();
    }
    let Ok(observer) = Observer::here() else {
        return Vec::new();
    };
    let mut replaced: BTreeMap<PathBuf, u64> = BTreeMap::new();
    for worker in workers.iter().filter(|worker| observer.sees_processes_of(&worker.origin)) {
        if let Some(program) = process::replaced_program(worker.pid) {
            *replaced.entry(program).or_default() += 1;
        }
    }
    replaced.iter().map(|(program, count)| Problem::replaced_program(*count, &program.display())).collect()
}

fn unkillable(found: &UnkillableProcess) -> Problem {
    Problem::unkillable(&found.lease.job, found.pid, &found.why)
}

fn silent(worker: &Worker, settings: &Settings, now: Timestamp) -> Option<Problem> {
    let is_one = is_silent(worker, settings, now);
    let here = || Problem::silent_worker(&worker.id, now.since(worker.last_heartbeat));
    is_one.then(|| unheard(worker, now).unwrap_or_else(here))
}

/// Whether a worker has missed several heartbeats.
pub(crate) fn is_silent(worker: &Worker, settings: &Settings, now: Timestamp) -> bool {
    now.since(worker.last_heartbeat) > settings.heartbeat_interval * MISSED_HEARTBEATS
}

/// The jobs that died in the last hour. The store counts only some of them one by one; the minutes have the number of more.
fn recent_deaths(store: &dyn Store, counted: u64, now: Timestamp) -> Result<Option<Problem>, OpError> {
    if counted < MAX_DEATHS_COUNTED {
        return Ok((counted > 0).then(|| Problem::dlq_growing(counted, true)));
    }
    let queues = store.recent_metrics(now.saturating_sub(DEATH_WINDOW))?;
    let died: u64 = queues.iter().map(|queue| queue.activity.died).sum();
    // Jobs can have died before the store had minutes.
    Ok(Some(Problem::dlq_growing(died.max(counted), died >= counted)))
}

/// Recent problems of schedules and hooks.
fn recent_problems(recent: &RecentProblems, workers: &[Worker], clock: &Clock) -> Vec<Problem> {
    let mut problems = Vec::new();
    problems.extend(
        recent.missed.iter().map(|(schedule, at)| Problem::schedule_missed(schedule, &clock.time(*at))),
    );
    problems
        .extend(recent.full.iter().map(|(schedule, at)| Problem::schedule_full(schedule, &clock.time(*at))));
    for hook in &recent.hooks {
        problems.extend(undelivered(hook, workers, clock.now));
        problems.extend(given_up(hook, clock.now));
    }
    problems
}

/// A hook whose deliveries fail, or wait because no worker is running.
fn undelivered(hook: &Hook, workers: &[Worker], now: Timestamp) -> Option<Problem> {
    if let Some(since) = hook.failing_since {
        return Some(Problem::hook_failing(&hook.name, now.since(since), error(hook), hook.pending));
    }
    (hook.pending > 0 && workers.is_empty()).then(|| Problem::hook_waiting(&hook.name, hook.pending))
}

fn given_up(hook: &Hook, now: Timestamp) -> Option<Problem> {
    let at = hook.gave_up_at?;
    (now.since(at) < RECENT_PROBLEM_WINDOW)
        .then(|| Problem::hook_gave_up(&hook.name, hook.gave_up, error(hook)))
}

fn error(hook: &Hook) -> &str {
    hook.error.as_deref().unwrap_or_default()
}

fn environment_problems(settings: &Settings, home: &Path) -> Vec<Problem> {
    let mut problems = Vec::new();
    if settings.durability != Durability::Full {
        problems.push(Problem::durability_lowered());
    }
    if let Ok(free_bytes) = disk::free_bytes(home)
        && free_bytes < LOW_SPACE_BYTES
    {
        problems.push(Problem::low_space(free_bytes));
    }
    problems
}

/// Jobs in state processing. Without any worker, their worker and its supervisor have died, and the jobs wait for the next
/// worker to recover them.
fn orphaned(counts: &BTreeMap<StateName, u64>) -> u64 {
    counts.get(&StateName::Processing).copied().unwrap_or(0)
}

fn waiting(counts: &BTreeMap<StateName, u64>) -> u64 {
    [StateName::Pending, StateName::Failed].iter().filter_map(|state| counts.get(state)).sum()
}
