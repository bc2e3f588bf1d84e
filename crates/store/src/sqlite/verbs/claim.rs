//! Taking the jobs whose turn it is.
//!
//! Only the heads of queues that have room are looked at: a queue that is paused, full or held back by its rate, and a job
//! that cannot run, cost a claim nothing.

use std::cmp::Reverse;
use std::collections::binary_heap::{BinaryHeap, PeekMut};

use rusqlite::{OptionalExtension, Row, params};

use crate::sqlite::jobs::apply;
use crate::sqlite::jobs::{environments, ready};
use crate::sqlite::session::row;
use crate::sqlite::session::row::JobRow;
use crate::sqlite::session::tx::{Tx, from_millis};
use crate::sqlite::tables::{queues, settings, workers};
use crate::sqlite::views::capacity::Rooms;
use crate::{Claim, LeaseRef, Served, StoreError};
use domain::job::LatestAttempt;
use domain::job::life::{Event, Life, Refusal, transition};
use domain::values::name::{JobId, QueueName, WorkerId};
use domain::values::timestamp::Timestamp;

/// What came of a claim.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) claims: Vec<Claim>,
    /// See [`crate::Exchanged::has_left_some`].
    pub(crate) has_left_some: bool,
    /// When a rate lets the next job start.
    pub(crate) next_start_at: Option<Timestamp>,
}

pub(crate) fn claim(
    tx: &Tx<'_>,
    worker: &WorkerId,
    worker_seq: i64,
    want: usize,
    want_limited: usize,
) -> Result<Taken, StoreError> {
    if want == 0 {
        return Ok(Taken::default());
    }
    let served = workers::served(tx, worker_seq)?;
    let until = tx.now.saturating_add(tx.settings()?.lease);
    let mut rooms = Rooms::new(want_limited);
    let mut claims = Vec::new();
    loop {
        let missing = want - claims.len();
        let heads = match &served {
            Served::All => next_of_all(tx, &mut rooms, missing)?,
            Served::InOrder(queues) => next_in_order(tx, &mut rooms, queues, missing)?,
            Served::Job(id) => only(tx, &mut rooms, id)?.into_iter().collect(),
        };
        let wanted = claims.len() + heads.len();
        for head in heads {
            if let Some(claim) = take(tx, &head, worker, until)? {
                claims.push(Claim { is_limited: rooms.is_limited(head.queue_id), ..claim });
                rooms.take(head.queue_id);
            }
        }
        // Those that were put off stand in nobody's way: the next ones have their turn.
        if claims.len() == wanted {
            let next_start_at = rooms.close(tx)?;
            return Ok(Taken { claims, has_left_some: rooms.has_left_some, next_start_at });
        }
    }
}

/// A ready job. The order is the order of claiming: the smallest goes first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    priority: Reverse<i32>,
    due_at: i64,
    seq: i64,
    queue_id: i64,
}

