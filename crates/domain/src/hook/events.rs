//! The events of one hook.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::{HookError, HookEvent};

/// At least one event, each once, in the order of [`HookEvent::ALL`]. Stored and shown as names with commas between
/// them, so that a single event is stored as its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookEvents(Vec<HookEvent>);

impl HookEvents {
    pub fn iter(&self) -> impl Iterator<Item = HookEvent> {
        self.0.iter().copied()
    }

    pub fn first(&self) -> HookEvent {
        self.0[0]
    }

    pub fn contains(&self, event: HookEvent) -> bool {
        self.0.contains(&event)
    }
}

impl From<HookEvent> for HookEvents {
    fn from(event: HookEvent) -> Self {
        Self(vec![event])
    }
}

impl FromStr for HookEvents {
    type Err = HookError;

    /// `success,dead`
    fn from_str(text: &str) -> Result<Self, HookError> {
        let given: Vec<HookEvent> =
            text.split(',').map(|event| event.trim().parse()).collect::<Result<_, _>>()?;
        Ok(Self(HookEvent::ALL.into_iter().filter(|event| given.contains(event)).collect()))
    }
}

impl fmt::Display for HookEvents {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(HookEvent::name).collect();
        out.write_str(&names.join(","))
    }
}

impl Serialize for HookEvents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_in_any_order_and_stored_in_one() {
        for (typed, stored) in [
            ("dead", "dead"),
            ("batch-finished", "batch_finished"),
            ("dead,success", "success,dead"),
            ("dead, dead ,failure", "failure,dead"),
        ] {
            let events: HookEvents = typed.parse().expect("events");
            assert_eq!(events.to_string(), stored);
            assert_eq!(stored.parse(), Ok(events));
        }
        for bad in ["", ",", "dead,", "dead;success", "dead,sucess"] {
            assert!(matches!(bad.parse::<HookEvents>(), Err(HookError::UnknownEvent { .. })), "{bad}");
        }
    }
}
