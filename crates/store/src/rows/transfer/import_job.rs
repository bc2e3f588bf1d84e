//! Importing a job with its attempts.

use super::import::insert;
use crate::Result;
use crate::rows::jobs::row;
use crate::rows::jobs::{causes, history, ready};
use crate::rows::keys::JobSeq;
use crate::rows::named;
use crate::rows::record::ColumnValue;
use crate::rows::tables::{queues, workers};
use crate::rows::tx::Tx;
use crate::rows::value::{ToValue, malformed};
use crate::transfer::{AttemptLine, Count, JobLine};
use domain::job::life::{CancelReason, StateName};
use domain::job::options::JobOptions;
use domain::job::outcome::Outcome;
use domain::job::spec::check_command;
use domain::values::name::{QueueName, WorkerId};
use domain::values::signal::Signal;
use domain::values::timestamp::Timestamp;

/// Checks what the table does not. An attempt that was running when the job was exported is lost here; a requested
/// cancellation is carried out.
pub(super) fn settle(job: &mut JobLine, now: Timestamp) -> Result<(), String> {
    check_command(job.command.clone()).map_err(|error| error.to_string())?;
    let state = StateName::from_name(&job.state).ok_or("its state is unknown")?;
    let is_running = state == StateName::Processing;
    let ended = job.attempts.saturating_sub(is_running.into());
    if !job.history.iter().map(|attempt| attempt.number).eq(1..=ended) {
        return Err("its history has gaps".to_owned());
    }
    if !is_running {
        return Ok(());
    }
    let worker_id = job.worker_id.take().filter(|_| job.attempts > 0);
    let worker_id = worker_id.ok_or("it is processing without a worker or an attempt")?;
    job.history.push(lost_attempt(job, worker_id, now));
    job.updated_at = now;
    let state = if job.cancel_requested {
        job.finished_at = Some(now);
        job.reason = Some(CancelReason::User.name().to_owned());
        StateName::Cancelled
    } else {
        StateName::Pending
    };
    state.name().clone_into(&mut job.state);
    Ok(())
}

fn lost_attempt(job: &JobLine, worker_id: String, now: Timestamp) -> AttemptLine {
    let started_at = job.started_at.unwrap_or(now);
    let duration_ms =
        u64::try_from(now.since(started_at).as_millis()).ok().and_then(|millis| millis.try_into().ok());
    AttemptLine {
        number: job.attempts,
        worker_id,
        host: String::new(),
        started_at,
        finished_at: now,
        duration_ms: duration_ms.unwrap_or_default(),
        outcome: Outcome::Lost.name().to_owned(),
        exit_code: None,
        signal: None,
        error: Some("the attempt was running elsewhere when the job was exported".to_owned()),
        cpu_ms: None,
        max_rss_bytes: None,
        log_bytes: Count::default(),
        output: None,
    }
}

/// Inserts a job with the rows that belong to it, except for its dependencies and its unique key. `owners` are its
/// batch and its schedule.
pub(super) fn import(tx: &mut Tx<'_>, job: &JobLine, seq: JobSeq, owners: &[ColumnValue<'_>]) -> Result<()> {
    let queue: QueueName = job.queue.parse().map_err(|error| malformed("queue", error))?;
    let queue_id = queues::id(tx, &queue)?;
    let options = JobOptions::from_json(job.options.text()).map_err(|error| malformed("options", error))?;
    let stdin = job.stdin.as_ref().map(|stdin| stdin.0.as_slice());
    if options.stdin_bytes != stdin.map_or(0, |stdin| stdin.len() as u64) {
        return Err(malformed("stdin", "it does not have the size that `stdin_bytes` says"));
    }
    let columns = [&[("seq", seq.to_value()), ("queue_id", queue_id.to_value())], owners].concat();
    insert(tx, "jobs", job, &columns, "")?;
    if let Some(stdin) = stdin {
        history::add_stdin(tx, seq, stdin)?;
    }
    for attempt in &job.history {
        import_attempt(tx, seq, attempt)?;
    }
    for tag in job.tags.iter() {
        let sql = "insert into job_tags (tag, seq) values (:tag, :seq) on conflict (tag, seq) do nothing";
        tx.execute(sql, named! { tag, seq })?;
    }
    let row = row::by_seq(tx, seq)?;
    ready::insert(tx, &row, row.life.due_at, row.life.wait_index(tx.now))?;
    tx.counters.enter(queue_id, row.batch_id, row.life.state.name());
    if row.life.state.name() == StateName::Dead {
        causes::enter(tx, seq, queue_id, &row.life, &row.latest)?;
    }
    Ok(())
}

/// Inserts an attempt and its worker, as stopped. A worker that exists here is kept as long as this job.
fn import_attempt(tx: &Tx<'_>, seq: JobSeq, attempt: &AttemptLine) -> Result<()> {
    let AttemptLine { number, worker_id, host, started_at, outcome, .. } = attempt;
    let signal = attempt.signal.and_then(Signal::from_number);
    Outcome::from_parts(outcome, attempt.exit_code, signal).ok_or_else(|| malformed("outcome", outcome))?;
    let worker: WorkerId = worker_id.parse().map_err(|error| malformed("worker", error))?;
    tx.execute(
        "insert into workers (id, host, boot_id, pid, concurrency, state, started_at, last_heartbeat, last_seq)
         values (:worker, :host, '', 0, 1, 'stopped', :started_at, :started_at, :seq)
         on conflict (id) do update
         set last_seq = case when workers.last_seq < excluded.last_seq then excluded.last_seq else workers.last_seq end",
        named! { worker, host, started_at, seq },
    )?;
    let worker_seq = workers::seq(tx, &worker)?;
    insert(tx, "attempts", attempt, &[("seq", seq.to_value()), ("worker_seq", worker_seq.to_value())], "")?;
    match &attempt.output {
        Some(output) => history::add_output(tx, seq, *number, &output.0),
        None => Ok(()),
    }
}
