//! Finding derived data that disagrees with the jobs. Every table is read once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::rows::jobs::row;
use crate::rows::keys::JobSeq;
use crate::rows::tx::Tx;
use crate::rows::value::FromValue;
use crate::rows::value::malformed;
use crate::rows::{Row, params, read};
use crate::{Contradiction, DerivedData, StoreError};
use domain::job::life::StateName;
use domain::job::options::JobOptions;
use domain::job::unique::UniqueFor;

pub(crate) fn find(tx: &Tx<'_>) -> Result<Vec<Contradiction>, StoreError> {
    let mut found = Vec::new();
    for check in
        [counters, batch_counters, batch_ends, places, orphaned_places, links, waits, unblocks, tags, keys]
    {
        check(tx, &mut found)?;
    }
    Ok(found)
}

type Findings = Vec<Contradiction>;

/// The number of jobs by key and state.
type Counts<K> = BTreeMap<(K, String), i64>;

fn counts<K: Ord + for<'r> FromValue<'r>>(tx: &Tx<'_>, sql: &str) -> Result<Counts<K>, StoreError> {
    let read = |row: &Row<'_>| Ok(((row.get("key")?, row.get("state")?), row.get("count")?));
    Ok(tx.all(sql, params![], read)?.into_iter().collect())
}

/// The groups with different numbers of actual and counted jobs, each with both numbers.
fn differences<K: Copy + Ord>(jobs: &Counts<K>, counted: &Counts<K>) -> Vec<(K, String, i64, i64)> {
    let keys: BTreeSet<&(K, String)> = jobs.keys().chain(counted.keys()).collect();
    let number = |counts: &Counts<K>, key| counts.get(key).copied().unwrap_or(0);
    let both = keys.into_iter().map(|key| (key.0, key.1.clone(), number(jobs, key), number(counted, key)));
    both.filter(|(_, _, jobs, counted)| jobs != counted).collect()
}

fn counters(tx: &Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    // By index jobs_by_queue alone.
    let jobs =
        counts(tx, "select queue_id as key, state, count(*) as count from jobs group by queue_id, state")?;
    let counted = counts(tx, "select queue_id as key, state, count from counters")?;
    for (queue_id, state, jobs, counted) in differences(&jobs, &counted) {
        let message = format!("a queue has {jobs} {state} jobs, but {counted} are counted");
        found.push(Contradiction { derived: DerivedData::Counter { queue_id }, message });
    }
    Ok(())
}

fn batch_counters(tx: &Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let jobs = counts(
        tx,
        "select batch_id as key, state, count(*) as count from jobs where batch_id is not null
         group by batch_id, state",
    )?;
    let counted = counts(tx, "select batch_id as key, state, count from batch_counters")?;
    for (batch_id, state, jobs, counted) in differences(&jobs, &counted) {
        let message = format!("a batch has {jobs} {state} jobs, but {counted} are counted");
        found.push(Contradiction { derived: DerivedData::BatchCounter { batch_id }, message });
    }
    Ok(())
}

/// A batch is finished when all of its jobs are, and has at least one job.
fn batch_ends(tx: &Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let batches = tx.all(
        "select b.id, b.name from batches b left join
                (select batch_id, count(*) filter (where finished_at is null) as open
                 from jobs where batch_id is not null group by batch_id) j on j.batch_id = b.id
         where j.open is null or (j.open = 0) <> (b.finished_at is not null)",
        params![],
        |row| Ok((row.get("id")?, row.get::<String>("name")?)),
    )?;
    for (batch_id, name) in batches {
        let message = format!("the finish time of batch `{name}` disagrees with its jobs");
        found.push(Contradiction { derived: DerivedData::BatchCounter { batch_id }, message });
    }
    Ok(())
}

