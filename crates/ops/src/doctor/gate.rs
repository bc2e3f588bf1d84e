//! The gate that every writer passes: whether it is free, and who stands in it.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{Diagnosis, Finding};
use domain::values::span::format_span;
use store::sqlite::gate_path;
use sys::fs::lock::PatientLock;
use sys::fs::owner_only;
use sys::process;

/// A writer is through in a few milliseconds. One that takes so long does not move.
const PATIENCE: Duration = Duration::from_secs(2);

/// The lock is taken and let go of at once, which keeps nobody.
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
    let lock = PatientLock::new(file);
    diagnosis.add(match lock.take_within(PATIENCE) {
        Ok(true) => {
            let _ = lock.let_go();
            free(began.elapsed())
        }
        Ok(false) => held(&path),
        Err(error) => Finding::warning("gate", format!("it cannot be locked ({error})")),
    });
}

fn free(waited: Duration) -> Finding {
    match waited.as_millis().try_into() {
        Ok(0) => Finding::ok("gate", "free to write"),
        millis => {
            let waited = millis.map_or(PATIENCE, Duration::from_millis);
            Finding::ok("gate", format!("free to write after {}", format_span(waited)))
        }
    }
}

fn held(path: &Path) -> Finding {
    let waited = format_span(PATIENCE);
    match process::any_holder_of(path) {
        None => Finding::warning(
            "gate",
            format!("nobody could write for {waited}; who is in the way cannot be seen"),
        )
        .advise("ask again as root"),
        Some(holder) if holder.is_stopped => {
            let said =
                format!("nobody could write for {waited}; {holder} is stopped in the middle of a write");
            let pid = holder.pid;
            Finding::warning("gate", said)
                .advise(format!("let it go on (`kill -CONT {pid}`), or end it (`kill -KILL {pid}`)"))
        }
        Some(holder) => {
            let said = format!("nobody could write for {waited}; {holder} is in the way");
            Finding::warning("gate", said)
                .advise(format!("see what it does (`ps -fp {}`), and end it if it hangs", holder.pid))
        }
    }
}
