//! The gate, the lock that every writer takes: whether it is free, and which process holds it.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{Diagnosis, Finding};
use domain::values::span::format_span;
use store::sqlite::gate_path;
use sys::fs::lock::TimedLock;
use sys::fs::owner_only;
use sys::process;

/// A writer holds the gate for a few milliseconds. One that holds it this long is stuck.
const GATE_WAIT_LIMIT: Duration = Duration::from_secs(2);

/// Takes the lock and releases it at once, so that no writer is delayed.
pub(super) fn check(diagnosis: &mut Diagnosis, database: &Path) {
    let path = gate_path(database);
    let file = match owner_only::open_regular(&path) {
        Ok(Some(file)) => file,
        Ok(None) => return,
        Err(error) => {
            diagnosis.add(Finding::warning("gate", format!("{} cannot be read ({error})", path.display())));
            return;
        }
    };
    let began = Instant::now();
    let lock = TimedLock::new(file);
    diagnosis.add(match lock.take_within(GATE_WAIT_LIMIT) {
        Ok(true) => {
            let _ = lock.release();
            free(began.elapsed())
        }
        Ok(false) => held(&path),
        Err(error) => Finding::warning("gate", format!("failed to lock it ({error})")),
    });
}

fn free(waited: Duration) -> Finding {
    match waited.as_millis().try_into() {
        Ok(0) => Finding::ok("gate", "free"),
        millis => {
            let waited = millis.map_or(GATE_WAIT_LIMIT, Duration::from_millis);
            Finding::ok("gate", format!("free after {}", format_span(waited)))
        }
    }
}

fn held(path: &Path) -> Finding {
    let waited = format_span(GATE_WAIT_LIMIT);
    match process::any_holder_of(path) {
        None => Finding::warning(
            "gate",
            format!("locked for {waited} by a process that cannot be seen from here"),
        )
        .advise("run `queuectl doctor` as root to see the process"),
        Some(holder) if holder.is_stopped => {
            let message =
                format!("locked for {waited} by {holder}, which is stopped in the middle of a write");
            let pid = holder.pid;
            Finding::warning("gate", message)
                .advise(format!("resume it with `kill -CONT {pid}` or kill it with `kill -KILL {pid}`"))
        }
        Some(holder) => {
            let message = format!("locked for {waited} by {holder}");
            Finding::warning("gate", message)
                .advise(format!("inspect it with `ps -fp {}`, and kill it if it hangs", holder.pid))
        }
    }
}
