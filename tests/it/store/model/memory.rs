//! The queue as a list in memory, written to be obviously correct.
//!
//! It shares no code with the program's decisions: it implements the documented behaviour by scanning all jobs. Removed
//! jobs stay in the list, so that a job's index is its position in enqueue order.

use std::collections::{HashMap, HashSet};

use domain::job::life::StateName;
use domain::job::outcome::Outcome;

use super::lane::Lane;

pub const LEASE_MILLIS: i64 = 30_000;
pub const RETRY_DELAY_MILLIS: i64 = 1_000;
pub const MAX_BACKOFF_MILLIS: i64 = 5_000;
pub const CRASH_LIMIT: u32 = 2;

#[derive(Clone, Debug)]
pub struct Request {
    pub name: String,
    pub queue: usize,
    pub priority: i32,
    pub max_retries: u32,
    pub delay_millis: Option<i64>,
    pub parents: Vec<String>,
    pub runs_anyway: bool,
    pub key: Option<String>,
    pub if_absent: bool,
}

#[derive(Clone, Debug)]
pub struct MemoryJob {
    pub request: Request,
    pub state: StateName,
    pub removed: bool,
    pub run_at: i64,
    pub due_at: i64,
    pub attempts: u32,
    pub failures: u32,
    pub losses: u32,
    loss_boot: &'static str,
    /// The unfinished jobs that it depends on.
    pub blockers: Vec<usize>,
    /// The lease of the worker that runs it.
    pub lease: Option<MemoryLease>,
    pub history: Vec<Outcome>,
}

#[derive(Clone, Debug)]
pub struct MemoryLease {
    pub worker: usize,
    pub until: i64,
    pub cancel: bool,
    pub paused: bool,
}

#[derive(Clone, Debug)]
pub struct MemoryWorker {
    pub boot: &'static str,
    /// `None`: all queues.
    pub queues: Option<Vec<usize>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Done(StateName),
    NotFound,
    Conflict,
}

#[derive(Clone, Debug, Default)]
pub struct Memory {
    pub now: i64,
    pub jobs: Vec<MemoryJob>,
    pub workers: Vec<MemoryWorker>,
    pub lanes: [Lane; 3],
}

fn is_finished(state: StateName) -> bool {
    [StateName::Completed, StateName::Dead, StateName::Cancelled].contains(&state)
}

impl Memory {
    /// The name that answers each request, and whether the job is new; `None` if the enqueue is refused.
    pub fn enqueue(&mut self, batch: &[Request]) -> Option<Vec<(String, bool)>> {
        if (0..batch.len()).any(|at| depends_on(batch, at, at, batch.len())) {
            return None;
        }
        let mut after = self.clone();
        let mut answers = Vec::new();
        let mut added = Vec::new();
        let mut key_holders: HashMap<&str, String> = HashMap::new();
        for (position, request) in batch.iter().enumerate() {
            if let Some(holder) = after.key_holder(request.key.as_ref()) {
                let holder = after.jobs[holder].request.name.clone();
                key_holders.insert(&request.name, holder.clone());
                answers.push((holder, false));
            } else if after.find(&request.name).is_none() {
                added.push((position, after.jobs.len()));
                after.jobs.push(new_job(request, after.now));
                answers.push((request.name.clone(), true));
            } else if request.if_absent {
                answers.push((request.name.clone(), false));
            } else {
                return None;
            }
        }
        // A dependency on a job that was not stored refers to the holder of its unique key.
        let mut renamed = batch.to_vec();
        for (position, at) in &added {
            let mut seen = HashSet::new();
            let name = |name: &String| match (after.find(name), key_holders.get(name.as_str())) {
                (None, Some(holder)) => holder.clone(),
                (Some(_), _) | (None, None) => name.clone(),
            };
            let parents = batch[*position].parents.iter().map(name);
            let parents: Vec<String> = parents.filter(|name| seen.insert(name.clone())).collect();
            renamed[*position].parents.clone_from(&parents);
            after.jobs[*at].request.parents = parents;
        }
        if (0..renamed.len()).any(|at| depends_on(&renamed, at, at, renamed.len())) {
            return None;
        }
        for (_, at) in added {
            let parents = after.jobs[at].request.parents.clone();
            let parents: Option<Vec<usize>> = parents.iter().map(|name| after.find(name)).collect();
            let (finished, open): (Vec<usize>, Vec<usize>) =
                parents?.into_iter().partition(|parent| is_finished(after.jobs[*parent].state));
            // Treats finished parents as if they ended now.
            after.jobs[at].blockers = [open, finished.clone()].concat();
            for parent in finished {
                after.unblock(at, parent);
            }
        }
        *self = after;
        Some(answers)
    }

