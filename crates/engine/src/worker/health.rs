//! What is in a worker's way, told where others can read it: beside its lock, because the store may be what is in its way.

use std::time::{Duration, Instant};

/// How long after its last failure a store counts as failing: it is tried again much sooner than that.
const STORE_LASTS: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(crate) struct HealthNote {
    /// What the store said, and when.
    store: Option<(String, Instant)>,
    told: String,
}

impl HealthNote {
    /// The store could not do what was asked.
    pub(crate) fn note_store(&mut self, trouble: String, now: Instant) {
        self.store = Some((trouble, now));
    }

    /// What is to be told, if that is something else than before; nothing is in the way where it is empty. An obstacle is
    /// what keeps attempts from being started.
    pub(crate) fn news(&mut self, obstacle: Option<&str>, now: Instant) -> Option<&str> {
        let store = self.store.as_ref().filter(|(_, at)| now < *at + STORE_LASTS);
        let current = store.map(|(trouble, _)| trouble.as_str()).or(obstacle).unwrap_or_default();
        if current == self.told {
            return None;
        }
        current.clone_into(&mut self.told);
        Some(&self.told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_once() {
        let began = Instant::now();
        let mut health = HealthNote::default();
        assert_eq!(health.news(None, began), None, "nothing was ever in the way");
        assert_eq!(health.news(Some("no descriptors"), began), Some("no descriptors"));
        assert_eq!(health.news(Some("no descriptors"), began), None);
        health.note_store("the disk is full".to_owned(), began);
        assert_eq!(health.news(Some("no descriptors"), began), Some("the disk is full"), "that is worse");
        assert_eq!(health.news(None, began), None);
        assert_eq!(health.news(None, began + STORE_LASTS), Some(""), "it has not failed again");
        assert_eq!(health.news(None, began + STORE_LASTS), None);
    }
}
