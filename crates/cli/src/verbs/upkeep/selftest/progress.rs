//! The progress of a campaign.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::process::Signal;

use crate::context::Context;
use crate::render::progress::Bar;
use crate::render::text::jobs;
use proof::campaign::CampaignObserver;
use proof::trial::TrialProgress;
use sys::signal::interrupts::Interrupts;

pub(super) struct Progress {
    began: Instant,
    interrupts: Interrupts,
    scene: Mutex<Scene>,
}

struct Scene {
    bar: Bar,
    /// The running trials, with the latest news of each.
    under_way: BTreeMap<u64, String>,
    judged: u64,
    interrupted_by: Option<Signal>,
}

impl Progress {
    pub(super) fn new(context: &Context, interrupts: Interrupts) -> Self {
        let bar = Bar::new(context, "testing", None);
        let scene = Scene { bar, under_way: BTreeMap::new(), judged: 0, interrupted_by: None };
        Self { began: Instant::now(), interrupts, scene: Mutex::new(scene) }
    }

    fn scene(&self) -> MutexGuard<'_, Scene> {
        self.scene.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Clears the progress line. Returns the signal that ended the campaign early, if any.
    pub(super) fn end(self) -> Option<(Interrupts, Signal)> {
        let scene = self.scene.into_inner().unwrap_or_else(PoisonError::into_inner);
        Some((self.interrupts, scene.interrupted_by?))
    }
}

impl CampaignObserver for Progress {
    fn report(&self, trial: u64, nemesis: &'static str, progress: &TrialProgress) {
        let mut scene = self.scene();
        if let Some(words) = words(progress) {
            scene.under_way.insert(trial, format!("{nemesis}: {words}"));
        } else {
            scene.under_way.remove(&trial);
            scene.judged += 1;
        }
        let done = format!("{}s, {} trials done", self.began.elapsed().as_secs(), scene.judged);
        let under_way = scene.under_way.values().cloned();
        let line = std::iter::once(done).chain(under_way).collect::<Vec<_>>().join(" · ");
        scene.bar.say(|| line);
    }

    fn is_interrupted(&self) -> bool {
        let mut scene = self.scene();
        if scene.interrupted_by.is_none() {
            scene.interrupted_by = self.interrupts.take();
        }
        scene.interrupted_by.is_some()
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