    /// The jobs that could run now, ordered by priority, due time and enqueue order.
    pub fn ready(&self) -> Vec<usize> {
        let mut ready: Vec<usize> = (0..self.jobs.len()).filter(|at| self.is_ready(*at)).collect();
        ready.sort_by_key(|at| (-self.jobs[*at].request.priority, self.jobs[*at].due_at, *at));
        ready
    }

    fn is_ready(&self, at: usize) -> bool {
        let job = &self.jobs[at];
        let waits = [StateName::Pending, StateName::Failed].contains(&job.state);
        let is_paused = self.lanes[job.request.queue].is_paused;
        !job.removed && waits && job.blockers.is_empty() && job.due_at <= self.now && !is_paused
    }

    /// The ready jobs of the queues that a worker serves, in claim order.
    pub fn claim_order(&self, worker: usize) -> Vec<usize> {
        let ready = self.ready();
        let of = |queue: usize| ready.iter().filter(move |at| self.jobs[**at].request.queue == queue);
        match &self.workers[worker].queues {
            None => ready,
            Some(queues) => queues.iter().flat_map(|queue| of(*queue)).copied().collect(),
        }
    }

    /// The names and attempts of the jobs that a worker claims, at most `limited` of them from queues with a limit.
    pub fn claim(&mut self, worker: usize, want: usize, limited: usize) -> Vec<(String, u32)> {
        let mut claimed = Vec::new();
        let mut limited_left = limited;
        for at in self.claim_order(worker) {
            let queue = self.jobs[at].request.queue;
            let is_limited = self.lanes[queue].is_limited();
            let is_wanted = claimed.len() < want && (!is_limited || limited_left > 0);
            if is_wanted && self.has_room(queue) {
                limited_left -= usize::from(is_limited);
                claimed.push(self.start(worker, at));
            }
        }
        claimed
    }

    fn start(&mut self, worker: usize, at: usize) -> (String, u32) {
        let job = &mut self.jobs[at];
        job.state = StateName::Processing;
        job.attempts += 1;
        job.lease =
            Some(MemoryLease { worker, until: self.now + LEASE_MILLIS, cancel: false, paused: false });
        self.lanes[job.request.queue].take_token(self.now);
        (job.request.name.clone(), job.attempts)
    }

    /// Whether one more job of a queue may start.
    pub fn has_room(&self, queue: usize) -> bool {
        self.lanes[queue].has_room(self.running(queue), self.now)
    }

    pub fn running(&self, queue: usize) -> usize {
        self.jobs.iter().filter(|job| job.request.queue == queue && job.lease.is_some()).count()
    }

    /// Records an outcome, and returns whether the lease was valid.
    pub fn settle(&mut self, worker: usize, name: &str, attempt: u32, outcome: Outcome) -> bool {
        self.record_outcome(worker, name, attempt, outcome, false)
    }

