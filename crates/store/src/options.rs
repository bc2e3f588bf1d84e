//! Options that few jobs set, kept together in one JSON object so that the other jobs pay nothing for them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use domain::job::OnDependencyFailure;
use domain::job::backoff::{BackoffChoice, Strategy};
use domain::job::limits::Limits;
use domain::job::retry_rules::{ExitCodes, ExitCodesError, RetryRules};
use domain::job::unique::UniqueFor;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobOptions {
    pub backoff: Option<BackoffChoice>,
    pub env: BTreeMap<String, String>,
    pub on_dependency_failure: OnDependencyFailure,
    pub limits: Limits,
    pub retry: RetryRules,
    pub unique_for: UniqueFor,
}

#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    #[error("a job's options are not valid JSON")]
    Json(#[from] serde_json::Error),
    #[error("a job's options contain the unknown word `{0}`")]
    UnknownWord(String),
    #[error(transparent)]
    ExitCodes(#[from] ExitCodesError),
}

impl JobOptions {
    /// `None` when nothing is set.
    pub fn to_json(&self) -> Option<String> {
        if *self == Self::default() {
            return None;
        }
        let stored = StoredOptions {
            backoff: self.backoff.map(StoredBackoff::from),
            env: self.env.clone(),
            run_on_dependency_failure: self.on_dependency_failure == OnDependencyFailure::Run,
            limits: self.limits,
            retry_on: to_list(self.retry.retry_on),
            no_retry_on: to_list(self.retry.no_retry_on),
            unique_for: (self.unique_for != UniqueFor::default()).then(|| self.unique_for.to_string()),
        };
        Some(serde_json::to_string(&stored).expect("maps with text keys serialize to JSON"))
    }

    pub fn from_json(json: Option<&str>) -> Result<Self, OptionsError> {
        let Some(json) = json else {
            return Ok(Self::default());
        };
        let stored: StoredOptions = serde_json::from_str(json)?;
        Ok(Self {
            backoff: stored.backoff.map(BackoffChoice::try_from).transpose()?,
            env: stored.env,
            on_dependency_failure: if stored.run_on_dependency_failure {
                OnDependencyFailure::Run
            } else {
                OnDependencyFailure::Cancel
            },
            limits: stored.limits,
            retry: RetryRules {
                retry_on: stored.retry_on.map(ExitCodes::new).transpose()?,
                no_retry_on: stored.no_retry_on.map(ExitCodes::new).transpose()?,
            },
            unique_for: stored.unique_for.map_or(Ok(UniqueFor::default()), |word| {
                word.parse().map_err(|_| OptionsError::UnknownWord(word))
            })?,
        })
    }
}

#[derive(Serialize, Deserialize)]
struct StoredOptions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    backoff: Option<StoredBackoff>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    env: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    run_on_dependency_failure: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unique_for: Option<String>,
    #[serde(default, skip_serializing_if = "Limits::is_none")]
    limits: Limits,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_on: Option<Vec<u8>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    no_retry_on: Option<Vec<u8>>,
}

fn to_list(codes: Option<ExitCodes>) -> Option<Vec<u8>> {
    codes.map(|codes| codes.iter().collect())
}

#[derive(Serialize, Deserialize)]
struct StoredBackoff {
    strategy: Option<String>,
    delay_ms: Option<u64>,
    base: Option<f64>,
    max_ms: Option<u64>,
    jitter: Option<f64>,
}

impl From<BackoffChoice> for StoredBackoff {
    fn from(choice: BackoffChoice) -> Self {
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Self {
            strategy: choice.strategy.map(|strategy| strategy.name().to_owned()),
            delay_ms: choice.delay.map(millis),
            base: choice.base,
            max_ms: choice.max.map(millis),
            jitter: choice.jitter,
        }
    }
}

impl TryFrom<StoredBackoff> for BackoffChoice {
    type Error = OptionsError;

    fn try_from(stored: StoredBackoff) -> Result<Self, OptionsError> {
        let strategy = stored
            .strategy
            .map(|word| word.parse::<Strategy>().map_err(|_| OptionsError::UnknownWord(word.clone())));
        Ok(Self {
            strategy: strategy.transpose()?,
            delay: stored.delay_ms.map(Duration::from_millis),
            base: stored.base,
            max: stored.max_ms.map(Duration::from_millis),
            jitter: stored.jitter,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_options_store_nothing_and_others_read_back() {
        assert_eq!(JobOptions::default().to_json(), None);
        let options = JobOptions {
            backoff: Some(BackoffChoice {
                base: Some(1.5),
                delay: Some(Duration::from_millis(7)),
                ..BackoffChoice::default()
            }),
            env: BTreeMap::from([("A".to_owned(), "b".to_owned())]),
            on_dependency_failure: OnDependencyFailure::Run,
            limits: "memory=1G,cpu=0.1".parse().expect("limits"),
            retry: RetryRules { retry_on: None, no_retry_on: ExitCodes::new([2, 255]).ok() },
            unique_for: UniqueFor::Started,
        };
        let json = options.to_json().expect("something is set");
        assert_eq!(JobOptions::from_json(Some(&json)).expect("reads back"), options);
    }
}
