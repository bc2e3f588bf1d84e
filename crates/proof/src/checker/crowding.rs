//! I11: never more run at once than a worker has slots, a queue allows, or a key or a schedule does.

use std::collections::{HashMap, HashSet};
use std::fmt;

use super::invariant::Invariant;
use super::verdict::Verdict;
use crate::evidence::{Evidence, JobEvidence};
use crate::ledger::{Line, What};

type Attempt<'e> = (&'e str, u32);

/// What attempts may crowd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Room<'e> {
    Worker(&'e str),
    Queue(&'e str),
    Key(&'e str),
    Schedule(&'e str),
}

impl fmt::Display for Room<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Worker(name) => write!(out, "worker {name}"),
            Self::Queue(name) => write!(out, "queue {name}"),
            Self::Key(name) => write!(out, "key {name}"),
            Self::Schedule(name) => write!(out, "schedule {name}"),
        }
    }
}

pub(super) fn check(evidence: &Evidence, verdict: &mut Verdict) {
    let last = last_signs_of_life(evidence);
    let jobs: HashMap<&str, &JobEvidence> = evidence.jobs.iter().map(|job| (job.id(), job)).collect();
    let mut crowds: HashMap<Room<'_>, HashSet<Attempt<'_>>> = HashMap::new();
    for (at, line) in evidence.lines.iter().enumerate() {
        let attempt = attempt(line);
        if let What::Start { worker } = &line.what {
            for (room, limit) in rooms(evidence, worker, jobs.get(line.job.as_str()).copied()) {
                let crowd = crowds.entry(room).or_default();
                crowd.insert(attempt);
                let count = crowd.len();
                verdict.expect(Invariant::WithinLimits, Some(&line.job), count <= limit, || {
                    format!("{count} ran at once where {room} allows {limit}")
                });
            }
        }
        if last.get(&attempt) == Some(&at) {
            for crowd in crowds.values_mut() {
                crowd.remove(&attempt);
            }
        }
    }
}

/// Where an attempt takes place, and how many may be there.
fn rooms<'e>(
    evidence: &'e Evidence,
    worker: &'e str,
    job: Option<&'e JobEvidence>,
) -> Vec<(Room<'e>, usize)> {
    let mut rooms = vec![(Room::Worker(worker), evidence.concurrency as usize)];
    let Some(job) = job.map(|job| &job.record.job) else {
        return rooms;
    };
    if let Some(limit) = evidence.queue_limits.get(job.queue.as_str()) {
        rooms.push((Room::Queue(job.queue.as_str()), *limit as usize));
    }
    // Those of a trial wait for each other, or are left out.
    let schedule = evidence.schedule_of(job.id.as_str());
    rooms.extend(schedule.map(|of| (Room::Schedule(of.schedule.name.as_str()), 1)));
    rooms.extend(job.unique_key.as_deref().map(|key| (Room::Key(key), 1)));
    rooms
}

fn attempt(line: &Line) -> Attempt<'_> {
    (&line.job, line.attempt)
}

/// Where each attempt's command was heard of for the last time. What it left behind needs no room.
fn last_signs_of_life(evidence: &Evidence) -> HashMap<Attempt<'_>, usize> {
    let lines = evidence.lines.iter().enumerate().filter(|(_, line)| line.is_by_command());
    lines.map(|(at, line)| (attempt(line), at)).collect()
}
