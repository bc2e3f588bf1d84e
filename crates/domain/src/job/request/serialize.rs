//! Serialises a [`JobRequest`] to JSON that parses back to the same request.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{JobRequest, Timeout};
use crate::job::OnDependencyFailure;
use crate::job::backoff::{BackoffChoice, Strategy};
use crate::job::retry_rules::ExitCodes;
use crate::job::unique::UniqueFor;
use crate::values::name::{JobId, QueueName};
use crate::values::span::format_span;
use crate::values::timestamp::Timestamp;

impl Serialize for JobRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Destructured by name, so that the compiler reports a new field that is missing here.
        let Self {
            command,
            id,
            queue,
            priority,
            max_retries,
            max_attempts,
            timeout,
            run_at,
            delay,
            backoff,
            depends_on,
            on_dependency_failure,
            unique_key,
            unique_for,
            cwd,
            env,
            tags,
            limits,
            retry_on,
            no_retry_on,
        } = self;
        let mut map = Fields(serializer.serialize_map(None)?);
        map.put("command", command.as_ref())?;
        map.put("id", id.as_ref().map(JobId::as_str))?;
        map.put("queue", queue.as_ref().map(QueueName::as_str))?;
        map.put("priority", *priority)?;
        map.put("max_retries", *max_retries)?;
        map.put("max_attempts", *max_attempts)?;
        map.put("timeout", timeout.map(timeout_text))?;
        map.put("run_at", run_at.as_ref().map(Timestamp::to_string))?;
        map.put("delay", delay.map(format_span))?;
        map.put("backoff", backoff.as_ref())?;
        map.put("depends_on", non_empty(depends_on.iter().map(JobId::as_str).collect()))?;
        map.put("on_dependency_failure", on_dependency_failure.map(OnDependencyFailure::name))?;
        map.put("unique_key", unique_key.as_ref())?;
        map.put("unique_for", unique_for.as_ref().map(UniqueFor::to_string))?;
        map.put("cwd", cwd.as_ref())?;
        map.put("env", (!env.is_empty()).then_some(env))?;
        map.put("tags", (!tags.is_empty()).then_some(tags))?;
        map.put("limits", limits.as_ref())?;
        map.put("retry_on", retry_on.map(to_list))?;
        map.put("no_retry_on", no_retry_on.map(to_list))?;
        map.0.end()
    }
}

impl Serialize for BackoffChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { strategy, delay, base, max, jitter } = self;
        let mut map = Fields(serializer.serialize_map(None)?);
        map.put("strategy", strategy.map(Strategy::name))?;
        map.put("delay", delay.map(format_span))?;
        map.put("base", *base)?;
        map.put("max", max.map(format_span))?;
        map.put("jitter", *jitter)?;
        map.0.end()
    }
}

/// An object that contains only the fields that are set.
struct Fields<M>(M);

impl<M: SerializeMap> Fields<M> {
    fn put(&mut self, name: &'static str, value: Option<impl Serialize>) -> Result<(), M::Error> {
        match value {
            Some(value) => self.0.serialize_entry(name, &value),
            None => Ok(()),
        }
    }
}

fn timeout_text(timeout: Timeout) -> String {
    match timeout {
        Timeout::None => "none".to_owned(),
        Timeout::After(span) => format_span(span),
    }
}

fn to_list(codes: ExitCodes) -> Vec<u8> {
    codes.iter().collect()
}

fn non_empty<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every field that a job can have, except those that exclude each other.
    const ALL_FIELDS: &str = r#"{"command":"echo \"hi\"","id":"a","queue":"q","priority":-3,"max_retries":0,
        "timeout":"1m30s","run_at":"2026-01-31T09:30:00.000Z",
        "backoff":{"strategy":"linear","delay":"1s500ms","base":1.5,"max":"5m","jitter":0.25},
        "depends_on":["b","c"],"on_dependency_failure":"run","unique_key":"k","unique_for":"1h","cwd":"/tmp","env":{"A":"ä=b"},
        "tags":["x","y"],"limits":{"memory":"512M","cpu":1.5,"pids":100,"nice":10,"open_files":1024},
        "retry_on":[1,75],"no_retry_on":[2]}"#;

    #[test]
    fn requests_survive_a_round_trip() {
        for json in [
            ALL_FIELDS,
            r#"{"command":"true"}"#,
            r#"{"command":"true","max_attempts":4,"timeout":"none","delay":"250ms"}"#,
            r#"{"command":"true","backoff":{"base":1e300}}"#,
        ] {
            let request: JobRequest = serde_json::from_str(json).expect(json);
            let written = serde_json::to_string(&request).expect("a request serialises to JSON");
            let again: JobRequest = serde_json::from_str(&written).expect(&written);
            assert_eq!(again, request, "{written}");
        }
        let request: JobRequest = serde_json::from_str(ALL_FIELDS).expect("valid request");
        let plain = |json: &str| json.split_whitespace().collect::<String>();
        assert_eq!(plain(&serde_json::to_string(&request).expect("JSON")), plain(ALL_FIELDS));
    }
}
