//! Settings, as `KEY=VALUE`: an accepted value survives a round trip, and a refused value changes nothing.

use domain::settings::{HEARTBEATS_PER_LEASE, MAX_RETRIES, SettingKey, Settings};
use domain::values::concurrency::MAX_CONCURRENCY;
use domain::values::span::MAX_SPAN;

use super::message;

pub const TOKENS: &[&str] = &[
    "max_retries=",
    "max-retries=",
    "backoff_strategy=",
    "retry_delay=",
    "backoff_base=",
    "max_backoff=",
    "backoff_jitter=",
    "job_timeout=",
    "kill_grace=",
    "shutdown_grace=",
    "concurrency=",
    "heartbeat_interval=",
    "lease=",
    "crash_limit=",
    "log_max_bytes=",
    "limits=",
    "memory=512M",
    ",cpu=1.5",
    ",pids=100",
    "nice=-5",
    "{\"open_files\":64}",
    "retain_dead=",
    "durability=",
    "none",
    "never",
    "full",
    "normal",
    "exponential",
    "linear",
    "fixed",
    "0",
    "-1",
    "1e300",
    "NaN",
    "inf",
    "1.5",
    "1000001",
    "1024",
    "16M",
    "30s",
    "100ms",
    "36600d",
];

pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (key, value) = text.split_once('=').unwrap_or((&text, ""));
    let key: SettingKey = match key.parse() {
        Ok(key) => key,
        Err(error) => return message::check(&error, text.as_bytes()),
    };
    let mut settings = Settings::default();
    match settings.set(key, value) {
        Ok(()) => check(&settings),
        Err(error) => {
            assert_eq!(settings, Settings::default(), "a refused value changes nothing");
            message::check(&error, text.as_bytes());
        }
    }
}

fn check(settings: &Settings) {
    let written: Vec<(SettingKey, String)> =
        SettingKey::ALL.into_iter().map(|key| (key, settings.get(key))).collect();
    let stored = written.iter().map(|(key, value)| (*key, value.as_str()));
    assert_eq!(Settings::from_stored(Settings::default(), stored).as_ref(), Ok(settings));
    assert!(settings.max_retries <= MAX_RETRIES);
    assert!((1..=MAX_RETRIES).contains(&settings.crash_limit));
    assert!((1..=MAX_CONCURRENCY).contains(&settings.concurrency.slots(1)));
    assert!(settings.lease >= settings.heartbeat_interval * HEARTBEATS_PER_LEASE);
    assert!(!settings.heartbeat_interval.is_zero());
    assert!(settings.job_timeout.is_none_or(|timeout| !timeout.is_zero() && timeout <= MAX_SPAN));
    assert!(settings.backoff.base.is_finite() && settings.backoff.base >= 1.0);
    assert!((0.0..=1.0).contains(&settings.backoff.jitter));
    assert!(i64::try_from(settings.log_max_bytes).is_ok());
}
