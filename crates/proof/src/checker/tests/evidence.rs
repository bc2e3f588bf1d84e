//! Evidence of a good trial: `a` failed once and then succeeded, `b` succeeded at once.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::calls::{Answer, Call};
use crate::evidence::{Disturbances, Evidence, JobEvidence};
use crate::ledger::{CommandEnd, LedgerEvent, Line};
use crate::notifications::Notification;
use crate::plan::{JobPlan, Request};
use domain::job::life::{Life, Losses, State, StateName};
use domain::job::options::JobOptions;
use domain::job::outcome::Outcome;
use domain::job::{Attempt, Ending, Job, JobRecord, LatestAttempt, Usage, WorkerHome};
use domain::values::timestamp::Timestamp;

pub(super) fn evidence() -> Evidence {
    let mut first = completed("a");
    first.record.history = vec![attempt(1, Outcome::Failure { exit_code: 3 }), attempt(2, Outcome::Success)];
    first.record.job.life.attempts = 2;
    first.nonces.insert(2, "a-2".to_owned());
    let cancel = cancel("b", Answer::Ok, (900, 901));
    Evidence {
        calls: vec![
            call(Request::Enqueue(vec![plan("a")]), Answer::Ok),
            call(Request::Enqueue(vec![plan("b")]), Answer::Ok),
            cancel,
        ],
        lines: vec![
            start("a", 1, 100),
            tick("a", 1, 110, "daemon"),
            end("a", 1, 120, CommandEnd::Exit(3)),
            start("b", 1, 210),
            end("b", 1, 230, CommandEnd::Exit(0)),
            start("a", 2, 600),
            end("a", 2, 620, CommandEnd::Exit(0)),
        ],
        jobs: vec![first, completed("b")],
        concurrency: 1,
        queue_limits: [("narrow".to_owned(), 1)].into(),
        counted: [(StateName::Completed, 2)].into(),
        rates: BTreeMap::new(),
        schedules: Vec::new(),
        batches: Vec::new(),
        notifications: vec![notification("success", "a"), notification("success", "b")],
        pending_notifications: 0,
        is_clock_set: false,
        left: Vec::new(),
        longest_abandoned: Duration::from_millis(3),
        abandoned_limit: Some(Duration::from_secs(1)),
        may_lose_output: false,
        disturbances: Disturbances::default(),
        problems: vec!["no_worker".to_owned()],
    }
}

/// A delivery whose id is derived from its contents.
pub(super) fn notification(event: &str, about: &str) -> Notification {
    let text = format!("{event} of {about}");
    Notification {
        delivery: format!("d-{event}-{about}"),
        event: event.to_owned(),
        about: about.to_owned(),
        text,
    }
}

pub(super) fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(super) fn plan(id: &str) -> JobPlan {
    JobPlan {
        id: id.to_owned(),
        queue: None,
        lives: at(20),
        ends: vec![CommandEnd::Exit(0)],
        escapes: Vec::new(),
        ignores_sigterm: false,
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

/// A cancel with this answer; if it is `Ok`, the job was cancelled.
pub(super) fn cancel(id: &str, answer: Answer, span: (u64, u64)) -> Call {
    let mut cancel = call(Request::Cancel(id.to_owned()), answer);
    (cancel.began, cancel.ended) = (at(span.0), at(span.1));
    if answer == Answer::Ok {
        cancel.printed = vec![format!(r#"[{{"id":"{id}","state":"cancelled"}}]"#)];
    }
    cancel
}

pub(super) fn call(request: Request, answer: Answer) -> Call {
    Call { request, began: at(10), ended: at(20), answer, printed: Vec::new(), stderr: String::new() }
}

fn line(job: &str, attempt: u32, millis: u64, event: LedgerEvent) -> Line {
    let by_command = !matches!(&event, LedgerEvent::Tick { .. });
    Line {
        at: at(millis),
        job: job.to_owned(),
        attempt,
        host: "here".to_owned(),
        pid: attempt * 10 + u32::from(by_command),
        nonce: format!("{job}-{attempt}"),
        event,
    }
}

pub(super) fn start(job: &str, attempt: u32, millis: u64) -> Line {
    line(job, attempt, millis, LedgerEvent::Start { worker: "w".to_owned() })
}

pub(super) fn tick(job: &str, attempt: u32, millis: u64, who: &str) -> Line {
    line(job, attempt, millis, LedgerEvent::Tick { who: who.to_owned() })
}

pub(super) fn end(job: &str, attempt: u32, millis: u64, how: CommandEnd) -> Line {
    line(job, attempt, millis, LedgerEvent::End { how })
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
        cwd: None,
        tags: Vec::new(),
        depends_on: Vec::new(),
        unique_key: None,
        options: JobOptions::default(),
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
