//! Finding the jobs that match a filter.
//!
//! Each statement follows one index that has the rows in the requested order, and tests the remaining conditions on
//! each row. The most selective condition decides which statement is used.

use std::cmp::Reverse;

use rusqlite::{ToSql, params};

use crate::sqlite::session::row;
use crate::sqlite::session::row::malformed;
use crate::sqlite::session::tx::Tx;
use crate::sqlite::tables::queues;
use crate::sqlite::verbs::claim::queues_with_ready;
use crate::{JobRef, Phase, StoreError};
use domain::job::life::StateName;

/// A position in any of the list orders.
#[derive(Debug)]
pub(crate) struct ListPosition {
    pub(crate) seq: i64,
    pub(crate) priority: i32,
    pub(crate) due_at: i64,
}

/// A filter with row ids in place of names, and the page to read.
#[derive(Debug)]
pub(crate) struct JobQuery<'t> {
    pub(crate) tx: &'t Tx<'t>,
    pub(crate) now: i64,
    pub(crate) queue_id: Option<i64>,
    pub(crate) batch_id: Option<i64>,
    pub(crate) tag: Option<&'t str>,
    pub(crate) changed_before: Option<i64>,
    pub(crate) command: Option<String>,
    pub(crate) after: Option<ListPosition>,
    pub(crate) limit: i64,
}

/// A ready job in claim order: by priority from high to low, then due time, then the order of enqueuing.
type ClaimKey = (Reverse<i32>, i64, i64);

/// A statement along an index, with all conditions that a filter can have.
///
/// `?1` is where to begin, `?2` the limit, `?3` the state, `?9` the phase within it, `?10` the current time.
macro_rules! job_query {
    ($along:literal, $order:literal) => {
        concat!(
            $along,
            " (?3 is null or j.state = ?3)
              and (?4 is null or j.queue_id = ?4)
              and (?5 is null or exists (select 1 from job_tags t where t.tag = ?5 and t.seq = j.seq))
              and (?6 is null or j.batch_id = ?6)
              and (?7 is null or j.updated_at < ?7)
              and (?8 is null or j.command glob ?8)
              and (?9 is null
                   or ?9 = 'ready' and j.blocked_by = 0 and j.due_at <= ?10
                      and (select q.paused_at is null from queues q where q.id = j.queue_id)
                   or ?9 = 'scheduled' and j.blocked_by = 0 and j.due_at > ?10
                   or ?9 = 'blocked' and j.blocked_by > 0)
              ",
            $order
        )
    };
}

/// By the primary key.
const ALL: &str = job_query!(
    "select j.seq, j.state, j.id from jobs j where j.seq < ?1 and",
    "order by j.seq desc limit ?2"
);
/// By index jobs_by_state.
const BY_STATE: &str = job_query!(
    "select j.seq, j.state, j.id from jobs j where j.state = ?3 and j.seq < ?1 and",
    "order by j.seq desc limit ?2"
);
/// By index jobs_by_queue.
const BY_QUEUE: &str = job_query!(
    "select j.seq, j.state, j.id from jobs j where j.queue_id = ?4 and j.state = ?3 and j.seq < ?1 and",
    "order by j.seq desc limit ?2"
);
/// By index jobs_blocked.
const BLOCKED: &str = job_query!(
    "select j.seq, j.state, j.id from jobs j where j.blocked_by > 0 and j.seq < ?1 and",
    "order by j.seq desc limit ?2"
);
/// By index jobs_by_batch.
const BY_BATCH: &str = job_query!(
    "select j.seq, j.state, j.id from jobs j where j.batch_id = ?6 and j.seq < ?1 and",
    "order by j.seq desc limit ?2"
);
/// In the order of the primary key of job_tags.
const BY_TAG: &str = job_query!(
    "select j.seq, j.state, j.id from job_tags u cross join jobs j on j.seq = u.seq where u.tag = ?5 and u.seq < ?1 and",
    "order by u.seq desc limit ?2"
);

