//! The delivery pool of a worker: delivers events to hooks concurrently with the jobs, without delaying them.
//!
//! One thread per delivery in progress, a few at once and no two for the same hook. The threads only send; the main
//! thread hands them the deliveries and records the results. A slow or unreachable receiver occupies one of these
//! threads and nothing else.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use super::deliver::deliver;
use super::process::HookSupervision;
use crate::attempt::AttemptContext;
use crate::orphans::containment::SlotGroup;
use crate::worker::dispatcher::EventBell;
use store::{Delivery, DeliveryReport, DeliveryResult};
use sys::cgroup::Bounds;
use sys::failpoint;

/// How many deliveries are in progress at most.
const MAX_CONCURRENT_DELIVERIES: usize = 4;
const STACK_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub(crate) struct DeliveryPool {
    context: Arc<AttemptContext>,
    shared: Arc<Shared>,
    lanes: Vec<Option<JoinHandle<()>>>,
    /// The results of deliveries that are not recorded yet.
    reports: Vec<DeliveryReport>,
}

#[derive(Debug)]
struct Shared {
    /// Results, with the lanes that have become free.
    finished: Mutex<Vec<(usize, DeliveryReport)>>,
    /// Wakes the main thread.
    bell: EventBell,
    stop: EventBell,
}

impl DeliveryPool {
    pub(crate) fn new(context: &Arc<AttemptContext>) -> io::Result<Self> {
        let shared = Shared { finished: Mutex::default(), bell: EventBell::new()?, stop: EventBell::new()? };
        Ok(Self {
            context: Arc::clone(context),
            shared: Arc::new(shared),
            lanes: (0..MAX_CONCURRENT_DELIVERIES).map(|_| None).collect(),
            reports: Vec::new(),
        })
    }

    /// How many deliveries it can accept now.
    pub(crate) fn free_lanes(&self) -> usize {
        self.lanes.iter().filter(|lane| lane.is_none()).count()
    }

    /// Whether no delivery is in progress and all results are recorded.
    pub(crate) fn is_idle(&self) -> bool {
        self.free_lanes() == MAX_CONCURRENT_DELIVERIES && self.reports.is_empty()
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
        let (context, shared) = (Arc::clone(&self.context), Arc::clone(&self.shared));
        Builder::new().name(format!("hook-{lane}")).stack_size(STACK_BYTES).spawn(move || {
            let record_lock = context.slots.no_lock();
            let mut group = SlotGroup::of(&context.containment, format!("hook-{}", delivery.number));
            let made = group.as_mut().map_or(Ok(()), |group| group.prepare(Bounds::default()));
            let supervision = HookSupervision {
                orphans: &context.orphans,
                record_lock: Some(&record_lock),
                group: group.as_ref(),
                stop: &shared.stop,
            };
            let result = match made {
                Ok(()) => deliver(&delivery, &context.command, supervision),
                Err(error) => DeliveryResult::Failed(format!("failed to create its cgroup: {error}")),
            };
            failpoint::hit("delivery.after_send");
            let report = DeliveryReport { number: delivery.number, hook: delivery.hook, result };
            shared.finished.lock().unwrap_or_else(PoisonError::into_inner).push((lane, report));
            shared.bell.ring();
        })
    }

    /// The results of deliveries that are not recorded yet.
    pub(crate) fn reports(&self) -> &[DeliveryReport] {
        &self.reports
    }

    /// Collects the results of finished threads.
    pub(crate) fn collect(&mut self) {
        self.shared.bell.clear();
        let finished =
            std::mem::take(&mut *self.shared.finished.lock().unwrap_or_else(PoisonError::into_inner));
        for (lane, report) in finished {
            if let Some(thread) = self.lanes[lane].take() {
                // A panic in the thread has already aborted the process.
                let _ = thread.join();
            }
            self.reports.push(report);
        }
    }

    /// Clears the reports, because they are recorded.
    pub(crate) fn clear_reports(&mut self) {
        self.reports.clear();
    }

    /// Ends the deliveries in progress; they are released.
    pub(crate) fn stop(&mut self) {
        self.shared.stop.ring();
        for thread in self.lanes.iter_mut().filter_map(Option::take) {
            let _ = thread.join();
        }
    }
}

impl AsFd for DeliveryPool {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.bell.as_fd()
    }
}

impl Drop for DeliveryPool {
    fn drop(&mut self) {
        self.stop();
    }
}
