//! Who waits for whom, and what happens to those who wait when a job is finished.

use rusqlite::{OptionalExtension, params};

use super::{apply, is_failure};
use crate::StoreError;
use crate::sqlite::session::row;
use crate::sqlite::session::row::{JobRow, strings};
use crate::sqlite::session::tx::{Dependent, Finished, Tx};
use crate::sqlite::tables::settings;
use domain::job::OnDependencyFailure;
use domain::job::life::{Event, StateName, Transition, transition};
use domain::values::name::JobId;
use sys::guards;
use sys::guards::Guard;

/// How many links one transaction forgets at most. They lie side by side, so that each costs far less than a job.
const LINKS_PER_TRANSACTION: i64 = 20_000;

/// How things stand with a job that another wants to depend on.
pub(crate) enum Parent {
    Unknown,
    Unfinished { seq: i64 },
    Finished { seq: i64, failed: bool },
}

pub(crate) fn look_up(tx: &Tx<'_>, id: &JobId) -> Result<Parent, StoreError> {
    let mut select = tx.prepare("select seq, state from jobs where id = ?1")?;
    let found = select
        .query_row([id.as_str()], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))
        .optional()?;
    let Some((seq, state)) = found else {
        return Ok(Parent::Unknown);
    };
    let state = StateName::from_name(&state).ok_or_else(|| row::malformed("state", &state))?;
    Ok(if state.is_finished() {
        Parent::Finished { seq, failed: is_failure(state) }
    } else {
        Parent::Unfinished { seq }
    })
}

/// Notes who depends on whom, and whether it waits.
pub(crate) fn add(tx: &Tx<'_>, parent_seq: i64, child_seq: i64, blocks: bool) -> Result<(), StoreError> {
    // The row of a job that somebody wants run again may be there.
    tx.prepare(
        "insert into dependencies (parent_seq, child_seq, blocks) values (?1, ?2, ?3)
         on conflict (parent_seq, child_seq) do update set blocks = ?3",
    )?
    .execute(params![parent_seq, child_seq, blocks])?;
    Ok(())
}

/// How many jobs wait for this one, counted up to a limit.
pub(crate) fn count_waiting(tx: &Tx<'_>, parent_seq: i64, limit: u64) -> Result<u64, StoreError> {
    Ok(waiting_after(tx, parent_seq, 0, usize::try_from(limit).unwrap_or(usize::MAX))?.len() as u64)
}

/// Whether any job waits for this one.
pub(crate) fn is_waited_for(tx: &Tx<'_>, parent_seq: i64) -> Result<bool, StoreError> {
    Ok(count_waiting(tx, parent_seq, 1)? > 0)
}

/// A job that is finished waits for nobody.
pub(crate) fn stop_waiting(tx: &Tx<'_>, child_seq: i64) -> Result<(), StoreError> {
    let parents = known_parents(tx, child_seq)?;
    // One of them was looked at already, if that is why it waits no longer.
    tx.spend(parents.len().saturating_sub(1));
    for parent_seq in parents {
        met(tx, parent_seq, child_seq)?;
    }
    Ok(())
}

/// Forgets what a job depends on, and the links of those that depend on it. `false`: these are so many that the rest of
/// them is for a later transaction; what the job itself depends on is forgotten last.
pub(crate) fn forget(tx: &Tx<'_>, seq: i64) -> Result<bool, StoreError> {
    let mut delete = tx.prepare(
        "delete from dependencies
         where parent_seq = ?1 and child_seq in (select child_seq from dependencies
                                                 where parent_seq = ?1 order by child_seq limit ?2)",
    )?;
    let limit = if guards::is_off(Guard::Portions) { i64::MAX } else { LINKS_PER_TRANSACTION };
    if i64::try_from(delete.execute([seq, limit])?).unwrap_or(i64::MAX) == limit {
        return Ok(false);
    }
    let parents = known_parents(tx, seq)?;
    tx.spend(parents.len());
    for parent_seq in parents {
        tx.prepare("delete from dependencies where parent_seq = ?1 and child_seq = ?2")?
            .execute([parent_seq, seq])?;
    }
    Ok(true)
}

/// Whether it is noted that one job depends on another.
pub(crate) fn is_linked(tx: &Tx<'_>, parent_seq: i64, child_seq: i64) -> Result<bool, StoreError> {
    let mut select = tx.prepare("select 1 from dependencies where parent_seq = ?1 and child_seq = ?2")?;
    Ok(select.exists([parent_seq, child_seq])?)
}

/// What a job depends on, by name.
pub(crate) fn parents(tx: &Tx<'_>, seq: i64) -> Result<Vec<JobId>, StoreError> {
    let json: Option<String> =
        tx.prepare("select depends_on from jobs where seq = ?1")?.query_row([seq], |row| row.get(0))?;
    let names = strings(json.as_deref())?;
    names.iter().map(|id| id.parse().map_err(|error| row::malformed("depends_on", error))).collect()
}

/// Those of them that are kept.
fn known_parents(tx: &Tx<'_>, seq: i64) -> Result<Vec<i64>, StoreError> {
    let mut known = Vec::new();
    for id in parents(tx, seq)? {
        let mut select = tx.prepare("select seq from jobs where id = ?1")?;
        known.extend(select.query_row([id.as_str()], |row| row.get::<_, i64>(0)).optional()?);
    }
    Ok(known)
}

