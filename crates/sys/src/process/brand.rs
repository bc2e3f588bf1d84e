//! A brand on a thread that every process which it starts inherits, with all their descendants, and that they can hardly
//! shed: not by a new session, not by closing descriptors, not by clearing the environment.
//!
//! It is kept in the bits of a task's *personality* to which Linux gives no meaning. Sandboxes may forbid to change it
//! (containers with a filter of system calls, systemd's `LockPersonality`): then there is none.

use std::fs;
use std::thread::Builder;

use rustix::process::Pid;

/// Bits without a meaning, as one stretch above the kind of program and one above the flags.
const LOW: u32 = 0x0001_ff00;
const HIGH: u32 = 0xf000_0000;
const LOW_SHIFT: u32 = 8;
const HIGH_SHIFT: u32 = 28 - LOW_BITS;
const LOW_BITS: u32 = 9;
/// Asks for the present value and changes nothing.
const ASK: libc::c_ulong = 0xffff_ffff;
const FAILED: libc::c_int = -1;

/// A number from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brand(u32);

impl Brand {
    pub const MAX: u32 = (1 << 13) - 1;

    /// The brand of this number, if there are so many.
    pub fn new(number: u32) -> Option<Self> {
        (1..=Self::MAX).contains(&number).then_some(Self(number))
    }

    fn bits(self) -> u32 {
        (self.0 << LOW_SHIFT) & LOW | (self.0 << HIGH_SHIFT) & HIGH
    }

    fn of_bits(personality: u32) -> Option<Self> {
        Self::new((personality & LOW) >> LOW_SHIFT | (personality & HIGH) >> HIGH_SHIFT)
    }

    /// Whether a thread may be branded here. Asks the kernel, which may allow some values and others not.
    pub fn is_allowed() -> bool {
        // In a thread of its own, which takes the brand with it.
        let attempt = Builder::new().spawn(|| present().is_some_and(|bits| Self(Self::MAX).put_on(bits)));
        attempt.is_ok_and(|thread| thread.join().unwrap_or(false))
    }

    /// Brands this thread, and so whatever it starts. `None` where that is not allowed, and where there is a brand
    /// already: whatever is started here has to stay known to the one who put it on.
    pub fn apply(self) -> Option<Self> {
        let present = present().filter(|bits| Self::of_bits(*bits).is_none())?;
        self.put_on(present).then_some(self)
    }

    #[expect(unsafe_code, reason = "there is no safe wrapper for personality(2)")]
    fn put_on(self, present: u32) -> bool {
        let branded = present & !(LOW | HIGH) | self.bits();
        // SAFETY: changes bits of this task that the kernel only hands on.
        let before = unsafe { libc::personality(branded.into()) };
        before != FAILED
    }

    /// The brand of a process; `None` if it has none, or that cannot be known.
    pub fn of(pid: Pid) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{}/personality", pid.as_raw_pid())).ok()?;
        Self::of_bits(u32::from_str_radix(text.trim(), 16).ok()?)
    }
}

/// The personality of this thread.
#[expect(unsafe_code, reason = "there is no safe wrapper for personality(2)")]
fn present() -> Option<u32> {
    // SAFETY: asks for a number.
    let present = unsafe { libc::personality(ASK) };
    // The highest bit belongs to the brand, so the number may well be negative.
    (present != FAILED).then_some(present.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_number_survives_being_spread_over_the_bits() {
        for number in 1..=Brand::MAX {
            let brand = Brand::new(number).expect("in range");
            assert_eq!(brand.bits() & !(LOW | HIGH), 0);
            assert_eq!(Brand::of_bits(brand.bits() | 0x0040_0008), Some(brand));
        }
        assert_eq!((Brand::new(0), Brand::new(Brand::MAX + 1)), (None, None));
        assert_eq!(Brand::of_bits(0x0040_0008), None);
    }

    /// The brand of what a thread starts after it was branded with these numbers, one after the other.
    fn seen_after(numbers: &'static [u32]) -> Option<Brand> {
        let thread = std::thread::spawn(move || {
            for number in numbers {
                Brand::new(*number).and_then(Brand::apply);
            }
            let mut child = Command::new("env");
            let output = child.args(["-i", "setsid", "--wait", "cat", "/proc/self/personality"]).output();
            let text = String::from_utf8(output.expect("it runs").stdout).expect("text");
            Brand::of_bits(u32::from_str_radix(text.trim(), 16).expect("a number"))
        });
        thread.join().expect("a thread")
    }

    #[test]
    fn what_a_branded_thread_starts_has_its_brand_and_others_have_not() {
        // From 4096 on the highest bit is set. Where it is forbidden there is nothing to see.
        for number in [&[1], &[4_000], &[4_096], &[Brand::MAX]] {
            let expected = Brand::new(number[0]).filter(|_| Brand::is_allowed());
            assert_eq!(seen_after(number), expected, "{number:?}");
        }
        assert_eq!(seen_after(&[]), None);
    }

    #[test]
    fn a_brand_stays() {
        for numbers in [&[1, 2], &[5_000, 1], &[1, 5_000]] {
            let expected = Brand::new(numbers[0]).filter(|_| Brand::is_allowed());
            assert_eq!(seen_after(numbers), expected, "{numbers:?}");
        }
    }
}
