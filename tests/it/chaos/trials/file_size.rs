//! Workers that may not make a file any larger, for a while.

use std::time::Duration;

use fastrand::Rng;
use proof::ProofError;
use proof::nemesis::Nemesis;
use proof::sandbox::{Field, pid};
use rustix::process::{Resource, Rlimit, prlimit};

use super::harness::Trials;

struct FileSize;

impl FileSize {
    /// To everybody who works here.
    fn limit(field: &Field, bytes: Option<u64>) -> Result<bool, ProofError> {
        let mut any = false;
        for worker in field.workers()? {
            let limit = Rlimit { current: bytes, maximum: None };
            any |= prlimit(pid(worker.pid), Resource::Fsize, limit).is_ok();
        }
        Ok(any)
    }
}

impl Nemesis for FileSize {
    fn name(&self) -> &'static str {
        "file-size"
    }

    fn does(&self) -> &'static str {
        "no file may grow"
    }

    fn may_cost_output(&self) -> bool {
        true
    }

    fn strike(&mut self, field: &Field, random: &mut Rng) -> Result<bool, ProofError> {
        let any = Self::limit(field, Some(random.u64(0..200_000)))?;
        // Not to wait for anything: this is how long the fault lasts.
        std::thread::sleep(Duration::from_millis(random.u64(50..400)));
        Self::limit(field, None)?;
        Ok(any)
    }
}

#[test]
fn fault_29_chaos_file_size() {
    Trials::of("fault_29_chaos_file_size", |_| Box::new(FileSize)).all_hold();
}
