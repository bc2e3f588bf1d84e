//! Reading rows of `jobs` into domain values.

use crate::Result;
use crate::rows::keys::{BatchKey, JobSeq, QueueKey, WorkerSeq};
use crate::rows::tx::Tx;
pub(crate) use crate::rows::value::malformed;
use crate::rows::{Row, params};
use domain::job::life::{CancelReason, Lease, Life, Losses, State, StateName};
use domain::job::limits::Limits;
use domain::job::options::JobOptions;
use domain::job::{Job, LatestAttempt};
use domain::values::name::{JobId, NameError};
use domain::values::signal::Signal;
use domain::values::timestamp::Timestamp;

/// The columns of a job that every change needs.
#[derive(Clone, Debug)]
pub(crate) struct JobRow {
    pub(crate) seq: JobSeq,
    pub(crate) id: JobId,
    pub(crate) queue_id: QueueKey,
    pub(crate) priority: i32,
    pub(crate) life: Life,
    pub(crate) latest: LatestAttempt,
    pub(crate) worker_seq: Option<WorkerSeq>,
    pub(crate) unique_key: Option<String>,
    pub(crate) options: JobOptions,
    pub(crate) batch_id: Option<BatchKey>,
}

/// A statement that selects [`JobRow`]s, or whole jobs, under a condition.
macro_rules! select_jobs {
    ($more:literal, $condition:literal) => {
        concat!(
            "select j.seq, j.id, j.queue_id, j.priority, j.state, j.blocked_by, j.run_at, j.due_at, j.attempts,
                    j.max_retries, j.failures, j.losses, j.loss_boot, w.id, j.lease_until, j.cancel_requested,
                    j.started_at, j.finished_at, j.reason, j.exit_code, j.signal, j.error, j.worker_seq, j.unique_key,
                    j.options, j.batch_id",
            $more,
            " from jobs j left join workers w on w.seq = j.worker_seq ",
            $condition
        )
    };
}

/// A statement that selects whole jobs, for [`read_job`].
macro_rules! select_whole_jobs {
    ($condition:literal) => {
        $crate::rows::jobs::row::select_jobs!(
            ", j.command, j.created_at, j.updated_at, j.timeout_ms, j.cwd, j.tags, j.depends_on,
               (select name from queues where id = j.queue_id), (select name from batches where id = j.batch_id)",
            $condition
        )
    };
}
pub(crate) use {select_jobs, select_whole_jobs};

pub(crate) const BY_ID: &str = select_jobs!("", "where j.id = ?1");
pub(crate) const BY_SEQ: &str = select_jobs!("", "where j.seq = ?1");

pub(crate) fn by_id(tx: &Tx<'_>, id: &JobId) -> Result<Option<JobRow>> {
    tx.first(BY_ID, params![id], |row| read_row(tx, row))
}

/// As `by_id`, by key.
pub(crate) fn find(tx: &Tx<'_>, seq: JobSeq) -> Result<Option<JobRow>> {
    tx.first(BY_SEQ, params![seq], |row| read_row(tx, row))
}

/// A job that must exist.
pub(crate) fn by_seq(tx: &Tx<'_>, seq: JobSeq) -> Result<JobRow> {
    tx.one(BY_SEQ, params![seq], |row| read_row(tx, row))
}

/// The id of the job with this number, if it exists.
pub(crate) fn id(tx: &Tx<'_>, seq: JobSeq) -> Result<Option<JobId>> {
    tx.value("select id from jobs where seq = ?1", params![seq])
}

pub(crate) fn read_row(tx: &Tx<'_>, row: &Row<'_>) -> Result<JobRow> {
    let options = JobOptions::from_json(row.get(24)?).map_err(|error| malformed("job", error))?;
    Ok(JobRow {
        seq: row.get(0)?,
        id: row.get(1)?,
        queue_id: row.get(2)?,
        priority: row.get(3)?,
        life: read_life(tx, row, &options)?,
        latest: LatestAttempt {
            started_at: row.get(16)?,
            exit_code: row.get(19)?,
            signal: row.get::<Option<i32>>(20)?.and_then(Signal::from_number),
            error: row.get(21)?,
        },
        worker_seq: row.get(22)?,
        unique_key: row.get(23)?,
        options,
        batch_id: row.get(25)?,
    })
}

