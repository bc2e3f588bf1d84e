//! Deliveries to hooks in the main loop: takes due ones, hands them to the delivery pool, and records the results.

use std::time::{Duration, Instant};

use crate::worker::Worker;
use store::{DeliveryReport, DeliveryResult, StoreError};

/// How long a worker that could otherwise end keeps delivering due events.
const LAST_DELIVERIES_TIMEOUT: Duration = Duration::from_secs(10);

impl Worker<'_> {
    /// Records results and takes due deliveries, if there are any.
    pub(crate) fn deliver_to_hooks(&mut self) -> Result<(), StoreError> {
        self.deliveries.collect();
        let want = if self.is_outdated { 0 } else { self.deliveries.free_lanes() };
        let reports = &self.deliveries.reports;
        if reports.is_empty() && (want == 0 || !self.is_delivery_due()) {
            return Ok(());
        }
        let posted = self.store.exchange_deliveries(&self.plan.id, reports, want)?;
        for DeliveryReport { hook, result, .. } in reports {
            if let DeliveryResult::Failed(error) = result {
                self.journal.note_repeatable(format!("hook {hook} failed: {error}"));
            }
        }
        for hook in &posted.gave_up {
            let what = "failed for the last time for an event: it will not be retried";
            self.journal.note(format_args!("hook {hook} {what}"));
        }
        self.deliveries.reports.clear();
        self.next_delivery = posted.next_due;
        for delivery in posted.taken {
            self.deliveries.send(delivery);
        }
        if self.deliveries.is_idle() && self.ends_when_idle() {
            // The orders say whether this was the last work.
            self.timers.tick = Instant::now();
        }
        Ok(())
    }

    fn is_delivery_due(&self) -> bool {
        self.next_delivery.is_some_and(|at| self.store.now().is_ok_and(|now| at <= now))
    }

    /// Whether a worker that could end now should finish deliveries first. A hook that does not respond delays it only
    /// briefly, and a delivery that waits for its retry not at all: the next worker retries it.
    pub(crate) fn has_deliveries(&mut self) -> bool {
        if self.deliveries.is_idle() && !self.is_delivery_due() {
            self.waiting_for_deliveries_since = None;
            return false;
        }
        let began = *self.waiting_for_deliveries_since.get_or_insert_with(Instant::now);
        began.elapsed() < LAST_DELIVERIES_TIMEOUT
    }

    /// Ends deliveries in progress, and records the results of the others. A result that cannot be recorded is sent
    /// again.
    pub(crate) fn stop_deliveries(&mut self) {
        self.deliveries.stop();
        self.deliveries.collect();
        let reports = &self.deliveries.reports;
        if !reports.is_empty() {
            let _ = self.store.exchange_deliveries(&self.plan.id, reports, 0);
        }
    }
}
