//! Finding the jobs that match a filter.
//!
//! Each statement follows one index that has the rows in the requested order, and tests the remaining conditions on
//! each row. The most selective condition decides which statement is used.

use std::cmp::Reverse;

use crate::rows::dialect::Wording;
use crate::rows::jobs::ready;
use crate::rows::keys::{BatchKey, JobSeq, QueueKey, ScheduleKey, WorkerSeq};
use crate::rows::tables::queues;
use crate::rows::tx::Tx;
use crate::rows::{Params, Row, named, read, wording};
use crate::{DeadJob, EndReason, JobRef, Phase, Result};
use domain::job::cause::CauseId;
use domain::job::life::StateName;
use domain::values::signal::Signal;
use domain::values::timestamp::Timestamp;

/// A position in any of the list orders.
#[derive(Debug)]
pub(crate) struct ListPosition {
    pub(crate) seq: JobSeq,
    pub(crate) priority: i32,
    pub(crate) due_at: Timestamp,
}

/// A filter with row ids in place of names, and the page to read.
pub(crate) struct JobQuery<'t> {
    pub(crate) tx: &'t Tx<'t>,
    pub(crate) queue_id: Option<QueueKey>,
    pub(crate) batch_id: Option<BatchKey>,
    pub(crate) schedule_id: Option<ScheduleKey>,
    pub(crate) worker_seq: Option<WorkerSeq>,
    pub(crate) tag: Option<&'t str>,
    pub(crate) id_prefix: Option<&'t str>,
    pub(crate) cause_id: Option<CauseId>,
    pub(crate) reason: Option<EndReason>,
    pub(crate) exit_code: Option<i32>,
    pub(crate) changed_before: Option<Timestamp>,
    pub(crate) changed_after: Option<Timestamp>,
    pub(crate) command: Option<String>,
    /// The lowest number to look at, in the order of enqueuing.
    pub(crate) from: JobSeq,
    pub(crate) after: Option<ListPosition>,
    pub(crate) limit: usize,
}

/// A job that matches, by its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Match {
    pub(crate) seq: JobSeq,
    pub(crate) state: StateName,
    pub(crate) queue_id: QueueKey,
}

/// A ready job in claim order: by priority from high to low, then due time, then the order of enqueuing.
type ClaimKey = (Reverse<i32>, Timestamp, JobSeq);

