//! Guards that a test can switch off, to verify that the check that relies on them fails.
//!
//! A check that has never failed proves nothing. `QUEUECTL_WITHOUT=fencing,durability` switches off the guards with these
//! names for the lifetime of the process, in debug builds only: in a release build no guard can be switched off.

/// A mechanism that upholds a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// A worker whose lease was lost cannot write anything.
    Fencing,
    /// A command holds the lock of its slot, and no command is started in a slot whose lock is held.
    AttemptLock,
    /// A commit waits until it is on disk.
    Durability,
    /// The orphaned processes of a dead worker are found and killed.
    OrphanCleanup,
    /// A queue never runs more jobs concurrently than its limit.
    QueueLimits,
    /// A worker polls for work and orders, even if no bell rings. Without this guard it notices only rings and events with a
    /// known time.
    Polling,
    /// Pids and sessions are trusted only in the pid namespace and the home in which they were recorded.
    Namespaces,
    /// A change of many jobs, or of a job with many dependents, is split into short transactions, between which other
    /// writers get their turn.
    Portions,
    /// Commands run in control groups where this user can make them. Without this guard the other ways to find orphans are
    /// tested on a machine that has control groups.
    Containment,
    /// A worker that is cut off from a store of several machines ends its commands before its leases can be taken over.
    SelfFencing,
    /// A worker that says on a server that it sleeps looks for jobs once more.
    SecondLook,
    /// A job that becomes ready on a server lowers the floor of its queue.
    FloorGuard,
}

/// Whether a test has switched this guard off.
#[cfg(not(debug_assertions))]
#[inline]
pub fn is_off(_guard: Guard) -> bool {
    false
}

/// Whether a test has switched this guard off.
#[cfg(debug_assertions)]
pub fn is_off(guard: Guard) -> bool {
    without::guards().contains(&guard)
}

#[cfg(debug_assertions)]
mod without {
    use std::sync::OnceLock;

    use super::Guard;

    pub(super) fn guards() -> &'static [Guard] {
        static OFF: OnceLock<Vec<Guard>> = OnceLock::new();
        OFF.get_or_init(|| {
            let names = std::env::var("QUEUECTL_WITHOUT").unwrap_or_default();
            names.split(',').filter(|name| !name.is_empty()).map(parse).collect()
        })
    }

    /// Panics on an unknown name: ignoring it would make a test believe that it had switched a guard off.
    fn parse(name: &str) -> Guard {
        match name {
            "fencing" => Guard::Fencing,
            "attempt_lock" => Guard::AttemptLock,
            "durability" => Guard::Durability,
            "orphan_cleanup" => Guard::OrphanCleanup,
            "queue_limits" => Guard::QueueLimits,
            "polling" => Guard::Polling,
            "namespaces" => Guard::Namespaces,
            "portions" => Guard::Portions,
            "containment" => Guard::Containment,
            "self_fencing" => Guard::SelfFencing,
            "second_look" => Guard::SecondLook,
            "floor_guard" => Guard::FloorGuard,
            unknown => panic!("QUEUECTL_WITHOUT: unknown guard `{unknown}`"),
        }
    }
}
