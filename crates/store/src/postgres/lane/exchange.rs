//! A worker's turn in the lane: what its first flight reads, and the order of its steps.
//!
//! The first flight locks the jobs that the worker settles, and picks the jobs that it may claim. A turn leaves the lane if
//! a settled job becomes ready at once, because the pick was made without it.

use std::collections::HashSet;
use std::rc::Rc;

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::Lane;
use super::answers::{Answer, parts};
use super::minutes::Minutes;
use crate::postgres::session::flight::Request;
use crate::rows::jobs::dependencies;
use crate::rows::jobs::environments;
use crate::rows::jobs::row::{self, select_jobs};
use crate::rows::keys::JobSeq;
use crate::rows::tables::{hooks, retry_rules, settings, workers};
use crate::rows::tx::Tx;
use crate::rows::verbs::{claim, settle};
use crate::rows::views::capacity;
use crate::{Claim, Exchange, ExchangeResult, Result, ServedJobs, SettledJob};
use domain::job::life::StateName;
use domain::values::timestamp::Timestamp;
use sys::guards;
use sys::guards::Guard;

/// Holds back other turns of this worker: one may still be running whose session was lost.
pub(super) const WORKER: &str = "select seq, boot_id, state <> 'stopped', queues from workers where id = $1
     for no key update";

/// The jobs that the worker holds, found by their ids: the rows that say which jobs run are changed by every claim, and
/// most of them are dead. Nothing else is locked, so no turn waits for another.
const SETTLED: &str = select_jobs!(
    ", q.retry_on, q.no_retry_on",
    "join queues q on q.id = j.queue_id
     where j.id = any($1) and j.worker_seq = (select seq from workers where id = $2)
     order by j.seq for no key update of j"
);

/// Which of the settled jobs others wait for. A statement of its own, after [`SETTLED`]: an enqueue that held the lock on a
/// job before may have added dependents.
const WAITED_FOR: &str = "select distinct d.parent_seq from dependencies d
     where d.parent_seq = any(array(select j.seq from jobs j where j.id = any($1))) and d.blocks = 1";

/// Whether dependents remain to be unblocked, when the next job is due, and whether a limited queue has ready jobs.
const SIGNS: &str = "select exists (select 1 from pending_unblocks),
            (select due_at from waiting order by due_at, seq limit 1),
            exists (select 1 from queues q left join floors f on f.queue_id = q.id cross join lateral (
                      select 1 from ready r
                      where r.queue_id = q.id
                            and (r.rank, r.due_at, r.seq) >= (coalesce(f.rank, -2147483648), coalesce(f.due_at, 0), coalesce(f.seq, 0))
                      limit 1) r
                    where q.paused_at is null and (q.concurrency is not null or q.rate_count is not null))";

/// The first ready jobs of the queues that the worker serves, in claim order, without those that other turns have picked.
/// Of the first n jobs none is in a queue whose own first job is not among the first n of these.
const PICK: &str = select_jobs!(
    ", j.command, j.cwd, j.timeout_ms, j.environment_id, p.name, p.limits,
       (select e.fingerprint from environments e where e.id = j.environment_id), p.place,
       row_number() over (order by p.turn, p.rank, p.due_at, p.seq) as nth",
    "join picked p on p.seq = j.seq"
);

/// Adds the number of jobs that there were, and returns it even if none was picked.
const PICK_AND_COUNT: &str = "select f.*, c.n from (select count(*) as n from share_of_all) c left join found f on true order by f.nth";

/// The queries that [`PICK`] selects from.
const PICKED: &str = "with me as materialized (
       select case when queues like '[%' then array(select jsonb_array_elements_text(cast(queues as jsonb))) end as names
       from workers where id = $1),
     open as materialized (
       select q.id as queue_id, q.name, q.limits, coalesce(array_position(me.names, q.name), 0) as turn,
              coalesce(f.rank, -2147483648) as rank, coalesce(f.due_at, 0) as due_at, coalesce(f.seq, 0) as seq
       from me cross join queues q left join floors f on f.queue_id = q.id
       where q.paused_at is null and q.concurrency is null and q.rate_count is null
             and (me.names is null or q.name = any(me.names))),
     first as materialized (
       select o.* from open o cross join lateral (
         select r.rank, r.due_at, r.seq from ready r
         where r.queue_id = o.queue_id and (r.rank, r.due_at, r.seq) >= (o.rank, o.due_at, o.seq)
         order by r.rank, r.due_at, r.seq limit 1) h
       order by o.turn, h.rank, h.due_at, h.seq limit $2),
     share_of_all as materialized (
       select o.queue_id from first o cross join lateral (
         select r.rank, r.due_at, r.seq from ready r
         where r.queue_id = o.queue_id and (r.rank, r.due_at, r.seq) >= (o.rank, o.due_at, o.seq)
         order by r.rank, r.due_at, r.seq limit $2) h
       order by o.turn, h.rank, h.due_at, h.seq limit $2),
     share as materialized (select queue_id, count(*) as n from share_of_all group by queue_id),
     picked as materialized (
       select o.name, o.limits, o.turn, r.* from share s join open o on o.queue_id = s.queue_id cross join lateral (
         select cast(r.ctid as text) as place, r.rank, r.due_at, r.seq from ready r
         where r.queue_id = s.queue_id and (r.rank, r.due_at, r.seq) >= (o.rank, o.due_at, o.seq)
         order by r.rank, r.due_at, r.seq limit s.n for update skip locked) r)";

