//! The delivery pool of a worker: delivers events to hooks concurrently with the jobs, without delaying them.
//!
//! One thread per delivery in progress, a few at once and no two for the same hook. The threads only send; the main
//! thread hands them the deliveries and records the results. A slow or unreachable receiver occupies one of these
//! threads and nothing else.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use super::deliver::{Lane, deliver};
use crate::attempt::AttemptContext;
use crate::orphans::containment::SlotGroup;
use crate::worker::dispatcher::{EventBell, Interrupt, SlotBell};
use store::{Delivery, DeliveryReport, DeliveryResult};
use sys::failpoint;

/// How many deliveries are in progress at most.
const MAX_CONCURRENT_DELIVERIES: usize = 4;
const STACK_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub(crate) struct DeliveryPool {
    context: Arc<AttemptContext>,
    shared: Arc<Shared>,
    lanes: Vec<Option<Sender>>,
    /// The results of deliveries that are not recorded yet.
    reports: Vec<DeliveryReport>,
}

/// A delivery in progress.
#[derive(Debug)]
struct Sender {
    thread: JoinHandle<()>,
    stop: Arc<SlotBell>,
}

#[derive(Debug)]
struct Shared {
    /// Results, with the lanes that have become free.
    finished: Mutex<Vec<(usize, DeliveryReport)>>,
    /// Wakes the main thread.
    bell: EventBell,
}

impl DeliveryPool {
    pub(crate) fn new(context: &Arc<AttemptContext>) -> io::Result<Self> {
        let shared = Shared { finished: Mutex::default(), bell: EventBell::new()? };
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
            Ok(sender) => self.lanes[lane] = Some(sender),
            Err(error) => {
                self.reports.push(DeliveryReport {
                    number,
                    hook,
                    result: DeliveryResult::Failed(error.to_string()),
                });
            }
        }
    }

    fn start(&self, lane: usize, delivery: Delivery) -> io::Result<Sender> {
        let (context, shared) = (Arc::clone(&self.context), Arc::clone(&self.shared));
        let bell = Arc::new(SlotBell::new()?);
        let stop = Arc::clone(&bell);
        let send = move || {
            let lane_tools = Lane {
                context: &context.command,
                orphans: &context.orphans,
                record_lock: Some(context.slots.no_lock()),
                group: SlotGroup::of(&context.containment, format!("hook-{}", delivery.number)),
                bell: &bell,
            };
            let result = deliver(&delivery, lane_tools);
            failpoint::hit("delivery.after_send");
            let report = DeliveryReport { number: delivery.number, hook: delivery.hook, result };
            shared.finished.lock().unwrap_or_else(PoisonError::into_inner).push((lane, report));
            shared.bell.ring();
        };
        let thread = Builder::new().name(format!("hook-{lane}")).stack_size(STACK_BYTES).spawn(send)?;
        Ok(Sender { thread, stop })
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
            if let Some(sender) = self.lanes[lane].take() {
                // A panic in the thread has already aborted the process.
                let _ = sender.thread.join();
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
        for sender in self.lanes.iter().flatten() {
            sender.stop.ring(Interrupt::ReleaseAtOnce);
        }
        for sender in self.lanes.iter_mut().filter_map(Option::take) {
            let _ = sender.thread.join();
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
