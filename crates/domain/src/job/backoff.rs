//! How long a failed job waits before its next attempt.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use crate::json::{check, given, parse_from, read_as_object, text};
use crate::values::span;

crate::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Strategy {
        /// `delay × base ^ n`
        Exponential = "exponential",
        /// `delay × n`
        Linear = "linear",
        /// `delay`
        Fixed = "fixed",
    }
}

impl FromStr for Strategy {
    type Err = BackoffError;

    fn from_str(text: &str) -> Result<Self, BackoffError> {
        Self::from_name(text).ok_or_else(|| BackoffError::UnknownStrategy(text.to_owned()))
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

parse_from!(text: Strategy);

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BackoffError {
    #[error("unknown backoff strategy `{0}`: expected exponential, linear or fixed")]
    UnknownStrategy(String),
    #[error("backoff base must be a finite number of at least 1, not {0}")]
    BadBase(f64),
    #[error("backoff jitter must be between 0 and 1, not {0}")]
    BadJitter(f64),
}

/// Accepts a finite number of at least 1.
pub fn check_base(base: f64) -> Result<f64, BackoffError> {
    if base.is_finite() && base >= 1.0 { Ok(base) } else { Err(BackoffError::BadBase(base)) }
}

/// Accepts a fraction between 0 and 1.
pub fn check_jitter(jitter: f64) -> Result<f64, BackoffError> {
    if (0.0..=1.0).contains(&jitter) { Ok(jitter) } else { Err(BackoffError::BadJitter(jitter)) }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    pub strategy: Strategy,
    pub delay: Duration,
    pub base: f64,
    pub max: Duration,
    pub jitter: f64,
}

impl Backoff {
    /// The wait after the `failures`-th failure. `roll`, random in `0..1`, decides the jitter, which shortens or lengthens
    /// the wait by up to its fraction.
    pub fn wait(&self, failures: u32, roll: f64) -> Duration {
        let delay = self.delay.as_secs_f64() * 1000.0;
        let grown = match self.strategy {
            Strategy::Exponential => delay * self.base.powi(i32::try_from(failures).unwrap_or(i32::MAX)),
            Strategy::Linear => delay * f64::from(failures),
            Strategy::Fixed => delay,
        };
        // Zero times infinity is NaN; a delay of zero stays zero.
        let grown = if delay == 0.0 { 0.0 } else { grown };
        let capped = grown.min(self.max.as_secs_f64() * 1000.0);
        let jittered = capped * (1.0 + self.jitter * (2.0 * roll - 1.0));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the value is positive, and a cast from float saturates"
        )]
        Duration::from_millis(jittered.round() as u64)
    }
}

/// The parts of a backoff that a job sets for itself. The others are taken from the settings when an attempt fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", default)]
#[serde(expecting = "an object such as {\"strategy\":\"exponential\",\"delay\":\"1s\"}")]
pub struct BackoffChoice {
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    #[serde(with = "span::field", skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    #[serde(deserialize_with = "base", skip_serializing_if = "Option::is_none")]
    pub base: Option<f64>,
    #[serde(with = "span::field", skip_serializing_if = "Option::is_none")]
    pub max: Option<Duration>,
    #[serde(deserialize_with = "jitter", skip_serializing_if = "Option::is_none")]
    pub jitter: Option<f64>,
}

read_as_object!(BackoffChoice, required: None);

fn base<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    check(given(deserializer)?.map(check_base).transpose())
}

fn jitter<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    check(given(deserializer)?.map(check_jitter).transpose())
}

impl BackoffChoice {
    pub fn or(&self, settings: &Backoff) -> Backoff {
        Backoff {
            strategy: self.strategy.unwrap_or(settings.strategy),
            delay: self.delay.unwrap_or(settings.delay),
            base: self.base.unwrap_or(settings.base),
            max: self.max.unwrap_or(settings.max),
            jitter: self.jitter.unwrap_or(settings.jitter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, proptest};

    const PLAIN: Backoff = Backoff {
        strategy: Strategy::Exponential,
        delay: Duration::from_secs(1),
        base: 2.0,
        max: Duration::from_secs(300),
        jitter: 0.0,
    };

    fn waits(backoff: Backoff, count: u32) -> Vec<u128> {
        (1..=count).map(|n| backoff.wait(n, 0.5).as_millis()).collect()
    }

    #[test]
    fn each_strategy_gives_exact_waits() {
        assert_eq!(waits(PLAIN, 9), [2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000]);
        let slower_growth = Backoff { base: 1.5, ..PLAIN };
        assert_eq!(waits(slower_growth, 4), [1_500, 2_250, 3_375, 5_063]);
        let linear = Backoff { strategy: Strategy::Linear, ..PLAIN };
        assert_eq!(waits(linear, 3), [1_000, 2_000, 3_000]);
        let fixed = Backoff { strategy: Strategy::Fixed, ..PLAIN };
        assert_eq!(waits(fixed, 3), [1_000, 1_000, 1_000]);
    }

    #[test]
    fn a_delay_of_zero_stays_zero() {
        let no_delay = Backoff { delay: Duration::ZERO, ..PLAIN };
        assert_eq!(no_delay.wait(u32::MAX, 0.5), Duration::ZERO);
    }

    #[test]
    fn jitter_shortens_and_lengthens_the_wait() {
        let jittery = Backoff { jitter: 0.5, ..PLAIN };
        assert_eq!(jittery.wait(1, 0.0).as_millis(), 1_000);
        assert_eq!(jittery.wait(1, 0.5).as_millis(), 2_000);
        assert_eq!(jittery.wait(1, 1.0).as_millis(), 3_000);
    }

    proptest! {
        #[test]
        fn a_wait_is_capped_and_never_overflows(
            failures in any::<u32>(),
            delay in 0..=u64::from(u32::MAX),
            base in 1.0..1e300_f64,
            max in 0..=u64::from(u32::MAX),
            jitter in 0.0..=1.0_f64,
            roll in 0.0..1.0_f64,
        ) {
            for strategy in Strategy::ALL {
                let max = Duration::from_millis(max);
                let backoff = Backoff { strategy, delay: Duration::from_millis(delay), base, max, jitter };
                prop_assert!(backoff.wait(failures, roll) <= max * 2);
                let without_jitter = Backoff { jitter: 0.0, ..backoff };
                let wait = without_jitter.wait(failures, roll);
                prop_assert!(wait <= max);
                prop_assert!(wait <= without_jitter.wait(failures.saturating_add(1), roll));
            }
        }
    }
}
