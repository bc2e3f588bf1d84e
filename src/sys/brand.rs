//! A brand on a thread that every process which it starts inherits, with all their descendants, and that they can hardly
//! shed: not by a new session, not by closing descriptors, not by clearing the environment.
//!
//! It is kept in the bits of a task's *personality* to which Linux gives no meaning. Sandboxes may forbid to change it
//! (containers with a filter of system calls, systemd's `LockPersonality`): then there is none.

use std::fs;

use rustix::process::Pid;

/// Bits without a meaning, as one stretch above the kind of program and one above the flags.
const LOW: u32 = 0x0001_ff00;
const HIGH: u32 = 0xf000_0000;
const LOW_SHIFT: u32 = 8;
const HIGH_SHIFT: u32 = 28 - LOW_BITS;
const LOW_BITS: u32 = 9;
/// Asks for the present value and changes nothing.
const ASK: libc::c_ulong = 0xffff_ffff;

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

    /// Brands this thread, and so whatever it starts. `None` where that is not allowed.
    #[expect(unsafe_code, reason = "there is no safe wrapper for personality(2)")]
    pub fn apply(self) -> Option<Self> {
        // SAFETY: asks for a number.
        let present = u32::try_from(unsafe { libc::personality(ASK) }).ok()?;
        let branded = present & !(LOW | HIGH) | self.bits();
        // SAFETY: changes bits of this task that the kernel only hands on.
        let changed = unsafe { libc::personality(branded.into()) };
        (changed != -1).then_some(self)
    }

    /// The brand of a process; `None` if it has none, or that cannot be known.
    pub fn of(pid: Pid) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{}/personality", pid.as_raw_pid())).ok()?;
        Self::of_bits(u32::from_str_radix(text.trim(), 16).ok()?)
    }
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

    #[test]
    fn what_a_branded_thread_starts_has_its_brand_and_others_have_not() {
        let seen = |brand: u32| {
            std::thread::spawn(move || {
                Brand::new(brand).and_then(Brand::apply)?;
                let mut child = Command::new("env");
                let output = child.args(["-i", "setsid", "--wait", "cat", "/proc/self/personality"]).output();
                let text = String::from_utf8(output.expect("it runs").stdout).expect("text");
                Brand::of_bits(u32::from_str_radix(text.trim(), 16).expect("a number"))
            })
        };
        let (one, other) = (seen(1), seen(4_000));
        // Where it is forbidden there is nothing to see.
        let seen = [one, other].map(|thread| thread.join().expect("a thread"));
        assert!(seen == [Brand::new(1), Brand::new(4_000)] || seen == [None, None], "{seen:?}");
    }
}