    /// As `settle`, for a worker that may have been killed by another of its attempts.
    pub fn record_outcome(
        &mut self,
        worker: usize,
        name: &str,
        attempt: u32,
        outcome: Outcome,
        has_other_lost_attempts: bool,
    ) -> bool {
        let Some(at) = self.held(worker, name, attempt) else {
            return false;
        };
        let boot = self.workers[worker].boot;
        let now = self.now;
        let job = &mut self.jobs[at];
        if outcome == Outcome::Released {
            self.lanes[job.request.queue].return_token(now);
        }
        let cancel = job.lease.take().is_some_and(|lease| lease.cancel);
        job.history.push(outcome);
        job.state = match outcome {
            Outcome::Success => {
                job.losses = 0;
                StateName::Completed
            }
            Outcome::Cancelled => StateName::Cancelled,
            Outcome::Released => StateName::Pending,
            Outcome::Lost => {
                job.losses = if job.loss_boot == boot { job.losses + 1 } else { 1 };
                job.loss_boot = boot;
                if job.losses >= CRASH_LIMIT && !has_other_lost_attempts {
                    StateName::Dead
                } else {
                    job.due_at = job.due_at.max(now);
                    StateName::Pending
                }
            }
            Outcome::Failure { .. } | Outcome::Signal { .. } | Outcome::Timeout | Outcome::SpawnError => {
                job.losses = 0;
                job.loss_boot = "";
                job.failures += 1;
                if job.failures > job.request.max_retries {
                    StateName::Dead
                } else {
                    let wait = RETRY_DELAY_MILLIS << job.failures;
                    job.due_at = now + wait.min(MAX_BACKOFF_MILLIS);
                    StateName::Failed
                }
            }
        };
        if cancel && job.state != StateName::Completed {
            job.state = StateName::Cancelled;
        }
        self.unblock_dependents(at);
        true
    }

    /// The job with this name and attempt, if the worker holds its lease.
    pub fn held(&self, worker: usize, name: &str, attempt: u32) -> Option<usize> {
        let at = self.find(name)?;
        let job = &self.jobs[at];
        let holds = job.lease.as_ref().is_some_and(|lease| lease.worker == worker);
        (holds && job.attempts == attempt).then_some(at)
    }

    /// Extends a lease. Returns whether a cancel is requested; `None` if the lease is lost.
    pub fn extend(&mut self, worker: usize, name: &str, attempt: u32) -> Option<bool> {
        let at = self.held(worker, name, attempt)?;
        let lease = self.jobs[at].lease.as_mut()?;
        lease.until = self.now + LEASE_MILLIS;
        Some(lease.cancel)
    }

    /// The jobs on which a worker holds leases.
    pub fn held_by(&self, worker: usize) -> impl Iterator<Item = (&MemoryJob, &MemoryLease)> {
        let running = self.jobs.iter().filter_map(|job| Some((job, job.lease.as_ref()?)));
        running.filter(move |(_, lease)| lease.worker == worker)
    }

    /// Whether no work is left in the queues that a worker serves, apart from paused ones.
    pub fn is_idle(&self, worker: usize) -> bool {
        let queues = self.workers[worker].queues.as_ref();
        let is_busy = |(at, job): (usize, &MemoryJob)| {
            let queue = job.request.queue;
            let served = queues.is_none_or(|queues| queues.contains(&queue));
            let at_work = [StateName::Processing, StateName::Failed].contains(&job.state);
            !job.removed && served && !self.lanes[queue].is_paused && (at_work || self.is_ready(at))
        };
        !self.jobs.iter().enumerate().any(is_busy)
    }

    pub fn cancel(&mut self, name: &str) -> Answer {
        let Some(at) = self.find(name) else {
            return Answer::NotFound;
        };
        if is_finished(self.jobs[at].state) {
            return Answer::Conflict;
        }
        if let Some(lease) = &mut self.jobs[at].lease {
            lease.cancel = true;
            lease.paused = false;
        } else {
            self.jobs[at].state = StateName::Cancelled;
            self.unblock_dependents(at);
        }
        Answer::Done(self.jobs[at].state)
    }

    pub fn pause(&mut self, name: &str) -> Answer {
        let Some(at) = self.find(name) else {
            return Answer::NotFound;
        };
        match &mut self.jobs[at].lease {
            Some(lease) if !lease.cancel => lease.paused = true,
            Some(_) | None => return Answer::Conflict,
        }
        Answer::Done(StateName::Processing)
    }

