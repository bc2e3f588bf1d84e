//! What is left of a test: processes that belong to its home.

use std::time::Instant;

use queuectl::proof::census::processes_of;
use rustix::process::{Pid, Signal};

use super::harness::Ground;
use super::processes::{LOOK, PATIENCE, kill_all};

impl Ground {
    /// Every living process of this home.
    pub(crate) fn leftovers(&self) -> Vec<Pid> {
        processes_of(self.home.folder())
    }

    pub(super) fn kill_leftovers(&self) {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let left = self.leftovers();
            if left.is_empty() {
                return;
            }
            kill_all(&left, Signal::KILL);
            std::thread::sleep(LOOK);
        }
    }
}
