//! The problems that `status` reports: a code for programs and a line for people that says what to do.

use std::fmt;
use std::time::Duration;

use domain::schedule::MAX_UNFINISHED_RUNS;
use domain::values::span::format_seconds;
use domain::values::timestamp::Timestamp;

/// The hint if no worker is running.
pub const HOW_TO_START_A_WORKER: &str = "start one with `queuectl worker start`";

/// A problem that needs attention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    QueuePaused {
        queue: String,
        by: String,
        reason: Option<String>,
        waiting: u64,
    },
    NoWorker {
        waiting: u64,
    },
    /// Workers are running, but none of them serves this queue.
    QueueUnserved {
        queue: String,
        waiting: u64,
    },
    /// Workers finish their running jobs and start no more.
    Draining {
        workers: u64,
        /// Who ordered it; `None` after a signal.
        by: Option<String>,
        running: u64,
        /// The ids of some of the running jobs.
        named: Vec<String>,
        waiting: u64,
    },
    /// A process is stopped in the middle of a write and blocks all other writers.
    StoppedWriter {
        pid: u32,
        name: String,
    },
    SilentWorker {
        worker: String,
        silent_for: Duration,
    },
    /// The worker is alive and reports a problem.
    HinderedWorker {
        worker: String,
        why: String,
    },
    /// Workers whose processes cannot be seen from here share this home.
    SharedHome {
        workers: Vec<String>,
        hosts: Vec<String>,
    },
    /// A process of an attempt survived SIGKILL.
    Unkillable {
        job: String,
        pid: u32,
        why: String,
    },
    /// `count` jobs died in the last hour; at least that many unless `is_all`.
    DlqGrowing {
        count: u64,
        is_all: bool,
    },
    ScheduleMissed {
        schedule: String,
        at: Timestamp,
    },
    /// Too many of its runs are unfinished.
    ScheduleFull {
        schedule: String,
        at: Timestamp,
    },
    HookFailing {
        hook: String,
        failing_for: Duration,
        error: String,
        pending: u64,
    },
    HookGaveUp {
        hook: String,
        count: u64,
        error: String,
    },
    /// Events are waiting for delivery, but no worker is running.
    HookWaiting {
        hook: String,
        pending: u64,
    },
    DurabilityLowered,
    LowSpace {
        free_bytes: u64,
    },
}

