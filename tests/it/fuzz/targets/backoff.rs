//! Backoff for any numbers: capped, never decreasing with further failures, and exact for small numbers.

use std::time::Duration;

use domain::job::backoff::{Backoff, Strategy, check_base, check_jitter};
use domain::values::span::MAX_SPAN;

use super::message;
use super::numbers::Numbers;

pub const TOKENS: &[&str] = &["\0\0\0\0", "\0\0\0\0\0\0\u{10}@", "\u{7f}\u{7f}\u{7f}\u{7f}", "\u{1}\0\0\0"];

pub fn run(data: &[u8]) {
    let mut numbers = Numbers(data);
    let strategy = Strategy::ALL[usize::from(numbers.byte()) % Strategy::ALL.len()];
    assert_eq!(strategy.name().parse(), Ok(strategy));
    let (delay, max) = (span(&mut numbers), span(&mut numbers));
    let (base, jitter) = (numbers.float(), numbers.float());
    let (failures, roll) = (numbers.u32(), numbers.fraction());
    for error in [check_base(base).err(), check_jitter(jitter).err()].into_iter().flatten() {
        // The message may contain a float with 300 digits.
        message::check(&error, &[0; 400]);
    }
    let base = check_base(base).unwrap_or(2.0);
    let jitter = check_jitter(jitter).unwrap_or(0.5);
    let backoff = Backoff { strategy, delay, base, max, jitter };
    // Allows one millisecond for rounding.
    let most = max.mul_f64(1.0 + jitter) + Duration::from_millis(1);
    assert!(backoff.wait(failures, roll) <= most, "{backoff:?}");
    check_without_jitter(&Backoff { jitter: 0.0, ..backoff }, failures, roll);
}

/// A duration in whole milliseconds, as in all settings.
fn span(numbers: &mut Numbers<'_>) -> Duration {
    let most = u64::try_from(MAX_SPAN.as_millis()).expect("the maximum fits into 64 bits");
    Duration::from_millis(numbers.u64() % (most + 1))
}

fn check_without_jitter(backoff: &Backoff, failures: u32, roll: f64) {
    let wait = backoff.wait(failures, roll);
    assert!(wait <= backoff.max, "{backoff:?}: {wait:?}");
    assert!(wait <= backoff.wait(failures.saturating_add(1), roll), "{backoff:?} shrinks");
    let factor = match backoff.strategy {
        Strategy::Fixed => Some(1),
        Strategy::Linear => Some(failures),
        Strategy::Exponential if backoff.base.to_bits() == 2.0_f64.to_bits() => 2_u32.checked_pow(failures),
        Strategy::Exponential => None,
    };
    if let Some(exact) = factor.and_then(|factor| backoff.delay.checked_mul(factor)) {
        assert_eq!(wait, exact.min(backoff.max), "{backoff:?} after {failures}");
    }
}
