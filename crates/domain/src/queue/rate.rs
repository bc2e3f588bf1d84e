//! Rate limits of queues, such as `10/m`, `1/s` or `5/10s`: how many jobs may start per period.
//!
//! A token bucket holds as many tokens as the rate has jobs, and each start takes one. It refills evenly over the period:
//! a queue that was idle may start a whole period's jobs at once, and the following ones at even intervals.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::values::span::{SpanError, format_span, parse_span};
use crate::values::timestamp::Timestamp;

/// More jobs than this per period are effectively unlimited.
const MAX_COUNT: u32 = 1_000_000;
const UNITS: [&str; 4] = ["s", "m", "h", "d"];
/// Compensates for rounding: a bucket this close to a whole token has it.
const TOKEN_TOLERANCE: f64 = 1e-6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    count: u32,
    period: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    #[error("not a valid rate: `{0}`; write 10/m, 1/s, 100/h or 5/10s")]
    Malformed(String),
    #[error("a rate must allow 1 to {MAX_COUNT} jobs per period, not `{0}`")]
    Count(String),
    #[error("the period of a rate must not be 0")]
    ZeroPeriod,
    #[error(transparent)]
    Period(#[from] SpanError),
}

impl Rate {
    pub fn new(count: u32, period: Duration) -> Result<Self, RateError> {
        if count == 0 || count > MAX_COUNT {
            return Err(RateError::Count(count.to_string()));
        }
        if period.as_millis() == 0 {
            return Err(RateError::ZeroPeriod);
        }
        Ok(Self { count, period })
    }

    pub fn count(self) -> u32 {
        self.count
    }

    pub fn period(self) -> Duration {
        self.period
    }

    /// The bucket of a queue that was idle.
    pub fn full(self, now: Timestamp) -> Bucket {
        Bucket { tokens: self.count.into(), refilled_at: now }
    }

    fn period_millis(self) -> f64 {
        self.period.as_secs_f64() * 1_000.0
    }
}

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let (count, period) =
            text.trim().split_once('/').ok_or_else(|| RateError::Malformed(text.to_owned()))?;
        let period = if UNITS.contains(&period) { format!("1{period}") } else { period.to_owned() };
        Self::new(count.parse().map_err(|_| RateError::Count(count.to_owned()))?, parse_span(&period)?)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period = format_span(self.period);
        let unit = period.strip_prefix('1').filter(|unit| UNITS.contains(unit));
        write!(out, "{}/{}", self.count, unit.unwrap_or(&period))
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    pub tokens: f64,
    pub refilled_at: Timestamp,
}

impl Bucket {
    /// The bucket at time `now`. If the clock was set back, nothing is added, and it refills from the new time.
    #[must_use]
    pub fn refilled(self, rate: Rate, now: Timestamp) -> Self {
        let passed = now.since(self.refilled_at).as_secs_f64() * 1_000.0;
        let gained = passed / rate.period_millis() * f64::from(rate.count);
        Self { tokens: (self.tokens.max(0.0) + gained).min(rate.count.into()), refilled_at: now }
    }

    /// How many of the `requested` jobs may start now.
    pub fn grants(self, rate: Rate, now: Timestamp, requested: u32) -> u32 {
        self.whole(rate, now).min(requested)
    }

    /// The number of whole tokens.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to a rate's count")]
    fn whole(self, rate: Rate, now: Timestamp) -> u32 {
        ((self.refilled(rate, now).tokens + TOKEN_TOLERANCE).floor() as u32).min(rate.count)
    }

    /// The bucket after `count` jobs were started.
    #[must_use]
    pub fn take(self, rate: Rate, now: Timestamp, count: u32) -> Self {
        let filled = self.refilled(rate, now);
        Self { tokens: (filled.tokens - f64::from(count)).max(0.0), ..filled }
    }

    /// The bucket after a claimed job was not started.
    #[must_use]
    pub fn give_back(self, rate: Rate, now: Timestamp) -> Self {
        let filled = self.refilled(rate, now);
        Self { tokens: (filled.tokens + 1.0).min(rate.count.into()), ..filled }
    }

    /// The time until `count` jobs could have started.
    pub fn time_for(self, rate: Rate, now: Timestamp, count: u64) -> Duration {
        let needed = f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        let missing = needed - self.refilled(rate, now).tokens;
        let millis = if missing < TOKEN_TOLERANCE {
            0.0
        } else {
            missing * rate.period_millis() / f64::from(rate.count)
        };
        Duration::try_from_secs_f64(millis.ceil() / 1_000.0).unwrap_or(Duration::MAX)
    }

    /// When the next job may start; `None` if one may start now.
    pub fn next_token_at(self, rate: Rate, now: Timestamp) -> Option<Timestamp> {
        if self.whole(rate, now) > 0 {
            return None;
        }
        // Without the tolerance, rounding could make the wait a millisecond too long.
        let missing = 1.0 - TOKEN_TOLERANCE - self.refilled(rate, now).tokens;
        let wait = missing * rate.period_millis() / f64::from(rate.count);
        Some(now.saturating_add(Duration::from_secs_f64((wait.ceil() / 1_000.0).max(0.001))))
    }
}

/// A rate with its bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Meter {
    pub rate: Rate,
    pub bucket: Bucket,
}

impl Meter {
    pub fn next_token_at(self, now: Timestamp) -> Option<Timestamp> {
        self.bucket.next_token_at(self.rate, now)
    }

