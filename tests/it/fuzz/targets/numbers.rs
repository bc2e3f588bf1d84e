//! Reads numbers from the front of an input, for targets that do not take text. Missing bytes are zero.

pub struct Numbers<'a>(pub &'a [u8]);

impl Numbers<'_> {
    pub fn byte(&mut self) -> u8 {
        self.take::<1>()[0]
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    /// Any float, including NaN and infinities.
    pub fn float(&mut self) -> f64 {
        f64::from_bits(self.u64())
    }

    /// A number from 0 to 1.
    pub fn fraction(&mut self) -> f64 {
        f64::from(self.u32()) / f64::from(u32::MAX)
    }

    fn take<const COUNT: usize>(&mut self) -> [u8; COUNT] {
        let (taken, rest) = self.0.split_at(COUNT.min(self.0.len()));
        self.0 = rest;
        let mut bytes = [0; COUNT];
        bytes[..taken.len()].copy_from_slice(taken);
        bytes
    }
}
