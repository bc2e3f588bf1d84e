//! Listing jobs. First their numbers are found, along an index that is already in the wanted order; then the jobs.

use rusqlite::{OptionalExtension, ToSql, params};

use super::claim::queues_with_ready;
use super::queues;
use super::row::{self, read_job, select_whole_jobs};
use super::tx::Tx;
use crate::domain::job::Job;
use crate::domain::life::StateName;
use crate::domain::timestamp::Timestamp;
use crate::store::{DeadGroup, JobFilter, Page, Phase, StoreError};

pub(super) fn list(tx: &Tx<'_>, filter: &JobFilter, page: &Page) -> Result<Vec<Job>, StoreError> {
    let queue_id = match &filter.queue {
        None => None,
        Some(name) => match queues::known_id(tx, name)? {
            Some(id) => Some(id),
            None => return Ok(Vec::new()),
        },
    };
    let cut = Cut {
        tx,
        queue_id,
        tag: filter.tag.as_deref(),
        after: cursor(tx, page)?,
        limit: i64::try_from(page.limit).unwrap_or(i64::MAX),
    };
    let seqs = match filter.phase {
        None => cut.any_state()?,
        Some(Phase::State(state)) => cut.in_state(state)?,
        Some(Phase::Blocked) => cut.blocked()?,
        Some(Phase::Scheduled) => cut.scheduled()?,
        Some(Phase::Ready) => cut.ready()?,
    };
    let mut select = tx.prepare(select_whole_jobs!("where j.seq = ?1"))?;
    seqs.into_iter().map(|seq| select.query_row([seq], |row| Ok(read_job(tx, row)))?).collect()
}

/// A place in any of the orders.
struct Cursor {
    seq: i64,
    priority: i32,
    due_at: i64,
}

fn cursor(tx: &Tx<'_>, page: &Page) -> Result<Option<Cursor>, StoreError> {
    let Some(id) = &page.after else {
        return Ok(None);
    };
    let mut select = tx.prepare("select seq, priority, due_at from jobs where id = ?1")?;
    let found = select
        .query_row([id.as_str()], |row| {
            Ok(Cursor { seq: row.get(0)?, priority: row.get(1)?, due_at: row.get(2)? })
        })
        .optional()?;
    found.map(Some).ok_or_else(|| StoreError::NoSuchJob(id.clone()))
}

struct Cut<'t> {
    tx: &'t Tx<'t>,
    queue_id: Option<i64>,
    tag: Option<&'t str>,
    after: Option<Cursor>,
    limit: i64,
}

/// A ready job in the order of claiming: by priority from high to low, then due time, then the order of enqueuing.
type ClaimKey = (std::cmp::Reverse<i32>, i64, i64);

