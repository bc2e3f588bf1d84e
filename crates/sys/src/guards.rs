//! Guards that a test can take away, to see that the check that relies on them turns red.
//!
//! A check that has never failed proves nothing. `QUEUECTL_WITHOUT=fencing,durability` switches the guards of these names
//! off, in debug builds only and for the whole life of the process: a released build cannot be talked out of anything.

/// What keeps a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// What a lease that was lost writes changes nothing.
    Fencing,
    /// A command holds the lock of its slot, and nothing is started in a slot whose lock is held.
    AttemptLock,
    /// A commit waits until it is on disk.
    Durability,
    /// What a dead worker left behind is looked for and killed.
    Sweep,
    /// No more jobs of a queue run at once than it allows.
    QueueLimits,
    /// A worker looks for work and orders now and then, although nobody rang. Without this only what rings, or has a time of
    /// its own, is ever noticed.
    Polling,
    /// Pids and sessions are believed only in the pid namespace and the home in which they were written down.
    Namespaces,
    /// A change of many jobs, or of one with many dependents, is cut into short transactions, and other writers are served
    /// in between.
    Portions,
}

/// Whether a test has taken this guard away.
#[cfg(not(debug_assertions))]
#[inline]
pub fn is_off(_guard: Guard) -> bool {
    false
}

/// Whether a test has taken this guard away.
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

    /// A name that nobody knows would make a test believe that it had switched something off.
    fn parse(name: &str) -> Guard {
        match name {
            "fencing" => Guard::Fencing,
            "attempt_lock" => Guard::AttemptLock,
            "durability" => Guard::Durability,
            "sweep" => Guard::Sweep,
            "queue_limits" => Guard::QueueLimits,
            "polling" => Guard::Polling,
            "namespaces" => Guard::Namespaces,
            "portions" => Guard::Portions,
            unknown => panic!("QUEUECTL_WITHOUT: there is no guard `{unknown}`"),
        }
    }
}
