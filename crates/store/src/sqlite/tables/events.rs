//! The event log: actions of people and workers.

use rusqlite::{Row, params};

use crate::sqlite::session::row;
use crate::sqlite::session::tx::Tx;
use crate::{Event, EventPage, EventRange, StoreError};
use domain::job::JobEvent;
use domain::values::timestamp::Timestamp;

/// Records an action, on a job if `seq` is given.
pub(crate) fn record(
    tx: &Tx<'_>,
    seq: Option<i64>,
    event: &str,
    by: &str,
    detail: Option<&str>,
) -> Result<(), StoreError> {
    tx.prepare("insert into events (at, seq, event, by, detail) values (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![tx.now.as_millis(), seq, event, by, detail])?;
    Ok(())
}

pub(crate) fn of_job(tx: &Tx<'_>, seq: i64) -> Result<Vec<JobEvent>, StoreError> {
    // By index events_by_job.
    let mut select = tx.prepare("select at, event, by from events where seq = ?1 order by id")?;
    let rows = select.query_map([seq], |row| {
        Ok(JobEvent { at: Timestamp::from_millis(row.get(0)?), event: row.get(1)?, by: row.get(2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(crate) fn list(tx: &Tx<'_>, page: &EventPage) -> Result<Vec<Event>, StoreError> {
    let Some(job) = &page.job else {
        return of_all(tx, page);
    };
    match row::by_id(tx, job)? {
        Some(job) => of_one(tx, job.seq, page),
        None => Err(StoreError::NoSuchJob(job.clone())),
    }
}

fn of_all(tx: &Tx<'_>, page: &EventPage) -> Result<Vec<Event>, StoreError> {
    match page.range {
        EventRange::After(number) => read(
            tx,
            "select e.id, e.at, e.event, e.by, e.detail, j.id from events e left join jobs j on j.seq = e.seq
             where e.id > ?1 order by e.id limit ?2",
            params![number, page.limit],
        ),
        EventRange::Before(number) => reversed(read(
            tx,
            "select e.id, e.at, e.event, e.by, e.detail, j.id from events e left join jobs j on j.seq = e.seq
             where e.id < ?1 order by e.id desc limit ?2",
            params![number, page.limit],
        )),
    }
}

fn of_one(tx: &Tx<'_>, seq: i64, page: &EventPage) -> Result<Vec<Event>, StoreError> {
    // By index events_by_job.
    match page.range {
        EventRange::After(number) => read(
            tx,
            "select e.id, e.at, e.event, e.by, e.detail, j.id from events e left join jobs j on j.seq = e.seq
             where e.seq = ?3 and e.id > ?1 order by e.id limit ?2",
            params![number, page.limit, seq],
        ),
        EventRange::Before(number) => reversed(read(
            tx,
            "select e.id, e.at, e.event, e.by, e.detail, j.id from events e left join jobs j on j.seq = e.seq
             where e.seq = ?3 and e.id < ?1 order by e.id desc limit ?2",
            params![number, page.limit, seq],
        )),
    }
}

fn read(tx: &Tx<'_>, sql: &str, params: &[&dyn rusqlite::ToSql]) -> Result<Vec<Event>, StoreError> {
    let mut select = tx.prepare(sql)?;
    let mut rows = select.query(params)?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        events.push(read_event(row)?);
    }
    Ok(events)
}

fn reversed(events: Result<Vec<Event>, StoreError>) -> Result<Vec<Event>, StoreError> {
    events.map(|events| events.into_iter().rev().collect())
}

fn read_event(row: &Row<'_>) -> Result<Event, StoreError> {
    let has_job = row.get_ref(5)? != rusqlite::types::ValueRef::Null;
    Ok(Event {
        number: row.get(0)?,
        at: Timestamp::from_millis(row.get(1)?),
        event: row.get(2)?,
        by: row.get(3)?,
        detail: row.get(4)?,
        job: if has_job { Some(row::name(row, 5)?) } else { None },
    })
}
