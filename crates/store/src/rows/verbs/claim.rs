//! Claiming ready jobs.
//!
//! Only the first jobs of queues with capacity are examined: a queue that is paused, full or over its rate, and a job
//! that cannot run, cost a claim nothing.

use std::cmp::Reverse;
use std::collections::binary_heap::{BinaryHeap, PeekMut};
use std::time::Duration;

use crate::rows::jobs::apply;
use crate::rows::jobs::row;
use crate::rows::jobs::row::{JobRow, select_jobs};
use crate::rows::jobs::{environments, history, ready};
use crate::rows::keys::{BatchKey, EnvironmentKey, JobSeq, QueueKey};
use crate::rows::tables::batches::BatchRow;
use crate::rows::tables::{batches, queues, rates, settings};
use crate::rows::tx::Tx;
use crate::rows::views::capacity;
use crate::rows::{Row, params, wording};
use crate::{Claim, LeaseRef, Result, ServedJobs};
use domain::job::LatestAttempt;
use domain::job::life::{Event, Life, Refusal, transition};
use domain::job::limits::Limits;
use domain::plan::capacity::Capacity;
use domain::values::name::{BatchName, JobId, QueueName, WorkerId};
use domain::values::timestamp::Timestamp;

/// The worker holds the standard input of the jobs that it claimed in memory, so it claims no more jobs in a turn after this
/// much of it.
const MAX_STDIN_BYTES: usize = 64 << 20;

/// The result of a claim.
#[derive(Debug, Default)]
pub(crate) struct ClaimResult {
    pub(crate) claims: Vec<Claim>,
    /// See [`crate::ExchangeResult::has_left_some`].
    pub(crate) has_left_some: bool,
    /// When a rate allows the next start.
    pub(crate) next_start_at: Option<Timestamp>,
}

pub(crate) fn claim(
    tx: &mut Tx<'_>,
    worker: &WorkerId,
    served: &ServedJobs,
    want: usize,
    want_limited: usize,
) -> Result<ClaimResult> {
    if want == 0 {
        return Ok(ClaimResult::default());
    }
    let until = tx.now.saturating_add(tx.settings()?.lease);
    let mut capacity = Capacity::new(want_limited);
    let mut claims: Vec<Claim> = Vec::new();
    let mut stdin_bytes = 0;
    loop {
        let missing = want - claims.len();
        let heads = match served {
            ServedJobs::All => next_of_all(tx, &mut capacity, missing)?,
            ServedJobs::InOrder(queues) => next_in_order(tx, &mut capacity, queues, missing)?,
            ServedJobs::Batch(name) => next_of_batch(tx, &mut capacity, name, missing)?,
            ServedJobs::Job(id) => single_job(tx, &mut capacity, id)?.into_iter().collect(),
        };
        let expected = claims.len() + heads.len();
        for head in heads {
            if stdin_bytes >= MAX_STDIN_BYTES {
                capacity.has_left_some = true;
                break;
            }
            if let Some(claim) = take(tx, head.seq, worker, until)? {
                stdin_bytes += claim.stdin.as_ref().map_or(0, Vec::len);
                claims.push(Claim { is_limited: capacity.is_limited(head.queue_id), ..claim });
                capacity.take(head.queue_id);
            }
        }
        // Postponed jobs were not claimed: look for others in their place.
        if claims.len() == expected || stdin_bytes >= MAX_STDIN_BYTES {
            let rates = capacity.close(tx.now);
            for (queue_id, bucket) in rates.buckets {
                rates::store_bucket(tx, queue_id, Some(bucket))?;
            }
            let next_start_at = rates.next_start_at;
            return Ok(ClaimResult { claims, has_left_some: capacity.has_left_some, next_start_at });
        }
    }
}

/// A ready job. The order is the claim order: the smallest is claimed first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    priority: Reverse<i32>,
    due_at: i64,
    seq: JobSeq,
    queue_id: QueueKey,
}

/// The first jobs of all queues together: merges the queues with capacity, each of which is in claim order.
fn next_of_all(tx: &Tx<'_>, capacity: &mut Capacity<QueueKey>, want: usize) -> Result<Vec<Head>> {
    let mut feeds = BinaryHeap::new();
    for queue_id in ready::queues_with_ready(tx)? {
        let available = capacity.left(queue_id, || capacity::of_queue(tx, queue_id))?;
        if available > 0 {
            let mut feed = QueueFeed { queue_id, taken: 0, limit: available, heads: Vec::new() };
            feed.refill(tx, 1)?;
            feeds.push(Reverse(feed));
        }
    }
    let mut limited_left = capacity.limited_left;
    let mut next = Vec::new();
    while next.len() < want {
        let Some(mut first) = feeds.peek_mut() else {
            break;
        };
        let is_limited = capacity.is_limited(first.0.queue_id);
        let head = if is_limited && limited_left == 0 { None } else { first.0.heads.pop() };
        let Some(head) = head else {
            capacity.has_left_some |= !first.0.heads.is_empty();
            PeekMut::pop(first);
            continue;
        };
        limited_left -= usize::from(is_limited);
        next.push(head);
        if first.0.heads.is_empty() {
            first.0.refill(tx, want - next.len())?;
        }
    }
    Ok(next)
}

