//! Hints about what keeps jobs from starting.

use std::collections::BTreeSet;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::text::printable;
use domain::values::name::QueueName;
use ops::status::HOW_TO_START_A_WORKER;
use ops::worker::live::{any_takes_new_jobs, is_served, live_workers, why_no_job_starts};
use store::Store;
use store::settings::in_force;

/// More hints would hide the rest of the output.
const MAX_HINTS: usize = 3;

/// Prints hints if jobs of these queues do not start: the queue is paused, or no worker will run them.
pub(crate) fn hint_not_starting(
    context: &Context,
    store: &dyn Store,
    queues: &BTreeSet<QueueName>,
) -> Result<(), Failure> {
    if context.quiet {
        return Ok(());
    }
    hint_no_worker(context, store, queues)?;
    let mut hints = 0;
    for queue in queues {
        let Some(pause) = store.pause_of(queue)? else {
            continue;
        };
        let reason = pause.reason.map_or_else(String::new, |reason| format!(" ({})", printable(&reason)));
        context.hint(&format!(
            "queue `{queue}` is paused{reason}; `queuectl queue resume {queue}` resumes it"
        ))?;
        hints += 1;
        if hints == MAX_HINTS {
            break;
        }
    }
    Ok(())
}

fn hint_no_worker(context: &Context, store: &dyn Store, queues: &BTreeSet<QueueName>) -> Result<(), Failure> {
    let workers = live_workers(store)?;
    if let (Some(why), false) = (why_no_job_starts(&workers), workers.is_empty()) {
        return context.hint(&format!("{why}; {HOW_TO_START_A_WORKER}"));
    }
    if !any_takes_new_jobs(&workers) {
        let hint = format!("no worker is running; {HOW_TO_START_A_WORKER}");
        let or_always = ", or let every enqueue do it with `queuectl config set autostart on`";
        return context.hint(&(hint + if in_force(store)?.autostart { "" } else { or_always }));
    }
    for queue in queues.iter().filter(|queue| !is_served(queue, &workers)).take(MAX_HINTS) {
        context.hint(&format!(
            "no worker serves queue `{queue}`; start one with `queuectl worker start --queue {queue}`"
        ))?;
    }
    Ok(())
}
