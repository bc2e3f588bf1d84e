//! Hooks: who is told when something happens, and what they are still to be told.
//!
//! What is to be told is written with the change that it is about, so it is told at least once, whatever dies in between.
//! A delivery that somebody sends is held by a worker; if that worker is reaped, or takes too long, it is due again.

use super::StoreError;
use domain::hook::{Target, Trigger};
use domain::values::name::{HookName, WorkerId};
use domain::values::timestamp::Timestamp;

pub trait Hooks {
    /// All hooks, by name.
    fn hooks(&self) -> Result<Vec<Hook>, StoreError>;
    /// Adds a hook; `false` if there is one of this name.
    fn add_hook(&self, hook: &NewHook, by: &str) -> Result<bool, StoreError>;
    /// Removes a hook with everything that it is still to be told; `false` if there is none of this name.
    fn remove_hook(&self, name: &HookName, by: &str) -> Result<bool, StoreError>;
    /// One turn of a worker that delivers: records what came of deliveries, and takes new ones.
    fn post(&self, post: &Post<'_>) -> Result<Posted, StoreError>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewHook {
    pub name: HookName,
    pub trigger: Trigger,
    pub target: Target,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    pub name: HookName,
    pub trigger: Trigger,
    pub target: Target,
    pub created_at: Timestamp,
    pub created_by: String,
    /// How many events it is still to be told of, counted up to [`MAX_PENDING_COUNTED`].
    pub pending: u64,
    pub delivered_at: Option<Timestamp>,
    /// `None` unless the last try failed.
    pub failing_since: Option<Timestamp>,
    /// Of the last try that failed.
    pub error: Option<String>,
    /// How many events it could never be told of.
    pub gave_up: u64,
    pub gave_up_at: Option<Timestamp>,
}

/// Where more wait than this, nobody counts them.
pub const MAX_PENDING_COUNTED: u64 = 10_000;

/// One turn.
#[derive(Clone, Debug)]
pub struct Post<'a> {
    pub worker: &'a WorkerId,
    pub reports: &'a [Report],
    /// How many deliveries to take at most.
    pub want: usize,
}

/// What came of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// See [`Delivery::number`].
    pub number: i64,
    pub hook: HookName,
    pub result: Sent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    Delivered,
    /// One line: why not.
    Failed(String),
    /// It was not tried to its end: anybody may try again at once.
    GivenBack,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Posted {
    /// What to send now, at most one for each hook.
    pub taken: Vec<Delivery>,
    /// When there is more, for a hook that nobody is telling anything.
    pub next_due: Option<Timestamp>,
    /// Hooks that will not be told of an event any more.
    pub gave_up: Vec<HookName>,
}

/// Something that a hook is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub number: i64,
    /// What the receiver knows it by.
    pub name: String,
    pub hook: HookName,
    pub trigger: Trigger,
    pub target: Target,
    /// An event as JSON.
    pub payload: String,
}
