//! Names that other queues use for settings, and what to use here.

/// What to use instead of the setting with this name, if another program has it. Similar names are not enough: the
/// nearest setting of ours may mean something else.
pub(super) fn instead_of(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    NAMES.iter().find(|(names, _)| names.contains(&name.as_str())).map(|(_, instead)| *instead)
}

const NAMES: [(&[&str], &str); 15] = [
    (
        &["poll", "poll_interval", "polling_interval", "poll_interval_ms", "poll_seconds"],
        "there is nothing to set: a new job wakes a worker at once",
    ),
    (
        &[
            "timeout",
            "timeout_seconds",
            "default_timeout",
            "command_timeout",
            "job_timeout_seconds",
            "max_runtime",
        ],
        "use job_timeout, as in `queuectl config set job-timeout 10m`",
    ),
    (
        &[
            "lease_seconds",
            "lease_timeout",
            "lease_duration",
            "visibility_timeout",
            "lock_timeout",
            "stale_timeout",
        ],
        "use lease, as in `queuectl config set lease 1m`",
    ),
    (
        &["heartbeat", "heartbeat_seconds", "heartbeat_timeout"],
        "use heartbeat_interval, or lease for the timeout",
    ),
    (
        &["backoff", "base_backoff", "backoff_seconds", "retry_backoff"],
        "use retry_delay for the first delay, backoff_base for the factor, and backoff_strategy",
    ),
    (
        &[
            "backoff_factor",
            "backoff_multiplier",
            "backoff_exponent",
            "base",
            "exponential_base",
            "retry_base",
        ],
        "use backoff_base, as in `queuectl config set backoff-base 2`",
    ),
    (
        &[
            "delay",
            "base_delay",
            "initial_backoff",
            "initial_delay",
            "backoff_delay",
            "retry_interval",
            "retry_wait",
        ],
        "use retry_delay, as in `queuectl config set retry-delay 5s`",
    ),
    (
        &[
            "max_delay",
            "backoff_max",
            "backoff_cap",
            "max_backoff_seconds",
            "backoff_limit",
            "max_retry_delay",
        ],
        "use max_backoff, as in `queuectl config set max-backoff 10m`",
    ),
    (&["jitter"], "use backoff_jitter, as in `queuectl config set backoff-jitter 0.2`"),
    (
        &["max_attempts", "attempts", "max_tries", "tries"],
        "use max_retries, which does not count the first attempt: for 4 attempts, `queuectl config set max-retries 3`",
    ),
    (
        &["retries", "max_retry", "retry_limit", "retry_count", "default_max_retries"],
        "use max_retries, as in `queuectl config set max-retries 5`",
    ),
    (
        &[
            "workers",
            "worker_count",
            "num_workers",
            "max_workers",
            "threads",
            "parallel",
            "parallelism",
            "slots",
        ],
        "use `queuectl worker start --count N`, or concurrency for the slots of each worker",
    ),
    (
        &["shutdown_timeout", "graceful_timeout", "grace_period", "grace", "stop_timeout"],
        "use shutdown_grace for the end of a worker, or kill_grace for the end of a job",
    ),
    (
        &["retention", "retention_days", "ttl", "job_ttl", "cleanup_after", "keep_completed", "history_days"],
        "use retain_completed, retain_dead, retain_logs or retain_events",
    ),
    (
        &["db", "db_path", "database", "database_path", "data_dir", "log_dir", "log_path", "home", "store"],
        "use --home or --store, or the variables QUEUECTL_HOME and QUEUECTL_STORE",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::SettingKey;

    #[test]
    fn no_name_is_a_setting_or_stands_twice() {
        let all: Vec<&str> = NAMES.iter().flat_map(|(names, _)| *names).copied().collect();
        for name in &all {
            assert_eq!(SettingKey::from_name(name), None, "{name}");
            assert_eq!(all.iter().filter(|other| *other == name).count(), 1, "{name}");
        }
    }
}
