//! Who waits for whom, and what happens to those who wait when a job is finished.

use rusqlite::{OptionalExtension, params};

use super::jobs::{apply, is_failure};
use super::row::{self, JobRow};
use super::settings;
use super::tx::{Finished, Tx};
use crate::domain::job::OnDependencyFailure;
use crate::domain::life::{Event, StateName, transition};
use crate::domain::name::JobId;
use crate::store::StoreError;

/// How things stand with a job that another wants to depend on.
pub(super) enum Parent {
    Unknown,
    Unfinished { seq: i64 },
    Finished { failed: bool },
}

pub(super) fn look_up(tx: &Tx<'_>, id: &JobId) -> Result<Parent, StoreError> {
    let mut select = tx.prepare("select seq, state from jobs where id = ?1")?;
    let found = select
        .query_row([id.as_str()], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))
        .optional()?;
    let Some((seq, state)) = found else {
        return Ok(Parent::Unknown);
    };
    let state = StateName::from_name(&state).ok_or_else(|| row::malformed("state", &state))?;
    Ok(if state.is_finished() {
        Parent::Finished { failed: is_failure(state) }
    } else {
        Parent::Unfinished { seq }
    })
}

pub(super) fn add(tx: &Tx<'_>, parent_seq: i64, child_seq: i64) -> Result<(), StoreError> {
    tx.prepare("insert into dependencies (parent_seq, child_seq) values (?1, ?2)")?
        .execute(params![parent_seq, child_seq])?;
    Ok(())
}

/// How many jobs wait for this one.
pub(super) fn count_children(tx: &Tx<'_>, parent_seq: i64) -> Result<u64, StoreError> {
    let mut select = tx.prepare("select count(*) from dependencies where parent_seq = ?1")?;
    Ok(select.query_row([parent_seq], |row| row.get(0))?)
}

/// A job that is finished, or gone, waits for nobody.
pub(super) fn forget_parents(tx: &Tx<'_>, child_seq: i64) -> Result<(), StoreError> {
    // By index dependencies_by_child.
    tx.prepare("delete from dependencies where child_seq = ?1")?.execute([child_seq])?;
    Ok(())
}

/// Tells those who wait for the jobs that were finished here: at once, as far as this transaction's share goes; the
/// rest is noted down and told by the exchanges that follow. A dependent that is cancelled by it is finished too.
pub(super) fn release_finished(tx: &Tx<'_>) -> Result<(), StoreError> {
    while let Some(Finished { seq, failed }) = tx.next_finished() {
        release_children(tx, seq, failed)?;
    }
    Ok(())
}

/// Goes on with what earlier transactions noted down.
pub(super) fn release_noted(tx: &Tx<'_>) -> Result<(), StoreError> {
    loop {
        let noted = tx
            .prepare("select parent_seq, failed from releases order by parent_seq limit 1")?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((parent_seq, failed)) = noted else {
            return Ok(());
        };
        tx.prepare("delete from releases where parent_seq = ?1")?.execute([parent_seq])?;
        release_children(tx, parent_seq, failed)?;
        release_finished(tx)?;
        if count_children(tx, parent_seq)? > 0 {
            return Ok(());
        }
    }
}

fn release_children(tx: &Tx<'_>, parent_seq: i64, failed: bool) -> Result<(), StoreError> {
    while let Some(child_seq) = first_child(tx, parent_seq)? {
        if !tx.spend_dependent() {
            return note_down(tx, parent_seq, failed);
        }
        release_child(tx, parent_seq, child_seq, failed)?;
    }
    Ok(())
}

/// Tells all who still wait for the end of a job that is about to begin again, however many they are: whoever comes
/// after them waits for its next end.
pub(super) fn release_rest(tx: &Tx<'_>, parent_seq: i64) -> Result<(), StoreError> {
    let mut forget = tx.prepare("delete from releases where parent_seq = ?1 returning failed")?;
    let Some(failed) = forget.query_row([parent_seq], |row| row.get(0)).optional()? else {
        return Ok(());
    };
    while let Some(child_seq) = first_child(tx, parent_seq)? {
        release_child(tx, parent_seq, child_seq, failed)?;
    }
    Ok(())
}

fn release_child(tx: &Tx<'_>, parent_seq: i64, child_seq: i64, failed: bool) -> Result<(), StoreError> {
    tx.prepare("delete from dependencies where parent_seq = ?1 and child_seq = ?2")?
        .execute([parent_seq, child_seq])?;
    tell(tx, &row::by_seq(tx, child_seq)?, failed)
}

fn first_child(tx: &Tx<'_>, parent_seq: i64) -> Result<Option<i64>, StoreError> {
    let mut select =
        tx.prepare("select child_seq from dependencies where parent_seq = ?1 order by child_seq limit 1")?;
    Ok(select.query_row([parent_seq], |row| row.get(0)).optional()?)
}

fn note_down(tx: &Tx<'_>, parent_seq: i64, failed: bool) -> Result<(), StoreError> {
    tx.prepare("insert or replace into releases (parent_seq, failed) values (?1, ?2)")?
        .execute(params![parent_seq, failed])?;
    Ok(())
}

/// Tells one job that one of those it waits for is finished.
pub(super) fn tell(tx: &Tx<'_>, child: &JobRow, failed: bool) -> Result<(), StoreError> {
    let event = match (failed, child.options.on_dependency_failure) {
        (true, OnDependencyFailure::Cancel) => Event::DependencyFailed,
        (true, OnDependencyFailure::Run) | (false, _) => Event::DependencyMet,
    };
    let policy = settings::policy(tx, child)?;
    if let Ok(transition) = transition(&child.life, event, &policy, tx.now) {
        apply(tx, child, &transition, &child.latest)?;
    }
    Ok(())
}