impl JobQuery<'_> {
    /// From new to old, as everything that follows except the last two.
    pub(crate) fn in_any_state(&self) -> Result<Vec<JobRef>, StoreError> {
        if self.batch_id.is_some() || self.tag.is_some() || self.queue_id.is_none() {
            return self.in_state(None, None);
        }
        // The index is by queue and state, so each state yields its newest jobs; the caller takes the newest of all.
        let mut found = Vec::new();
        for state in StateName::ALL {
            found.extend(self.in_state(Some(state), None)?);
        }
        Ok(found)
    }

    pub(crate) fn in_phase(&self, phase: Phase) -> Result<Vec<JobRef>, StoreError> {
        match phase {
            Phase::State(state) => self.in_state(Some(state), None),
            Phase::Scheduled | Phase::Blocked => self.in_state(Some(StateName::Pending), Some(phase)),
            Phase::Ready => {
                let mut found = self.in_state(Some(StateName::Pending), Some(phase))?;
                found.extend(self.in_state(Some(StateName::Failed), Some(phase))?);
                Ok(found)
            }
        }
    }

    fn in_state(&self, state: Option<StateName>, phase: Option<Phase>) -> Result<Vec<JobRef>, StoreError> {
        let along = match (self.batch_id, self.tag, self.queue_id, state) {
            (Some(_), _, _, _) => BY_BATCH,
            (None, Some(_), _, _) => BY_TAG,
            (None, None, _, Some(_)) if phase == Some(Phase::Blocked) => BLOCKED,
            (None, None, Some(_), Some(_)) => BY_QUEUE,
            (None, None, None, Some(_)) => BY_STATE,
            (None, None, _, None) => ALL,
        };
        let mut select = self.tx.prepare(along)?;
        let mut rows = select.query(params![
            self.after.as_ref().map_or(i64::MAX, |after| after.seq),
            self.limit,
            state.map(StateName::name),
            self.queue_id,
            self.tag,
            self.batch_id,
            self.changed_before,
            self.command,
            phase.map(Phase::name),
            self.now,
        ])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let word: String = row.get(1)?;
            let state = StateName::from_name(&word).ok_or_else(|| malformed("state", &word))?;
            found.push(JobRef { number: row.get(0)?, state, id: row::name(row, 2)? });
        }
        Ok(found)
    }

    /// By due time, the soonest first.
    pub(crate) fn scheduled_in_order(&self) -> Result<Vec<u64>, StoreError> {
        let (due_at, seq) =
            self.after.as_ref().map_or((self.now, i64::MAX), |after| (after.due_at, after.seq));
        // In the order of the primary key of `waiting`.
        let mut select = self.tx.prepare(job_query!(
            "select w.seq from waiting w cross join jobs j on j.seq = w.seq
             where (w.due_at, w.seq) > (?1, ?11) and w.due_at > ?10 and j.state = 'pending' and",
            "order by w.due_at, w.seq limit ?2"
        ))?;
        let rows = select.query_map(&self.bindings(&due_at, &[&seq])[..], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// In claim order: merges the open queues, and the due jobs that are not promoted yet.
    pub(crate) fn ready_in_order(&self) -> Result<Vec<u64>, StoreError> {
        let mut keys: Vec<ClaimKey> = Vec::new();
        for queue_id in queues_with_ready(self.tx)? {
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
        keys.truncate(usize::try_from(self.limit).unwrap_or(usize::MAX));
        Ok(keys.into_iter().map(|(_, _, seq)| seq.unsigned_abs()).collect())
    }

    /// The rest of the position's priority, then the lower ones. Starting at the position keeps the cost of a page
    /// independent of its depth.
    fn ready_in(&self, queue_id: i64) -> Result<Vec<ClaimKey>, StoreError> {
        let Some(after) = &self.after else {
            return self.ready_below(queue_id, i64::MAX);
        };
        let mut keys = self.ready_after(queue_id, after)?;
        if i64::try_from(keys.len()).unwrap_or(i64::MAX) < self.limit {
            keys.extend(self.ready_below(queue_id, after.priority.into())?);
        }
        Ok(keys)
    }

    fn ready_after(&self, queue_id: i64, after: &ListPosition) -> Result<Vec<ClaimKey>, StoreError> {
        // In the order of the primary key of `ready`.
        self.claim_keys(
            job_query!(
                "select r.priority, r.due_at, r.seq from ready r cross join jobs j on j.seq = r.seq
                 where r.queue_id = ?11 and r.priority = ?1 and (r.due_at, r.seq) > (?12, ?13) and",
                "order by r.due_at, r.seq limit ?2"
            ),
            &self.bindings(&after.priority, &[&queue_id, &after.due_at, &after.seq]),
        )
    }

    fn ready_below(&self, queue_id: i64, priority: i64) -> Result<Vec<ClaimKey>, StoreError> {
        // In the order of the primary key of `ready`.
        self.claim_keys(
            job_query!(
                "select r.priority, r.due_at, r.seq from ready r cross join jobs j on j.seq = r.seq
                 where r.queue_id = ?11 and r.priority < ?1 and",
                "order by r.priority desc, r.due_at, r.seq limit ?2"
            ),
            &self.bindings(&priority, &[&queue_id]),
        )
    }

    fn due_in_waiting(&self) -> Result<Vec<ClaimKey>, StoreError> {
        // By the primary key of `waiting`. The rows are not in claim order, so all are read.
        self.claim_keys(
            job_query!(
                "select j.priority, w.due_at, w.seq
                 from waiting w cross join jobs j on j.seq = w.seq join queues o on o.id = j.queue_id
                 where w.due_at <= ?10 and o.paused_at is null and",
                ""
            ),
            &self.bindings(&ANY, &[]),
        )
    }

    /// The parameters that every statement of [`job_query`] takes, with any state, followed by `more`.
    fn bindings<'a>(&'a self, from: &'a dyn ToSql, more: &[&'a dyn ToSql]) -> Vec<&'a dyn ToSql> {
        let mut all: Vec<&'a dyn ToSql> = vec![from, &self.limit, &ANY, &self.queue_id, &self.tag];
        let rest: [&'a dyn ToSql; 4] = [&self.batch_id, &self.changed_before, &self.command, &ANY];
        all.extend(rest);
        all.push(&self.now);
        all.extend(more);
        all
    }

    fn claim_keys(&self, sql: &str, params: &[&dyn ToSql]) -> Result<Vec<ClaimKey>, StoreError> {
        let mut select = self.tx.prepare(sql)?;
        let rows = select.query_map(params, |row| Ok((Reverse(row.get(0)?), row.get(1)?, row.get(2)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// Binds null: the condition matches every job.
const ANY: Option<i64> = None;