/// The ready jobs of one queue, fetched as needed, the next one last.
#[derive(Debug, PartialEq, Eq)]
struct QueueFeed {
    queue_id: QueueKey,
    taken: usize,
    /// How many may be claimed in all.
    limit: usize,
    heads: Vec<Head>,
}

impl QueueFeed {
    fn refill(&mut self, tx: &Tx<'_>, count: usize) -> Result<()> {
        let count = count.min(self.limit - self.taken);
        self.heads = first_of(tx, self.queue_id, self.taken, count)?;
        self.taken += self.heads.len();
        self.heads.reverse();
        Ok(())
    }
}

impl Ord for QueueFeed {
    /// By the next job. An exhausted queue sorts first, so that it is found and dropped.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.heads.last().cmp(&other.heads.last())
    }
}

impl PartialOrd for QueueFeed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Takes from each queue only if the queues before it have nothing runnable.
fn next_in_order(
    tx: &Tx<'_>,
    capacity: &mut Capacity<QueueKey>,
    served: &[QueueName],
    want: usize,
) -> Result<Vec<Head>> {
    let mut next = Vec::new();
    let mut limited_left = capacity.limited_left;
    for name in served {
        let Some(queue_id) = queues::find_id(tx, name)? else {
            continue;
        };
        let count = capacity.left(queue_id, || capacity::of_queue(tx, queue_id))?.min(want - next.len());
        if count == 0 {
            continue;
        }
        let mut heads = first_of(tx, queue_id, 0, count)?;
        if capacity.is_limited(queue_id) {
            capacity.has_left_some |= heads.len() > limited_left;
            heads.truncate(limited_left);
            limited_left -= heads.len();
        }
        next.extend(heads);
    }
    Ok(next)
}

/// The first jobs of a batch.
fn next_of_batch(
    tx: &Tx<'_>,
    capacity: &mut Capacity<QueueKey>,
    name: &BatchName,
    want: usize,
) -> Result<Vec<Head>> {
    let Some(batch) = batches::find_row(tx, name)? else {
        return Ok(Vec::new());
    };
    let want = want.min(batches::count_claimable(tx, batch.id)?);
    if want == 0 {
        return Ok(Vec::new());
    }
    let mut heads = first_like_oldest(tx, &batch, want)?;
    if heads.len() < want {
        // Some have another queue, priority or time than the oldest job of the batch, or wait for a retry.
        heads = ready_of_batch(tx, batch.id, want)?;
    }
    let mut limited_left = capacity.limited_left;
    let mut next = Vec::new();
    for head in heads {
        let taken = next.iter().filter(|other: &&Head| other.queue_id == head.queue_id).count();
        let left = capacity.left(head.queue_id, || capacity::of_queue(tx, head.queue_id))?;
        if left <= taken {
            continue;
        }
        if capacity.is_limited(head.queue_id) {
            if limited_left == 0 {
                capacity.has_left_some = true;
                continue;
            }
            limited_left -= 1;
        }
        next.push(head);
    }
    Ok(next)
}

