//! A brand on a thread that every process which the thread starts inherits, together with all descendants. They can hardly
//! remove it: not with a new session, nor by closing descriptors or clearing the environment.
//!
//! It is stored in the bits of a task's *personality* to which Linux assigns no meaning. A sandbox may forbid changing them
//! (containers with a system call filter, systemd's `LockPersonality`); then there are no brands.

use std::fs;
use std::thread::Builder;

use rustix::process::Pid;

/// The unassigned bits: one range above the execution domain and one above the flags.
const LOW: u32 = 0x0001_ff00;
const HIGH: u32 = 0xf000_0000;
const LOW_SHIFT: u32 = 8;
const HIGH_SHIFT: u32 = 28 - LOW_BITS;
const LOW_BITS: u32 = 9;
/// Queries the current value without changing it.
const QUERY: libc::c_ulong = 0xffff_ffff;
const FAILED: libc::c_int = -1;

/// A number of at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brand(u32);

impl Brand {
    pub const MAX: u32 = (1 << 13) - 1;

    /// The brand with this number, if the number is in range.
    pub fn new(number: u32) -> Option<Self> {
        (1..=Self::MAX).contains(&number).then_some(Self(number))
    }

    fn bits(self) -> u32 {
        (self.0 << LOW_SHIFT) & LOW | (self.0 << HIGH_SHIFT) & HIGH
    }

    fn of_bits(personality: u32) -> Option<Self> {
        Self::new((personality & LOW) >> LOW_SHIFT | (personality & HIGH) >> HIGH_SHIFT)
    }

    /// Whether a thread can be branded here. It asks the kernel, which may allow some values and forbid others.
    pub fn is_allowed() -> bool {
        // In a thread of its own, because the brand stays until the thread ends.
        let attempt = Builder::new().spawn(|| current().is_some_and(|bits| Self(Self::MAX).set(bits)));
        attempt.is_ok_and(|thread| thread.join().unwrap_or(false))
    }

    /// Brands this thread, and with it every process that it starts. `None` where that is forbidden, and where the thread
    /// already has a brand, because the one who set it must be able to recognise the processes that are started here.
    pub fn apply(self) -> Option<Self> {
        let current = current().filter(|bits| Self::of_bits(*bits).is_none())?;
        self.set(current).then_some(self)
    }

    #[expect(unsafe_code, reason = "there is no safe wrapper for personality(2)")]
    fn set(self, current: u32) -> bool {
        let branded = current & !(LOW | HIGH) | self.bits();
        // SAFETY: takes a number. The bits that it changes have no effect on how this thread runs or where its memory is.
        let before = unsafe { libc::personality(branded.into()) };
        before != FAILED
    }

    /// The brand of a process; `None` if it has none or cannot be inspected.
    pub fn of(pid: Pid) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{}/personality", pid.as_raw_pid())).ok()?;
        Self::of_bits(u32::from_str_radix(text.trim(), 16).ok()?)
    }
}

/// The personality of this thread.
#[expect(unsafe_code, reason = "there is no safe wrapper for personality(2)")]
fn current() -> Option<u32> {
    // SAFETY: takes a number and returns one; this number changes nothing.
    let current = unsafe { libc::personality(QUERY) };
    // The highest bit belongs to the brand, so the number may well be negative.
    (current != FAILED).then_some(current.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_brand_survives_being_encoded_in_the_bits() {
        for number in 1..=Brand::MAX {
            let brand = Brand::new(number).expect("in range");
            assert_eq!(brand.bits() & !(LOW | HIGH), 0);
            assert_eq!(Brand::of_bits(brand.bits() | 0x0040_0008), Some(brand));
        }
        assert_eq!((Brand::new(0), Brand::new(Brand::MAX + 1)), (None, None));
        assert_eq!(Brand::of_bits(0x0040_0008), None);
    }

    /// The brand of a process that a thread starts after it applied brands with these numbers, in this order.
    fn inherited_brand(numbers: &'static [u32]) -> Option<Brand> {
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
    fn processes_of_a_branded_thread_have_its_brand() {
        // From 4096 on the highest bit is set. Where brands are forbidden, no process has one.
        for number in [&[1], &[4_000], &[4_096], &[Brand::MAX]] {
            let expected = Brand::new(number[0]).filter(|_| Brand::is_allowed());
            assert_eq!(inherited_brand(number), expected, "{number:?}");
        }
        assert_eq!(inherited_brand(&[]), None);
    }

    #[test]
    fn a_second_brand_does_not_replace_the_first() {
        for numbers in [&[1, 2], &[5_000, 1], &[1, 5_000]] {
            let expected = Brand::new(numbers[0]).filter(|_| Brand::is_allowed());
            assert_eq!(inherited_brand(numbers), expected, "{numbers:?}");
        }
    }
}
