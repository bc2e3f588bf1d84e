//! The machine: its clock, `/proc`, and restrictions of a sandbox.

use std::path::Path;
use std::time::Duration;

use super::{Diagnosis, Finding};
use domain::values::span::format_seconds;
use domain::values::timestamp::Timestamp;
use store::{JobFilter, Page, Store, StoreError};
use sys::cgroup;
use sys::cgroup::Obstacle;
use sys::clock::{Clock, SystemClock};
use sys::host;
use sys::process::Children;

/// 2024-01-01: a clock that shows an earlier time was never set.
const EARLIEST_PLAUSIBLE_TIME: Timestamp = Timestamp::from_millis(1_704_067_200_000);
/// Smaller adjustments of the clock are normal.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(5);
/// How many of the newest jobs are searched for the latest change.
const JOBS_CHECKED: usize = 100;
const SET_THE_CLOCK: &str = "set the clock; retries and scheduled jobs depend on it";

pub(super) fn check(diagnosis: &mut Diagnosis) {
    let now = Timestamp::from_millis(SystemClock.wall_millis());
    if now < EARLIEST_PLAUSIBLE_TIME {
        diagnosis.add(Finding::warning("clock", format!("shows {now}")).advise(SET_THE_CLOCK));
    }
    diagnosis.add(proc_filesystem());
    diagnosis.add(containment(cgroup::can_contain().err().as_ref()));
}

fn proc_filesystem() -> Finding {
    if !Path::new("/proc/self").exists() {
        return Finding::error("proc", "/proc is not mounted").advise("run `mount -t proc proc /proc`");
    }
    if Children::open().is_err() {
        let message = "the kernel does not list the children of processes (CONFIG_PROC_CHILDREN)";
        return Finding::error("proc", message)
            .advise("use a kernel with this option; workers cannot start without it");
    }
    if let Err(error) = host::boot_id() {
        let message = format!("failed to read the boot id ({error})");
        return Finding::error("proc", message)
            .advise("mount /proc without restrictions; workers cannot start without the boot id");
    }
    Finding::ok("proc", "/proc lists processes and their children")
}

/// Whether a worker started from here runs each command in a control group.
fn containment(obstacle: Option<&Obstacle>) -> Finding {
    match obstacle {
        None => Finding::ok("containment", "each command runs in a cgroup and cannot leave a process behind"),
        Some(why) => {
            let message = format!(
                "no cgroups for commands ({why}): their processes are found by session, environment and descriptors"
            );
            Finding::ok("containment", message)
        }
    }
}

/// Whether the clock is behind timestamps that it produced earlier.
pub(super) fn check_clock(diagnosis: &mut Diagnosis, store: &dyn Store) -> Result<(), StoreError> {
    let page = Page { limit: JOBS_CHECKED, after: None };
    let changes = store.list(&JobFilter::default(), &page)?.into_iter().map(|job| job.updated_at);
    let beats = store.workers()?.into_iter().map(|worker| worker.last_heartbeat);
    let newest = changes.chain(beats).max().unwrap_or(Timestamp::EPOCH);
    diagnosis.add(clock(store.now()?, newest));
    Ok(())
}

fn clock(now: Timestamp, newest: Timestamp) -> Finding {
    let behind = newest.since(now);
    if behind <= CLOCK_TOLERANCE {
        return Finding::ok("clock", "not behind the newest time in the queue");
    }
    let behind = format_seconds(behind);
    Finding::warning("clock", format!("{behind} behind the newest time in the queue")).advise(SET_THE_CLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    #[test]
    fn the_finding_says_why_commands_have_no_groups() {
        assert!(containment(None).message.contains("runs in a cgroup"));
        let without = containment(Some(&Obstacle::NoKill));
        assert_eq!(without.level, Level::Ok);
        assert!(without.message.contains("(the kernel has no cgroup.kill)"), "{}", without.message);
    }

    #[test]
    fn a_clock_that_was_set_back_is_a_warning() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1000);
        assert_eq!(clock(at(100), at(99)).level, Level::Ok);
        assert_eq!(clock(at(100), at(105)).level, Level::Ok);
        let behind = clock(at(100), at(3_800));
        assert_eq!(
            (behind.level, &*behind.message),
            (Level::Warning, "1h1m40s behind the newest time in the queue")
        );
    }
}
