//! Evidence of a trial in which nothing went wrong: `a` failed once and then succeeded, `b` succeeded at once.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::calls::{Answer, Call};
use crate::evidence::{Evidence, JobEvidence};
use crate::hook_log::Telling;
use crate::ledger::{How, Line, What};
use crate::plan::{JobPlan, Wish};
use domain::job::life::{Life, Losses, State, StateName};
use domain::job::limits::Limits;
use domain::job::outcome::Outcome;
use domain::job::retry_rules::RetryRules;
use domain::job::{Attempt, Ending, Job, JobRecord, LatestAttempt, OnDependencyFailure, Usage, WorkerHome};
use domain::values::timestamp::Timestamp;

pub(super) fn evidence() -> Evidence {
    let mut first = completed("a");
    first.record.history = vec![attempt(1, Outcome::Failure { exit_code: 3 }), attempt(2, Outcome::Success)];
    first.record.job.life.attempts = 2;
    first.nonces.insert(2, "a-2".to_owned());
    let cancel = cancel("b", Answer::Ok, (900, 901));
    Evidence {
        calls: vec![
            call(Wish::Enqueue(vec![plan("a")]), Answer::Ok),
            call(Wish::Enqueue(vec![plan("b")]), Answer::Ok),
            cancel,
        ],
        lines: vec![
            start("a", 1, 100),
            tick("a", 1, 110, "daemon"),
            end("a", 1, 120, How::Exit(3)),
            start("b", 1, 210),
            end("b", 1, 230, How::Exit(0)),
            start("a", 2, 600),
            end("a", 2, 620, How::Exit(0)),
        ],
        jobs: vec![first, completed("b")],
        concurrency: 1,
        queue_limits: [("narrow".to_owned(), 1)].into(),
        counted: [(StateName::Completed, 2)].into(),
        rates: BTreeMap::new(),
        schedules: Vec::new(),
        batches: Vec::new(),
        told: vec![told("success", "a"), told("success", "b")],
        to_be_told: 0,
        is_clock_turned: false,
        left: Vec::new(),
        longest_abandoned: Duration::from_millis(3),
        abandoned_limit: Some(Duration::from_secs(1)),
        may_lose_output: false,
        problems: vec!["no_worker".to_owned()],
    }
}

/// Told once, and known by what it is about.
pub(super) fn told(event: &str, about: &str) -> Telling {
    let text = format!("{event} of {about}");
    Telling { delivery: format!("d-{event}-{about}"), event: event.to_owned(), about: about.to_owned(), text }
}

pub(super) fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(super) fn plan(id: &str) -> JobPlan {
    JobPlan {
        id: id.to_owned(),
        queue: None,
        lives: at(20),
        ends: vec![How::Exit(0)],
        escapes: Vec::new(),
        is_deaf: false,
        in_shell: false,
        kills_worker: 0,
        runs_through: None,
        max_retries: 3,
        retry_delay: at(100),
        delay: None,
        timeout: None,
        depends_on: Vec::new(),
        runs_anyway: false,
        unique_key: None,
        batch: None,
        priority: 0,
    }
}

/// A cancel that is answered so; where that is well, the job was cancelled.
pub(super) fn cancel(id: &str, answer: Answer, span: (u64, u64)) -> Call {
    let mut cancel = call(Wish::Cancel(id.to_owned()), answer);
    (cancel.began, cancel.ended) = (at(span.0), at(span.1));
    if answer == Answer::Ok {
        cancel.printed = vec![format!(r#"[{{"id":"{id}","state":"cancelled"}}]"#)];
    }
    cancel
}

pub(super) fn call(wish: Wish, answer: Answer) -> Call {
    Call { wish, began: at(10), ended: at(20), answer, printed: Vec::new(), said: String::new() }
}

fn line(job: &str, attempt: u32, millis: u64, what: What) -> Line {
    let by_command = !matches!(&what, What::Tick { .. });
    Line {
        at: at(millis),
        job: job.to_owned(),
        attempt,
        pid: attempt * 10 + u32::from(by_command),
        nonce: format!("{job}-{attempt}"),
        what,
    }
}

pub(super) fn start(job: &str, attempt: u32, millis: u64) -> Line {
    line(job, attempt, millis, What::Start { worker: "w".to_owned() })
}

pub(super) fn tick(job: &str, attempt: u32, millis: u64, who: &str) -> Line {
    line(job, attempt, millis, What::Tick { who: who.to_owned() })
}

pub(super) fn end(job: &str, attempt: u32, millis: u64, how: How) -> Line {
    line(job, attempt, millis, What::End { how })
}

pub(super) fn attempt(number: u32, outcome: Outcome) -> Attempt {
    let ending = Ending {
        finished_at: Timestamp::from_millis(0),
        duration: Duration::ZERO,
        outcome,
        error: None,
        usage: Usage::default(),
        log_bytes: 0,
    };
    Attempt {
        number,
        worker: "w".parse().expect("a worker id"),
        host: "here".to_owned(),
        home: WorkerHome::default(),
        started_at: Timestamp::from_millis(0),
        ending: Some(ending),
    }
}

/// A job that succeeded at once.
pub(super) fn completed(id: &str) -> JobEvidence {
    let now = Timestamp::from_millis(0);
    let life = Life {
        state: State::Completed { finished_at: now },
        run_at: None,
        due_at: now,
        attempts: 1,
        max_retries: 3,
        failures: 0,
        losses: Losses::default(),
    };
    let job = Job {
        id: id.parse().expect("an id"),
        number: 1,
        queue: "default".parse().expect("a queue"),
        command: "true".to_owned(),
        priority: 0,
        life,
        created_at: now,
        updated_at: now,
        timeout: None,
        backoff: None,
        cwd: None,
        env: BTreeMap::new(),
        tags: Vec::new(),
        depends_on: Vec::new(),
        on_dependency_failure: OnDependencyFailure::Cancel,
        unique_key: None,
        limits: Limits::default(),
        retry: RetryRules::default(),
        unique_for: domain::job::unique::UniqueFor::default(),
        batch: None,
        latest: LatestAttempt::default(),
    };
    let record = JobRecord {
        job,
        schedule: None,
        scheduled_for: None,
        events: Vec::new(),
        history: vec![attempt(1, Outcome::Success)],
    };
    JobEvidence { record, nonces: [(1, format!("{id}-1"))].into() }
}
