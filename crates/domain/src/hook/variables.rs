//! An event as environment variables, for hook commands that do not read JSON.

use serde_json::Value;

/// A longer value is cut: the system refuses to start a command with very long variables.
const MAX_VALUE_BYTES: usize = 8 << 10;

/// Each variable, and where its value is in the event. A variable is set if the event has its subject.
const VARIABLES: [(&str, &str, &str); 17] = [
    ("QUEUECTL_JOB_ID", "job", "id"),
    ("QUEUECTL_JOB_NUMBER", "job", "number"),
    ("QUEUECTL_JOB_NAME", "job", "name"),
    ("QUEUECTL_JOB_STATE", "job", "state"),
    ("QUEUECTL_JOB_QUEUE", "job", "queue"),
    ("QUEUECTL_JOB_COMMAND", "job", "command"),
    ("QUEUECTL_JOB_ATTEMPTS", "job", "attempts"),
    ("QUEUECTL_JOB_EXIT_CODE", "job", "exit_code"),
    ("QUEUECTL_JOB_SIGNAL", "job", "signal"),
    ("QUEUECTL_JOB_ERROR", "job", "error"),
    ("QUEUECTL_JOB_REASON", "job", "reason"),
    ("QUEUECTL_BATCH", "batch", "name"),
    ("QUEUECTL_CRASHED_WORKER_ID", "worker", "id"),
    ("QUEUECTL_CRASHED_WORKER_HOST", "worker", "host"),
    ("QUEUECTL_DLQ_COUNT", "dlq", "count"),
    ("QUEUECTL_DLQ_THRESHOLD", "dlq", "threshold"),
    ("QUEUECTL_DLQ_QUEUE", "dlq", "queue"),
];

/// The event of a stored payload; empty if it has none.
pub fn event_of(payload: &str) -> String {
    let payload: Value = serde_json::from_str(payload).unwrap_or_default();
    payload["event"].as_str().unwrap_or_default().to_owned()
}

/// The variables of a stored payload. An absent value is empty.
pub fn variables_of(payload: &str) -> Vec<(&'static str, String)> {
    let payload: Value = serde_json::from_str(payload).unwrap_or_default();
    let event = [("QUEUECTL_EVENT", text(&payload["event"]))];
    let others = VARIABLES
        .iter()
        .filter(|(_, subject, _)| payload.get(subject).is_some())
        .map(|(name, subject, field)| (*name, text(&payload[subject][field])));
    event.into_iter().chain(others).collect()
}

fn text(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.replace('\0', ""),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    let end = (0..=MAX_VALUE_BYTES.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text[..end.unwrap_or(0)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_are_those_of_the_subject() {
        let payload = r#"{"delivery":"d-1","event":"dead","at":"x","job":{"id":"a","number":7,"name":"nightly","error":null}}"#;
        let variables = variables_of(payload);
        let value =
            |name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
        assert_eq!(value("QUEUECTL_EVENT"), Some("dead"));
        assert_eq!(value("QUEUECTL_JOB_ID"), Some("a"));
        assert_eq!(value("QUEUECTL_JOB_NUMBER"), Some("7"));
        assert_eq!(value("QUEUECTL_JOB_NAME"), Some("nightly"));
        assert_eq!(value("QUEUECTL_JOB_ERROR"), Some(""));
        assert_eq!(value("QUEUECTL_DLQ_COUNT"), None);
        assert_eq!(event_of(payload), "dead");
        let dlq = variables_of(r#"{"event":"dlq_above","dlq":{"count":3,"threshold":2,"queue":null}}"#);
        let names: Vec<&str> = dlq.iter().map(|(name, _)| *name).collect();
        let expected =
            ["QUEUECTL_EVENT", "QUEUECTL_DLQ_COUNT", "QUEUECTL_DLQ_THRESHOLD", "QUEUECTL_DLQ_QUEUE"];
        assert_eq!(names, expected);
    }

    #[test]
    fn long_values_are_cut_and_a_damaged_payload_sets_almost_nothing() {
        let payload = format!(r#"{{"event":"dead","job":{{"command":"a\u0000{}"}}}}"#, "ä".repeat(100_000));
        let variables = variables_of(&payload);
        let command =
            variables.iter().find(|(name, _)| *name == "QUEUECTL_JOB_COMMAND").map(|(_, value)| value);
        let command = command.expect("it is set");
        assert!(command.starts_with("aä") && command.len() <= MAX_VALUE_BYTES, "{}", command.len());
        assert_eq!(variables_of("{"), [("QUEUECTL_EVENT", String::new())]);
    }
}