/// A runnable job is in exactly one of `ready` and `waiting`, any other job in neither.
fn places(tx: &Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let jobs = tx.all(
        "select j.seq, j.id,
                case when r.seq is null then 0 else 1 end + case when w.seq is null then 0 else 1 end as places
         from jobs j
              left join ready r on r.queue_id = j.queue_id and r.priority = j.priority and r.due_at = j.due_at
                                   and r.seq = j.seq
              left join waiting w on w.due_at = j.due_at and w.seq = j.seq
         where case when r.seq is null then 0 else 1 end + case when w.seq is null then 0 else 1 end
               <> case when j.state = 'failed' or (j.state = 'pending' and j.blocked_by = 0) then 1 else 0 end",
        params![],
        |row| Ok((row.get("seq")?, row.get::<String>("id")?, row.get::<i64>("places")?)),
    )?;
    for (seq, id, places) in jobs {
        let message = match places {
            0 => format!("job `{id}` is runnable, but is not in the ready or waiting table"),
            1 => format!("job `{id}` is in the ready or waiting table, but is not runnable"),
            _ => format!("job `{id}` is in both the ready and the waiting table"),
        };
        found.push(Contradiction { derived: DerivedData::IndexRow { seq }, message });
    }
    Ok(())
}

/// Rows of `ready` and `waiting` without a job, or with a different rank.
fn orphaned_places(tx: &Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let ready = tx.all(
        "select r.queue_id, r.priority, r.due_at, r.seq
         from ready r left join jobs j on j.seq = r.seq and j.queue_id = r.queue_id and j.priority = r.priority
                                          and j.due_at = r.due_at
         where j.seq is null",
        params![],
        |row| Ok(read!(row, DerivedData::Ready { queue_id, priority, due_at, seq })),
    )?;
    let waiting = tx.all(
        "select w.due_at, w.seq from waiting w left join jobs j on j.seq = w.seq and j.due_at = w.due_at
         where j.seq is null",
        params![],
        |row| Ok(read!(row, DerivedData::Waiting { due_at, seq })),
    )?;
    for derived in ready.into_iter().chain(waiting) {
        let message = "a row of the ready or waiting table belongs to no job".to_owned();
        found.push(Contradiction { derived, message });
    }
    Ok(())
}

/// A job is blocked by as many jobs as it waits for.
fn waits(tx: &Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    // There is no index by child: all rows are read.
    let children: Vec<JobSeq> =
        tx.values("select child_seq from dependencies where blocks = 1", params![])?;
    let mut waited_for: HashMap<JobSeq, i64> = HashMap::new();
    for child in children {
        *waited_for.entry(child).or_default() += 1;
    }
    // By index jobs_blocked.
    let blocked: Vec<(JobSeq, i64)> =
        tx.all("select seq, blocked_by from jobs where blocked_by > 0", params![], |row| {
            Ok((row.get("seq")?, row.get("blocked_by")?))
        })?;
    let mut wrong: Vec<(JobSeq, i64, i64)> = Vec::new();
    for (seq, blocked_by) in blocked {
        let links = waited_for.remove(&seq).unwrap_or(0);
        if links != blocked_by {
            wrong.push((seq, blocked_by, links));
        }
    }
    wrong.extend(waited_for.into_iter().map(|(seq, links)| (seq, 0, links)));
    wrong.sort_unstable();
    for (seq, blocked_by, links) in wrong {
        let Some(id) = row::id(tx, seq)? else {
            continue;
        };
        let message =
            format!("job `{id}` is blocked by {blocked_by}, but has {links} links to jobs that it waits for");
        found.push(Contradiction { derived: DerivedData::Blocked { seq }, message });
    }
    Ok(())
}

/// Finished jobs with waiting dependents, but without a pending unblock.
fn unblocks(tx: &Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let parents = tx.all(
        "select distinct p.seq, p.id
         from dependencies d cross join jobs p on p.seq = d.parent_seq
              left join pending_unblocks l on l.parent_seq = d.parent_seq
         where d.blocks = 1 and p.finished_at is not null
               and (l.parent_seq is null or l.after_seq >= d.child_seq)",
        params![],
        |row| Ok((row.get("seq")?, row.get::<String>("id")?)),
    )?;
    for (parent_seq, id) in parents {
        let message = format!("job `{id}` is finished, but its dependents would never be unblocked");
        found.push(Contradiction { derived: DerivedData::MissingUnblock { parent_seq }, message });
    }
    let notes = tx.values(
        "select l.parent_seq from pending_unblocks l
                left join jobs p on p.seq = l.parent_seq and p.finished_at is not null
         where p.seq is null",
        params![],
    )?;
    for parent_seq in notes {
        let message = "an unblock is pending for a job that is missing or unfinished".to_owned();
        found.push(Contradiction { derived: DerivedData::StrayUnblock { parent_seq }, message });
    }
    Ok(())
}

