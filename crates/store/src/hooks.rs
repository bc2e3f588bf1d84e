//! Hooks, and the deliveries that are still to be sent to them.
//!
//! The transaction that makes a change also writes the deliveries about it, so each event is delivered at least once,
//! even if every process dies in between. The worker that sends a delivery holds it; the delivery becomes due again if
//! that worker is reaped or takes too long.

use serde::Serialize;

use crate::rows::tables::{deliveries, hooks};
use crate::{Result, Store};
use domain::hook::{Target, Trigger};
use domain::values::name::{HookName, WorkerId};
use domain::values::timestamp::Timestamp;

impl dyn Store + '_ {
    /// All hooks, by name.
    pub fn hooks(&self) -> Result<Vec<Hook>> {
        self.view(hooks::list)
    }

    /// Adds a hook; `false` if the name is taken.
    pub fn add_hook(&self, hook: &NewHook, by: &str) -> Result<bool> {
        self.transact("add_hook", |tx| hooks::add(tx, hook, by))
    }

    /// Removes a hook and its undelivered events; `false` if there is no hook of this name.
    pub fn remove_hook(&self, name: &HookName, by: &str) -> Result<bool> {
        self.transact("remove_hook", |tx| hooks::remove(tx, name, by))
    }

    /// The deliveries of a hook that are waiting, the next one first, up to `limit`, and the last results; `None` if there
    /// is no hook of this name.
    pub fn deliveries(&self, hook: &HookName, limit: usize) -> Result<Option<HookDeliveries>> {
        self.view(|tx| deliveries::of_hook(tx, hook, limit))
    }

    /// Makes one delivery of a hook due now, whenever its next try was to be.
    pub fn retry_delivery(&self, hook: &HookName, delivery: &str, by: &str) -> Result<DeliveryRetry> {
        self.transact("retry_delivery", |tx| deliveries::retry_one(tx, hook, delivery, by))
    }

    /// Makes all deliveries of a hook due now that wait for their next try, in short transactions. Returns how many;
    /// `None` if there is no hook of this name.
    pub fn retry_deliveries(&self, hook: &HookName, by: &str) -> Result<Option<u64>> {
        let mut total = 0;
        loop {
            match self.transact("retry_deliveries", |tx| deliveries::retry_all(tx, hook, by))? {
                None => return Ok(None),
                Some(retried) => {
                    total += retried as u64;
                    if retried < deliveries::RETRIED_PER_TRANSACTION {
                        return Ok(Some(total));
                    }
                }
            }
        }
    }

    /// One turn of a delivering worker: records the results of its deliveries, and takes up to `want` new ones.
    pub fn exchange_deliveries(
        &self,
        worker: &WorkerId,
        reports: &[DeliveryReport],
        want: usize,
    ) -> Result<DeliveryExchangeResult> {
        self.transact("exchange_deliveries", |tx| deliveries::exchange(tx, worker, reports, want))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewHook {
    pub name: HookName,
    pub trigger: Trigger,
    pub target: Target,
}

/// A hook as stored. Its JSON form has no secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hook {
    pub name: HookName,
    #[serde(flatten)]
    pub trigger: Trigger,
    #[serde(flatten)]
    pub target: Target,
    pub created_at: Timestamp,
    pub created_by: String,
    /// How many events are undelivered, counted up to [`MAX_PENDING_COUNTED`].
    pub pending: u64,
    pub delivered_at: Option<Timestamp>,
    /// `None` unless the last try failed.
    pub failing_since: Option<Timestamp>,
    /// The error of the last failed try.
    pub error: Option<String>,
    /// How many events were given up undelivered.
    pub gave_up: u64,
    pub gave_up_at: Option<Timestamp>,
}

/// Pending deliveries are counted up to this number, so that listing hooks stays cheap.
pub const MAX_PENDING_COUNTED: u64 = 10_000;

/// The deliveries of a hook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookDeliveries {
    pub waiting: Vec<WaitingDelivery>,
    /// Newest first.
    pub results: Vec<TryResult>,
}

/// An event that a hook has not been notified of yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingDelivery {
    /// The id that the receiver sees.
    pub name: String,
    /// The event as JSON.
    pub payload: String,
    pub created_at: Timestamp,
    pub due_at: Timestamp,
    /// How often it was tried.
    pub tries: u32,
    /// A worker is sending it.
    pub is_sending: bool,
}

/// What became of the request to try a delivery now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryRetry {
    /// It is due.
    Due,
    /// A worker is sending it already.
    Sending,
    /// It was delivered or given up, or there never was one of this name.
    NotWaiting,
    NoHook,
}

/// How a try to deliver an event ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TryResult {
    pub at: Timestamp,
    pub delivery: String,
    /// Why it failed; `None` if it succeeded.
    pub error: Option<String>,
}

/// The result of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryReport {
    /// See [`Delivery::number`].
    pub number: i64,
    pub hook: HookName,
    pub result: DeliveryResult,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryResult {
    Delivered,
    /// The reason, in one line.
    Failed(String),
    /// The try was not completed: any worker may try again at once.
    GivenBack,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryExchangeResult {
    /// The deliveries to send now, at most one for each hook.
    pub taken: Vec<Delivery>,
    /// When the next delivery is due, among the hooks that have none in flight.
    pub next_due: Option<Timestamp>,
    /// Hooks for which an event was given up.
    pub gave_up: Vec<HookName>,
}

/// An event on its way to a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub number: i64,
    /// The id that the receiver sees.
    pub name: String,
    pub hook: HookName,
    pub trigger: Trigger,
    pub target: Target,
    /// The event as JSON.
    pub payload: String,
}
