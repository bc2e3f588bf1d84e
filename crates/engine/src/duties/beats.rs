//! Judges workers by their beats: those on other machines and in other containers, whose locks prove nothing here.
//!
//! A worker is silent if this process saw its number unchanged for a whole lease on its own clock. No wall clock and no age
//! of a timestamp matters, so none can jump. The observation must be without gaps: if this process slept, or the store
//! did not answer, the others may have been cut off as well, and every observation starts over.
//!
//! The clock is CLOCK_BOOTTIME: on a clock that stands still in suspension, a suspended observer would see no gap.

use std::collections::HashMap;
use std::time::Duration;

use domain::settings::Settings;
use domain::values::name::WorkerId;
use store::Beat;

/// How many times per lease beats are read at least.
const READS_PER_LEASE: u32 = 6;
/// A longer gap between two reads than this part of a lease makes every observation start over.
const GAPS_PER_LEASE: u32 = 4;
/// Shorter gaps than this are normal for a busy machine, however short the lease.
const MIN_GAP: Duration = Duration::from_millis(1_500);

/// How often beats are read.
pub(crate) fn read_interval(settings: &Settings) -> Duration {
    settings.heartbeat_interval.min(settings.lease / READS_PER_LEASE)
}

/// When a request for beats was sent, and when its answer arrived, on the clock of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) sent: Duration,
    pub(crate) answered: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct BeatWatch {
    seen: HashMap<WorkerId, Seen>,
    /// The last request that was answered.
    last: Option<Asked>,
    patience: Option<Patience>,
}

/// A number of a worker, and when this process first saw it.
#[derive(Clone, Copy, Debug)]
struct Seen {
    number: u64,
    since: Duration,
}

/// The lease to go by. When the setting becomes shorter, other workers need a while to adopt it; until then they may beat
/// as rarely as before.
#[derive(Clone, Copy, Debug)]
struct Patience {
    lease: Duration,
    /// Since when the setting has been shorter.
    shorter_since: Option<Duration>,
}

impl Patience {
    fn update(before: Option<Self>, lease: Duration, now: Duration) -> Self {
        let fresh = Self { lease, shorter_since: None };
        let Some(before) = before.filter(|before| lease < before.lease) else {
            return fresh;
        };
        let since = before.shorter_since.unwrap_or(now);
        if now.saturating_sub(since) >= before.lease {
            fresh
        } else {
            Self { shorter_since: Some(since), ..before }
        }
    }
}

impl BeatWatch {
    /// Notes the beats of all workers; returns those that have been silent for a whole lease.
    pub(crate) fn note(&mut self, beats: &[Beat], asked: Asked, lease: Duration) -> Vec<WorkerId> {
        let patience = Patience::update(self.patience, lease, asked.answered);
        self.patience = Some(patience);
        let most = MIN_GAP.max(patience.lease / GAPS_PER_LEASE);
        // From sending to the answer: how long the request took is part of the gap.
        if self.last.is_none_or(|last| asked.answered.saturating_sub(last.sent) > most) {
            self.seen.clear();
        }
        self.last = Some(asked);
        let mut silent = Vec::new();
        let mut seen = HashMap::with_capacity(beats.len());
        for Beat { worker, number } in beats {
            let fresh = Seen { number: *number, since: asked.answered };
            let known = self.seen.get(worker).copied().filter(|known| known.number == *number);
            let known = known.unwrap_or(fresh);
            if asked.sent.saturating_sub(known.since) >= patience.lease {
                silent.push(worker.clone());
            }
            seen.insert(worker.clone(), known);
        }
        self.seen = seen;
        silent
    }

