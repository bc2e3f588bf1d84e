//! Changes some fields of a request.

use super::JobSpec;

impl JobSpec {
    /// This request with the fields that `changes` sets; variables of its environment are added or replaced one by one.
    #[must_use]
    pub fn changed_by(self, changes: Self) -> Self {
        let sets_retries = changes.max_retries.is_some() || changes.max_attempts.is_some();
        let (retries, attempts) = if sets_retries {
            (changes.max_retries, changes.max_attempts)
        } else {
            (self.max_retries, self.max_attempts)
        };
        let sets_start = changes.run_at.is_some() || changes.delay.is_some();
        let (run_at, delay) =
            if sets_start { (changes.run_at, changes.delay) } else { (self.run_at, self.delay) };
        let or = |new: Vec<String>, old| if new.is_empty() { old } else { new };
        Self {
            command: changes.command.or(self.command),
            id: changes.id.or(self.id),
            name: changes.name.or(self.name),
            queue: changes.queue.or(self.queue),
            priority: changes.priority.or(self.priority),
            max_retries: retries,
            max_attempts: attempts,
            timeout: changes.timeout.or(self.timeout),
            run_at,
            delay,
            backoff: changes.backoff.or(self.backoff),
            depends_on: if changes.depends_on.is_empty() { self.depends_on } else { changes.depends_on },
            on_dependency_failure: changes.on_dependency_failure.or(self.on_dependency_failure),
            unique_key: changes.unique_key.or(self.unique_key),
            unique_for: changes.unique_for.or(self.unique_for),
            cwd: changes.cwd.or(self.cwd),
            env: self.env.into_iter().chain(changes.env).collect(),
            tags: or(changes.tags, self.tags),
            limits: changes.limits.or(self.limits),
            retry_on: changes.retry_on.or(self.retry_on),
            no_retry_on: changes.no_retry_on.or(self.no_retry_on),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_given_fields_change() {
        let parse = |json: &str| serde_json::from_str::<JobSpec>(json).expect(json);
        let old =
            parse(r#"{"command":"a","max_retries":3,"tags":["x"],"env":{"A":"1","B":"2"},"timeout":5}"#);
        assert_eq!(old.clone().changed_by(JobSpec::default()), old);
        let changes = JobSpec {
            command: None,
            ..parse(r#"{"command":"-","max_attempts":2,"env":{"B":"3"},"priority":4}"#)
        };
        let expected = parse(
            r#"{"command":"a","max_attempts":2,"tags":["x"],"env":{"A":"1","B":"3"},"timeout":5,"priority":4}"#,
        );
        assert_eq!(old.changed_by(changes), expected);
    }
}