/// Links to removed jobs, and between jobs that do not depend on each other.
fn links(tx: &Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let links = tx.all(
        "select d.parent_seq, d.child_seq from dependencies d
                left join jobs p on p.seq = d.parent_seq left join jobs c on c.seq = d.child_seq
         where p.seq is null or c.seq is null",
        params![],
        read_link,
    )?;
    for derived in links {
        let message = "a dependency links a job that does not exist".to_owned();
        found.push(Contradiction { derived, message });
    }
    let unrelated = tx.all(
        "select d.parent_seq, d.child_seq, p.id as parent, c.id as child from dependencies d
                cross join jobs p on p.seq = d.parent_seq cross join jobs c on c.seq = d.child_seq
         where (d.child_seq, p.id) not in
               (select j.seq, t.value from jobs j cross join json_each(j.depends_on) t
                where j.depends_on is not null)",
        params![],
        |row| Ok((read_link(row)?, row.get::<String>("parent")?, row.get::<String>("child")?)),
    )?;
    for (derived, parent, child) in unrelated {
        let message = format!("job `{child}` is linked to job `{parent}`, but does not depend on it");
        found.push(Contradiction { derived, message });
    }
    Ok(())
}

fn read_link(row: &Row<'_>) -> Result<DerivedData, StoreError> {
    Ok(read!(row, DerivedData::Link { parent_seq, child_seq }))
}

fn tags(tx: &Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let read = |row: &Row<'_>| Ok(read!(row, DerivedData::Tag { tag, seq }));
    let missing = tx.all(
        "select distinct t.value as tag, j.seq from jobs j cross join json_each(j.tags) t
                left join job_tags k on k.tag = t.value and k.seq = j.seq
         where j.tags is not null and k.seq is null",
        params![],
        read,
    )?;
    let wrong = tx.all(
        "select k.tag, k.seq from job_tags k left join jobs j on j.seq = k.seq
         where j.seq is null or not exists (select 1 from json_each(coalesce(j.tags, '[]')) t where t.value = k.tag)",
        params![],
        read,
    )?;
    let owned = |message: &str| message.to_owned();
    found.extend(missing.into_iter().map(|derived| Contradiction {
        derived,
        message: owned("a tag of a job is missing in the tag index"),
    }));
    found.extend(wrong.into_iter().map(|derived| Contradiction {
        derived,
        message: owned("the tag index has a tag that its job does not have"),
    }));
    Ok(())
}

fn keys(tx: &Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let unrelated: Vec<String> = tx.values(
        "select k.key from unique_keys k left join jobs j on j.seq = k.seq and j.unique_key = k.key
         where j.seq is null",
        params![],
    )?;
    for key in unrelated {
        let message = "a unique key is held by a job without this key".to_owned();
        found.push(Contradiction { derived: DerivedData::StrayKey { key }, message });
    }
    let holders = tx.all(
        "select j.seq, j.id, j.state, j.attempts, j.options, k.seq as holder
         from jobs j left join unique_keys k on k.key = j.unique_key
         where j.unique_key is not null and j.finished_at is null and (k.seq is null or k.seq <> j.seq)",
        params![],
        |row| {
            let options = JobOptions::from_json(row.get("options")?);
            let is_held = match options.map_err(|error| malformed("job", error))?.unique_for {
                UniqueFor::Finished => true,
                UniqueFor::Started => {
                    row.get::<u32>("attempts")? == 0 && row.get::<StateName>("state")? == StateName::Pending
                }
                // Only the key itself records when it expires.
                UniqueFor::Span(_) => false,
            };
            let holder: Option<i64> = row.get("holder")?;
            Ok((row.get("seq")?, row.get::<String>("id")?, is_held, holder))
        },
    )?;
    for (seq, id, is_held, holder) in holders {
        if is_held && holder.is_none() {
            let message = format!("job `{id}` does not hold its unique key");
            found.push(Contradiction { derived: DerivedData::MissingKey { seq }, message });
        } else if is_held {
            let message =
                format!("job `{id}` and another that is not finished share a unique key: cancel one of them");
            found.push(Contradiction { derived: DerivedData::SharedKey { seq }, message });
        }
    }
    Ok(())
}