    pub fn time_for(self, now: Timestamp, count: u64) -> Duration {
        self.bucket.time_for(self.rate, now, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> Rate {
        text.parse().expect("valid rate")
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn a_rate_is_parsed_and_formatted() {
        for (text, count, seconds) in [
            ("10/m", 10, 60),
            ("1/s", 1, 1),
            ("100/h", 100, 3_600),
            ("5/10s", 5, 10),
            ("2/d", 2, 86_400),
            ("7/1m30s", 7, 90),
        ] {
            assert_eq!(text.parse(), Rate::new(count, Duration::from_secs(seconds)), "{text}");
            assert_eq!(rate(text).to_string(), text);
        }
        assert_eq!(rate(" 5/60s "), rate("5/m"));
    }

    #[test]
    fn invalid_rates_are_refused() {
        for text in ["", "10", "10 per minute", "/m", "-1/m", "0/m", "1.5/s", "9999999/s", "5/", "5/0s"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
        assert_eq!("5/soon".parse::<Rate>().expect_err("not a duration").to_string(), parse_error("soon"));
    }

    fn parse_error(text: &str) -> String {
        parse_span(text).expect_err("not a duration").to_string()
    }

    #[test]
    fn a_full_bucket_grants_a_burst_and_then_even_intervals() {
        let rate = rate("10/m");
        let mut bucket = rate.full(at(0));
        assert_eq!(bucket.next_token_at(rate, at(0)), None);
        assert_eq!(bucket.grants(rate, at(0), 4), 4, "no more than were requested");
        assert_eq!(bucket.grants(rate, at(0), 99), 10);
        bucket = bucket.take(rate, at(0), 10);
        assert_eq!(bucket.grants(rate, at(0), 1), 0);
        for start in 1..=100 {
            let next = bucket.next_token_at(rate, at((start - 1) * 6_000)).expect("an empty bucket");
            assert_eq!(next, at(start * 6_000));
            assert_eq!(bucket.grants(rate, at(start * 6_000 - 1), 9), 0);
            assert_eq!(bucket.grants(rate, next, 9), 1, "start {start}");
            bucket = bucket.take(rate, next, 1);
        }
        assert_eq!(bucket.grants(rate, at(86_400_000), 99), 10, "the bucket does not overflow");
    }

    #[test]
    fn refilling_in_small_steps_does_not_delay_the_next_token() {
        for (count, every) in [(1, 7), (3, 11), (3, 997), (7, 13)] {
            let rate = Rate::new(count, Duration::from_secs(60)).expect("valid rate");
            let mut bucket = rate.full(at(0)).take(rate, at(0), count);
            for now in (0..=60_000 / i64::from(count) - every).step_by(usize::try_from(every).expect("small"))
            {
                bucket = bucket.refilled(rate, at(now));
                let exact = 60_000_i64.div_euclid(count.into()) + i64::from(60_000 % count != 0);
                assert_eq!(bucket.next_token_at(rate, at(now)), Some(at(exact)), "{count}/m at {now}");
            }
        }
    }

    #[test]
    fn a_token_is_available_at_the_announced_time() {
        for text in ["3/s", "7/m", "7/10s", "1000000/d", "999/h", "1/d"] {
            let rate = rate(text);
            let mut bucket = rate.full(at(0)).take(rate, at(0), rate.count());
            let mut now = at(0);
            for _ in 0..500 {
                if let Some(next) = bucket.next_token_at(rate, now) {
                    assert!(next > now, "{text}");
                    now = next;
                }
                assert!(bucket.grants(rate, now, 1) == 1, "{text}");
                bucket = bucket.take(rate, now, 1);
            }
        }
    }

    #[test]
    fn the_time_for_several_jobs_is_that_of_their_tokens() {
        let rate = rate("10/m");
        let (full, empty) = (rate.full(at(0)), rate.full(at(0)).take(rate, at(0), 10));
        for (bucket, now, count, seconds) in [
            (full, 0, 0, 0),
            (full, 0, 10, 0),
            (full, 0, 11, 6),
            (full, 0, 100, 540),
            (empty, 0, 1, 6),
            (empty, 0, 10, 60),
            (empty, 30_000, 10, 30),
            (empty, 3_600_000, 10, 0),
        ] {
            let time = bucket.time_for(rate, at(now), count);
            assert_eq!(time, Duration::from_secs(seconds), "{count} at {now}");
        }
        let slow = Rate::new(1, Duration::MAX).expect("valid rate");
        assert_eq!(slow.full(at(0)).time_for(slow, at(0), u64::MAX), Duration::MAX, "out of range");
    }

    #[test]
    fn the_cost_of_a_query_does_not_depend_on_the_rate() {
        let rate = rate("1000000/d");
        let bucket = rate.full(at(0)).take(rate, at(0), rate.count());
        let began = std::time::Instant::now();
        for _ in 0..1_000 {
            assert_eq!(bucket.grants(rate, at(1_000), u32::MAX), 11);
        }
        assert!(began.elapsed() < Duration::from_secs(1), "a claim queries it inside its transaction");
    }

    #[test]
    fn setting_the_clock_back_neither_fills_nor_freezes_the_bucket() {
        let rate = rate("1/s");
        let day = 86_400_000;
        let bucket = rate.full(at(day)).take(rate, at(day), 1);
        assert_eq!(bucket.grants(rate, at(0), 1), 0);
        assert_eq!(bucket.next_token_at(rate, at(0)), Some(at(1_000)));
        let afterwards = bucket.take(rate, at(0), 0);
        assert_eq!(afterwards.grants(rate, at(1_000), 1), 1, "after a second, not a day");
    }

    #[test]
    fn a_job_that_did_not_start_gives_its_token_back() {
        let rate = rate("2/m");
        let bucket = rate.full(at(0)).take(rate, at(0), 2).give_back(rate, at(0));
        assert_eq!(bucket.grants(rate, at(0), 9), 1);
        assert_eq!(rate.full(at(0)).give_back(rate, at(0)), rate.full(at(0)), "the bucket does not overflow");
    }
}
