//! The ended attempts and their output.

use rusqlite::{OptionalExtension, Row, params};

use crate::StoreError;
use crate::sqlite::session::row;
use crate::sqlite::session::row::{JobRow, malformed};
use crate::sqlite::session::tx::{Tx, from_millis, millis};
use crate::sqlite::tables::workers;
use domain::job::life::{Lease, State};
use domain::job::outcome::Outcome;
use domain::job::{Attempt, Ending, Usage, WorkerHome};
use domain::values::signal::Signal;
use domain::values::timestamp::Timestamp;

pub(crate) fn add(
    tx: &Tx<'_>,
    job: &JobRow,
    worker_seq: i64,
    started_at: Timestamp,
    ending: &Ending,
) -> Result<(), StoreError> {
    tx.prepare(
        "insert into attempts (seq, number, worker_seq, started_at, finished_at, duration_ms, outcome, exit_code,
                               signal, error, cpu_ms, max_rss_bytes, log_bytes)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?
    .execute(params![
        job.seq,
        job.life.attempts,
        worker_seq,
        started_at.as_millis(),
        ending.finished_at.as_millis(),
        millis(ending.duration),
        ending.outcome.name(),
        ending.outcome.exit_code(),
        ending.outcome.signal().map(Signal::number),
        ending.error,
        ending.usage.cpu.map(millis),
        ending.usage.max_rss_bytes,
        ending.log_bytes,
    ])?;
    Ok(())
}

pub(crate) fn add_output(tx: &Tx<'_>, seq: i64, number: u32, content: &[u8]) -> Result<(), StoreError> {
    tx.prepare("insert into outputs (seq, number, content) values (?1, ?2, ?3)")?
        .execute(params![seq, number, content])?;
    Ok(())
}

pub(crate) fn output(tx: &Tx<'_>, seq: i64, number: u32) -> Result<Option<Vec<u8>>, StoreError> {
    let mut select = tx.prepare("select content from outputs where seq = ?1 and number = ?2")?;
    Ok(select.query_row(params![seq, number], |row| row.get(0)).optional()?)
}

/// Every attempt of a job: those that ended, and the running one.
pub(crate) fn of_job(tx: &Tx<'_>, job: &JobRow) -> Result<Vec<Attempt>, StoreError> {
    let mut select = tx.prepare(
        "select a.number, w.id, w.host, a.started_at, a.finished_at, a.duration_ms, a.outcome, a.exit_code, a.signal,
                a.error, a.cpu_ms, a.max_rss_bytes, a.log_bytes, w.home_id, w.folder
         from attempts a join workers w on w.seq = a.worker_seq
         where a.seq = ?1 order by a.number",
    )?;
    let mut rows = select.query([job.seq])?;
    let mut history = Vec::new();
    while let Some(row) = rows.next()? {
        history.push(read(row)?);
    }
    if let State::Processing(lease) = &job.life.state {
        history.push(running(tx, job, lease)?);
    }
    Ok(history)
}

fn running(tx: &Tx<'_>, job: &JobRow, lease: &Lease) -> Result<Attempt, StoreError> {
    let mut select = tx.prepare("select host, home_id, folder from workers where id = ?1")?;
    let mut rows = select.query([lease.worker.as_str()])?;
    let row = rows.next()?.ok_or_else(|| StoreError::NoSuchWorker(lease.worker.clone()))?;
    Ok(Attempt {
        number: job.life.attempts,
        worker: lease.worker.clone(),
        host: row.get(0)?,
        home: WorkerHome { id: row.get(1)?, folder: workers::read_path(row, 2)? },
        started_at: lease.started_at,
        ending: None,
    })
}

fn read(row: &Row<'_>) -> Result<Attempt, StoreError> {
    let word: String = row.get(6)?;
    let signal = row.get::<_, Option<i32>>(8)?.and_then(Signal::from_number);
    let outcome = Outcome::from_parts(&word, row.get(7)?, signal);
    Ok(Attempt {
        number: row.get(0)?,
        worker: row::name(row, 1)?,
        host: row.get(2)?,
        home: WorkerHome { id: row.get(13)?, folder: workers::read_path(row, 14)? },
        started_at: Timestamp::from_millis(row.get(3)?),
        ending: Some(Ending {
            finished_at: Timestamp::from_millis(row.get(4)?),
            duration: from_millis(row.get(5)?),
            outcome: outcome.ok_or_else(|| malformed("outcome", &word))?,
            error: row.get(9)?,
            usage: Usage {
                cpu: row.get::<_, Option<i64>>(10)?.map(from_millis),
                max_rss_bytes: row.get(11)?,
            },
            log_bytes: row.get(12)?,
        }),
    })
}
