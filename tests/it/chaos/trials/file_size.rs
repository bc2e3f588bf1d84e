//! Workers that cannot enlarge any file for a while.

use std::time::Duration;

use fastrand::Rng;
use proof::ProofError;
use proof::nemesis::Nemesis;
use proof::sandbox::{Sandbox, pid};
use rustix::process::{Resource, Rlimit, prlimit};

use super::harness::Trials;

struct FileSize;

impl FileSize {
    /// Sets the limit of all workers. Returns whether there were any.
    fn limit(sandbox: &Sandbox, bytes: Option<u64>) -> Result<bool, ProofError> {
        let mut any = false;
        for worker in sandbox.workers()? {
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

    fn description(&self) -> &'static str {
        "a limit on file sizes"
    }

    fn may_lose_output(&self) -> bool {
        true
    }

    fn strike(&mut self, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        let any = Self::limit(sandbox, Some(random.u64(0..200_000)))?;
        // This sleep is the duration of the fault, not synchronisation.
        std::thread::sleep(Duration::from_millis(random.u64(50..400)));
        Self::limit(sandbox, None)?;
        Ok(any)
    }
}

#[test]
fn fault_29_chaos_file_size() {
    Trials::of("fault_29_chaos_file_size", |_| Box::new(FileSize)).assert_all_hold();
}
