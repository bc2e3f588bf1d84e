//! What the supervisor tells the service manager that started it: readiness, signs of life, and a status line.

use std::time::{Duration, Instant};

use sys::service_manager::ServiceManager;

#[derive(Debug)]
pub(crate) struct ServiceReports<'a> {
    manager: Option<&'a ServiceManager>,
    /// The status line that the manager shows.
    status: String,
    /// When the next sign of life is due; `None` if the manager wants none.
    next: Option<(Instant, Duration)>,
}

/// The numbers in the status line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolCounts {
    pub(crate) workers: usize,
    pub(crate) up: usize,
    pub(crate) running: usize,
}

impl PoolCounts {
    fn describe(self) -> String {
        let Self { workers, up, running } = self;
        let jobs = counted(running, "job");
        if up < workers {
            format!("{up} of {} up, {jobs} running", counted(workers, "worker"))
        } else {
            format!("{} up, {jobs} running", counted(workers, "worker"))
        }
    }
}

impl<'a> ServiceReports<'a> {
    pub(crate) fn new(manager: Option<&'a ServiceManager>, now: Instant) -> Self {
        let interval = manager.and_then(ServiceManager::watchdog_interval);
        Self { manager, status: String::new(), next: interval.map(|interval| (now, interval)) }
    }

    /// Whether a manager listens.
    pub(crate) fn has_listener(&self) -> bool {
        self.manager.is_some()
    }

    /// When the supervisor must wake up to give a sign of life.
    pub(crate) fn next_sign_of_life(&self) -> Option<Instant> {
        self.next.map(|(at, _)| at)
    }

    pub(crate) fn give_sign_of_life(&mut self, now: Instant) {
        if let (Some(manager), Some((at, interval))) = (self.manager, self.next)
            && at <= now
        {
            manager.is_alive();
            self.next = Some((now + interval, interval));
        }
    }

    pub(crate) fn is_ready(&mut self, counts: PoolCounts) {
        self.status = counts.describe();
        if let Some(manager) = self.manager {
            manager.ready(&self.status);
        }
    }

    /// Sends the status line if it has changed.
    pub(crate) fn update_status(&mut self, counts: PoolCounts) {
        let status = counts.describe();
        if let Some(manager) = self.manager.filter(|_| status != self.status) {
            manager.status(&status);
        }
        self.status = status;
    }

    pub(crate) fn is_stopping(&self, what: &str) {
        if let Some(manager) = self.manager {
            manager.stopping(&format!("Stopping: the workers {what} their jobs"));
        }
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_line_counts_workers_and_jobs() {
        let line = |workers, up, running| PoolCounts { workers, up, running }.describe();
        assert_eq!(line(1, 1, 0), "1 worker up, 0 jobs running");
        assert_eq!(line(3, 2, 1), "2 of 3 workers up, 1 job running");
    }

    #[test]
    fn without_a_manager_no_sign_is_due() {
        let mut reports = ServiceReports::new(None, Instant::now());
        reports.is_ready(PoolCounts { workers: 1, up: 1, running: 0 });
        assert!(!reports.has_listener());
        assert_eq!(reports.next_sign_of_life(), None);
    }
}
