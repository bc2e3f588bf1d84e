//! The JSON form of a hook, without its secret.

use serde::Serialize;

use domain::hook::Target;
use domain::values::name::QueueName;
use domain::values::timestamp::Timestamp;
use store::Hook;

#[derive(Debug, Serialize)]
pub struct HookJson<'a> {
    name: &'a str,
    event: &'static str,
    /// Null: all queues.
    queue: Option<&'a str>,
    /// Null unless the event is `dlq_above`.
    above: Option<u64>,
    command: Option<&'a str>,
    cwd: Option<&'a str>,
    url: Option<&'a str>,
    /// Whether the hook has a secret.
    secret: bool,
    created_at: Timestamp,
    created_by: &'a str,
    pending: u64,
    delivered_at: Option<Timestamp>,
    failing_since: Option<Timestamp>,
    error: Option<&'a str>,
    gave_up: u64,
    gave_up_at: Option<Timestamp>,
}

impl HookJson<'_> {
    pub fn has_secret(&self) -> bool {
        self.secret
    }
}

impl<'a> From<&'a Hook> for HookJson<'a> {
    fn from(hook: &'a Hook) -> Self {
        let mut json = Self {
            name: hook.name.as_str(),
            event: hook.trigger.event().name(),
            queue: hook.trigger.queue().map(QueueName::as_str),
            above: hook.trigger.threshold(),
            command: None,
            cwd: None,
            url: None,
            secret: false,
            created_at: hook.created_at,
            created_by: &hook.created_by,
            pending: hook.pending,
            delivered_at: hook.delivered_at,
            failing_since: hook.failing_since,
            error: hook.error.as_deref(),
            gave_up: hook.gave_up,
            gave_up_at: hook.gave_up_at,
        };
        match &hook.target {
            Target::Command { line, cwd, .. } => {
                json.command = Some(line);
                json.cwd = cwd.as_deref();
            }
            Target::Url { url, secret } => {
                json.url = Some(url.as_str());
                json.secret = secret.is_some();
            }
        }
        json
    }
}