/// Where the columns of a job end in a row of [`SETTLED`] and [`PICK`].
const MORE: usize = 26;

/// What a turn asks in its first flight.
pub(in crate::postgres) struct Questions<'a> {
    worker: &'a str,
    settled: Vec<&'a str>,
    want: i64,
    pick: String,
    minutes: Minutes,
}

impl<'a> Questions<'a> {
    /// `None` if the turn has to run alone in any case. `now` is about the time at which it will run.
    pub(in crate::postgres) fn of(exchange: &Exchange<'a>, now: Timestamp) -> Option<Self> {
        let settled: Vec<&str> =
            exchange.settlements.iter().map(|settlement| settlement.lease.job.as_str()).collect();
        let distinct: HashSet<&str> = settled.iter().copied().collect();
        // Of two settlements of one job the second is decided by the outcome of the first.
        let is_plain = distinct.len() == settled.len() && !guards::is_off(Guard::Fencing);
        let minutes = Minutes::around(now).filter(|_| is_plain)?;
        Some(Self {
            minutes,
            worker: exchange.worker.as_str(),
            settled,
            want: i64::try_from(exchange.want).unwrap_or(i64::MAX),
            pick: format!("{PICKED}, found as ({PICK}) {PICK_AND_COUNT}"),
        })
    }

    pub(in crate::postgres) fn requests(&self) -> Vec<Request<'_>> {
        let mut requests = vec![
            Request { sql: WORKER, params: vec![(&self.worker, Type::TEXT)] },
            self.minutes.request(&self.worker),
            Request { sql: settings::ALL, params: Vec::new() },
            Request { sql: SIGNS, params: Vec::new() },
            Request { sql: hooks::ALL, params: Vec::new() },
            Request {
                sql: SETTLED,
                params: vec![(&self.settled, Type::TEXT_ARRAY), (&self.worker, Type::TEXT)],
            },
            Request { sql: WAITED_FOR, params: vec![(&self.settled, Type::TEXT_ARRAY)] },
        ];
        if self.want > 0 {
            let params = vec![(&self.worker as _, Type::TEXT), (&self.want as _, Type::INT8)];
            requests.push(Request { sql: &self.pick, params });
        }
        requests
    }

    /// Makes the answers of the first flight known to the lane.
    pub(in crate::postgres) fn board(
        &self,
        lane: &mut Lane<'_>,
        rows: Vec<Vec<Row>>,
        now: Timestamp,
    ) -> Result<Boarding> {
        let mut rows = rows.into_iter();
        let mut next = || rows.next().unwrap_or_default();
        let (worker, minute_rows, stored, signs, hook_rows, settled, waited_for, picked) =
            (next(), next(), next(), next(), next(), next(), next(), next());
        let (Some(worker), Some(signs)) = (worker.into_iter().next(), signs.into_iter().next()) else {
            return Ok(Boarding::Alone);
        };
        let (has_pending, next_due, has_limited): (bool, Option<i64>, bool) =
            (signs.get(0), signs.get(1), signs.get(2));
        let served = workers::served_from_json(worker.get(3))?;
        if has_pending || has_limited || matches!(served, ServedJobs::Batch(_) | ServedJobs::Job(_)) {
            return Ok(Boarding::Alone);
        }
        let next_due = next_due.map(Timestamp::from_millis);
        if next_due.is_some_and(|due| due <= now) {
            return Ok(Boarding::HasDue);
        }
        let worker_seq = know_worker(lane, self.worker, worker);
        self.minutes.know(lane, minute_rows, now);
        lane.answers.otherwise(settings::ALL, parts(stored));
        lane.answers.otherwise(hooks::ALL, parts(hook_rows));
        lane.answers.otherwise(capacity::HAS_LIMITED_READY, Vec::new());
        know_settled(lane, settled, &waited_for.iter().map(|row| row.get(0)).collect());
        let there_were: i64 = picked.first().map_or(0, |row| row.get(MORE + 9));
        let picked = know_picked(lane, picked);
        let skipped_some = usize::try_from(there_were).is_ok_and(|there_were| there_were > picked.len());
        Ok(Boarding::Boarded(Found {
            worker_seq,
            serves_all: served == ServedJobs::All,
            picked,
            skipped_some,
            next_due,
        }))
    }
}

/// What the first flight has found out beside the answers to the questions of the shared code.
pub(in crate::postgres) struct Found {
    pub(in crate::postgres) worker_seq: i64,
    serves_all: bool,
    picked: Vec<JobSeq>,
    /// Some jobs were not picked, because other turns had picked them.
    skipped_some: bool,
    next_due: Option<Timestamp>,
}

