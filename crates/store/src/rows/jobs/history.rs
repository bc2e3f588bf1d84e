//! The ended attempts and their output.

use crate::rows::jobs::row::{JobRow, malformed};
use crate::rows::keys::{JobSeq, WorkerSeq};
use crate::rows::tx::Tx;
use crate::rows::{Row, named, params};
use crate::{Result, StoreError};
use domain::job::life::{Lease, State};
use domain::job::outcome::Outcome;
use domain::job::{Attempt, Ending, Usage, WorkerHome};
use domain::values::signal::Signal;
use domain::values::timestamp::Timestamp;

pub(crate) const INSERT: &str =
    "insert into attempts (seq, number, worker_seq, started_at, finished_at, duration_ms,
                           outcome, exit_code, signal, error, cpu_ms, max_rss_bytes, log_bytes)
     values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";

pub(crate) fn add(
    tx: &Tx<'_>,
    job: &JobRow,
    worker_seq: WorkerSeq,
    started_at: Timestamp,
    ending: &Ending,
) -> Result<()> {
    tx.execute(
        INSERT,
        params![
            job.seq,
            job.life.attempts,
            worker_seq,
            started_at,
            ending.finished_at,
            ending.duration,
            ending.outcome.name(),
            ending.outcome.exit_code(),
            ending.outcome.signal(),
            ending.error,
            ending.usage.cpu,
            ending.usage.max_rss_bytes,
            ending.log_bytes,
        ],
    )?;
    Ok(())
}

/// The number under which the standard input of a job is stored: no attempt has it, so the output of an attempt is never
/// taken for it, and it is kept until the job is deleted.
const STDIN: u32 = 0;

pub(crate) fn add_stdin(tx: &Tx<'_>, seq: JobSeq, content: &[u8]) -> Result<()> {
    add_output(tx, seq, STDIN, content)
}

pub(crate) fn stdin(tx: &Tx<'_>, seq: JobSeq) -> Result<Vec<u8>> {
    output(tx, seq, STDIN)?.ok_or_else(|| malformed("job", "its standard input is missing"))
}

pub(crate) const INSERT_OUTPUT: &str = "insert into outputs (seq, number, content) values (?1, ?2, ?3)";

pub(crate) fn add_output(tx: &Tx<'_>, seq: JobSeq, number: u32, content: &[u8]) -> Result<()> {
    tx.execute(INSERT_OUTPUT, params![seq, number, content])?;
    Ok(())
}

pub(crate) fn output(tx: &Tx<'_>, seq: JobSeq, number: u32) -> Result<Option<Vec<u8>>> {
    tx.value("select content from outputs where seq = :seq and number = :number", named! { seq, number })
}

/// Every attempt of a job: those that ended, and the running one.
pub(crate) fn of_job(tx: &Tx<'_>, job: &JobRow) -> Result<Vec<Attempt>> {
    let mut history = tx.all(
        "select a.number, w.id as worker, w.host, a.started_at, a.finished_at, a.duration_ms, a.outcome, a.exit_code, a.signal,
                a.error, a.cpu_ms, a.max_rss_bytes, a.log_bytes, w.home_id, w.folder
         from attempts a join workers w on w.seq = a.worker_seq
         where a.seq = :seq order by a.number",
        named! { seq: job.seq },
        read,
    )?;
    if let State::Processing(lease) = &job.life.state {
        history.push(running(tx, job, lease)?);
    }
    Ok(history)
}

fn running(tx: &Tx<'_>, job: &JobRow, lease: &Lease) -> Result<Attempt> {
    let worker = &lease.worker;
    let running =
        tx.first("select host, home_id, folder from workers where id = :worker", named! { worker }, |row| {
            Ok(Attempt {
                number: job.life.attempts,
                worker: worker.clone(),
                host: row.get("host")?,
                home: read_home(row)?,
                started_at: lease.started_at,
                ending: None,
            })
        })?;
    running.ok_or_else(|| StoreError::NoSuchWorker(worker.clone()))
}

fn read(row: &Row<'_>) -> Result<Attempt> {
    let word: &str = row.get("outcome")?;
    let signal = row.get::<Option<i32>>("signal")?.and_then(Signal::from_number);
    let outcome = Outcome::from_parts(word, row.get("exit_code")?, signal);
    Ok(Attempt {
        number: row.get("number")?,
        worker: row.get("worker")?,
        host: row.get("host")?,
        home: read_home(row)?,
        started_at: row.get("started_at")?,
        ending: Some(Ending {
            finished_at: row.get("finished_at")?,
            duration: row.get("duration_ms")?,
            outcome: outcome.ok_or_else(|| malformed("outcome", word))?,
            error: row.get("error")?,
            usage: Usage { cpu: row.get("cpu_ms")?, max_rss_bytes: row.get("max_rss_bytes")? },
            log_bytes: row.get("log_bytes")?,
        }),
    })
}

fn read_home(row: &Row<'_>) -> Result<WorkerHome> {
    Ok(WorkerHome { id: row.get("home_id")?, folder: row.get("folder")? })
}