fn read_life(tx: &Tx<'_>, row: &Row<'_>, options: &JobOptions) -> Result<Life> {
    Ok(Life {
        state: read_state(tx, row, options)?,
        run_at: row.get(6)?,
        due_at: row.get(7)?,
        attempts: row.get(8)?,
        max_retries: row.get(9)?,
        failures: row.get(10)?,
        losses: Losses { count: row.get(11)?, boot: row.get(12)? },
    })
}

fn read_state(tx: &Tx<'_>, row: &Row<'_>, options: &JobOptions) -> Result<State> {
    let requests = options.requests_for(row.get(8)?);
    let cancel_requested = read_cancel(row.get(15)?)?;
    let finished_at = || present(row.get(17)?, "finished_at");
    Ok(match row.get(4)? {
        StateName::Pending => State::Pending { blocked_by: row.get(5)? },
        StateName::Processing => State::Processing(Lease {
            worker: row.get(13)?,
            started_at: present(row.get(16)?, "started_at")?,
            until: tx.lease_from_stored(row.get(14)?),
            cancel_requested,
            cancel_signal: requests.signal.and_then(Signal::from_number),
            // A cancellation ends the pause.
            paused_at: requests.paused_at.filter(|_| cancel_requested.is_none()).map(Timestamp::from_millis),
        }),
        StateName::Completed => State::Completed { finished_at: finished_at()? },
        StateName::Failed => State::Failed,
        StateName::Dead => {
            State::Dead { finished_at: finished_at()?, reason: present(row.get(18)?, "reason")? }
        }
        StateName::Cancelled => {
            State::Cancelled { finished_at: finished_at()?, reason: present(row.get(18)?, "reason")? }
        }
    })
}

/// See [`crate::rows::jobs::cancel_number`].
fn read_cancel(number: i64) -> Result<Option<CancelReason>> {
    match number {
        0 => Ok(None),
        1 => Ok(Some(CancelReason::User)),
        2 => Ok(Some(CancelReason::Replaced)),
        other => Err(malformed("job", format_args!("unknown cancellation reason {other}"))),
    }
}

pub(crate) fn read_job(tx: &Tx<'_>, row: &Row<'_>) -> Result<Job> {
    let known = read_row(tx, row)?;
    let ids = strings(row.get(32)?)?;
    let ids: Result<Vec<JobId>, NameError> = ids.iter().map(|id| id.parse()).collect();
    Ok(Job {
        id: known.id,
        number: row.get(0)?,
        queue: row.get(33)?,
        command: row.get(26)?,
        priority: known.priority,
        life: known.life,
        created_at: row.get(27)?,
        updated_at: row.get(28)?,
        timeout: row.get(29)?,
        cwd: row.get(30)?,
        tags: strings(row.get(31)?)?,
        depends_on: ids.map_err(|error| malformed("depends_on", error))?,
        unique_key: known.unique_key,
        options: known.options,
        batch: row.get(34)?,
        latest: known.latest,
    })
}

/// Whether `run` has reported the end of a dead job to its caller. Reads the columns `attempts` and `options`.
pub(crate) fn is_reported(row: &Row<'_>) -> Result<bool> {
    let options = JobOptions::from_json(row.get("options")?).map_err(|error| malformed("job", error))?;
    Ok(options.reported == Some(row.get("attempts")?))
}

/// The limits of a queue; none for null.
pub(crate) fn limits(text: Option<&str>) -> Result<Limits> {
    text.map_or(Ok(Limits::default()), |text| text.parse().map_err(|error| malformed("limits", error)))
}

/// The strings of a JSON array; none for null.
pub(crate) fn strings(json: Option<&str>) -> Result<Vec<String>> {
    let Some(json) = json else {
        return Ok(Vec::new());
    };
    serde_json::from_str(json).map_err(|error| malformed("list", error))
}

/// A JSON array of strings; null for none.
pub(crate) fn to_json<T: AsRef<str>>(strings: &[T]) -> Option<String> {
    if strings.is_empty() {
        return None;
    }
    let strings: Vec<&str> = strings.iter().map(AsRef::as_ref).collect();
    Some(serde_json::to_string(&strings).expect("strings serialize to JSON"))
}

fn present<T>(value: Option<T>, column: &'static str) -> Result<T> {
    value.ok_or_else(|| malformed("job", format_args!("it has no {column}")))
}
