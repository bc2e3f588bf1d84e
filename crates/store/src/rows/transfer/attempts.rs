//! Exporting and importing the attempts of a job.

use rusqlite::{Row, params};

use super::export::timestamp;
use crate::StoreError;
use crate::rows::jobs::history;
use crate::rows::jobs::row;
use crate::rows::tx::{Tx, millis};
use crate::rows::tables::workers;
use crate::transfer::{AttemptLine, JobLine};
use domain::job::outcome::Outcome;
use domain::values::name::WorkerId;
use domain::values::signal::Signal;

/// The history of a job.
pub(super) fn of(tx: &Tx<'_>, seq: i64) -> Result<Vec<AttemptLine>, StoreError> {
    let mut select = tx.prepare(
        "select a.number, w.id, w.host, a.started_at, a.finished_at, a.duration_ms, a.outcome, a.exit_code, a.signal,
                a.error, a.cpu_ms, a.max_rss_bytes, a.log_bytes
         from attempts a join workers w on w.seq = a.worker_seq
         where a.seq = ?1 order by a.number",
    )?;
    let mut rows = select.query([seq])?;
    let mut history = Vec::new();
    while let Some(row) = rows.next()? {
        history.push(attempt(tx, seq, row)?);
    }
    Ok(history)
}

fn attempt(tx: &Tx<'_>, seq: i64, row: &Row<'_>) -> Result<AttemptLine, StoreError> {
    let number = row.get(0)?;
    Ok(AttemptLine {
        attempt: number,
        worker_id: row.get(1)?,
        host: row.get(2)?,
        started_at: timestamp(row, 3)?,
        finished_at: timestamp(row, 4)?,
        duration_ms: row.get(5)?,
        outcome: row.get(6)?,
        exit_code: row.get(7)?,
        signal: row.get(8)?,
        error: row.get(9)?,
        cpu_ms: row.get(10)?,
        max_rss_bytes: row.get(11)?,
        log_bytes: row.get(12)?,
        output: history::output(tx, seq, number)?,
    })
}

pub(super) fn import(tx: &Tx<'_>, seq: i64, attempt: &AttemptLine) -> Result<(), StoreError> {
    let signal = attempt.signal.and_then(Signal::from_number);
    Outcome::from_parts(&attempt.outcome, attempt.exit_code, signal)
        .ok_or_else(|| row::malformed("outcome", &attempt.outcome))?;
    let worker_seq = import_worker(tx, seq, attempt)?;
    tx.prepare(
        "insert into attempts (seq, number, worker_seq, started_at, finished_at, duration_ms, outcome, exit_code,
                               signal, error, cpu_ms, max_rss_bytes, log_bytes)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?
    .execute(params![
        seq,
        attempt.attempt,
        worker_seq,
        attempt.started_at.as_millis(),
        attempt.finished_at.as_millis(),
        attempt.duration_ms,
        attempt.outcome,
        attempt.exit_code,
        attempt.signal,
        attempt.error,
        attempt.cpu_ms,
        attempt.max_rss_bytes,
        attempt.log_bytes,
    ])?;
    match &attempt.output {
        Some(output) => history::add_output(tx, seq, attempt.attempt, output),
        None => Ok(()),
    }
}

/// An attempt that was running when it was exported is lost here.
pub(super) fn import_lost(tx: &Tx<'_>, seq: i64, job: &JobLine) -> Result<(), StoreError> {
    let started_at = job.started_at.unwrap_or(tx.now);
    let lost = AttemptLine {
        attempt: job.attempts,
        worker_id: job.worker_id.clone().unwrap_or_default(),
        host: String::new(),
        started_at,
        finished_at: tx.now,
        duration_ms: u64::try_from(millis(tx.now.since(started_at))).unwrap_or(0),
        outcome: Outcome::Lost.name().to_owned(),
        exit_code: None,
        signal: None,
        error: Some("the attempt was running elsewhere when the job was exported".to_owned()),
        cpu_ms: None,
        max_rss_bytes: None,
        log_bytes: 0,
        output: None,
    };
    import(tx, seq, &lost)
}

/// Inserts the worker of an imported attempt as stopped. A worker that exists here is kept as long as this job.
fn import_worker(tx: &Tx<'_>, seq: i64, attempt: &AttemptLine) -> Result<i64, StoreError> {
    let AttemptLine { worker_id, host, started_at, .. } = attempt;
    let worker: WorkerId = worker_id.parse().map_err(|error| row::malformed("worker", error))?;
    tx.prepare(
        "insert into workers (id, host, boot_id, pid, concurrency, state, started_at, last_heartbeat, last_seq)
         values (?1, ?2, '', 0, 1, 'stopped', ?3, ?3, ?4)
         on conflict (id) do update set last_seq = max(last_seq, ?4)",
    )?
    .execute(params![worker_id, host, started_at.as_millis(), seq])?;
    workers::seq(tx, &worker)
}