impl Problem {
    pub fn code(&self) -> &'static str {
        match self {
            Self::QueuePaused { .. } => "queue_paused",
            Self::NoWorker { .. } => "no_worker",
            Self::QueueUnserved { .. } => "queue_unserved",
            Self::Draining { .. } => "draining",
            Self::StoppedWriter { .. } => "stopped_writer",
            Self::SilentWorker { .. } => "silent_worker",
            Self::HinderedWorker { .. } => "hindered_worker",
            Self::SharedHome { .. } => "shared_home",
            Self::Unkillable { .. } => "unkillable",
            Self::DlqGrowing { .. } => "dlq_growing",
            Self::ScheduleMissed { .. } => "schedule_missed",
            Self::ScheduleFull { .. } => "schedule_full",
            Self::HookFailing { .. } => "hook_failing",
            Self::HookGaveUp { .. } => "hook_gave_up",
            Self::HookWaiting { .. } => "hook_waiting",
            Self::DurabilityLowered => "durability_lowered",
            Self::LowSpace { .. } => "low_space",
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::QueuePaused { queue, by, reason, waiting } => {
                write!(out, "queue {queue} was paused by {by}")?;
                if let Some(reason) = reason {
                    write!(out, " ({reason})")?;
                }
                write!(out, ", {}; resume it with `queuectl queue resume {queue}`", wait(*waiting, "job"))
            }
            Self::NoWorker { waiting } => {
                write!(out, "{}, but no worker is running; {HOW_TO_START_A_WORKER}", wait(*waiting, "job"))
            }
            Self::QueueUnserved { queue, waiting } => {
                write!(out, "{} in queue {queue}, which no worker serves", wait(*waiting, "job"))?;
                write!(out, "; start one with `queuectl worker start --queue {queue}`")
            }
            Self::Draining { workers, by, running, named, waiting } => {
                let by = by.as_ref().map_or_else(String::new, |by| format!(", ordered by {by}"));
                let (are, they) = if *workers == 1 {
                    ("is", "it starts no more jobs and exits")
                } else {
                    ("are", "they start no more jobs and exit")
                };
                write!(out, "{} {are} draining{by}: {they}", counted(*workers, "worker"))?;
                let more = running.saturating_sub(named.len() as u64);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                write!(out, " after {}{more}; {}", named.join(", "), wait(*waiting, "job"))?;
                out.write_str("; start another with `queuectl worker start`")
            }
            Self::StoppedWriter { pid, name } => {
                write!(
                    out,
                    "process {pid} ({name}) is stopped in the middle of a write and blocks all other writers"
                )?;
                write!(out, "; resume it with `kill -CONT {pid}` or kill it with `kill -KILL {pid}`")
            }
            Self::SilentWorker { worker, silent_for } => {
                write!(out, "worker {worker} has sent no heartbeat for {}", format_seconds(*silent_for))?;
                out.write_str("; it may hang or be unable to reach the store; see worker.log")
            }
            Self::HinderedWorker { worker, why } => {
                write!(out, "worker {worker} is blocked ({why}); it resumes by itself when the cause is gone")
            }
            Self::SharedHome { workers, hosts } => {
                let (names, hosts) = (workers.join(", "), hosts.join(", "));
                write!(out, "another container or machine shares this home ({names} on {hosts})")?;
                out.write_str(
                    "; its processes cannot be seen from here, so a dead worker is only noticed by its missing heartbeats",
                )
            }
            Self::Unkillable { job, pid, why } => {
                write!(out, "process {pid} of job {job} cannot be killed ({why})")?;
                write!(out, "; the job ends when this process ends, try `sudo kill -9 {pid}`")
            }
            Self::DlqGrowing { count, is_all } => {
                let (jobs, more) = (counted(*count, "job"), if *is_all { "" } else { " or more" });
                write!(
                    out,
                    "{jobs}{more} died in the last hour; `queuectl dlq list --group` shows the causes"
                )
            }
            Self::ScheduleMissed { schedule, at } => {
                write!(out, "schedule {schedule} missed its run at {at} because no worker was running")?;
                write!(out, "; see `queuectl schedule show {schedule}`")
            }
            Self::ScheduleFull { schedule, at } => {
                write!(out, "schedule {schedule} skipped its run at {at}")?;
                write!(out, " because {MAX_UNFINISHED_RUNS} earlier runs are unfinished")?;
                write!(out, "; see `queuectl schedule show {schedule}`")
            }
            Self::HookFailing { hook, failing_for, error, pending } => {
                let (span, events) = (format_seconds(*failing_for), wait(*pending, "event"));
                write!(out, "hook {hook} has been failing for {span} ({error}), {events}")?;
                write!(out, "; try it with `queuectl hook test {hook}`")
            }
            Self::HookGaveUp { hook, count, error } => {
                let events = counted(*count, "event");
                write!(out, "delivery of {events} to hook {hook} was given up ({error})")?;
                write!(out, "; try it with `queuectl hook test {hook}`")
            }
            Self::HookWaiting { hook, pending } => {
                let events = wait(*pending, "event");
                write!(out, "{events} for hook {hook}, but no worker is running; {HOW_TO_START_A_WORKER}")
            }
            Self::DurabilityLowered => out.write_str(
                "durability is normal: a power failure can lose the most recent changes; \
                 restore full durability with `queuectl config unset durability`",
            ),
            Self::LowSpace { free_bytes } => {
                write!(
                    out,
                    "the disk is nearly full ({} MiB free); delete or move files on it",
                    free_bytes >> 20
                )
            }
        }
    }
}