/// The first of all queues together: a merge of those that have room, each of which is in order.
fn next_of_all(tx: &Tx<'_>, rooms: &mut Rooms, want: usize) -> Result<Vec<Head>, StoreError> {
    let mut lines = BinaryHeap::new();
    for queue_id in queues_with_ready(tx)? {
        let room = rooms.left(tx, queue_id)?;
        if room > 0 {
            let mut line = Line { queue_id, taken: 0, room, heads: Vec::new() };
            line.refill(tx, 1)?;
            lines.push(Reverse(line));
        }
    }
    let mut limited_left = rooms.limited_left;
    let mut next = Vec::new();
    while next.len() < want {
        let Some(mut first) = lines.peek_mut() else {
            break;
        };
        let is_limited = rooms.is_limited(first.0.queue_id);
        let head = if is_limited && limited_left == 0 { None } else { first.0.heads.pop() };
        let Some(head) = head else {
            rooms.has_left_some |= !first.0.heads.is_empty();
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

/// One queue's ready jobs, fetched as far as needed: the next one last.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    queue_id: i64,
    taken: usize,
    /// How many may be taken in all.
    room: usize,
    heads: Vec<Head>,
}

impl Line {
    fn refill(&mut self, tx: &Tx<'_>, count: usize) -> Result<(), StoreError> {
        let count = count.min(self.room - self.taken);
        self.heads = first_of(tx, self.queue_id, self.taken, count)?;
        self.taken += self.heads.len();
        self.heads.reverse();
        Ok(())
    }
}

impl Ord for Line {
    /// By the next job; a line that has run out is smallest, so that it is found and dropped.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.heads.last().cmp(&other.heads.last())
    }
}

impl PartialOrd for Line {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// From each queue only when those before it have nothing that may run.
fn next_in_order(
    tx: &Tx<'_>,
    rooms: &mut Rooms,
    served: &[QueueName],
    want: usize,
) -> Result<Vec<Head>, StoreError> {
    let mut next = Vec::new();
    let mut limited_left = rooms.limited_left;
    for name in served {
        let Some(queue_id) = queues::known_id(tx, name)? else {
            continue;
        };
        let count = rooms.left(tx, queue_id)?.min(want - next.len());
        if count == 0 {
            continue;
        }
        let mut heads = first_of(tx, queue_id, 0, count)?;
        if rooms.is_limited(queue_id) {
            rooms.has_left_some |= heads.len() > limited_left;
            heads.truncate(limited_left);
            limited_left -= heads.len();
        }
        next.extend(heads);
    }
    Ok(next)
}

/// This one job, if it is ready and its queue has room.
fn only(tx: &Tx<'_>, rooms: &mut Rooms, id: &JobId) -> Result<Option<Head>, StoreError> {
    // By the ids of jobs and the primary key of `ready`.
    let mut select = tx.prepare(
        "select r.priority, r.due_at, r.seq, r.queue_id
         from jobs j cross join ready r
              on r.queue_id = j.queue_id and r.priority = j.priority and r.due_at = j.due_at and r.seq = j.seq
         where j.id = ?1",
    )?;
    let head = select.query_row([id.as_str()], |row| {
        Ok(Head {
            priority: Reverse(row.get(0)?),
            due_at: row.get(1)?,
            seq: row.get(2)?,
            queue_id: row.get(3)?,
        })
    });
    match head.optional()? {
        Some(head) if rooms.left(tx, head.queue_id)? > 0 => Ok(Some(head)),
        Some(_) | None => Ok(None),
    }
}

/// The queues that have anything ready, by jumping through the primary key of `ready`.
pub(crate) fn queues_with_ready(tx: &Tx<'_>) -> Result<Vec<i64>, StoreError> {
    let mut select =
        tx.prepare("select queue_id from ready where queue_id > ?1 order by queue_id limit 1")?;
    let mut ids = Vec::new();
    let mut last = i64::MIN;
    while let Some(id) = select.query_row([last], |row| row.get(0)).optional()? {
        ids.push(id);
        last = id;
    }
    Ok(ids)
}

fn first_of(tx: &Tx<'_>, queue_id: i64, skip: usize, count: usize) -> Result<Vec<Head>, StoreError> {
    // In the order of the primary key of `ready`.
    let mut select = tx.prepare(
        "select priority, due_at, seq from ready where queue_id = ?1
         order by priority desc, due_at, seq limit ?2 offset ?3",
    )?;
    let rows = select.query_map(params![queue_id, count, skip], |row| {
        Ok(Head { priority: Reverse(row.get(0)?), due_at: row.get(1)?, seq: row.get(2)?, queue_id })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// `None` if its time is still to come, because somebody has set the clock back since it was made ready: it is put off.
fn take(tx: &Tx<'_>, head: &Head, worker: &WorkerId, until: Timestamp) -> Result<Option<Claim>, StoreError> {
    let job = row::by_seq(tx, head.seq)?;
    let event = Event::Claim { worker: worker.clone(), until };
    let policy = settings::policy(tx, &job)?;
    let claimed = match transition(&job.life, event, &policy, tx.now) {
        Ok(claimed) => claimed,
        Err(Refusal::NotDue) => return ready::put_off(tx, &job).map(|()| None),
        Err(refusal @ (Refusal::Blocked | Refusal::WrongState(_) | Refusal::Stale { .. })) => {
            return Err(row::malformed("ready job", refusal));
        }
    };
    let latest = LatestAttempt { started_at: Some(tx.now), ..job.latest.clone() };
    if !apply(tx, &job, &claimed, &latest)? {
        return Err(row::malformed("ready job", "it changed while it was claimed"));
    }
    let mut select = tx.prepare(
        "select j.command, j.cwd, j.timeout_ms, j.environment_id, q.name, j.seq, q.limits
         from jobs j join queues q on q.id = j.queue_id where j.seq = ?1",
    )?;
    select.query_row([job.seq], |row| Ok(read_claim(tx, row, &job, &claimed.life, until)))?.map(Some)
}

fn read_claim(
    tx: &Tx<'_>,
    row: &Row<'_>,
    job: &JobRow,
    life: &Life,
    lease_until: Timestamp,
) -> Result<Claim, StoreError> {
    let environment_id: Option<i64> = row.get(3)?;
    Ok(Claim {
        lease: LeaseRef { job: job.id.clone(), attempt: life.attempts },
        number: row.get(5)?,
        lease_until,
        queue: row::name(row, 4)?,
        is_limited: false,
        priority: job.priority,
        due_at: job.life.due_at,
        command: row.get(0)?,
        cwd: row.get(1)?,
        environment: environment_id.map(|id| environments::load(tx, id)).transpose()?,
        env: job.options.env.clone(),
        timeout: row.get::<_, Option<i64>>(2)?.map(from_millis),
        limits: job.options.limits.or(&row::limits(row, 6)?).or(&tx.settings()?.limits),
        runs_alone: life.runs_alone(tx.settings()?.crash_limit),
    })
}
