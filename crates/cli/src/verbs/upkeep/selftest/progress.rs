//! What is seen of a campaign while it lasts.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::process::Signal;

use crate::context::Context;
use crate::render::progress::Bar;
use crate::render::text::jobs;
use proof::campaign::Spectator;
use proof::trial::News;
use sys::signal::interrupts::Interrupts;

pub(super) struct Progress {
    began: Instant,
    interrupts: Interrupts,
    scene: Mutex<Scene>,
}

struct Scene {
    bar: Bar,
    /// The trials that are under way, and what was last heard of each.
    under_way: BTreeMap<u64, String>,
    judged: u64,
    interrupted_by: Option<Signal>,
}

impl Progress {
    pub(super) fn new(context: &Context, interrupts: Interrupts) -> Self {
        let bar = Bar::new(context, "trying", None);
        let scene = Scene { bar, under_way: BTreeMap::new(), judged: 0, interrupted_by: None };
        Self { began: Instant::now(), interrupts, scene: Mutex::new(scene) }
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
        if let Some(words) = words(news) {
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
        News::Struck { strikes: 1 } => Some("1 strike".to_owned()),
        News::Struck { strikes } => Some(format!("{strikes} strikes")),
        News::Draining { left } => Some(format!("{} left", jobs(*left))),
        News::Judging => None,
    }
}
