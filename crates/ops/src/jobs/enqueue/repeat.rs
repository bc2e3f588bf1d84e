//! Enqueuing again after an answer was lost on its way from a server.
//!
//! The ids are the same, so a job cannot be stored twice. The server makes the second try wait for a first one that is still
//! under way, and then refuses it because the id is taken. If the job with that id is the one that was sent, the first try
//! has succeeded; and all jobs were stored in one commit.

use std::thread;
use std::time::{Duration, Instant};

use domain::job::NewJob;
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;
use store::{EnqueueError, EnqueueRefusal, EnqueueResult, Store, StoreError};

/// How long a caller waits for the server to come back.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(200);

/// Stores all of these jobs, or none.
pub(super) fn enqueue(store: &dyn Store, jobs: &[NewJob]) -> Result<Vec<EnqueueResult>, EnqueueError> {
    let first_try = store.now()?;
    let unknown = match store.enqueue(jobs) {
        Err(EnqueueError::Store(error @ StoreError::OutcomeUnknown { .. })) => error,
        answer @ (Ok(_) | Err(_)) => return answer,
    };
    // A job that may have existed before proves nothing.
    let is_certain = jobs.iter().all(|job| !job.if_absent && job.unique_key.is_none());
    if !store.spans_machines() || !is_certain {
        return Err(unknown.into());
    }
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        match store.enqueue(jobs) {
            Ok(created) => return Ok(created),
            Err(EnqueueError::Refused(refused)) => {
                return if is_ours(store, jobs, &refused.reason, first_try) {
                    Ok(jobs.iter().map(|job| EnqueueResult::Created(job.id.clone())).collect())
                } else {
                    Err(EnqueueError::Refused(refused))
                };
            }
            Err(EnqueueError::Store(_)) => thread::sleep(PAUSE),
        }
    }
    Err(unknown.into())
}

/// Whether a refusal shows that an earlier try has succeeded.
fn is_ours(store: &dyn Store, jobs: &[NewJob], refusal: &EnqueueRefusal, first_try: Timestamp) -> bool {
    let taken: &JobId = match refusal {
        EnqueueRefusal::IdTaken(id) => id,
        EnqueueRefusal::UnknownDependency(_) | EnqueueRefusal::Cycle(_) | EnqueueRefusal::TooLate => {
            return false;
        }
    };
    let sent = jobs.iter().find(|job| job.id == *taken);
    let found = store.find(taken).ok().flatten();
    sent.zip(found).is_some_and(|(sent, found)| {
        found.created_at >= first_try && found.command == sent.command && found.queue == sent.queue
    })
}
