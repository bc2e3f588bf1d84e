//! One sentence for each setting.

use super::SettingKey;

impl SettingKey {
    pub fn about(self) -> &'static str {
        match self {
            Self::MaxRetries => "retries after the first attempt",
            Self::BackoffStrategy => "exponential, linear or fixed delays",
            Self::RetryDelay => "the delay that the backoff starts from",
            Self::BackoffBase => "the factor of an exponential backoff",
            Self::MaxBackoff => "the longest delay between two attempts",
            Self::BackoffJitter => "how much delays vary at random, 0 to 1",
            Self::JobTimeout => "the time limit of an attempt",
            Self::KillGrace => "the time between SIGTERM and SIGKILL",
            Self::ShutdownGrace => "how long a stop lets jobs finish",
            Self::Concurrency => "jobs that a worker runs at once, or auto",
            Self::Autostart => "whether enqueue starts missing workers",
            Self::AutostartIdle => "how long such workers stay without a job",
            Self::HeartbeatInterval => "how often a worker shows that it lives",
            Self::Lease => "how long a silent worker keeps its jobs",
            Self::CrashLimit => "crashes in a row that make a job dead",
            Self::LogMaxBytes => "how much output of an attempt is kept",
            Self::Limits => "resource limits of jobs that set none",
            Self::RetainCompleted => "how long jobs that did not die are kept",
            Self::RetainDead => "how long dead jobs are kept",
            Self::RetainLogs => "how long output is kept",
            Self::RetainEvents => "how long events are kept",
            Self::RetainMetrics => "how long the history of metrics is kept",
            Self::Durability => "full survives power cuts, normal is fast",
            Self::Traces => "file records attempts in traces.jsonl",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sentence_fits_a_terminal_of_80_columns() {
        for key in SettingKey::ALL {
            assert!(key.about().len() <= 47, "{key}: {}", key.about().len());
        }
    }
}
