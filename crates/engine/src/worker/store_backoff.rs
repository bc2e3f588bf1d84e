//! How long a worker waits before it uses a store again that has failed.

use std::time::Duration;

/// For a file, which is usually available again at once.
const FILE_DELAY: Duration = Duration::from_millis(250);
/// For a server, which every worker asks again: the delay doubles, and no two workers come back at the same time.
const FIRST_SERVER_DELAY: Duration = Duration::from_millis(50);
const MAX_SERVER_DELAY: Duration = Duration::from_secs(5);
/// With a short lease the worker asks at least this often in its time.
const TRIES_PER_LEASE: u32 = 8;
/// The part of the delay that is random.
const JITTER: f64 = 0.5;

#[derive(Debug, Default)]
pub(crate) struct StoreBackoff {
    failures: u32,
}

impl StoreBackoff {
    /// The delay after one more failure of a file.
    pub(crate) fn after_file_failure() -> Duration {
        FILE_DELAY
    }

    /// The delay after one more failure of a server. `random` is between 0 and 1.
    pub(crate) fn after_server_failure(&mut self, lease: Duration, random: f64) -> Duration {
        let most = MAX_SERVER_DELAY.min(lease / TRIES_PER_LEASE);
        let full = FIRST_SERVER_DELAY.saturating_mul(1 << self.failures.min(16)).min(most);
        self.failures = self.failures.saturating_add(1);
        full.mul_f64(1.0 - JITTER * random)
    }

    pub(crate) fn note_success(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_for_a_server_doubles_up_to_a_limit() {
        let mut backoff = StoreBackoff::default();
        let mut delay =
            |seconds, random| backoff.after_server_failure(Duration::from_secs(seconds), random).as_millis();
        let delays: Vec<_> = (0..9).map(|_| delay(60, 0.0)).collect();
        assert_eq!(delays, [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        assert_eq!(delay(60, 1.0), 2_500, "at least half of it");
        assert_eq!(delay(8, 0.0), 1_000, "the lease is short");
        backoff.note_success();
        assert_eq!(backoff.after_server_failure(Duration::from_secs(60), 0.0).as_millis(), 50);
    }
}
