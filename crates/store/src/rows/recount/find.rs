//! Finding derived data that disagrees with the jobs. Every table is read once.

use std::collections::{BTreeMap, HashMap};

use crate::rows::dialect::Wording;
use crate::rows::jobs::row;
use crate::rows::keys::JobSeq;
use crate::rows::tx::Tx;
use crate::rows::value::malformed;
use crate::rows::{Row, params, read, wording};
use crate::{Contradiction, DerivedData, Result};
use domain::job::life::StateName;
use domain::job::options::JobOptions;
use domain::job::unique::UniqueFor;

pub(crate) fn find(tx: &Tx<'_>) -> Result<Vec<Contradiction>> {
    // Repairs are made in this order: a wrong link is deleted before links are counted.
    Ok([run(tx, &CHECKS)?, waits(tx)?, run(tx, &LATER_CHECKS)?, missing_keys(tx)?].concat())
}

/// A statement that finds contradictions, each with its `message`, and how to read what disagrees.
type Check = (Wording, fn(&Row<'_>) -> Result<DerivedData>);

fn run(tx: &Tx<'_>, checks: &[Check]) -> Result<Vec<Contradiction>> {
    let mut found = Vec::new();
    for (sql, read) in checks {
        found.extend(tx.all(sql.of(tx), params![], |row| {
            Ok(Contradiction { derived: read(row)?, message: row.get("message")? })
        })?);
    }
    Ok(found)
}

const CHECKS: [Check; 8] = [
    // The jobs by index jobs_by_queue alone.
    (
        wording!(
        "select queue_id, 'a queue has ' || sum(jobs) || ' ' || state || ' jobs, but ' || sum(counted)
                          || ' are counted' as message
         from (select queue_id, state, count(*) as jobs, 0 as counted from jobs group by queue_id, state
               union all select queue_id, state, 0, count from counters) c
         group by queue_id, state having sum(jobs) <> sum(counted)"),
        |row| Ok(read!(row, DerivedData::Counter { queue_id })),
    ),
    (
        wording!(
        "select batch_id, 'a batch has ' || sum(jobs) || ' ' || state || ' jobs, but ' || sum(counted)
                          || ' are counted' as message
         from (select batch_id, state, count(*) as jobs, 0 as counted from jobs where batch_id is not null
               group by batch_id, state
               union all select batch_id, state, 0, count from batch_counters) c
         group by batch_id, state having sum(jobs) <> sum(counted)"),
        |row| Ok(read!(row, DerivedData::BatchCounter { batch_id })),
    ),
    // A batch is finished when all of its jobs are, and has at least one job.
    (
        wording!(
        "select b.id as batch_id, 'the finish time of batch `' || b.name || '` disagrees with its jobs' as message
         from batches b left join
              (select batch_id, count(*) filter (where finished_at is null) as open
               from jobs where batch_id is not null group by batch_id) j on j.batch_id = b.id
         where j.open is null or (j.open = 0) <> (b.finished_at is not null)"),
        |row| Ok(read!(row, DerivedData::BatchCounter { batch_id })),
    ),
    // A runnable job is in exactly one of `ready` and `waiting`, any other job in neither.
    (
        wording!(
        "select seq, 'job `' || id || case places
                    when 0 then '` is runnable, but is not in the ready or waiting table'
                    when 1 then '` is in the ready or waiting table, but is not runnable'
                    else '` is in both the ready and the waiting table' end as message
         from (select j.seq, j.id,
                      case when r.seq is null then 0 else 1 end + case when w.seq is null then 0 else 1 end as places,
                      case when j.state = 'failed' or (j.state = 'pending' and j.blocked_by = 0) then 1 else 0 end
                          as expected
               from jobs j
                    left join ready r on r.queue_id = j.queue_id and ",
        ("r.priority = j.priority" | "r.rank = -j.priority"),
        "
                                         and r.due_at = j.due_at and r.seq = j.seq
                    left join waiting w on w.due_at = j.due_at and w.seq = j.seq) p
         where places <> expected"),
        |row| Ok(read!(row, DerivedData::IndexRow { seq })),
    ),
    // Rows of `ready` and `waiting` without a job, or with a different rank.
    (
        wording!(
        "select r.queue_id, ",
        ("r.priority" | "-r.rank as priority"),
        ", r.due_at, r.seq,
                'a row of the ready or waiting table belongs to no job' as message
         from ready r left join jobs j on j.seq = r.seq and j.queue_id = r.queue_id and ",
        ("j.priority = r.priority" | "j.priority = -r.rank"),
        "
                                          and j.due_at = r.due_at
         where j.seq is null"),
        |row| Ok(read!(row, DerivedData::Ready { queue_id, priority, due_at, seq })),
    ),
    (
        wording!(
        "select w.due_at, w.seq, 'a row of the ready or waiting table belongs to no job' as message
         from waiting w left join jobs j on j.seq = w.seq and j.due_at = w.due_at
         where j.seq is null"),
        |row| Ok(read!(row, DerivedData::Waiting { due_at, seq })),
    ),
    (
        wording!(
        "select d.parent_seq, d.child_seq, 'a dependency links a job that does not exist' as message
         from dependencies d left join jobs p on p.seq = d.parent_seq left join jobs c on c.seq = d.child_seq
         where p.seq is null or c.seq is null"),
        |row| Ok(read!(row, DerivedData::Link { parent_seq, child_seq })),
    ),
    (
        wording!(
        "select d.parent_seq, d.child_seq,
                'job `' || c.id || '` is linked to job `' || p.id || '`, but does not depend on it' as message
         from dependencies d cross join jobs p cross join jobs c
         where p.seq = d.parent_seq and c.seq = d.child_seq and (d.child_seq, p.id) not in
               (select j.seq, t.value from jobs j cross join ",
        ("json_each(j.depends_on) t" | "json_array_elements_text(cast(j.depends_on as json)) t(value)"),
        "
                where j.depends_on is not null)"),
        |row| Ok(read!(row, DerivedData::Link { parent_seq, child_seq })),
    ),
];

/// The checks that follow that of the links of waiting jobs.
const LATER_CHECKS: [Check; 6] = [
    // By indexes jobs_by_state and jobs_by_cause. These repairs come before the next check.
    (
        wording!(
            "select seq, 'job `' || id || '` is dead, but has no cause' as message
         from jobs where state = 'dead' and cause_id is null
         union all
         select seq, 'job `' || id || '` has a cause, but is not dead'
         from jobs where cause_id is not null and state <> 'dead'"
        ),
        |row| Ok(read!(row, DerivedData::JobCause { seq })),
    ),
    // The jobs by index jobs_by_cause.
    (
        wording!(
            "select id, queue_id, sum(jobs) || ' dead jobs of a queue have a cause, but ' || sum(counted)
                              || ' are counted' as message
         from (select cause_id as id, queue_id, count(*) as jobs, 0 as counted from jobs
               where cause_id is not null group by cause_id, queue_id
               union all select id, queue_id, 0, count from causes) c
         group by id, queue_id having sum(jobs) <> sum(counted)"
        ),
        |row| Ok(read!(row, DerivedData::Cause { id, queue_id })),
    ),
    (
        wording!(
            "select distinct p.seq as parent_seq,
                'job `' || p.id || '` is finished, but its dependents would never be unblocked' as message
         from dependencies d cross join jobs p
              left join pending_unblocks l on l.parent_seq = d.parent_seq
         where p.seq = d.parent_seq and d.blocks = 1 and p.finished_at is not null
               and (l.parent_seq is null or l.after_seq >= d.child_seq)"
        ),
        |row| Ok(read!(row, DerivedData::MissingUnblock { parent_seq })),
    ),
    (
        wording!(
            "select l.parent_seq, 'an unblock is pending for a job that is missing or unfinished' as message
         from pending_unblocks l left join jobs p on p.seq = l.parent_seq and p.finished_at is not null
         where p.seq is null"
        ),
        |row| Ok(read!(row, DerivedData::StrayUnblock { parent_seq })),
    ),
    (
        wording!(
            "select distinct t.value as tag, j.seq, 'a tag of a job is missing in the tag index' as message
         from jobs j cross join ",
            ("json_each(j.tags) t" | "json_array_elements_text(cast(j.tags as json)) t(value)"),
            " left join job_tags k on k.tag = t.value and k.seq = j.seq
         where j.tags is not null and k.seq is null
         union all
         select k.tag, k.seq, 'the tag index has a tag that its job does not have'
         from job_tags k left join jobs j on j.seq = k.seq
         where j.seq is null or not exists (select 1 from ",
            ("json_each(coalesce(j.tags, '[]')) t"
                | "json_array_elements_text(cast(coalesce(j.tags, '[]') as json)) t(value)"),
            " where t.value = k.tag)"
        ),
        |row| Ok(read!(row, DerivedData::Tag { tag, seq })),
    ),
    (
        wording!(
            "select k.key, 'a unique key is held by a job without this key' as message
         from unique_keys k left join jobs j on j.seq = k.seq and j.unique_key = k.key
         where j.seq is null"
        ),
        |row| Ok(read!(row, DerivedData::StrayKey { key })),
    ),
];

/// A job is blocked by as many jobs as it waits for.
fn waits(tx: &Tx<'_>) -> Result<Vec<Contradiction>> {
    // There is no index by child: all rows are read. SQLite would sort them, which takes longer than this map.
    let children: Vec<JobSeq> =
        tx.values("select child_seq from dependencies where blocks = 1", params![])?;
    // The stored number and that of the links, by job.
    let mut waits: HashMap<JobSeq, (i64, i64)> = HashMap::new();
    for child in children {
        waits.entry(child).or_default().1 += 1;
    }
    // By index jobs_blocked.
    tx.all("select seq, blocked_by from jobs where blocked_by > 0", params![], |row| {
        waits.entry(row.get("seq")?).or_default().0 = row.get("blocked_by")?;
        Ok(())
    })?;
    waits.retain(|_, (blocked_by, links)| blocked_by != links);
    let wrong: BTreeMap<JobSeq, (i64, i64)> = waits.into_iter().collect();
    let mut found = Vec::new();
    for (seq, (blocked_by, links)) in wrong {
        if let Some(id) = row::id(tx, seq)? {
            let message = format!(
                "job `{id}` is blocked by {blocked_by}, but has {links} links to jobs that it waits for"
            );
            found.push(Contradiction { derived: DerivedData::Blocked { seq }, message });
        }
    }
    Ok(found)
}

/// Jobs that should hold their unique key, but do not.
fn missing_keys(tx: &Tx<'_>) -> Result<Vec<Contradiction>> {
    let without_key = tx.all(
        "select j.seq, j.id, j.state, j.attempts, j.options, k.seq as holder
         from jobs j left join unique_keys k on k.key = j.unique_key
         where j.unique_key is not null and j.finished_at is null and (k.seq is null or k.seq <> j.seq)",
        params![],
        |row| Ok(should_hold_key(row)?.then_some(read_missing_key(row)?)),
    )?;
    Ok(without_key.into_iter().flatten().collect())
}

fn should_hold_key(row: &Row<'_>) -> Result<bool> {
    let options = JobOptions::from_json(row.get("options")?).map_err(|error| malformed("job", error))?;
    Ok(match options.unique_for {
        UniqueFor::Finished => true,
        UniqueFor::Started => {
            row.get::<u32>("attempts")? == 0 && row.get::<StateName>("state")? == StateName::Pending
        }
        // Only the key itself records when it expires.
        UniqueFor::Span(_) => false,
    })
}

fn read_missing_key(row: &Row<'_>) -> Result<Contradiction> {
    let (id, seq): (&str, _) = (row.get("id")?, row.get("seq")?);
    Ok(match row.get::<Option<i64>>("holder")? {
        None => Contradiction {
            derived: DerivedData::MissingKey { seq },
            message: format!("job `{id}` does not hold its unique key"),
        },
        Some(_) => Contradiction {
            derived: DerivedData::SharedKey { seq },
            message: format!(
                "job `{id}` and another that is not finished share a unique key: cancel one of them"
            ),
        },
    })
}
