//! What is seen of a campaign while it lasts.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::cli::context::Context;
use crate::cli::progress::Bar;
use crate::proof::campaign::{Campaign, Spectator};
use crate::proof::trial::News;
use crate::sys::interrupts::Interrupts;

pub(super) struct Progress {
    lasts: Duration,
    began: Instant,
    interrupts: Interrupts,
    scene: Mutex<Scene>,
}

struct Scene {
    bar: Bar,
    /// The trials that are under way, and what was last heard of each.
    under_way: BTreeMap<u64, String>,
    interrupted_by: Option<Signal>,
}

impl Progress {
    pub(super) fn new(context: &Context, campaign: &Campaign, interrupts: Interrupts) -> Self {
        let bar = Bar::new(context, "trying", Some(campaign.lasts.as_secs().max(1)));
        let scene = Scene { bar, under_way: BTreeMap::new(), interrupted_by: None };
        Self { lasts: campaign.lasts, began: Instant::now(), interrupts, scene: Mutex::new(scene) }
    }

    fn scene(&self) -> MutexGuard<'_, Scene> {
        self.scene.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Clears the line. Gives the signal that ended it early, if one did.
    pub(super) fn end(self) -> Option<(Interrupts, Signal)> {
        let scene = self.scene.into_inner().unwrap_or_else(PoisonError::into_inner);
        Some((self.interrupts, scene.interrupted_by?))
    }
}

impl Spectator for Progress {
    fn told(&self, trial: u64, nemesis: &'static str, news: &News) {
        let mut scene = self.scene();
        match words(news) {
            Some(words) => _ = scene.under_way.insert(trial, format!("{nemesis}: {words}")),
            None => _ = scene.under_way.remove(&trial),
        }
        let under_way = scene.under_way.values().cloned().collect::<Vec<_>>().join(" · ");
        let seconds = self.began.elapsed().min(self.lasts).as_secs();
        scene.bar.show(seconds, || format!("s, {under_way}"));
    }

    fn has_enough(&self) -> bool {
        let mut scene = self.scene();
        if scene.interrupted_by.is_none() {
            scene.interrupted_by = self.interrupts.take();
        }
        scene.interrupted_by.is_some()
    }
}

fn words(news: &News) -> Option<String> {
    match news {
        News::Loading => Some("loading".to_owned()),
        News::Struck { strikes } => Some(format!("struck {strikes} times")),
        News::Draining { left } => Some(format!("{left} jobs left")),
        News::Judging => None,
    }
}
