//! The current problem of a worker, published next to its lock file, because the store itself may be the problem.

use std::time::{Duration, Instant};

/// How long after the next try a store that has failed counts as failing, unless it fails again.
const STORE_FAILURE_TTL: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(crate) struct HealthNote {
    /// The last error of the store, and when it is tried again.
    store: Option<(String, Instant)>,
    published: String,
}

impl HealthNote {
    /// Notes an error of the store, which is tried again at this moment.
    pub(crate) fn note_store(&mut self, error: String, retry_at: Instant) {
        self.store = Some((error, retry_at));
    }

    /// The problem that was published last; `None` if there is none.
    pub(crate) fn published(&self) -> Option<&str> {
        Some(self.published.as_str()).filter(|problem| !problem.is_empty())
    }

    /// The text to publish, if it has changed; empty when the worker has no problem. `obstacle` is the reason why
    /// commands cannot be started.
    pub(crate) fn take_change(&mut self, obstacle: Option<&str>, now: Instant) -> Option<&str> {
        let store = self.store.as_ref().filter(|(_, at)| now < *at + STORE_FAILURE_TTL);
        let current = store.map(|(error, _)| error.as_str()).or(obstacle).unwrap_or_default();
        if current == self.published {
            return None;
        }
        current.clone_into(&mut self.published);
        Some(&self.published)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_published_once() {
        let began = Instant::now();
        let mut health = HealthNote::default();
        assert_eq!(health.take_change(None, began), None, "there was never a problem");
        assert_eq!(health.take_change(Some("no descriptors"), began), Some("no descriptors"));
        assert_eq!(health.take_change(Some("no descriptors"), began), None);
        health.note_store("the disk is full".to_owned(), began);
        assert_eq!(
            health.take_change(Some("no descriptors"), began),
            Some("the disk is full"),
            "an error of the store comes first"
        );
        assert_eq!(health.take_change(None, began), None);
        assert_eq!(health.take_change(None, began + STORE_FAILURE_TTL), Some(""), "it has not failed again");
        assert_eq!(health.take_change(None, began + STORE_FAILURE_TTL), None);
    }
}
