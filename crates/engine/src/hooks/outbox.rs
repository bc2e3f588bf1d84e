//! What a worker does about hooks: takes what they are to be told, hands it to the messenger, and records what came of it.

use std::time::{Duration, Instant};

use crate::worker::Worker;
use store::{DeliveryExchange, DeliveryReport, DeliveryResult, StoreError};

/// How long a worker that has nothing else left to do goes on telling hooks what is due.
const FAREWELL: Duration = Duration::from_secs(10);

impl Worker<'_> {
    /// One turn: where nothing is due and nothing was sent it does nothing.
    pub(crate) fn tell_hooks(&mut self) -> Result<(), StoreError> {
        self.messenger.collect();
        let (reports, want) = (self.messenger.reports(), self.messenger.room());
        if reports.is_empty() && (want == 0 || !self.is_delivery_due()) {
            return Ok(());
        }
        let posted =
            self.store.exchange_deliveries(&DeliveryExchange { worker: &self.plan.id, reports, want })?;
        for DeliveryReport { hook, result, .. } in reports {
            if let DeliveryResult::Failed(error) = result {
                self.journal.hook_failed(hook, error);
            }
        }
        for hook in &posted.gave_up {
            self.journal.hook_gave_up(hook);
        }
        self.messenger.forget_reports();
        self.next_delivery = posted.next_due;
        for delivery in posted.taken {
            self.messenger.send(delivery);
        }
        if self.messenger.is_idle() && self.ends_when_idle() {
            // The orders say whether this was the end.
            self.times.tick = Instant::now();
        }
        Ok(())
    }

    fn is_delivery_due(&self) -> bool {
        self.next_delivery.is_some_and(|at| self.store.now().is_ok_and(|now| at <= now))
    }

    /// Whether a worker that could end now should tell hooks something first. Whoever cannot be told does not keep it for
    /// long, and what was tried in vain does not keep it at all: the next worker tries again.
    pub(crate) fn has_news(&mut self) -> bool {
        if self.messenger.is_idle() && !self.is_delivery_due() {
            self.farewell = None;
            return false;
        }
        let began = *self.farewell.get_or_insert_with(Instant::now);
        began.elapsed() < FAREWELL
    }

    /// Ends what is being sent, and says what came of the rest. What cannot be recorded will be sent again.
    pub(crate) fn stop_telling(&mut self) {
        self.messenger.stop();
        self.messenger.collect();
        let reports = self.messenger.reports();
        if !reports.is_empty() {
            let _ =
                self.store.exchange_deliveries(&DeliveryExchange { worker: &self.plan.id, reports, want: 0 });
        }
    }
}
