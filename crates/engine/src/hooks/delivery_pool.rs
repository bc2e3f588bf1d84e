//! The delivery pool of a worker: delivers events to hooks concurrently with the jobs, without delaying them.
//!
//! One thread per delivery in progress, a few at once and no two for the same hook. The threads only send; the main
//! thread hands them the deliveries and records the results. A slow or unreachable receiver occupies one of these
//! threads and nothing else.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, mpsc};
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
    in_progress: Vec<Sender>,
    /// The results of deliveries that are not recorded yet.
    pub(crate) reports: Vec<DeliveryReport>,
    /// The results of the threads, on their way to `reports`.
    results: (mpsc::Sender<DeliveryReport>, mpsc::Receiver<DeliveryReport>),
    /// Wakes the main thread when there is a result.
    bell: Arc<EventBell>,
}

/// A delivery in progress.
#[derive(Debug)]
struct Sender {
    /// See [`Delivery::number`].
    number: i64,
    thread: JoinHandle<()>,
    stop: Arc<SlotBell>,
}

impl DeliveryPool {
    pub(crate) fn new(context: &Arc<AttemptContext>) -> io::Result<Self> {
        Ok(Self {
            context: Arc::clone(context),
            in_progress: Vec::new(),
            reports: Vec::new(),
            results: mpsc::channel(),
            bell: Arc::new(EventBell::new()?),
        })
    }

    /// How many deliveries it can accept now.
    pub(crate) fn free_lanes(&self) -> usize {
        MAX_CONCURRENT_DELIVERIES - self.in_progress.len()
    }

    /// Whether no delivery is in progress and all results are recorded.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_progress.is_empty() && self.reports.is_empty()
    }

    /// Starts a delivery; one of its lanes must be free.
    pub(crate) fn send(&mut self, delivery: Delivery) {
        let (number, hook) = (delivery.number, delivery.hook.clone());
        match self.start(delivery) {
            Ok(sender) => self.in_progress.push(sender),
            Err(error) => {
                let result = DeliveryResult::Failed(error.to_string());
                self.reports.push(DeliveryReport { number, hook, result });
            }
        }
    }

    fn start(&self, delivery: Delivery) -> io::Result<Sender> {
        let (context, results, done) =
            (Arc::clone(&self.context), self.results.0.clone(), Arc::clone(&self.bell));
        let number = delivery.number;
        let stop = Arc::new(SlotBell::new()?);
        let bell = Arc::clone(&stop);
        let send = move || {
            let lane = Lane {
                context: &context.command,
                orphans: &context.orphans,
                record_lock: Some(context.slots.no_lock()),
                group: SlotGroup::of(&context.containment, format!("hook-{number}")),
                bell: &bell,
            };
            let result = deliver(&delivery, lane);
            failpoint::hit("delivery.after_send");
            // The pool joins this thread before it drops the other end.
            let _ = results.send(DeliveryReport { number, hook: delivery.hook, result });
            done.ring();
        };
        let thread = Builder::new().name(format!("hook-{number}")).stack_size(STACK_BYTES).spawn(send)?;
        Ok(Sender { number, thread, stop })
    }

    /// Collects the results of finished threads.
    pub(crate) fn collect(&mut self) {
        self.bell.clear();
        for report in self.results.1.try_iter() {
            for sender in self.in_progress.extract_if(.., |sender| sender.number == report.number) {
                // A panic in the thread has already aborted the process.
                let _ = sender.thread.join();
            }
            self.reports.push(report);
        }
    }

    /// Ends the deliveries in progress; they are released.
    pub(crate) fn stop(&mut self) {
        for sender in &self.in_progress {
            sender.stop.ring(Interrupt::ReleaseAtOnce);
        }
        for sender in self.in_progress.drain(..) {
            let _ = sender.thread.join();
        }
    }
}

impl AsFd for DeliveryPool {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl Drop for DeliveryPool {
    fn drop(&mut self) {
        self.stop();
    }
}
