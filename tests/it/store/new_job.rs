//! A builder for the jobs of tests.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::job::backoff::BackoffChoice;
use domain::job::limits::Limits;
use domain::job::retry_rules::RetryRules;
use domain::job::unique::UniqueFor;
use domain::job::{NewJob, OnDependencyFailure, Start};
use domain::values::name::{BatchName, JobId, QueueName};
use domain::values::timestamp::Timestamp;

/// A job with default values for all fields that a test does not set.
#[derive(Clone, Debug)]
pub struct JobSpec(NewJob);

pub fn job(id: &str) -> JobSpec {
    JobSpec(NewJob {
        id: job_id(id),
        command: format!("run {id}"),
        queue: QueueName::default_queue(),
        priority: 0,
        max_retries: 3,
        timeout: None,
        start: Start::Now,
        backoff: None,
        depends_on: Vec::new(),
        on_dependency_failure: OnDependencyFailure::Cancel,
        unique_key: None,
        unique_for: UniqueFor::default(),
        cwd: None,
        env: BTreeMap::new(),
        environment: None,
        tags: Vec::new(),
        limits: Limits::default(),
        retry: RetryRules::default(),
        if_absent: false,
        batch: None,
    })
}

pub fn job_id(id: &str) -> JobId {
    id.parse().expect("a job id")
}

pub fn queue_name(name: &str) -> QueueName {
    name.parse().expect("a queue name")
}

pub fn batch_name(name: &str) -> BatchName {
    name.parse().expect("a batch name")
}

impl From<&str> for JobSpec {
    fn from(id: &str) -> Self {
        job(id)
    }
}

impl From<NewJob> for JobSpec {
    fn from(job: NewJob) -> Self {
        Self(job)
    }
}

impl From<JobSpec> for NewJob {
    fn from(spec: JobSpec) -> Self {
        spec.0
    }
}

impl JobSpec {
    pub fn command(mut self, command: &str) -> Self {
        command.clone_into(&mut self.0.command);
        self
    }

    pub fn queue(mut self, name: &str) -> Self {
        self.0.queue = queue_name(name);
        self
    }

    pub fn priority(mut self, priority: i32) -> Self {
        self.0.priority = priority;
        self
    }

    pub fn max_retries(mut self, max_retries: u32) -> Self {
        self.0.max_retries = max_retries;
        self
    }

    /// Depends on these jobs.
    pub fn after(mut self, ids: &[&str]) -> Self {
        self.0.depends_on = ids.iter().map(|id| job_id(id)).collect();
        self
    }

    /// Runs even if a dependency is dead or cancelled.
    pub fn run_on_dependency_failure(mut self) -> Self {
        self.0.on_dependency_failure = OnDependencyFailure::Run;
        self
    }

    pub fn at(mut self, at: Timestamp) -> Self {
        self.0.start = Start::At(at);
        self
    }

    pub fn delay(mut self, delay: Duration) -> Self {
        self.0.start = Start::After(delay);
        self
    }

    pub fn delay_secs(self, secs: u64) -> Self {
        self.delay(Duration::from_secs(secs))
    }

    pub fn backoff(mut self, backoff: BackoffChoice) -> Self {
        self.0.backoff = Some(backoff);
        self
    }

    pub fn unique_key(mut self, key: &str) -> Self {
        self.0.unique_key = Some(key.to_owned());
        self
    }

    pub fn limits(mut self, limits: &str) -> Self {
        self.0.limits = limits.parse().expect("limits");
        self
    }

    pub fn no_retry_on(mut self, codes: &str) -> Self {
        self.0.retry.no_retry_on = Some(codes.parse().expect("exit codes"));
        self
    }

    pub fn unique_for(mut self, unique_for: UniqueFor) -> Self {
        self.0.unique_for = unique_for;
        self
    }

    pub fn tags(mut self, tags: &[&str]) -> Self {
        self.0.tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        self
    }

    pub fn batch(mut self, name: &str) -> Self {
        self.0.batch = Some(batch_name(name));
        self
    }

    pub fn if_absent(mut self) -> Self {
        self.0.if_absent = true;
        self
    }
}