/// Whether a turn can stay in the lane.
pub(in crate::postgres) enum Boarding {
    Boarded(Found),
    /// Jobs are due that have to be made ready first.
    HasDue,
    Alone,
}

/// Answers questions about the worker itself. Returns its number.
pub(super) fn know_worker(lane: &mut Lane<'_>, id: &str, row: Row) -> i64 {
    let row = Rc::new(row);
    let seq: i64 = row.get(0);
    let is_live: bool = row.get(2);
    let part = |from| vec![Answer::Part(Rc::clone(&row), from)];
    lane.answers.of_text(workers::SEQ, id.to_owned(), part(0));
    lane.answers.of_integer(workers::BOOT_ID, seq, part(1));
    lane.answers.of_integer(workers::IS_LIVE, seq, part(2));
    let any_live = if is_live { part(0) } else { return seq };
    lane.answers.otherwise(workers::ANY_LIVE, any_live);
    seq
}

fn know_settled(lane: &mut Lane<'_>, rows: Vec<Row>, waited_for: &HashSet<i64>) {
    // A job that the flight has not found is not held by the worker.
    lane.answers.otherwise(row::BY_ID, Vec::new());
    for row in rows {
        let row = Rc::new(row);
        let (seq, id, queue_id): (i64, String, i64) = (row.get(0), row.get(1), row.get(2));
        if !waited_for.contains(&seq) {
            lane.answers.of_integer(dependencies::WAITING_AFTER, seq, Vec::new());
        }
        lane.answers.of_integer(retry_rules::OF_QUEUE, queue_id, vec![Answer::Part(Rc::clone(&row), MORE)]);
        lane.answers.of_text(row::BY_ID, id, vec![Answer::Part(row, 0)]);
    }
}

/// Returns the picked jobs in claim order.
fn know_picked(lane: &mut Lane<'_>, rows: Vec<Row>) -> Vec<JobSeq> {
    let mut picked = Vec::with_capacity(rows.len());
    for row in rows {
        let row = Rc::new(row);
        let Some(seq): Option<i64> = row.get(0) else { continue };
        let (environment, fingerprint): (Option<i64>, Option<i64>) = (row.get(MORE + 3), row.get(MORE + 6));
        if let (Some(environment), Some(fingerprint)) = (environment, fingerprint) {
            let known = vec![Answer::Integers(vec![Some(fingerprint)])];
            lane.answers.of_integer(environments::FINGERPRINT, environment, known);
        }
        lane.places.insert(seq, row.get(MORE + 7));
        lane.answers.of_integer(claim::READY_JOB, seq, vec![Answer::Part(row, 0)]);
        picked.push(JobSeq(seq));
    }
    picked
}

/// The turn itself: as [`crate::rows::verbs::exchange`], with the jobs that were picked.
pub(in crate::postgres) fn turn(
    tx: &mut Tx<'_>,
    lane: &Lane<'_>,
    exchange: &Exchange<'_>,
    found: &Found,
) -> Result<ExchangeResult> {
    let worker_seq = workers::seq(tx, exchange.worker)?;
    let (mut settled, mut stale) = (Vec::new(), Vec::new());
    for settlement in exchange.settlements {
        match settle::settle(tx, worker_seq, settlement)? {
            Some(recorded) if is_ready(&recorded, tx.now) => return Err(lane.leave()),
            Some(recorded) => settled.push(recorded),
            None => stale.push(settlement.lease.clone()),
        }
    }
    let retired = !workers::is_live(tx, worker_seq)?;
    let claimed = if retired { Vec::new() } else { claim_picked(tx, lane, exchange, &found.picked)? };
    if found.serves_all && !retired && claimed.len() < exchange.want {
        // This worker has room for the jobs that it made ready.
        tx.effects.wakes_workers = false;
    }
    let retries = settled.iter().filter_map(|settled| settled.next_retry_at);
    // What another turn has picked may be free again in a moment.
    let again = found.skipped_some.then_some(tx.now);
    let next_due = found.next_due.into_iter().chain(retries).chain(again).min();
    Ok(ExchangeResult { claimed, has_left_some: false, settled, stale, retired, next_due })
}

/// Whether the job can be claimed in the same turn.
fn is_ready(settled: &SettledJob, now: Timestamp) -> bool {
    match settled.state {
        StateName::Pending => true,
        StateName::Failed => settled.next_retry_at.is_none_or(|at| at <= now),
        StateName::Processing | StateName::Completed | StateName::Dead | StateName::Cancelled => false,
    }
}

fn claim_picked(
    tx: &mut Tx<'_>,
    lane: &Lane<'_>,
    exchange: &Exchange<'_>,
    picked: &[JobSeq],
) -> Result<Vec<Claim>> {
    let until = tx.now.saturating_add(tx.settings()?.lease);
    let mut claims = Vec::with_capacity(picked.len());
    for seq in picked {
        match claim::take(tx, *seq, exchange.worker, until)? {
            Some(claim) => claims.push(claim),
            // The clock was set back: other jobs take the places of those that are not due.
            None => return Err(lane.leave()),
        }
    }
    Ok(claims)
}
