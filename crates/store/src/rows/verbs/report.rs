//! Noting that the caller of `run` has seen how its job ended.

use crate::Result;
use crate::rows::jobs::row;
use crate::rows::named;
use crate::rows::tx::Tx;
use domain::job::life::StateName;
use domain::job::options::JobOptions;
use domain::values::name::JobId;

/// `false` if the job is not dead, or no longer after this attempt.
pub(crate) fn mark_reported(tx: &Tx<'_>, id: &JobId, attempt: u32) -> Result<bool> {
    let is_dead_after =
        |job: &row::JobRow| job.life.state.name() == StateName::Dead && job.life.attempts == attempt;
    let Some(job) = row::by_id(tx, id)?.filter(is_dead_after) else {
        return Ok(false);
    };
    let options = JobOptions { reported: Some(attempt), ..job.options };
    let marked = tx.execute(
        "update jobs set options = :options where seq = :seq and attempts = :attempt and state = 'dead'",
        named! { options: options.to_json(), seq: job.seq, attempt },
    )?;
    Ok(marked == 1)
}
