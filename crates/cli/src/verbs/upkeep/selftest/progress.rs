//! The progress of a campaign.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::process::Signal;

use super::results::counted_trials;
use crate::context::Context;
use crate::render::progress::Bar;
use crate::render::text::jobs;
use proof::campaign::CampaignObserver;
use proof::trial::TrialProgress;
use sys::signal::interrupts::Interrupts;

pub(super) struct Progress {
    began: Instant,
    interrupts: Interrupts,
    state: Mutex<ProgressState>,
}

struct ProgressState {
    bar: Bar,
    /// The running trials, with the latest news of each.
    under_way: BTreeMap<u64, String>,
    judged: u64,
    interrupted_by: Option<Signal>,
}

impl Progress {
    pub(super) fn new(context: &Context, interrupts: Interrupts) -> Self {
        let bar = Bar::new(context, "testing", None);
        let state = ProgressState { bar, under_way: BTreeMap::new(), judged: 0, interrupted_by: None };
        Self { began: Instant::now(), interrupts, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, ProgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Clears the progress line. Returns the signal that ended the campaign early, if any.
    pub(super) fn end(self) -> Option<(Interrupts, Signal)> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        Some((self.interrupts, state.interrupted_by?))
    }
}

impl CampaignObserver for Progress {
    fn report(&self, trial: u64, nemesis: &'static str, progress: &TrialProgress) {
        let mut state = self.state();
        if let Some(words) = words(progress) {
            state.under_way.insert(trial, format!("{nemesis}: {words}"));
        } else {
            state.under_way.remove(&trial);
            state.judged += 1;
        }
        let done = format!("{}s, {} done", self.began.elapsed().as_secs(), counted_trials(state.judged));
        let under_way = state.under_way.values().cloned();
        let line = std::iter::once(done).chain(under_way).collect::<Vec<_>>().join(" · ");
        state.bar.say(|| line);
    }

    fn is_interrupted(&self) -> bool {
        let mut state = self.state();
        if state.interrupted_by.is_none() {
            state.interrupted_by = self.interrupts.take();
        }
        state.interrupted_by.is_some()
    }
}

fn words(progress: &TrialProgress) -> Option<String> {
    match progress {
        TrialProgress::Loading => Some("loading".to_owned()),
        TrialProgress::Struck { strikes: 1 } => Some("1 strike".to_owned()),
        TrialProgress::Struck { strikes } => Some(format!("{strikes} strikes")),
        TrialProgress::Draining { left } => Some(format!("{} left", jobs(*left))),
        TrialProgress::Judging => None,
    }
}