    pub fn resume(&mut self, name: &str) -> Answer {
        let Some(at) = self.find(name) else {
            return Answer::NotFound;
        };
        let Some(lease) = &mut self.jobs[at].lease else {
            return Answer::Conflict;
        };
        lease.paused = false;
        Answer::Done(StateName::Processing)
    }

    pub fn retry(&mut self, name: &str) -> Answer {
        let Some(at) = self.find(name) else {
            return Answer::NotFound;
        };
        if [StateName::Pending, StateName::Processing].contains(&self.jobs[at].state) {
            return Answer::Conflict;
        }
        let holder = self.key_holder(self.jobs[at].request.key.as_ref());
        if holder.is_some_and(|holder| holder != at) {
            return Answer::Conflict;
        }
        // The dependencies of a failed job were met when it first ran.
        let parents = self.jobs[at].request.parents.iter().filter(|_| is_finished(self.jobs[at].state));
        let blockers = parents
            .filter_map(|parent| self.find(parent))
            .filter(|parent| !is_finished(self.jobs[*parent].state))
            .collect();
        let now = self.now;
        let job = &mut self.jobs[at];
        job.blockers = blockers;
        job.state = StateName::Pending;
        job.due_at = now.max(job.run_at);
        job.failures = 0;
        job.losses = 0;
        job.loss_boot = "";
        Answer::Done(StateName::Pending)
    }

    pub fn remove(&mut self, name: &str) -> Answer {
        let Some(at) = self.find(name) else {
            return Answer::NotFound;
        };
        let has_dependents = self.jobs.iter().any(|job| !job.removed && job.blockers.contains(&at));
        if self.jobs[at].state == StateName::Processing || has_dependents {
            return Answer::Conflict;
        }
        self.jobs[at].removed = true;
        Answer::Done(self.jobs[at].state)
    }

    /// The existing job with this name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.jobs.iter().rposition(|job| job.request.name == name && !job.removed)
    }

    fn key_holder(&self, key: Option<&String>) -> Option<usize> {
        self.jobs.iter().position(|job| {
            let same = key.is_some() && job.request.key.as_ref() == key;
            same && !job.removed && !is_finished(job.state)
        })
    }

    /// Unblocks or cancels the dependents of a job that has ended.
    fn unblock_dependents(&mut self, at: usize) {
        if is_finished(self.jobs[at].state) {
            self.jobs[at].blockers.clear();
            for dependent in 0..self.jobs.len() {
                self.unblock(dependent, at);
            }
        }
    }

    fn unblock(&mut self, at: usize, parent: usize) {
        let succeeded = self.jobs[parent].state == StateName::Completed;
        let now = self.now;
        let job = &mut self.jobs[at];
        if job.removed || !job.blockers.contains(&parent) {
            return;
        }
        if succeeded || job.request.runs_anyway {
            job.blockers.retain(|blocker| *blocker != parent);
            if job.blockers.is_empty() {
                job.due_at = job.due_at.max(now);
            }
        } else {
            job.state = StateName::Cancelled;
            self.unblock_dependents(at);
        }
    }
}

fn new_job(request: &Request, now: i64) -> MemoryJob {
    let run_at = request.delay_millis.map_or(0, |delay| now + delay);
    MemoryJob {
        request: request.clone(),
        state: StateName::Pending,
        removed: false,
        run_at,
        due_at: now.max(run_at),
        attempts: 0,
        failures: 0,
        losses: 0,
        loss_boot: "",
        blockers: Vec::new(),
        lease: None,
        history: Vec::new(),
    }
}

/// Whether a request depends on `goal` through at most `steps` others. Of two requests with the same name the first
/// counts.
fn depends_on(batch: &[Request], from: usize, goal: usize, steps: usize) -> bool {
    let parents = batch[from].parents.iter();
    let mut parents = parents.filter_map(|parent| batch.iter().position(|request| request.name == *parent));
    steps > 0 && parents.any(|at| at == goal || depends_on(batch, at, goal, steps - 1))
}
