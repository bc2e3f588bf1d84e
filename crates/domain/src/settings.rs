//! The settings that are kept in the store: their names, defaults and valid values.

mod about;
mod foreign_names;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::job::backoff::{Backoff, BackoffError, Strategy, check_base, check_jitter};
use super::job::limits::{Limits, LimitsError};
use super::text::nearest::{MAX_TYPO_DISTANCE, nearest_within};
use super::values::concurrency::{Concurrency, MAX_CONCURRENCY};
use super::values::size::{SizeError, format_size, parse_size};
use super::values::span::{SpanError, format_span, parse_span};

/// The maximum number of retries of a job.
pub const MAX_RETRIES: u32 = 1_000_000;
/// A lease must last at least this many heartbeats, so that a single missed heartbeat does no harm.
pub const HEARTBEATS_PER_LEASE: u32 = 3;

/// Words for the absence of a limit, or of what a setting switches on. Where one of them is valid, all are; the first of them depends on the setting.
const NO_LIMIT: [&str; 4] = ["none", "never", "off", "forever"];

crate::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum SettingKey {
        MaxRetries = "max_retries",
        BackoffStrategy = "backoff_strategy",
        RetryDelay = "retry_delay",
        BackoffBase = "backoff_base",
        MaxBackoff = "max_backoff",
        BackoffJitter = "backoff_jitter",
        JobTimeout = "job_timeout",
        KillGrace = "kill_grace",
        ShutdownGrace = "shutdown_grace",
        Concurrency = "concurrency",
        Autostart = "autostart",
        AutostartIdle = "autostart_idle",
        HeartbeatInterval = "heartbeat_interval",
        Lease = "lease",
        CrashLimit = "crash_limit",
        LogMaxBytes = "log_max_bytes",
        Limits = "limits",
        RetainCompleted = "retain_completed",
        RetainDead = "retain_dead",
        RetainLogs = "retain_logs",
        RetainEvents = "retain_events",
        RetainMetrics = "retain_metrics",
        Durability = "durability",
        Traces = "traces",
    }
}

impl fmt::Display for SettingKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for SettingKey {
    type Err = SettingError;

    /// `max-retries` and `max_retries` are the same key.
    fn from_str(text: &str) -> Result<Self, SettingError> {
        let name = text.replace('-', "_");
        Self::from_name(&name).ok_or_else(|| match foreign_names::instead_of(&name) {
            Some(instead) => SettingError::ForeignKey { typed: text.to_owned(), instead },
            None => SettingError::UnknownKey {
                typed: text.to_owned(),
                nearest: nearest_within(&name, Self::ALL.map(Self::name), MAX_TYPO_DISTANCE),
            },
        })
    }
}

crate::named_enum! {
    /// When a commit is acknowledged.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Durability {
        /// After it was synced to disk: it survives a power failure.
        Full = "full",
        /// Before it was synced: it survives a crash of the process, but the last moments may be lost in a power failure.
        Normal = "normal",
    }
}