impl Cut<'_> {
    fn any_state(&self) -> Result<Vec<i64>, StoreError> {
        if self.tag.is_some() {
            return self.tagged(None);
        }
        let Some(queue_id) = self.queue_id else {
            return self.seqs(
                "select seq from jobs where seq < ?1 order by seq desc limit ?2",
                params![self.before(), self.limit],
            );
        };
        // The index is by queue and state, so each state gives its newest and the newest of all are taken.
        let mut newest = Vec::new();
        for state in StateName::ALL {
            newest.extend(self.in_queue_and_state(queue_id, state)?);
        }
        newest.sort_unstable_by_key(|seq| std::cmp::Reverse(*seq));
        newest.truncate(usize::try_from(self.limit).unwrap_or(usize::MAX));
        Ok(newest)
    }

    fn in_state(&self, state: StateName) -> Result<Vec<i64>, StoreError> {
        if self.tag.is_some() {
            return self.tagged(Some(state));
        }
        if let Some(queue_id) = self.queue_id {
            return self.in_queue_and_state(queue_id, state);
        }
        // By index jobs_by_state.
        self.seqs(
            "select seq from jobs where state = ?3 and seq < ?1 order by seq desc limit ?2",
            params![self.before(), self.limit, state.name()],
        )
    }

    fn in_queue_and_state(&self, queue_id: i64, state: StateName) -> Result<Vec<i64>, StoreError> {
        // By index jobs_by_queue.
        self.seqs(
            "select seq from jobs where queue_id = ?4 and state = ?3 and seq < ?1 order by seq desc limit ?2",
            params![self.before(), self.limit, state.name(), queue_id],
        )
    }

    fn tagged(&self, state: Option<StateName>) -> Result<Vec<i64>, StoreError> {
        // In the order of the primary key of job_tags.
        self.seqs(
            "select t.seq from job_tags t cross join jobs j on j.seq = t.seq
             where t.tag = ?5 and t.seq < ?1 and (?3 is null or j.state = ?3) and (?4 is null or j.queue_id = ?4)
             order by t.seq desc limit ?2",
            params![self.before(), self.limit, state.map(StateName::name), self.queue_id, self.tag],
        )
    }

    fn blocked(&self) -> Result<Vec<i64>, StoreError> {
        // By index jobs_blocked.
        self.seqs(
            "select j.seq from jobs j
             where j.blocked_by > 0 and j.seq < ?1 and (?3 is null or j.queue_id = ?3)
               and (?4 is null or exists (select 1 from job_tags t where t.tag = ?4 and t.seq = j.seq))
             order by j.seq desc limit ?2",
            params![self.before(), self.limit, self.queue_id, self.tag],
        )
    }

    fn scheduled(&self) -> Result<Vec<i64>, StoreError> {
        let now = self.tx.now.as_millis();
        let (due_at, seq) = self.after.as_ref().map_or((now, i64::MAX), |after| (after.due_at, after.seq));
        // In the order of the primary key of `waiting`.
        self.seqs(
            "select w.seq from waiting w cross join jobs j on j.seq = w.seq
             where (w.due_at, w.seq) > (?1, ?5) and w.due_at > ?6 and j.state = 'pending'
               and (?3 is null or j.queue_id = ?3)
               and (?4 is null or exists (select 1 from job_tags t where t.tag = ?4 and t.seq = j.seq))
             order by w.due_at, w.seq limit ?2",
            params![due_at, self.limit, self.queue_id, self.tag, seq, now],
        )
    }

    /// A merge of the open queues, and of what has become due and was not promoted yet.
    fn ready(&self) -> Result<Vec<i64>, StoreError> {
        let mut keys: Vec<ClaimKey> = Vec::new();
        for queue_id in queues_with_ready(self.tx)? {
            let wanted = self.queue_id.is_none_or(|id| id == queue_id);
            if wanted && queues::is_open(self.tx, queue_id)? {
                keys.extend(self.ready_in(queue_id)?);
            }
        }
        keys.extend(self.due_in_waiting()?);
        if let Some(after) = &self.after {
            let last = (std::cmp::Reverse(after.priority), after.due_at, after.seq);
            keys.retain(|key| *key > last);
        }
        keys.sort_unstable();
        keys.truncate(usize::try_from(self.limit).unwrap_or(usize::MAX));
        Ok(keys.into_iter().map(|(_, _, seq)| seq).collect())
    }

    fn ready_in(&self, queue_id: i64) -> Result<Vec<ClaimKey>, StoreError> {
        let (priority, due_at, seq) = self
            .after
            .as_ref()
            .map_or((i64::MAX, 0, 0), |after| (i64::from(after.priority), after.due_at, after.seq));
        // In the order of the primary key of `ready`.
        self.claim_keys(
            "select r.priority, r.due_at, r.seq from ready r
             where r.queue_id = ?1 and r.priority <= ?2 and (r.priority < ?2 or (r.due_at, r.seq) > (?3, ?4))
               and (?5 is null or exists (select 1 from job_tags t where t.tag = ?5 and t.seq = r.seq))
             order by r.priority desc, r.due_at, r.seq limit ?6",
            params![queue_id, priority, due_at, seq, self.tag, self.limit],
        )
    }

    fn due_in_waiting(&self) -> Result<Vec<ClaimKey>, StoreError> {
        self.claim_keys(
            "select j.priority, w.due_at, w.seq
             from waiting w cross join jobs j on j.seq = w.seq join queues q on q.id = j.queue_id
             where w.due_at <= ?1 and q.paused_at is null and (?2 is null or j.queue_id = ?2)
               and (?3 is null or exists (select 1 from job_tags t where t.tag = ?3 and t.seq = w.seq))",
            params![self.tx.now.as_millis(), self.queue_id, self.tag],
        )
    }

    /// Below which number to look, from new to old.
    fn before(&self) -> i64 {
        self.after.as_ref().map_or(i64::MAX, |after| after.seq)
    }

    fn seqs(&self, sql: &str, params: &[&dyn ToSql]) -> Result<Vec<i64>, StoreError> {
        let mut select = self.tx.prepare(sql)?;
        let rows = select.query_map(params, |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn claim_keys(&self, sql: &str, params: &[&dyn ToSql]) -> Result<Vec<ClaimKey>, StoreError> {
        let mut select = self.tx.prepare(sql)?;
        let rows =
            select.query_map(params, |row| Ok((std::cmp::Reverse(row.get(0)?), row.get(1)?, row.get(2)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

pub(super) fn dead_by_error(tx: &Tx<'_>) -> Result<Vec<DeadGroup>, StoreError> {
    // By index jobs_by_state. SQLite takes `id` from the row that has the maximum.
    let mut select = tx.prepare(
        "select reason, error, count(*), max(finished_at), id from jobs where state = 'dead'
         group by reason, error order by count(*) desc",
    )?;
    let rows = select.query_map([], |row| {
        Ok(row::name(row, 4).and_then(|example| {
            Ok(DeadGroup {
                reason: row.get(0)?,
                error: row.get(1)?,
                count: row.get(2)?,
                last_at: Timestamp::from_millis(row.get(3)?),
                example,
            })
        }))
    })?;
    rows.map(|row| row?).collect()
}
