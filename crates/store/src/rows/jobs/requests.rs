//! The details of what users asked of a running attempt, which are stored in the job's options. They carry the number of
//! the attempt, so claims and settlements need not touch them.

use crate::Result;
use crate::rows::jobs::row::JobRow;
use crate::rows::named;
use crate::rows::tx::Tx;
use domain::job::life::Life;
use domain::job::options::{AttemptRequests, JobOptions};
use domain::values::signal::Signal;
use domain::values::timestamp::Timestamp;

/// Stores the requests that this life has and the stored one has not.
pub(crate) fn store(tx: &Tx<'_>, before: &JobRow, life: &Life) -> Result<()> {
    let Some(lease) = life.state.lease() else {
        return Ok(());
    };
    let attempt = life.attempts;
    let requests = AttemptRequests {
        attempt,
        signal: lease.cancel_signal.map(Signal::number),
        paused_at: lease.paused_at.map(Timestamp::as_millis),
    };
    if requests == (AttemptRequests { attempt, ..before.options.requests_for(attempt) }) {
        return Ok(());
    }
    let options = JobOptions { requests, ..before.options.clone() };
    tx.execute(
        "update jobs set options = :options where seq = :seq and attempts = :attempt and state = 'processing'",
        named! { options: options.to_json(), seq: before.seq, attempt },
    )?;
    Ok(())
}
