//! The gate that every writer passes: whether it is free, and who stands in it.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{Diagnosis, Finding};
use crate::domain::span::format_span;
use crate::store::sqlite::gate_path;
use crate::sys::lock::PatientLock;
use crate::sys::{private, process};

/// A writer is through in a few milliseconds. One that takes so long does not move.
const PATIENCE: Duration = Duration::from_secs(2);

/// The lock is taken and let go of at once, which keeps nobody.
pub(super) fn check(diagnosis: &mut Diagnosis, database: &Path) {
    let path = gate_path(database);
    let file = match private::open_regular(&path) {
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
    let Some(pid) = process::lockers_of(path).into_iter().next() else {
        let said = format!("nobody could write for {waited}; who is in the way cannot be seen");
        return Finding::warning("gate", said).advise("ask again as root");
    };
    let name = process::name(pid).unwrap_or_default();
    let said = format!("nobody could write for {waited}; process {pid} ({name}) is in the way");
    Finding::warning("gate", said).advise(format!("if it is stopped, let it go on: `kill -CONT {pid}`"))
}