/// A statement along an index, with all conditions that a filter can have. It takes the parameters of `bindings`.
macro_rules! job_query {
    ($along:tt, $order:tt) => {
        job_query!($along, "", $order)
    };
    ($along:tt, $and:tt, $order:tt) => {
        wording!(
            $along,
            $and,
            " (j.state = :state or :state is null)
              and (j.queue_id = :queue_id or :queue_id is null)
              and (exists (select 1 from job_tags t where t.tag = :tag and t.seq = j.seq) or :tag is null)
              and (j.batch_id = :batch_id or :batch_id is null)
              and (j.schedule_id = :schedule_id or :schedule_id is null)
              and (j.worker_seq = :worker_seq or :worker_seq is null)
              and (j.cause_id = :cause_id or :cause_id is null)
              and (j.reason = :reason or :reason is null)
              and (j.exit_code = :exit_code or :exit_code is null)
              and (substr(j.id, 1, length(cast(:id_prefix as text))) = :id_prefix or :id_prefix is null)
              and (j.updated_at < :changed_before or :changed_before is null)
              and (j.updated_at >= :changed_after or :changed_after is null)
              and (",
            ("j.command glob :command" | "j.command like :command"),
            " or :command is null)
              and (:phase = 'ready' and j.blocked_by = 0 and j.due_at <= :now
                      and (select q.paused_at is null from queues q where q.id = j.queue_id)
                   or :phase = 'scheduled' and j.blocked_by = 0 and j.due_at > :now
                   or :phase = 'blocked' and j.blocked_by > 0
                   or :phase = 'paused' and j.cancel_requested = 0 and ",
            // See `domain::job::options::AttemptRequests`.
            ("json_extract(j.options, '$.requests.attempt') = j.attempts
                      and json_extract(j.options, '$.requests.paused_at') is not null"
                | "cast(cast(j.options as json) #>> '{requests,attempt}' as bigint) = j.attempts
                      and cast(j.options as json) #>> '{requests,paused_at}' is not null"),
            " or :phase is null)
              ",
            $order
        )
    };
}

/// The parameters of a statement of [`job_query`]: the conditions of a filter, and those that only this statement has.
/// `state` and `phase` must be among the latter.
macro_rules! bindings {
    ($query:expr, $($own:tt)*) => {
        named! {
            queue_id: $query.queue_id,
            tag: $query.tag,
            batch_id: $query.batch_id,
            schedule_id: $query.schedule_id,
            worker_seq: $query.worker_seq,
            cause_id: $query.cause_id,
            reason: $query.reason,
            exit_code: $query.exit_code,
            id_prefix: $query.id_prefix,
            changed_before: $query.changed_before,
            changed_after: $query.changed_after,
            command: $query.command,
            now: $query.tx.now,
            $($own)*
        }
    };
}

/// Without a filter, by the primary key. SQLite would need longer to prepare the conditions of a filter than to read a page.
const UNFILTERED: &str = "select j.seq, j.state, j.id, j.queue_id from jobs j
     where j.seq >= :from and j.seq < :below order by j.seq desc limit :limit";
/// The same for the jobs of a state, by index jobs_by_state.
const UNFILTERED_BY_STATE: &str = "select j.seq, j.state, j.id, j.queue_id from jobs j
     where j.state = :state and j.seq >= :from and j.seq < :below order by j.seq desc limit :limit";

/// By the primary key.
const ALL: Wording = job_query!(
    "select j.seq, j.state, j.id, j.queue_id from jobs j where j.seq >= :from and j.seq < :below and",
    "order by j.seq desc limit :limit"
);
/// By index jobs_by_state. SQLite must be made to use it: given a range of numbers, it would read all of the range.
const BY_STATE: Wording = job_query!(
    ("select j.seq, j.state, j.id, j.queue_id from jobs j indexed by jobs_by_state where"
        | "select j.seq, j.state, j.id, j.queue_id from jobs j where"),
    " j.state = :state and j.seq >= :from and j.seq < :below and",
    "order by j.seq desc limit :limit"
);
/// By index jobs_by_queue.
const BY_QUEUE: Wording = job_query!(
    ("select j.seq, j.state, j.id, j.queue_id from jobs j indexed by jobs_by_queue where"
        | "select j.seq, j.state, j.id, j.queue_id from jobs j where"),
    " j.queue_id = :queue_id and j.state = :state and j.seq >= :from and j.seq < :below and",
    "order by j.seq desc limit :limit"
);
/// By index jobs_blocked.
const BLOCKED: Wording = job_query!(
    ("select j.seq, j.state, j.id, j.queue_id from jobs j indexed by jobs_blocked where"
        | "select j.seq, j.state, j.id, j.queue_id from jobs j where"),
    " j.blocked_by > 0 and j.seq >= :from and j.seq < :below and",
    "order by j.seq desc limit :limit"
);
/// By index jobs_by_batch.
const BY_BATCH: Wording = job_query!(
    ("select j.seq, j.state, j.id, j.queue_id from jobs j indexed by jobs_by_batch where"
        | "select j.seq, j.state, j.id, j.queue_id from jobs j where"),
    " j.batch_id = :batch_id and j.seq >= :from and j.seq < :below and",
    "order by j.seq desc limit :limit"
);
/// By index jobs_by_schedule.
const BY_SCHEDULE: Wording = job_query!(
    ("select j.seq, j.state, j.id, j.queue_id from jobs j indexed by jobs_by_schedule where"
        | "select j.seq, j.state, j.id, j.queue_id from jobs j where"),
    " j.schedule_id = :schedule_id and j.seq >= :from and j.seq < :below and",
    "order by j.seq desc limit :limit"
);
/// By index jobs_by_cause.
const BY_CAUSE: Wording = job_query!(
    ("select j.seq, j.state, j.id, j.queue_id from jobs j indexed by jobs_by_cause where"
        | "select j.seq, j.state, j.id, j.queue_id from jobs j where"),
    " j.cause_id = :cause_id and j.seq >= :from and j.seq < :below and",
    "order by j.seq desc limit :limit"
);
/// In the order of the primary key of job_tags.
const BY_TAG: Wording = job_query!(
    "select j.seq, j.state, j.id, j.queue_id from job_tags u cross join jobs j
     where j.seq = u.seq and u.tag = :tag and u.seq >= :from and u.seq < :below and",
    "order by u.seq desc limit :limit"
);

/// By index jobs_by_state.
const DEAD: Wording = job_query!(
    "select j.seq, j.state, j.id, j.reason, j.exit_code, j.signal, j.error, j.finished_at,
            (select name from queues where id = j.queue_id) as queue
     from jobs j where j.state = 'dead' and j.seq < :below and",
    "order by j.seq desc limit :limit"
);

impl JobQuery<'_> {
    /// From new to old. The jobs of several phases are in the order of the phases.
    pub(crate) fn in_phases(&self, phases: &[Phase]) -> Result<Vec<JobRef>> {
        self.collect(phases, read_ref)
    }

    /// The same without ids.
    pub(crate) fn matches(&self, phases: &[Phase]) -> Result<Vec<Match>> {
        self.collect(phases, |row| Ok(read!(row, Match { seq, state, queue_id })))
    }

    fn collect<T>(&self, phases: &[Phase], read: impl Fn(&Row<'_>) -> Result<T>) -> Result<Vec<T>> {
        let mut found = Vec::new();
        let parts = if phases.is_empty() {
            self.states()
        } else {
            phases.iter().copied().flat_map(parts_of).collect()
        };
        for (state, phase) in parts {
            let mut take = |row: &Row<'_>| {
                found.push(read(row)?);
                Ok(true)
            };
            let (from, below, limit) = (self.from, self.below(), self.limit);
            match (state, phase) {
                (None, None) if self.is_unfiltered() => {
                    self.tx.query(UNFILTERED, named! { from, below, limit }, &mut take)?;
                }
                (Some(state), None) if self.is_unfiltered() => {
                    self.tx.query(UNFILTERED_BY_STATE, named! { state, from, below, limit }, &mut take)?;
                }
                (state, phase) => {
                    let sql = self.along(state, phase).of(self.tx);
                    let phase = phase.map(Phase::name);
                    self.tx.query(sql, bindings!(self, state, phase, from, below, limit), &mut take)?;
                }
            }
        }
        Ok(found)
    }

    /// Whether jobs match by their state alone.
    fn is_unfiltered(&self) -> bool {
        let JobQuery {
            tx: _,
            queue_id: None,
            batch_id: None,
            schedule_id: None,
            worker_seq: None,
            tag: None,
            id_prefix: None,
            cause_id: None,
            reason: None,
            exit_code: None,
            changed_before: None,
            changed_after: None,
            command: None,
            from: _,
            after: _,
            limit: _,
        } = self
        else {
            return false;
        };
        true
    }

    /// The states in which jobs of any phase can match.
    fn states(&self) -> Vec<(Option<StateName>, Option<Phase>)> {
        let only = |state| vec![(Some(state), None)];
        if let Some(reason) = self.reason {
            return only(reason.state());
        }
        if self.worker_seq.is_some() {
            return only(StateName::Processing);
        }
        let has_index = self.batch_id.is_some() || self.tag.is_some() || self.schedule_id.is_some();
        if has_index || self.cause_id.is_some() || self.queue_id.is_none() {
            return vec![(None, None)];
        }
        // The index is by queue and state, so each state yields its newest jobs; the caller takes the newest of all.
        StateName::ALL.into_iter().map(|state| (Some(state), None)).collect()
    }

    /// The statement along the most selective index.
    fn along(&self, state: Option<StateName>, phase: Option<Phase>) -> Wording {
        if self.cause_id.is_some() {
            return BY_CAUSE;
        }
        match (self.batch_id, self.schedule_id, self.tag, self.queue_id, state) {
            (Some(_), _, _, _, _) => BY_BATCH,
            (None, Some(_), _, _, _) => BY_SCHEDULE,
            (None, None, Some(_), _, _) => BY_TAG,
            (None, None, None, _, Some(_)) if phase == Some(Phase::Blocked) => BLOCKED,
            (None, None, None, Some(_), Some(_)) => BY_QUEUE,
            (None, None, None, None, Some(_)) => BY_STATE,
            (None, None, None, _, None) => ALL,
        }
    }

    /// The dead ones, with what they died of.
    pub(crate) fn dead(&self) -> Result<Vec<DeadJob>> {
        let below = self.below();
        let bindings = bindings!(self, state: ANY, phase: ANY, below, limit: self.limit);
        self.tx.all(DEAD.of(self.tx), bindings, |row| {
            let signal = row.get::<Option<i32>>("signal")?.and_then(Signal::from_number);
            Ok(read!(
                row,
                DeadJob { job: read_ref(row)?, queue, reason, exit_code, signal: signal, error, finished_at }
            ))
        })
    }

    fn below(&self) -> JobSeq {
        self.after.as_ref().map_or(JobSeq::LAST, |after| after.seq)
    }

    /// By due time, the soonest first.
    pub(crate) fn scheduled_in_order(&self) -> Result<Vec<u64>> {
        let (due_at, seq) =
            self.after.as_ref().map_or((self.tx.now, JobSeq::LAST), |after| (after.due_at, after.seq));
        // In the order of the primary key of `waiting`.
        let sql = job_query!(
            "select w.seq from waiting w cross join jobs j
             where j.seq = w.seq and (w.due_at, w.seq) > (:due_at, :seq) and w.due_at > :now and j.state = 'pending' and",
            "order by w.due_at, w.seq limit :limit"
        );
        self.tx
            .values(sql.of(self.tx), bindings!(self, state: ANY, phase: ANY, due_at, seq, limit: self.limit))
    }

    /// In claim order: merges the open queues, and the due jobs that are not promoted yet.
    pub(crate) fn ready_in_order(&self) -> Result<Vec<u64>> {
        let mut keys: Vec<ClaimKey> = Vec::new();
        for queue_id in ready::queues_with_ready(self.tx)? {
            let is_selected = self.queue_id.is_none_or(|id| id == queue_id);
            if is_selected && queues::is_open(self.tx, queue_id)? {
                keys.extend(self.ready_in(queue_id)?);
            }
        }
        keys.extend(self.due_in_waiting()?);
        if let Some(after) = &self.after {
            let last = (Reverse(after.priority), after.due_at, after.seq);
            keys.retain(|key| *key > last);
        }
        keys.sort_unstable();
        keys.truncate(self.limit);
        Ok(keys.into_iter().map(|(_, _, seq)| seq.number()).collect())
    }

    /// The rest of the position's priority, then the lower ones. Starting at the position keeps the cost of a page
    /// independent of its depth.
    fn ready_in(&self, queue_id: QueueKey) -> Result<Vec<ClaimKey>> {
        let Some(after) = &self.after else {
            return self.ready_below(queue_id, i64::MAX);
        };
        let mut keys = self.ready_after(queue_id, after)?;
        if keys.len() < self.limit {
            keys.extend(self.ready_below(queue_id, after.priority.into())?);
        }
        Ok(keys)
    }

    fn ready_after(&self, queue_id: QueueKey, after: &ListPosition) -> Result<Vec<ClaimKey>> {
        // In the order of the primary key of `ready`.
        self.claim_keys(
            job_query!(
                "select j.priority, r.due_at, r.seq from ready r cross join jobs j
                 where j.seq = r.seq and r.queue_id = :ready_queue and (r.due_at, r.seq) > (:due_at, :seq) and ",
                ("r.priority = :priority and" | "r.rank = -cast(:priority as bigint) and"),
                "order by r.due_at, r.seq limit :limit"
            ),
            bindings! {
                self, state: ANY, phase: ANY, limit: self.limit,
                ready_queue: queue_id, priority: after.priority, due_at: after.due_at, seq: after.seq,
            },
        )
    }

    fn ready_below(&self, queue_id: QueueKey, priority: i64) -> Result<Vec<ClaimKey>> {
        // In the order of the primary key of `ready`.
        self.claim_keys(
            job_query!(
                "select j.priority, r.due_at, r.seq from ready r cross join jobs j
                 where j.seq = r.seq and r.queue_id = :ready_queue and ",
                ("r.priority < :priority and" | "r.rank > -cast(:priority as bigint) and"),
                ("order by r.priority desc, r.due_at, r.seq limit :limit"
                    | "order by r.rank, r.due_at, r.seq limit :limit")
            ),
            bindings!(self, state: ANY, phase: ANY, limit: self.limit, ready_queue: queue_id, priority),
        )
    }

    fn due_in_waiting(&self) -> Result<Vec<ClaimKey>> {
        // By the primary key of `waiting`. The rows are not in claim order, so all are read.
        self.claim_keys(
            job_query!(
                "select j.priority, w.due_at, w.seq
                 from waiting w cross join jobs j join queues o on o.id = j.queue_id
                 where j.seq = w.seq and w.due_at <= :now and o.paused_at is null and",
                ""
            ),
            bindings!(self, state: ANY, phase: ANY),
        )
    }

    fn claim_keys(&self, sql: Wording, params: Params<'_>) -> Result<Vec<ClaimKey>> {
        self.tx.all(sql.of(self.tx), params, |row| {
            Ok((Reverse(row.get("priority")?), row.get("due_at")?, row.get("seq")?))
        })
    }
}

/// The states whose jobs can be in a phase, each with the phase where it is a part of the state.
fn parts_of(phase: Phase) -> Vec<(Option<StateName>, Option<Phase>)> {
    let part = |state| (Some(state), Some(phase));
    match phase {
        Phase::State(state) => vec![(Some(state), None)],
        Phase::Paused => vec![part(StateName::Processing)],
        Phase::Scheduled | Phase::Blocked => vec![part(StateName::Pending)],
        Phase::Ready => vec![part(StateName::Pending), part(StateName::Failed)],
    }
}

fn read_ref(row: &Row<'_>) -> Result<JobRef> {
    Ok(read!(row, JobRef { id, number: row.get("seq")?, state }))
}

/// Binds null: the condition matches every job.
const ANY: Option<&str> = None;