    /// The store did not answer, or another worker observes: nothing seen so far counts.
    pub(crate) fn start_over(&mut self) {
        self.seen.clear();
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    /// An observer whose clock the test moves, and one worker.
    struct Scene {
        watch: BeatWatch,
        now: Duration,
        number: u64,
        lease: Duration,
    }

    impl Scene {
        fn new() -> Self {
            let now = Duration::from_secs(5_000);
            let mut scene = Self { watch: BeatWatch::default(), now, number: 7, lease: LEASE };
            assert!(!scene.read());
            scene
        }

        /// Whether the worker is silent after one more read.
        fn read(&mut self) -> bool {
            let beat = Beat { worker: "w".parse().expect("a name"), number: self.number };
            let asked = Asked { sent: self.now, answered: self.now + Duration::from_millis(5) };
            !self.watch.note(&[beat], asked, self.lease).is_empty()
        }

        /// Reads every 5 s for this long.
        fn pass(&mut self, seconds: u64) -> bool {
            let mut is_silent = false;
            for _ in 0..seconds / 5 {
                self.now += Duration::from_secs(5);
                is_silent = self.read();
            }
            is_silent
        }
    }

    #[test]
    fn a_number_that_was_unchanged_for_a_whole_lease_means_silence() {
        let mut scene = Scene::new();
        assert!(!scene.pass(30), "the first answer arrived a moment after it was sent");
        assert!(scene.pass(5));
        scene.number += 1;
        assert!(!scene.pass(35), "it is back");
        assert!(scene.pass(5));
    }

    #[test]
    fn a_number_that_goes_back_is_a_sign_of_life_too() {
        let mut scene = Scene::new();
        scene.pass(25);
        scene.number = 1;
        assert!(!scene.pass(30));
    }

    #[test]
    fn an_outage_of_the_store_starts_every_observation_over() {
        let mut scene = Scene::new();
        assert!(!scene.pass(25));
        scene.watch.start_over();
        assert!(!scene.pass(35), "the first answer after the outage counts as the first sight");
        assert!(scene.pass(5));
    }

    #[test]
    fn a_gap_of_the_observer_starts_every_observation_over() {
        let mut scene = Scene::new();
        assert!(!scene.pass(25));
        scene.now += Duration::from_secs(8);
        assert!(!scene.read(), "it was asleep for more than a quarter of the lease");
        assert!(!scene.pass(30) && scene.pass(5));
        scene.now += Duration::from_millis(7_400);
        assert!(scene.read(), "a shorter gap does not matter");
    }

    #[test]
    fn a_request_that_takes_long_is_a_gap() {
        let mut scene = Scene::new();
        assert!(!scene.pass(30));
        let beat = Beat { worker: "w".parse().expect("a name"), number: scene.number };
        let sent = scene.now + Duration::from_secs(5);
        let asked = Asked { sent, answered: sent + Duration::from_secs(6) };
        assert_eq!(scene.watch.note(&[beat], asked, LEASE), [], "the store hung meanwhile");
    }

    #[test]
    fn a_suspended_observer_judges_no_worker_at_once() {
        let mut scene = Scene::new();
        scene.now += Duration::from_secs(3_600);
        assert!(!scene.read(), "its own clock jumped by the time of its sleep");
        assert!(!scene.pass(30) && scene.pass(5));
    }

    #[test]
    fn a_restarted_observer_watches_a_whole_lease_again() {
        let mut scene = Scene::new();
        assert!(scene.pass(35));
        scene.watch = BeatWatch::default();
        assert!(!scene.read() && !scene.pass(30), "whatever the age of the last heartbeat");
        assert!(scene.pass(5));
    }

    #[test]
    fn a_shorter_lease_counts_when_every_worker_can_have_adopted_it() {
        let mut scene = Scene::new();
        scene.pass(5);
        scene.lease = Duration::from_secs(9);
        let mut silent_reads = |count: u32| {
            let mut silent = 0;
            for _ in 0..count {
                scene.now += Duration::from_millis(1_500);
                silent += u32::from(scene.read());
            }
            silent
        };
        assert_eq!(silent_reads(16), 0, "the worker may still beat as rarely as before, for 30 s");
        assert_eq!(silent_reads(1), 1, "a whole lease as it was");
        scene.number += 1;
        let mut silent_after = |seconds: u64| {
            let until = scene.now + Duration::from_secs(seconds);
            let mut is_silent = false;
            while scene.now < until {
                scene.now += Duration::from_millis(1_500);
                is_silent = scene.read();
            }
            is_silent
        };
        assert!(!silent_after(9) && silent_after(3), "now the shorter one counts");
        scene.lease = LEASE;
        assert!(!scene.read(), "a longer one counts at once");
    }

    #[test]
    fn workers_are_observed_separately_and_only_while_they_are_registered() {
        let mut watch = BeatWatch::default();
        let beat = |name: &str, number| Beat { worker: name.parse().expect("a name"), number };
        let mut read = |seconds: u64, beats: &[Beat]| {
            let now = Duration::from_secs(seconds);
            let silent = watch.note(beats, Asked { sent: now, answered: now }, LEASE);
            silent.iter().map(WorkerId::to_string).collect::<Vec<_>>()
        };
        for second in (0..30).step_by(5) {
            assert!(read(second, &[beat("a", 1), beat("b", second)]).is_empty());
        }
        assert_eq!(read(30, &[beat("a", 1), beat("b", 30)]), ["a"]);
        assert!(read(35, &[beat("b", 35)]).is_empty());
        assert!(read(40, &[beat("a", 1)]).is_empty(), "it is new again");
    }
}