/// `1 job waits`, `2 jobs wait`
fn wait(count: u64, what: &str) -> String {
    format!("{} {}", counted(count, what), if count == 1 { "waits" } else { "wait" })
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each problem is one line that says what to do.
    fn assert_lines(problems: &[(Problem, &str, &str)]) {
        for (problem, code, line) in problems {
            assert_eq!((problem.code(), problem.to_string().as_str()), (*code, *line));
        }
    }

    #[test]
    fn problems_of_queues_and_workers_say_what_to_do() {
        let queue = "mail".to_owned();
        assert_lines(&[
            (
                Problem::QueuePaused { queue: queue.clone(), by: "ada".to_owned(), reason: None, waiting: 1 },
                "queue_paused",
                "queue mail was paused by ada, 1 job waits; resume it with `queuectl queue resume mail`",
            ),
            (
                Problem::NoWorker { waiting: 2 },
                "no_worker",
                "2 jobs wait, but no worker is running; start one with `queuectl worker start`",
            ),
            (
                Problem::QueueUnserved { queue, waiting: 1 },
                "queue_unserved",
                "1 job waits in queue mail, which no worker serves; start one with `queuectl worker start --queue mail`",
            ),
            (
                Problem::Draining {
                    workers: 1,
                    by: Some("ada in job a".to_owned()),
                    running: 3,
                    named: vec!["a".to_owned(), "b".to_owned()],
                    waiting: 2,
                },
                "draining",
                "1 worker is draining, ordered by ada in job a: it starts no more jobs and exits after \
                 a, b and 1 more; 2 jobs wait; start another with `queuectl worker start`",
            ),
            (
                Problem::StoppedWriter { pid: 7, name: "queuectl".to_owned() },
                "stopped_writer",
                "process 7 (queuectl) is stopped in the middle of a write and blocks all other writers; \
                 resume it with `kill -CONT 7` or kill it with `kill -KILL 7`",
            ),
            (
                Problem::SilentWorker { worker: "w1".to_owned(), silent_for: Duration::from_millis(61_500) },
                "silent_worker",
                "worker w1 has sent no heartbeat for 1m1s; it may hang or be unable to reach the store; see worker.log",
            ),
            (
                Problem::HinderedWorker { worker: "w1".to_owned(), why: "Too many open files".to_owned() },
                "hindered_worker",
                "worker w1 is blocked (Too many open files); it resumes by itself when the cause is gone",
            ),
            (
                Problem::SharedHome { workers: vec!["w1".to_owned()], hosts: vec!["box".to_owned()] },
                "shared_home",
                "another container or machine shares this home (w1 on box); its processes cannot be seen from here, so a dead \
                 worker is only noticed by its missing heartbeats",
            ),
            (
                Problem::Unkillable { job: "a".to_owned(), pid: 42, why: "this user may not".to_owned() },
                "unkillable",
                "process 42 of job a cannot be killed (this user may not); the job ends when this process ends, \
                 try `sudo kill -9 42`",
            ),
        ]);
    }

    #[test]
    fn other_problems_say_what_to_do() {
        let hook = "site".to_owned();
        assert_lines(&[
            (
                Problem::DlqGrowing { count: 1, is_all: true },
                "dlq_growing",
                "1 job died in the last hour; `queuectl dlq list --group` shows the causes",
            ),
            (
                Problem::DlqGrowing { count: 200, is_all: false },
                "dlq_growing",
                "200 jobs or more died in the last hour; `queuectl dlq list --group` shows the causes",
            ),
            (
                Problem::ScheduleMissed { schedule: "nightly".to_owned(), at: Timestamp::EPOCH },
                "schedule_missed",
                "schedule nightly missed its run at 1970-01-01T00:00:00.000Z because no worker was running; \
                 see `queuectl schedule show nightly`",
            ),
            (
                Problem::ScheduleFull { schedule: "poll".to_owned(), at: Timestamp::EPOCH },
                "schedule_full",
                "schedule poll skipped its run at 1970-01-01T00:00:00.000Z because 100 earlier runs are unfinished; \
                 see `queuectl schedule show poll`",
            ),
            (
                Problem::HookFailing {
                    hook: hook.clone(),
                    failing_for: Duration::from_secs(90),
                    error: "exit code 1".to_owned(),
                    pending: 3,
                },
                "hook_failing",
                "hook site has been failing for 1m30s (exit code 1), 3 events wait; try it with `queuectl hook test site`",
            ),
            (
                Problem::HookGaveUp { hook: hook.clone(), count: 1, error: "exit code 1".to_owned() },
                "hook_gave_up",
                "delivery of 1 event to hook site was given up (exit code 1); try it with `queuectl hook test site`",
            ),
            (
                Problem::HookWaiting { hook, pending: 1 },
                "hook_waiting",
                "1 event waits for hook site, but no worker is running; start one with `queuectl worker start`",
            ),
            (
                Problem::DurabilityLowered,
                "durability_lowered",
                "durability is normal: a power failure can lose the most recent changes; restore full durability with `queuectl config unset durability`",
            ),
            (
                Problem::LowSpace { free_bytes: 3 << 20 },
                "low_space",
                "the disk is nearly full (3 MiB free); delete or move files on it",
            ),
        ]);
    }
}
