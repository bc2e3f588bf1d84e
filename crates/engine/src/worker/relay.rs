//! Rings that a worker leaves to others, and whether anybody hears them.

/// How often a ring may come back unheard before it is clear that nobody else listens.
const UNHEARD: u8 = 3;

/// The ring that was passed on last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passed {
    hops: u8,
    unheard: u8,
}

impl Passed {
    /// Whether a ring that may go on so often is worth passing on. One that others have heard has gone on once more than
    /// it was told to; one that comes back as it was has been heard by nobody.
    pub(crate) fn goes_on(&mut self, hops: u8) -> bool {
        let unheard = if hops == self.hops { self.unheard + 1 } else { 0 };
        *self = Self { hops: hops.saturating_sub(1), unheard };
        unheard < UNHEARD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_that_nobody_else_hears_soon_dies() {
        let mut passed = Passed::default();
        assert_eq!([64, 63, 62, 61].map(|hops| passed.goes_on(hops)), [true, true, true, false]);
        assert!(passed.goes_on(64), "a new one");
        assert_eq!([62, 60, 58, 56].map(|hops| passed.goes_on(hops)), [true; 4], "others passed it on too");
    }
}
