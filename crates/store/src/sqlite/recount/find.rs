//! Finding derived data that disagrees with the jobs. Every table is read once.

use std::collections::{BTreeMap, HashMap, HashSet};

use rusqlite::Row;

use crate::options::JobOptions;
use crate::sqlite::session::row;
use crate::sqlite::session::tx::Tx;
use crate::{Contradiction, DerivedData, StoreError};
use domain::job::life::StateName;
use domain::job::unique::UniqueFor;

pub(in crate::sqlite) fn find(tx: &Tx<'_>) -> Result<Vec<Contradiction>, StoreError> {
    let mut found = Vec::new();
    for check in
        [counters, batch_counters, batch_ends, places, orphaned_places, links, waits, unblocks, tags, keys]
    {
        check(tx, &mut found)?;
    }
    Ok(found)
}

type Findings = Vec<Contradiction>;

fn each<T>(
    tx: &Tx<'_>,
    sql: &str,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, StoreError> {
    let mut select = tx.prepare(sql)?;
    let rows = select.query_map([], |row| read(row))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

type Counts = BTreeMap<(i64, String), i64>;

fn counts(tx: &Tx<'_>, sql: &str) -> Result<Counts, StoreError> {
    Ok(each(tx, sql, |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?.into_iter().collect())
}

/// The groups with different numbers of actual and counted jobs, each with both numbers.
fn differences(jobs: &Counts, counted: &Counts) -> Vec<(i64, String, i64, i64)> {
    let keys: HashSet<&(i64, String)> = jobs.keys().chain(counted.keys()).collect();
    let number = |counts: &Counts, key| counts.get(key).copied().unwrap_or(0);
    let both = keys.into_iter().map(|key| (key.0, key.1.clone(), number(jobs, key), number(counted, key)));
    let mut different: Vec<_> = both.filter(|(_, _, jobs, counted)| jobs != counted).collect();
    different.sort();
    different
}

fn counters(tx: &Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    // By index jobs_by_queue alone.
    let jobs = counts(tx, "select queue_id, state, count(*) from jobs group by queue_id, state")?;
    let counted = counts(tx, "select queue_id, state, count from counters")?;
    for (queue_id, state, jobs, counted) in differences(&jobs, &counted) {
        let message = format!("a queue has {jobs} {state} jobs, but {counted} are counted");
        found.push(Contradiction { derived: DerivedData::Counter { queue_id }, message });
    }
    Ok(())
}

fn batch_counters(tx: &Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let jobs = counts(
        tx,
        "select batch_id, state, count(*) from jobs where batch_id is not null group by batch_id, state",
    )?;
    let counted = counts(tx, "select batch_id, state, count from batch_counters")?;
    for (batch_id, state, jobs, counted) in differences(&jobs, &counted) {
        let message = format!("a batch has {jobs} {state} jobs, but {counted} are counted");
        found.push(Contradiction { derived: DerivedData::BatchCounter { batch_id }, message });
    }
    Ok(())
}

/// A batch is finished when all of its jobs are, and has at least one job.
fn batch_ends(tx: &Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let batches = each(
        tx,
        "select b.id, b.name from batches b left join
                (select batch_id, sum(finished_at is null) as open from jobs where batch_id is not null
                 group by batch_id) j on j.batch_id = b.id
         where j.open is null or (j.open = 0) <> (b.finished_at is not null)",
        |row| Ok((row.get(0)?, row.get::<_, String>(1)?)),
    )?;
    for (batch_id, name) in batches {
        let message = format!("the finish time of batch `{name}` disagrees with its jobs");
        found.push(Contradiction { derived: DerivedData::BatchCounter { batch_id }, message });
    }
    Ok(())
}

/// A runnable job is in exactly one of `ready` and `waiting`, any other job in neither.
fn places(tx: &Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let jobs = each(
        tx,
        "select j.seq, j.id, (r.seq is not null) + (w.seq is not null)
         from jobs j
              left join ready r on r.queue_id = j.queue_id and r.priority = j.priority and r.due_at = j.due_at
                                   and r.seq = j.seq
              left join waiting w on w.due_at = j.due_at and w.seq = j.seq
         where (r.seq is not null) + (w.seq is not null)
               <> (j.state = 'failed' or (j.state = 'pending' and j.blocked_by = 0))",
        |row| Ok((row.get(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?)),
    )?;
    for (seq, id, lines) in jobs {
        let message = match lines {
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
    let ready = each(
        tx,
        "select r.queue_id, r.priority, r.due_at, r.seq
         from ready r left join jobs j on j.seq = r.seq and j.queue_id = r.queue_id and j.priority = r.priority
                                          and j.due_at = r.due_at
         where j.seq is null",
        |row| {
            Ok(DerivedData::Ready {
                queue_id: row.get(0)?,
                priority: row.get(1)?,
                due_at: row.get(2)?,
                seq: row.get(3)?,
            })
        },
    )?;
    let waiting = each(
        tx,
        "select w.due_at, w.seq from waiting w left join jobs j on j.seq = w.seq and j.due_at = w.due_at
         where j.seq is null",
        |row| Ok(DerivedData::Waiting { due_at: row.get(0)?, seq: row.get(1)? }),
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
    let children =
        each(tx, "select child_seq from dependencies where blocks = 1", |row| row.get::<_, i64>(0))?;
    let mut waited_for: HashMap<i64, i64> = HashMap::new();
    for child in children {
        *waited_for.entry(child).or_default() += 1;
    }
    // By index jobs_blocked.
    let blocked = each(tx, "select seq, blocked_by from jobs where blocked_by > 0", |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
    })?;
    let mut wrong: Vec<(i64, i64, i64)> = Vec::new();
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
    let parents = each(
        tx,
        "select distinct p.seq, p.id
         from dependencies d cross join jobs p on p.seq = d.parent_seq
              left join pending_unblocks l on l.parent_seq = d.parent_seq
         where d.blocks = 1 and p.finished_at is not null
               and (l.parent_seq is null or l.after_seq >= d.child_seq)",
        |row| Ok((row.get(0)?, row.get::<_, String>(1)?)),
    )?;
    for (parent_seq, id) in parents {
        let message = format!("job `{id}` is finished, but its dependents would never be unblocked");
        found.push(Contradiction { derived: DerivedData::MissingUnblock { parent_seq }, message });
    }
    let notes = each(
        tx,
        "select l.parent_seq from pending_unblocks l left join jobs p on p.seq = l.parent_seq and p.finished_at is not null
         where p.seq is null",
        |row| row.get(0),
    )?;
    for parent_seq in notes {
        let message = "an unblock is pending for a job that is missing or unfinished".to_owned();
        found.push(Contradiction { derived: DerivedData::StrayUnblock { parent_seq }, message });
    }
    Ok(())
}

/// Links to removed jobs, and between jobs that do not depend on each other.
fn links(tx: &Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let links = each(
        tx,
        "select d.parent_seq, d.child_seq from dependencies d
                left join jobs p on p.seq = d.parent_seq left join jobs c on c.seq = d.child_seq
         where p.seq is null or c.seq is null",
        |row| Ok(DerivedData::Link { parent_seq: row.get(0)?, child_seq: row.get(1)? }),
    )?;
    for derived in links {
        let message = "a dependency links a job that does not exist".to_owned();
        found.push(Contradiction { derived, message });
    }
    let unrelated = each(
        tx,
        "select d.parent_seq, d.child_seq, p.id, c.id from dependencies d
                cross join jobs p on p.seq = d.parent_seq cross join jobs c on c.seq = d.child_seq
         where (d.child_seq, p.id) not in
               (select j.seq, t.value from jobs j cross join json_each(j.depends_on) t
                where j.depends_on is not null)",
        |row| {
            let derived = DerivedData::Link { parent_seq: row.get(0)?, child_seq: row.get(1)? };
            Ok((derived, row.get::<_, String>(2)?, row.get::<_, String>(3)?))
        },
    )?;
    for (derived, parent, child) in unrelated {
        let message = format!("job `{child}` is linked to job `{parent}`, but does not depend on it");
        found.push(Contradiction { derived, message });
    }
    Ok(())
}

fn tags(tx: &Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let read = |row: &Row<'_>| Ok(DerivedData::Tag { tag: row.get(0)?, seq: row.get(1)? });
    let missing = each(
        tx,
        "select distinct t.value, j.seq from jobs j cross join json_each(j.tags) t
                left join job_tags k on k.tag = t.value and k.seq = j.seq
         where j.tags is not null and k.seq is null",
        read,
    )?;
    let wrong = each(
        tx,
        "select k.tag, k.seq from job_tags k left join jobs j on j.seq = k.seq
         where j.seq is null or not exists (select 1 from json_each(coalesce(j.tags, '[]')) t where t.value = k.tag)",
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
    let unrelated = each(
        tx,
        "select k.key from unique_keys k left join jobs j on j.seq = k.seq and j.unique_key = k.key
         where j.seq is null",
        |row| row.get::<_, String>(0),
    )?;
    for key in unrelated {
        let message = "a unique key is held by a job without this key".to_owned();
        found.push(Contradiction { derived: DerivedData::StrayKey { key }, message });
    }
    let holders = each(
        tx,
        "select j.seq, j.id, j.state, j.attempts, j.options, k.seq
         from jobs j left join unique_keys k on k.key = j.unique_key
         where j.unique_key is not null and j.finished_at is null and (k.seq is null or k.seq <> j.seq)",
        |row| {
            let state: String = row.get(2)?;
            let options: Option<String> = row.get(4)?;
            let of: (i64, String, u32) = (row.get(0)?, row.get(1)?, row.get(3)?);
            Ok((of, state, options, row.get::<_, Option<i64>>(5)?))
        },
    )?;
    for ((seq, id, attempts), state, options, holder) in holders {
        let options =
            JobOptions::from_json(options.as_deref()).map_err(|error| row::malformed("job", error))?;
        let is_held = match options.unique_for {
            UniqueFor::Finished => true,
            UniqueFor::Started => attempts == 0 && state == StateName::Pending.name(),
            // Only the key itself records when it expires.
            UniqueFor::Span(_) => false,
        };
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
