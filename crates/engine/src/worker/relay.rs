//! Forwarding a ring of the shared bell to other workers, and noticing when no other worker listens.

/// How often a ring may return unchanged before the worker concludes that no other worker listens.
const MAX_RETURNS: u8 = 3;

/// The ring that was forwarded last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Relay {
    hops: u8,
    returns: u8,
}

impl Relay {
    /// Whether a ring with this hop count is worth forwarding. Each worker that hears it lowers the count; a ring that
    /// returns with the count that this worker gave it was heard by no other worker.
    pub(crate) fn should_forward(&mut self, hops: u8) -> bool {
        let returns = if hops == self.hops { self.returns + 1 } else { 0 };
        *self = Self { hops: hops.saturating_sub(1), returns };
        returns < MAX_RETURNS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_that_no_other_worker_hears_dies_out_soon() {
        let mut relay = Relay::default();
        assert_eq!([64, 63, 62, 61].map(|hops| relay.should_forward(hops)), [true, true, true, false]);
        assert!(relay.should_forward(64), "a new one");
        assert_eq!(
            [62, 60, 58, 56].map(|hops| relay.should_forward(hops)),
            [true; 4],
            "other workers forwarded it too"
        );
    }
}
