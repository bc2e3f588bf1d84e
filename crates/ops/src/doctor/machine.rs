//! The machine: its clock, what `/proc` has to tell, and what a sandbox forbids.

use std::path::Path;
use std::time::Duration;

use super::{Diagnosis, Finding};
use domain::values::span::format_span;
use domain::values::timestamp::Timestamp;
use store::{JobFilter, Page, Store, StoreError};
use sys::clock::{Clock, SystemClock};
use sys::host;
use sys::process::Children;
use sys::process::brand::Brand;

/// 2024-01-01: a clock that says it is earlier was never set.
const NOT_BEFORE: Timestamp = Timestamp::from_millis(1_704_067_200_000);
/// A clock that was adjusted by less than this is no reason to worry.
const TOLERANCE: Duration = Duration::from_secs(5);
/// Among so many of the newest jobs the latest change is looked for.
const JOBS_LOOKED_AT: usize = 100;
const SET_THE_CLOCK: &str = "set the clock: retries and scheduled jobs wait for it";

pub(super) fn check(diagnosis: &mut Diagnosis) {
    let now = Timestamp::from_millis(SystemClock.wall_millis());
    if now < NOT_BEFORE {
        diagnosis.add(Finding::warning("clock", format!("it says {now}")).advise(SET_THE_CLOCK));
    }
    diagnosis.add(proc_filesystem());
    diagnosis.add(brand(Brand::is_allowed()));
}

fn proc_filesystem() -> Finding {
    if !Path::new("/proc/self").exists() {
        return Finding::error("proc", "/proc is not mounted").advise("`mount -t proc proc /proc`");
    }
    if Children::open().is_err() {
        let said = "the kernel lists no children of processes (CONFIG_PROC_CHILDREN)";
        return Finding::error("proc", said)
            .advise("use a kernel that does; workers cannot start on this one");
    }
    if let Err(error) = host::boot_id() {
        let said = format!("the id of the boot cannot be read ({error})");
        return Finding::error("proc", said).advise("workers cannot start without it; mount all of /proc");
    }
    Finding::ok("proc", "/proc lists processes and their children")
}

/// What a worker that is started from here may do to tell the daemons of its slots apart.
fn brand(is_allowed: bool) -> Finding {
    if is_allowed {
        return Finding::ok("brand", "what jobs leave behind can be told apart");
    }
    let said = "personality(2) is forbidden here: a daemon that sheds its session, environment and descriptors lives on \
                until every job that ran beside its own has ended";
    Finding::warning("brand", said)
        .advise("start workers with `--concurrency 1`, or let the sandbox allow personality(2)")
}

/// Whether the clock has fallen behind what was written by it.
pub(super) fn check_clock(diagnosis: &mut Diagnosis, store: &dyn Store) -> Result<(), StoreError> {
    let page = Page { limit: JOBS_LOOKED_AT, after: None };
    let changes = store.list(&JobFilter::default(), &page)?.into_iter().map(|job| job.updated_at);
    let beats = store.workers()?.into_iter().map(|worker| worker.last_heartbeat);
    let newest = changes.chain(beats).max().unwrap_or(Timestamp::EPOCH);
    diagnosis.add(clock(store.now()?, newest));
    Ok(())
}

fn clock(now: Timestamp, newest: Timestamp) -> Finding {
    let behind = newest.since(now);
    if behind <= TOLERANCE {
        return Finding::ok("clock", "not behind anything in the queue");
    }
    let behind = format_span(Duration::from_secs(behind.as_secs()));
    Finding::warning("clock", format!("{behind} behind the newest time in the queue")).advise(SET_THE_CLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    #[test]
    fn a_sandbox_without_brands_is_noticed() {
        assert_eq!(brand(true).level, Level::Ok);
        let forbidden = brand(false);
        assert_eq!(forbidden.level, Level::Warning);
        assert!(forbidden.advice.is_some_and(|advice| advice.contains("--concurrency 1")));
    }

    #[test]
    fn a_clock_that_was_set_back_is_noticed() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1000);
        assert_eq!(clock(at(100), at(99)).level, Level::Ok);
        assert_eq!(clock(at(100), at(105)).level, Level::Ok);
        let behind = clock(at(100), at(3_800));
        assert_eq!(
            (behind.level, &*behind.said),
            (Level::Warning, "1h1m40s behind the newest time in the queue")
        );
    }
}
