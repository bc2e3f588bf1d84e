//! The event log: actions of people and workers.

use crate::rows::jobs::row;
use crate::rows::keys::JobSeq;
use crate::rows::tx::Tx;
use crate::rows::{Row, named, read};
use crate::{Event, EventPage, EventRange, Result, StoreError};
use domain::job::JobEvent;

/// Records an action, on a job if `seq` is given.
pub(crate) fn record(
    tx: &Tx<'_>,
    seq: Option<JobSeq>,
    event: &str,
    by: &str,
    detail: Option<&str>,
) -> Result<()> {
    tx.execute(
        "insert into events (at, seq, event, by, detail) values (:now, :seq, :event, :by, :detail)",
        named! { now: tx.now, seq, event, by, detail },
    )?;
    Ok(())
}

pub(crate) fn of_job(tx: &Tx<'_>, seq: JobSeq) -> Result<Vec<JobEvent>> {
    // By index events_by_job.
    tx.all("select at, event, by from events where seq = :seq order by id", named! { seq }, |row| {
        Ok(read!(row, JobEvent { at, event, by }))
    })
}

pub(crate) fn list(tx: &Tx<'_>, page: &EventPage) -> Result<Vec<Event>> {
    let Some(job) = &page.job else {
        return of_all(tx, page);
    };
    match row::by_id(tx, job)? {
        Some(job) => of_one(tx, job.seq, page),
        None => Err(StoreError::NoSuchJob(job.clone())),
    }
}

fn of_all(tx: &Tx<'_>, page: &EventPage) -> Result<Vec<Event>> {
    match page.range {
        EventRange::After(number) => tx.all(
            "select e.id, e.at, e.event, e.by, e.detail, j.id as job from events e left join jobs j on j.seq = e.seq
             where e.id > :number order by e.id limit :limit",
            named! { number, limit: page.limit },
            read,
        ),
        EventRange::Before(number) => reversed(tx.all(
            "select e.id, e.at, e.event, e.by, e.detail, j.id as job from events e left join jobs j on j.seq = e.seq
             where e.id < :number order by e.id desc limit :limit",
            named! { number, limit: page.limit },
            read,
        )),
    }
}

fn of_one(tx: &Tx<'_>, seq: JobSeq, page: &EventPage) -> Result<Vec<Event>> {
    // By index events_by_job.
    match page.range {
        EventRange::After(number) => tx.all(
            "select e.id, e.at, e.event, e.by, e.detail, j.id as job from events e left join jobs j on j.seq = e.seq
             where e.seq = :seq and e.id > :number order by e.id limit :limit",
            named! { number, limit: page.limit, seq },
            read,
        ),
        EventRange::Before(number) => reversed(tx.all(
            "select e.id, e.at, e.event, e.by, e.detail, j.id as job from events e left join jobs j on j.seq = e.seq
             where e.seq = :seq and e.id < :number order by e.id desc limit :limit",
            named! { number, limit: page.limit, seq },
            read,
        )),
    }
}

fn reversed(events: Result<Vec<Event>>) -> Result<Vec<Event>> {
    events.map(|events| events.into_iter().rev().collect())
}

fn read(row: &Row<'_>) -> Result<Event> {
    Ok(read!(row, Event { number: row.get("id")?, at, event, by, detail, job }))
}
