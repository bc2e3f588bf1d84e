//! The messenger of a worker: tells hooks what happened, beside the jobs and never in their way.
//!
//! One thread for each delivery that is being sent, a few at once and no two to the same hook. Threads only send; what
//! to send comes from the thread that keeps the books, which also records what came of it. A receiver that is slow or
//! gone keeps one of these threads busy and nobody else.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use super::deliver::deliver;
use super::process::Watch;
use crate::attempt::Surroundings;
use crate::worker::dispatcher::EventBell;
use store::{Delivery, DeliveryReport, DeliveryResult};
use sys::failpoint;
use sys::process::brand::Brand;

/// How many hooks are told something at the same time.
const LANES: usize = 4;
const STACK_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub(crate) struct Messenger {
    around: Arc<Surroundings>,
    shared: Arc<Shared>,
    lanes: Vec<Option<JoinHandle<()>>>,
    /// What came of deliveries and is not recorded yet.
    reports: Vec<DeliveryReport>,
}

#[derive(Debug)]
struct Shared {
    /// With the lanes that have become free.
    finished: Mutex<Vec<(usize, DeliveryReport)>>,
    /// Wakes the thread that keeps the books.
    bell: EventBell,
    stop: EventBell,
}

impl Messenger {
    pub(crate) fn new(around: &Arc<Surroundings>) -> io::Result<Self> {
        let shared = Shared { finished: Mutex::default(), bell: EventBell::new()?, stop: EventBell::new()? };
        Ok(Self {
            around: Arc::clone(around),
            shared: Arc::new(shared),
            lanes: (0..LANES).map(|_| None).collect(),
            reports: Vec::new(),
        })
    }

    /// How many deliveries it can take.
    pub(crate) fn room(&self) -> usize {
        self.lanes.iter().filter(|lane| lane.is_none()).count()
    }

    /// Nothing is being sent, and all that was is recorded.
    pub(crate) fn is_idle(&self) -> bool {
        self.room() == LANES && self.reports.is_empty()
    }

    pub(crate) fn send(&mut self, delivery: Delivery) {
        let (number, hook) = (delivery.number, delivery.hook.clone());
        let Some(lane) = self.lanes.iter().position(Option::is_none) else {
            return self.reports.push(DeliveryReport { number, hook, result: DeliveryResult::GivenBack });
        };
        match self.start(lane, delivery) {
            Ok(thread) => self.lanes[lane] = Some(thread),
            Err(error) => {
                self.reports.push(DeliveryReport {
                    number,
                    hook,
                    result: DeliveryResult::Failed(error.to_string()),
                });
            }
        }
    }

    fn start(&self, lane: usize, delivery: Delivery) -> io::Result<JoinHandle<()>> {
        let (around, shared) = (Arc::clone(&self.around), Arc::clone(&self.shared));
        Builder::new().name(format!("hook-{lane}")).stack_size(STACK_BYTES).spawn(move || {
            let mark = around.slots.no_mark();
            let watch =
                Watch { adopted: &around.adopted, mark: Some(&mark), brand: brand(lane), stop: &shared.stop };
            let result = deliver(&delivery, &around.command, watch);
            failpoint::hit("messenger.after_send");
            let report = DeliveryReport { number: delivery.number, hook: delivery.hook, result };
            shared.finished.lock().unwrap_or_else(PoisonError::into_inner).push((lane, report));
            shared.bell.ring();
        })
    }

    /// What came of deliveries and is not recorded yet.
    pub(crate) fn reports(&self) -> &[DeliveryReport] {
        &self.reports
    }

    /// Takes back what threads have done.
    pub(crate) fn collect(&mut self) {
        self.shared.bell.silence();
        let finished =
            std::mem::take(&mut *self.shared.finished.lock().unwrap_or_else(PoisonError::into_inner));
        for (lane, report) in finished {
            if let Some(thread) = self.lanes[lane].take() {
                // A thread that panicked has ended the process.
                let _ = thread.join();
            }
            self.reports.push(report);
        }
    }

    /// All reports were recorded.
    pub(crate) fn forget_reports(&mut self) {
        self.reports.clear();
    }

    /// Ends what is being sent; it is given back.
    pub(crate) fn stop(&mut self) {
        self.shared.stop.ring();
        for thread in self.lanes.iter_mut().filter_map(Option::take) {
            let _ = thread.join();
        }
    }
}

/// The brands of slots are counted from the other end.
fn brand(lane: usize) -> Option<Brand> {
    Brand::new(Brand::MAX.checked_sub(u32::try_from(lane).ok()?)?)?.apply()
}

impl AsFd for Messenger {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.bell.as_fd()
    }
}

impl Drop for Messenger {
    fn drop(&mut self) {
        self.stop();
    }
}