/// Those of them that it waits for.
pub(crate) fn waited_for(tx: &Tx<'_>, child_seq: i64) -> Result<Vec<i64>, StoreError> {
    let mut select =
        tx.prepare("select 1 from dependencies where parent_seq = ?1 and child_seq = ?2 and blocks = 1")?;
    let mut waited_for = Vec::new();
    for parent_seq in known_parents(tx, child_seq)? {
        if select.exists([parent_seq, child_seq])? {
            waited_for.push(parent_seq);
        }
    }
    Ok(waited_for)
}

/// Notes all that a job depends on and that is kept, where it is not noted that it waits.
pub(crate) fn add_met(tx: &Tx<'_>, child_seq: i64) -> Result<(), StoreError> {
    for parent_seq in known_parents(tx, child_seq)? {
        tx.prepare(
            "insert into dependencies (parent_seq, child_seq, blocks) values (?1, ?2, 0)
             on conflict (parent_seq, child_seq) do nothing",
        )?
        .execute([parent_seq, child_seq])?;
    }
    Ok(())
}

/// Tells those who wait for the jobs that were finished here: at once, as far as this transaction's share goes; the
/// rest is noted down and told by the exchanges that follow. A dependent that is cancelled by it is finished too.
pub(crate) fn release_finished(tx: &Tx<'_>) -> Result<(), StoreError> {
    while let Some(Finished { seq, failed }) = tx.next_finished() {
        release_children(tx, seq, failed, 0)?;
    }
    Ok(())
}

/// Goes on with what earlier transactions noted down.
pub(crate) fn release_noted(tx: &Tx<'_>) -> Result<(), StoreError> {
    while !tx.has_more_to_tell() {
        let noted = tx
            .prepare("select parent_seq, failed, after_seq from releases order by parent_seq limit 1")?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let Some((parent_seq, failed, after_seq)) = noted else {
            return Ok(());
        };
        tx.prepare("delete from releases where parent_seq = ?1")?.execute([parent_seq])?;
        release_children(tx, parent_seq, failed, after_seq)?;
        release_finished(tx)?;
    }
    Ok(())
}

/// Those behind this child, in the order in which they came.
fn release_children(tx: &Tx<'_>, parent_seq: i64, failed: bool, after_seq: i64) -> Result<(), StoreError> {
    // With no share left it is enough to know whether there are any.
    let share = tx.jobs_left().max(1);
    let children = waiting_after(tx, parent_seq, after_seq, share)?;
    let mut told = after_seq;
    for child_seq in &children {
        // A child that is cancelled costs as much as it has parents.
        if tx.is_spent() {
            return note_down(tx, parent_seq, failed, told);
        }
        tx.spend_job();
        met(tx, parent_seq, *child_seq)?;
        let child = row::by_seq(tx, *child_seq)?;
        if tell(tx, &child, &[failed])? == Some(StateName::Cancelled) {
            tx.note_dependent(Dependent { seq: child.seq, id: child.id, parent_seq });
        }
        told = *child_seq;
    }
    if children.len() >= share {
        note_down(tx, parent_seq, failed, told)?;
    }
    Ok(())
}

/// Whether some who wait for the end of a job have not been told of it.
pub(crate) fn is_to_be_told(tx: &Tx<'_>, parent_seq: i64) -> Result<bool, StoreError> {
    Ok(tx.prepare("select 1 from releases where parent_seq = ?1")?.exists([parent_seq])?)
}

/// Those who wait for a job, in the order in which they came, behind one of them.
fn waiting_after(tx: &Tx<'_>, parent_seq: i64, after_seq: i64, limit: usize) -> Result<Vec<i64>, StoreError> {
    // By the primary key of `dependencies`.
    let mut select = tx.prepare(
        "select child_seq from dependencies
         where parent_seq = ?1 and child_seq > ?2 and blocks = 1 order by child_seq limit ?3",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = select.query_map(params![parent_seq, after_seq, limit], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The child waits for this parent no longer.
fn met(tx: &Tx<'_>, parent_seq: i64, child_seq: i64) -> Result<(), StoreError> {
    tx.prepare("update dependencies set blocks = 0 where parent_seq = ?1 and child_seq = ?2")?
        .execute([parent_seq, child_seq])?;
    Ok(())
}

/// What is left of this transaction's work is done by whoever comes next: somebody must come.
fn note_down(tx: &Tx<'_>, parent_seq: i64, failed: bool, after_seq: i64) -> Result<(), StoreError> {
    tx.prepare("insert or replace into releases (parent_seq, failed, after_seq) values (?1, ?2, ?3)")?
        .execute(params![parent_seq, failed, after_seq])?;
    tx.note_more_to_tell();
    Ok(())
}

/// Tells one job that some of those it waits for are finished, and whether each of them failed. Its row, which may be
/// long where it depends on many, is written once. Gives its new state, if it has changed at all.
pub(crate) fn tell(tx: &Tx<'_>, child: &JobRow, finished: &[bool]) -> Result<Option<StateName>, StoreError> {
    let policy = settings::policy(tx, child)?;
    let mut told: Option<Transition> = None;
    for failed in finished {
        let event = match (*failed, child.options.on_dependency_failure) {
            (true, OnDependencyFailure::Cancel) => Event::DependencyFailed,
            (true, OnDependencyFailure::Run) | (false, _) => Event::DependencyMet,
        };
        let life = told.as_ref().map_or(&child.life, |told| &told.life);
        if let Ok(next) = transition(life, event, &policy, tx.now) {
            told = Some(Transition { from: child.life.state.name(), ..next });
        }
    }
    let Some(told) = told else {
        return Ok(None);
    };
    let is_applied = apply(tx, child, &told, &child.latest)?;
    Ok(is_applied.then(|| told.life.state.name()))
}
