//! The attempts that failed last.

use crate::rows::tx::Tx;
use crate::rows::value::malformed;
use crate::rows::{Row, named, read};
use crate::{FailedAttempt, Result};
use domain::job::outcome::OutcomeName;
use domain::values::signal::Signal;
use domain::values::timestamp::Timestamp;

pub(crate) fn newest(tx: &Tx<'_>, before: Timestamp, limit: usize) -> Result<Vec<FailedAttempt>> {
    // By index attempts_failed.
    tx.all(
        "select j.id, j.seq, j.state, j.command, q.name as queue, a.number as attempt, a.finished_at, a.duration_ms,
                a.outcome, a.exit_code, a.signal, a.error
         from attempts a cross join jobs j cross join queues q
         where a.finished_at < :before and j.seq = a.seq and q.id = j.queue_id
               and (a.outcome = 'failure' or a.outcome = 'signal' or a.outcome = 'timeout' or a.outcome = 'spawn_error' or a.outcome = 'lost')
         order by a.finished_at desc, a.seq desc limit :limit",
        named! { before, limit },
        read,
    )
}

fn read(row: &Row<'_>) -> Result<FailedAttempt> {
    let outcome: &str = row.get("outcome")?;
    let outcome = OutcomeName::from_name(outcome).ok_or_else(|| malformed("outcome", outcome))?;
    let signal = row.get::<Option<i32>>("signal")?.and_then(Signal::from_number);
    Ok(read!(
        row,
        FailedAttempt {
            job: row.get("id")?,
            number: row.get("seq")?,
            state,
            queue,
            command,
            attempt,
            finished_at,
            duration: row.get("duration_ms")?,
            outcome: outcome,
            exit_code,
            signal: signal,
            error,
        }
    ))
}