crate::named_enum! {
    /// Where workers record the spans of attempts.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Traces {
        /// Nowhere; commands still continue the trace of their job.
        Off = "off",
        /// In `traces.jsonl` in the home, as OTLP JSON.
        File = "file",
    }
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SettingError {
    #[error("unknown setting `{typed}`")]
    UnknownKey { typed: String, nearest: Option<&'static str> },
    /// A name that other programs use for something that is set in another way here.
    #[error("unknown setting `{typed}`")]
    ForeignKey { typed: String, instead: &'static str },
    #[error("{key} must be a whole number from {min} to {max}, not `{value}`")]
    NotInRange { key: SettingKey, value: String, min: u64, max: u64 },
    #[error("{key} must be a whole number from 1 to {MAX_CONCURRENCY} or auto, not `{value}`")]
    NotSlots { key: SettingKey, value: String },
    #[error("{key} must be a number, not `{value}`")]
    NotANumber { key: SettingKey, value: String },
    #[error("{key} must be {choices}, not `{value}`")]
    NotAChoice { key: SettingKey, value: String, choices: &'static str },
    #[error("{key} must be greater than 0")]
    Zero { key: SettingKey },
    #[error("invalid {key}")]
    Span { key: SettingKey, source: SpanError },
    #[error("{key} must be a duration or `{word}`")]
    SpanOrWord { key: SettingKey, word: &'static str, source: SpanError },
    #[error("{key} must be greater than 0, or `{word}`")]
    ZeroOrWord { key: SettingKey, word: &'static str },
    #[error("invalid {key}")]
    Size { key: SettingKey, source: SizeError },
    #[error("invalid {key}")]
    Backoff { key: SettingKey, source: BackoffError },
    #[error("a lease of {lease} is shorter than {HEARTBEATS_PER_LEASE} heartbeats of {heartbeat}")]
    LeaseTooShort { lease: String, heartbeat: String },
    #[error("invalid {key}")]
    Limits { key: SettingKey, source: LimitsError },
}

/// All settings with their current values.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub max_retries: u32,
    pub backoff: Backoff,
    pub job_timeout: Option<Duration>,
    pub kill_grace: Duration,
    pub shutdown_grace: Option<Duration>,
    pub concurrency: Concurrency,
    /// Whether `enqueue` starts a worker pool if none is running.
    pub autostart: bool,
    /// How long such a pool stays without work.
    pub autostart_idle: Duration,
    pub heartbeat_interval: Duration,
    pub lease: Duration,
    pub crash_limit: u32,
    pub log_max_bytes: u64,
    /// For jobs without limits in queues without limits.
    pub limits: Limits,
    pub retain_completed: Option<Duration>,
    pub retain_dead: Option<Duration>,
    pub retain_logs: Option<Duration>,
    pub retain_events: Option<Duration>,
    pub retain_metrics: Option<Duration>,
    pub durability: Durability,
    pub traces: Traces,
}

const DAY: Duration = Duration::from_secs(24 * 3600);

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_retries: 3,
            backoff: Backoff {
                strategy: Strategy::Exponential,
                delay: Duration::from_secs(1),
                base: 2.0,
                max: Duration::from_secs(300),
                jitter: 0.0,
            },
            job_timeout: None,
            kill_grace: Duration::from_secs(10),
            shutdown_grace: None,
            concurrency: Concurrency::Slots(1),
            autostart: false,
            autostart_idle: Duration::from_secs(300),
            heartbeat_interval: Duration::from_secs(5),
            lease: Duration::from_secs(30),
            crash_limit: 5,
            log_max_bytes: 16 << 20,
            limits: Limits::default(),
            retain_completed: Some(7 * DAY),
            retain_dead: None,
            retain_logs: Some(7 * DAY),
            retain_events: Some(30 * DAY),
            retain_metrics: Some(90 * DAY),
            durability: Durability::Full,
            traces: Traces::Off,
        }
    }
}

impl Settings {
    /// The defaults of a queue on a server. A network fails more often and longer than a disk, so leases last longer.
    pub fn default_on_server() -> Self {
        Self {
            heartbeat_interval: Duration::from_secs(10),
            lease: Duration::from_secs(60),
            ..Self::default()
        }
    }

    /// Changes one setting, after checking the value alone and with the others.
    pub fn set(&mut self, key: SettingKey, value: &str) -> Result<(), SettingError> {
        let mut changed = self.clone();
        changed.assign(key, value)?;
        changed.check_lease()?;
        *self = changed;
        Ok(())
    }

    /// Builds settings from stored values, which were checked together when they were stored, over the defaults.
    pub fn from_stored<'a>(
        defaults: Self,
        stored: impl IntoIterator<Item = (SettingKey, &'a str)>,
    ) -> Result<Self, SettingError> {
        let mut settings = defaults;
        for (key, value) in stored {
            settings.assign(key, value)?;
        }
        Ok(settings)
    }

    fn assign(&mut self, key: SettingKey, value: &str) -> Result<(), SettingError> {
        match key {
            SettingKey::MaxRetries => self.max_retries = whole(key, value, 0, MAX_RETRIES)?,
            SettingKey::BackoffStrategy => {
                self.backoff.strategy =
                    value.parse().map_err(|source| SettingError::Backoff { key, source })?;
            }
            SettingKey::RetryDelay => self.backoff.delay = span(key, value)?,
            SettingKey::BackoffBase => {
                self.backoff.base = fraction(key, value, check_base)?;
            }
            SettingKey::MaxBackoff => self.backoff.max = span(key, value)?,
            SettingKey::BackoffJitter => {
                self.backoff.jitter = fraction(key, value, check_jitter)?;
            }
            SettingKey::JobTimeout => self.job_timeout = positive_span_or(key, value, "none")?,
            SettingKey::KillGrace => self.kill_grace = span(key, value)?,
            SettingKey::ShutdownGrace => {
                self.shutdown_grace = span_or_never(key, value)?;
            }
            SettingKey::Concurrency => self.concurrency = concurrency(key, value)?,
            SettingKey::Autostart => self.autostart = switch(key, value)?,
            SettingKey::AutostartIdle => self.autostart_idle = span(key, value)?,
            SettingKey::HeartbeatInterval => self.heartbeat_interval = positive_span(key, value)?,
            SettingKey::Lease => self.lease = positive_span(key, value)?,
            SettingKey::CrashLimit => self.crash_limit = whole(key, value, 1, MAX_RETRIES)?,
            SettingKey::LogMaxBytes => {
                self.log_max_bytes =
                    parse_size(value).map_err(|source| SettingError::Size { key, source })?;
            }
            SettingKey::Limits => self.limits = limits(key, value)?,
            SettingKey::RetainCompleted => self.retain_completed = span_or_never(key, value)?,
            SettingKey::RetainDead => self.retain_dead = span_or_never(key, value)?,
            SettingKey::RetainLogs => self.retain_logs = span_or_never(key, value)?,
            SettingKey::RetainEvents => self.retain_events = span_or_never(key, value)?,
            SettingKey::RetainMetrics => self.retain_metrics = span_or_never(key, value)?,
            SettingKey::Durability => self.durability = durability(key, value)?,
            SettingKey::Traces => self.traces = traces(key, value)?,
        }
        Ok(())
    }

    fn check_lease(&self) -> Result<(), SettingError> {
        if self.lease < self.heartbeat_interval * HEARTBEATS_PER_LEASE {
            return Err(SettingError::LeaseTooShort {
                lease: format_span(self.lease),
                heartbeat: format_span(self.heartbeat_interval),
            });
        }
        Ok(())
    }

    /// The value of a setting in canonical form.
    pub fn get(&self, key: SettingKey) -> String {
        let or = |span: Option<Duration>, absent: &str| span.map_or_else(|| absent.to_owned(), format_span);
        match key {
            SettingKey::MaxRetries => self.max_retries.to_string(),
            SettingKey::BackoffStrategy => self.backoff.strategy.to_string(),
            SettingKey::RetryDelay => format_span(self.backoff.delay),
            SettingKey::BackoffBase => self.backoff.base.to_string(),
            SettingKey::MaxBackoff => format_span(self.backoff.max),
            SettingKey::BackoffJitter => self.backoff.jitter.to_string(),
            SettingKey::JobTimeout => or(self.job_timeout, "none"),
            SettingKey::KillGrace => format_span(self.kill_grace),
            SettingKey::ShutdownGrace => or(self.shutdown_grace, "never"),
            SettingKey::Concurrency => self.concurrency.to_string(),
            SettingKey::Autostart => if self.autostart { "on" } else { "off" }.to_owned(),
            SettingKey::AutostartIdle => format_span(self.autostart_idle),
            SettingKey::HeartbeatInterval => format_span(self.heartbeat_interval),
            SettingKey::Lease => format_span(self.lease),
            SettingKey::CrashLimit => self.crash_limit.to_string(),
            SettingKey::LogMaxBytes => format_size(self.log_max_bytes),
            SettingKey::Limits => self.limits.to_string(),
            SettingKey::RetainCompleted => or(self.retain_completed, "never"),
            SettingKey::RetainDead => or(self.retain_dead, "never"),
            SettingKey::RetainLogs => or(self.retain_logs, "never"),
            SettingKey::RetainEvents => or(self.retain_events, "never"),
            SettingKey::RetainMetrics => or(self.retain_metrics, "never"),
            SettingKey::Durability => self.durability.name().to_owned(),
            SettingKey::Traces => self.traces.name().to_owned(),
        }
    }
}

fn whole(key: SettingKey, value: &str, min: u32, max: u32) -> Result<u32, SettingError> {
    value.parse().ok().filter(|number| (min..=max).contains(number)).ok_or_else(|| SettingError::NotInRange {
        key,
        value: value.to_owned(),
        min: min.into(),
        max: max.into(),
    })
}

fn concurrency(key: SettingKey, value: &str) -> Result<Concurrency, SettingError> {
    value.parse().map_err(|_| SettingError::NotSlots { key, value: value.to_owned() })
}

fn switch(key: SettingKey, value: &str) -> Result<bool, SettingError> {
    match value {
        value if is_no_limit(value) => Ok(false),
        "on" | "true" | "yes" => Ok(true),
        "false" | "no" => Ok(false),
        _ => Err(SettingError::NotAChoice { key, value: value.to_owned(), choices: "on or off" }),
    }
}

fn fraction(
    key: SettingKey,
    value: &str,
    check: fn(f64) -> Result<f64, BackoffError>,
) -> Result<f64, SettingError> {
    let number = value.parse().map_err(|_| SettingError::NotANumber { key, value: value.to_owned() })?;
    check(number).map_err(|source| SettingError::Backoff { key, source })
}

fn span(key: SettingKey, value: &str) -> Result<Duration, SettingError> {
    parse_span(value).map_err(|source| SettingError::Span { key, source })
}

fn positive_span(key: SettingKey, value: &str) -> Result<Duration, SettingError> {
    let span = span(key, value)?;
    if span.is_zero() {
        return Err(SettingError::Zero { key });
    }
    Ok(span)
}

fn is_no_limit(value: &str) -> bool {
    NO_LIMIT.iter().any(|word| word.eq_ignore_ascii_case(value.trim()))
}

fn positive_span_or(
    key: SettingKey,
    value: &str,
    word: &'static str,
) -> Result<Option<Duration>, SettingError> {
    match span_or(key, value, word)? {
        Some(span) if span.is_zero() => Err(SettingError::ZeroOrWord { key, word }),
        span => Ok(span),
    }
}

fn span_or_never(key: SettingKey, value: &str) -> Result<Option<Duration>, SettingError> {
    span_or(key, value, "never")
}

fn span_or(key: SettingKey, value: &str, word: &'static str) -> Result<Option<Duration>, SettingError> {
    if is_no_limit(value) {
        return Ok(None);
    }
    parse_span(value).map(Some).map_err(|source| SettingError::SpanOrWord { key, word, source })
}

fn limits(key: SettingKey, value: &str) -> Result<Limits, SettingError> {
    if is_no_limit(value) {
        return Ok(Limits::default());
    }
    value.parse().map_err(|source| SettingError::Limits { key, source })
}

fn durability(key: SettingKey, value: &str) -> Result<Durability, SettingError> {
    Durability::from_name(value).ok_or_else(|| SettingError::NotAChoice {
        key,
        value: value.to_owned(),
        choices: "full or normal",
    })
}

fn traces(key: SettingKey, value: &str) -> Result<Traces, SettingError> {
    if is_no_limit(value) {
        return Ok(Traces::Off);
    }
    Traces::from_name(value).ok_or_else(|| SettingError::NotAChoice {
        key,
        value: value.to_owned(),
        choices: "off or file",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_a_valid_value_of_its_key() {
        let defaults = Settings::default();
        for key in SettingKey::ALL {
            let mut settings = Settings::default();
            assert_eq!(settings.set(key, &defaults.get(key)), Ok(()), "{key}");
            assert_eq!(settings, defaults, "{key}");
            assert_eq!(key.name().parse(), Ok(key));
        }
    }

    #[test]
    fn the_defaults_on_a_server_are_valid() {
        let mut settings = Settings::default_on_server();
        assert_eq!(settings.set(SettingKey::Lease, "60s"), Ok(()));
        assert_eq!(settings, Settings::default_on_server());
    }

    #[test]
    fn the_defaults_are_as_documented() {
        let defaults = Settings::default();
        for (key, value) in [
            (SettingKey::MaxRetries, "3"),
            (SettingKey::RetryDelay, "1s"),
            (SettingKey::BackoffBase, "2"),
            (SettingKey::MaxBackoff, "5m"),
            (SettingKey::JobTimeout, "none"),
            (SettingKey::KillGrace, "10s"),
            (SettingKey::ShutdownGrace, "never"),
            (SettingKey::Concurrency, "1"),
            (SettingKey::Autostart, "off"),
            (SettingKey::AutostartIdle, "5m"),
            (SettingKey::LogMaxBytes, "16M"),
            (SettingKey::RetainCompleted, "7d"),
            (SettingKey::RetainDead, "never"),
            (SettingKey::RetainMetrics, "90d"),
        ] {
            assert_eq!(defaults.get(key), value, "{key}");
        }
    }

    #[test]
    fn keys_are_parsed_with_dashes_or_underscores_and_a_typo_suggests_the_nearest() {
        assert_eq!("max-retries".parse(), Ok(SettingKey::MaxRetries));
        let Err(SettingError::UnknownKey { nearest, .. }) = "max-retires".parse::<SettingKey>() else {
            panic!("max-retires is not a key")
        };
        assert_eq!(nearest, Some("max_retries"));
    }

    #[test]
    fn names_of_other_programs_are_answered_from_a_table_and_distant_names_not_at_all() {
        for (typed, part) in [
            ("poll-interval", "wake"),
            ("timeout", "job_timeout"),
            ("lease_seconds", "lease"),
            ("base-backoff", "retry_delay"),
            ("backoff", "retry_delay"),
            ("Max-Attempts", "max_retries"),
            ("workers", "worker start --count"),
        ] {
            let Err(SettingError::ForeignKey { instead, .. }) = typed.parse::<SettingKey>() else {
                panic!("{typed} is in the table")
            };
            assert!(instead.contains(part), "{typed}: {instead}");
        }
        for typed in ["kill_grave_x", "retain", "colour", "max_backofffff"] {
            let nearest = None;
            assert_eq!(
                typed.parse::<SettingKey>(),
                Err(SettingError::UnknownKey { typed: typed.to_owned(), nearest })
            );
        }
    }

    #[test]
    fn every_word_for_no_limit_is_valid_where_one_is() {
        let optional = [
            (SettingKey::JobTimeout, "none"),
            (SettingKey::ShutdownGrace, "never"),
            (SettingKey::Limits, "none"),
            (SettingKey::RetainCompleted, "never"),
            (SettingKey::RetainDead, "never"),
            (SettingKey::RetainLogs, "never"),
            (SettingKey::RetainEvents, "never"),
            (SettingKey::RetainMetrics, "never"),
        ];
        for (key, word) in optional {
            for typed in ["none", "never", "off", "forever", "Never"] {
                let mut settings = Settings::default();
                assert_eq!(settings.set(key, typed), Ok(()), "{key} {typed}");
                assert_eq!(settings.get(key), word);
            }
        }
        let refused = Settings::default().set(SettingKey::RetainDead, "soon").expect_err("not a duration");
        assert_eq!(refused.to_string(), "retain_dead must be a duration or `never`");
        assert!(Settings::default().set(SettingKey::KillGrace, "never").is_err());
    }

    #[test]
    fn invalid_values_are_refused_and_change_nothing() {
        for (key, value) in [
            (SettingKey::MaxRetries, "-1"),
            (SettingKey::MaxRetries, "1.5"),
            (SettingKey::MaxRetries, "9223372036854775808"),
            (SettingKey::BackoffStrategy, "quadratic"),
            (SettingKey::BackoffBase, "0.9"),
            (SettingKey::BackoffBase, "NaN"),
            (SettingKey::BackoffBase, "inf"),
            (SettingKey::BackoffJitter, "1.1"),
            (SettingKey::JobTimeout, "0"),
            (SettingKey::Concurrency, "0"),
            (SettingKey::Concurrency, "100000"),
            (SettingKey::Concurrency, "all"),
            (SettingKey::Autostart, "maybe"),
            (SettingKey::AutostartIdle, "never"),
            (SettingKey::Lease, "10s"),
            (SettingKey::HeartbeatInterval, "11s"),
            (SettingKey::Limits, "{\"memory\":\"1\"}"),
            (SettingKey::Limits, "1G"),
            (SettingKey::Durability, "off"),
        ] {
            let mut settings = Settings::default();
            assert!(settings.set(key, value).is_err(), "{key} {value}");
            assert_eq!(settings, Settings::default());
        }
    }
}
