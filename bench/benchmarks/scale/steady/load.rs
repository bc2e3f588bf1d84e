//! The threads of the steady load. Each has sessions of its own, as separate processes would.

use std::mem;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use store::retention::RetentionPass;
use store::{Exchange, LeaseRef, Settlement, settings};

use crate::Bench;
use crate::rig::filled::{Shape, Worker, fill, success};
use crate::rig::sample::Sample;
use crate::rig::workspace::Home;

/// A pace: an enqueuer adds jobs at each beat, and each worker takes a turn.
pub(super) struct Load {
    workers: u32,
    jobs_per_beat: u32,
    beats_per_second: u32,
    slots: u32,
}

/// The pause between two passes of retention, and how often a worker sends a heartbeat.
const RETENTION_PAUSE: Duration = Duration::from_secs(10);
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);
/// How often the jobs are counted for `metrics`, by one worker for all.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(60);
/// How often a thread that waits looks whether the run is over.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// What the threads did since this was last taken.
#[derive(Default)]
pub(super) struct Turns(Mutex<Seen>);

#[derive(Default)]
pub(super) struct Seen {
    pub(super) milliseconds: Sample,
    pub(super) settled: u32,
    pub(super) prune_milliseconds: Sample,
    pub(super) pruned: u32,
}

impl Turns {
    pub(super) fn take(&self) -> Seen {
        mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, note: impl FnOnce(&mut Seen)) {
        note(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Load {
    pub(super) const STANDARD: Self =
        Self { workers: 4, jobs_per_beat: 100, beats_per_second: 20, slots: 32 };

    pub(super) fn jobs_per_second(&self) -> u32 {
        self.jobs_per_beat * self.beats_per_second
    }

    fn beat(&self) -> Duration {
        Duration::from_secs(1) / self.beats_per_second
    }

    /// Starts an enqueuer, the workers, and retention.
    pub(super) fn start<'s, 'e: 's>(
        &'e self,
        scope: &'s Scope<'s, 'e>,
        bench: &'e Bench,
        home: &'e Home,
        turns: &'e Turns,
        is_over: &'e AtomicBool,
    ) -> Vec<ScopedJoinHandle<'s, Result<()>>> {
        let mut threads = vec![
            scope.spawn(move || self.enqueue(bench, home, is_over)),
            scope.spawn(move || prune(home, turns, is_over)),
        ];
        for number in 0..self.workers {
            threads.push(scope.spawn(move || self.work(home, turns, is_over, number == 0)));
        }
        threads
    }

    fn enqueue(&self, bench: &Bench, home: &Home, is_over: &AtomicBool) -> Result<()> {
        let store = home.open()?;
        let mut next = Instant::now();
        while !is_over.load(Ordering::Relaxed) {
            fill(bench, store.as_ref(), self.jobs_per_beat, Shape::Plain)?;
            next += self.beat();
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        Ok(())
    }

    /// Takes its share of the jobs at each beat, and so many more as keeps the pace after a delay.
    fn work(&self, home: &Home, turns: &Turns, is_over: &AtomicBool, samples: bool) -> Result<()> {
        let store = home.open()?;
        let worker = Worker::register_idle(store.as_ref(), self.slots)?;
        let share = f64::from(self.jobs_per_second()) / f64::from(self.workers);
        let (began, mut claimed, mut running) = (Instant::now(), 0.0, Vec::<LeaseRef>::new());
        let (mut next, mut heartbeat, mut sample) =
            (began, began + HEARTBEAT_INTERVAL, began + SAMPLE_INTERVAL);
        while !is_over.load(Ordering::Relaxed) {
            let owed = (share * began.elapsed().as_secs_f64() - claimed).max(0.0);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few jobs")]
            let want = (owed as usize).min(self.slots as usize);
            let settlements: Vec<Settlement> = running.drain(..).map(success).collect();
            let turn = Exchange { worker: worker.id(), settlements: &settlements, want, want_limited: 0 };
            let asked = Instant::now();
            let exchanged = store.exchange(&turn)?;
            let took = asked.elapsed().as_secs_f64() * 1000.0;
            ensure!(exchanged.stale.is_empty(), "a lease was lost");
            turns.note(|seen| {
                seen.milliseconds.push(took);
                seen.settled += u32::try_from(settlements.len()).unwrap_or(u32::MAX);
            });
            running.extend(exchanged.claimed.into_iter().map(|claim| claim.lease));
            claimed += f64::from(u32::try_from(running.len())?);
            if heartbeat <= Instant::now() {
                heartbeat += HEARTBEAT_INTERVAL;
                store.extend(worker.id(), &running)?;
            }
            if samples && sample <= Instant::now() {
                sample += SAMPLE_INTERVAL;
                store.sample_depth()?;
            }
            next = (next + self.beat()).max(Instant::now());
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        Ok(())
    }
}

/// What workers do once an hour, more often: deletes expired jobs step by step.
fn prune(home: &Home, turns: &Turns, is_over: &AtomicBool) -> Result<()> {
    let store = home.open()?;
    let settings = settings::in_force(store.as_ref())?;
    while !is_over.load(Ordering::Relaxed) {
        let mut pass = RetentionPass::by_settings(&settings, store.now()?, Path::new("/nonexistent"));
        let mut deleted = 0;
        loop {
            let began = Instant::now();
            let is_unfinished = pass.step(store.as_ref())?;
            let took = began.elapsed().as_secs_f64() * 1000.0;
            let step = u32::try_from(pass.deleted().jobs - deleted)?;
            deleted = pass.deleted().jobs;
            turns.note(|seen| {
                seen.pruned += step;
                // Other steps examine few rows.
                seen.prune_milliseconds.extend((step > 0).then_some(took));
            });
            if !is_unfinished || is_over.load(Ordering::Relaxed) {
                break;
            }
        }
        let until = Instant::now() + RETENTION_PAUSE;
        while Instant::now() < until && !is_over.load(Ordering::Relaxed) {
            thread::sleep(POLL_INTERVAL);
        }
    }
    Ok(())
}