/// Ready jobs of a batch with the queue and the priority of its oldest job, due no earlier than the batch was made: in most
/// batches, all of them. Ready jobs from before that, of which there may be many, are not read.
fn first_like_oldest(tx: &Tx<'_>, batch: &BatchRow, count: usize) -> Result<Vec<Head>> {
    let batch_id = batch.id;
    // By index jobs_by_batch.
    let oldest: Option<(QueueKey, i32, JobSeq)> = tx.first(
        "select queue_id, priority, seq from jobs where batch_id = ?1 order by seq limit 1",
        params![batch_id],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let Some((queue_id, priority, seq)) = oldest else {
        return Ok(Vec::new());
    };
    // In the order of the primary key of `ready`.
    let sql = wording!(
        "select j.priority, r.due_at, r.seq from ready r cross join jobs j
         where j.seq = r.seq and r.queue_id = ?1 and ",
        ("r.priority = ?2" | "r.rank = -cast(?2 as bigint)"),
        " and (r.due_at, r.seq) >= (?3, ?4) and j.batch_id = ?5
         order by r.due_at, r.seq limit ?6"
    );
    tx.all(sql.of(tx), params![queue_id, priority, batch.created_at, seq, batch_id, count], |row| {
        read_head(row, queue_id)
    })
}

/// The first ready jobs of a batch, found among all of its jobs.
fn ready_of_batch(tx: &Tx<'_>, batch_id: BatchKey, count: usize) -> Result<Vec<Head>> {
    // By index jobs_by_batch and the primary key of `ready`.
    let sql = wording!(
        "select j.priority, r.due_at, r.seq, r.queue_id
         from jobs j cross join ready r
         where r.queue_id = j.queue_id and ",
        ("r.priority = j.priority" | "r.rank = -j.priority"),
        " and r.due_at = j.due_at and r.seq = j.seq and j.batch_id = ?1
         order by j.priority desc, r.due_at, r.seq limit ?2"
    );
    tx.all(sql.of(tx), params![batch_id, count], |row| read_head(row, row.get(3)?))
}

/// This one job, if it is ready and its queue has capacity.
fn single_job(tx: &Tx<'_>, capacity: &mut Capacity<QueueKey>, id: &JobId) -> Result<Option<Head>> {
    // By the unique index of job ids and the primary key of `ready`.
    let sql = wording!(
        "select ",
        ("r.priority" | "-r.rank"),
        ", r.due_at, r.seq, r.queue_id
         from jobs j cross join ready r
         where r.queue_id = j.queue_id and ",
        ("r.priority = j.priority" | "r.rank = -j.priority"),
        " and r.due_at = j.due_at and r.seq = j.seq and j.id = ?1"
    );
    let head = tx.first(sql.of(tx), params![id], |row| read_head(row, row.get(3)?))?;
    match head {
        Some(head) if capacity.left(head.queue_id, || capacity::of_queue(tx, head.queue_id))? > 0 => {
            Ok(Some(head))
        }
        Some(_) | None => Ok(None),
    }
}

fn first_of(tx: &Tx<'_>, queue_id: QueueKey, skip: usize, count: usize) -> Result<Vec<Head>> {
    // In the order of the primary key of `ready`.
    let sql = wording!(
        ("select priority, due_at, seq from ready where queue_id = ?1
         order by priority desc, due_at, seq limit ?2 offset ?3"
            | "select -rank, due_at, seq from ready where queue_id = ?1
           order by rank, due_at, seq limit ?2 offset ?3")
    );
    tx.all(sql.of(tx), params![queue_id, count, skip], |row| read_head(row, queue_id))
}

fn read_head(row: &Row<'_>, queue_id: QueueKey) -> Result<Head> {
    Ok(Head { priority: Reverse(row.get(0)?), due_at: row.get(1)?, seq: row.get(2)?, queue_id })
}

/// `None` if the job is not due, because the clock was set back since it was made ready: then it is postponed.
pub(crate) fn take(
    tx: &mut Tx<'_>,
    seq: JobSeq,
    worker: &WorkerId,
    until: Timestamp,
) -> Result<Option<Claim>> {
    let ready = read_ready(tx, seq)?;
    let job = &ready.job;
    let event = Event::Claim { worker: worker.clone(), until };
    let policy = settings::policy(tx, job)?;
    let claimed = match transition(&job.life, event, &policy, tx.now) {
        Ok(claimed) => claimed,
        Err(Refusal::NotDue) => return ready::postpone(tx, job).map(|()| None),
        Err(
            refusal @ (Refusal::Blocked
            | Refusal::WrongState(_)
            | Refusal::Stale { .. }
            | Refusal::Cancelling),
        ) => {
            return Err(row::malformed("ready job", refusal));
        }
    };
    let latest = LatestAttempt { started_at: Some(tx.now), ..job.latest.clone() };
    if !apply(tx, job, &claimed, &latest)? {
        return Err(row::malformed("ready job", "it changed while it was claimed"));
    }
    tx.minutes.record_start(job.queue_id, tx.now.since(job.life.due_at));
    ready.into_claim(tx, &claimed.life, until).map(Some)
}

/// A ready job, with the columns that only a claim needs.
struct ReadyJob {
    job: JobRow,
    command: String,
    cwd: Option<String>,
    timeout: Option<Duration>,
    environment_id: Option<EnvironmentKey>,
    queue: QueueName,
    queue_limits: Limits,
}

/// In one statement: each costs more than the columns that it reads.
pub(crate) const READY_JOB: &str = select_jobs!(
    ", j.command, j.cwd, j.timeout_ms, j.environment_id, q.name, q.limits",
    "join queues q on q.id = j.queue_id where j.seq = ?1"
);

fn read_ready(tx: &Tx<'_>, seq: JobSeq) -> Result<ReadyJob> {
    tx.one(READY_JOB, params![seq], |row| {
        Ok(ReadyJob {
            job: row::read_row(tx, row)?,
            command: row.get(26)?,
            cwd: row.get(27)?,
            timeout: row.get(28)?,
            environment_id: row.get(29)?,
            queue: row.get(30)?,
            queue_limits: row::limits(row.get(31)?)?,
        })
    })
}

impl ReadyJob {
    fn into_claim(self, tx: &Tx<'_>, life: &Life, lease_until: Timestamp) -> Result<Claim> {
        let job = self.job;
        Ok(Claim {
            lease: LeaseRef { job: job.id, attempt: life.attempts },
            number: job.seq.number(),
            lease_until,
            queue: self.queue,
            is_limited: false,
            priority: job.priority,
            due_at: job.life.due_at,
            command: self.command,
            cwd: self.cwd,
            environment: self.environment_id.map(|id| environments::load(tx, id)).transpose()?,
            stdin: (job.options.stdin_bytes > 0).then(|| history::stdin(tx, job.seq)).transpose()?,
            env: job.options.env,
            trace: job.options.trace,
            timeout: self.timeout,
            limits: job.options.limits.or(&self.queue_limits).or(&tx.settings()?.limits),
            runs_alone: life.runs_alone(tx.settings()?.crash_limit),
        })
    }
}
