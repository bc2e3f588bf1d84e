//! The problems that `status` reports: a code for programs and a line for people that says what to do.

use std::fmt::Display;
use std::time::Duration;

use serde::Serialize;

use domain::schedule::MAX_UNFINISHED_RUNS;
use domain::text::counts::grouped;
use domain::values::span::format_seconds;

/// The hint if no worker is running.
pub const HOW_TO_START_A_WORKER: &str = "start one with `queuectl worker start`";

/// A problem that needs attention.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    #[serde(rename = "problem")]
    pub code: &'static str,
    pub message: String,
}

impl Problem {
    pub const NO_WORKER: &str = "no_worker";
    pub const LOW_SPACE: &str = "low_space";
    pub const READ_ONLY: &str = "read_only";

    /// The codes of all problems.
    pub const CODES: [&str; 25] = [
        "queue_paused",
        "job_paused",
        Self::NO_WORKER,
        "queue_unserved",
        "draining",
        "stopped_writer",
        "silent_worker",
        "hindered_worker",
        "outdated_worker",
        "replaced_program",
        "shared_home",
        "unkillable",
        "starved",
        "dlq_growing",
        "schedule_paused",
        "schedule_no_worker",
        "schedule_missed",
        "schedule_full",
        "hook_failing",
        "hook_gave_up",
        "hook_waiting",
        "durability_lowered",
        "lagging_standby",
        Self::LOW_SPACE,
        Self::READ_ONLY,
    ];

    fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(super) fn queue_paused(queue: &dyn Display, by: &str, reason: Option<&str>, waiting: u64) -> Self {
        let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
        let jobs = if waiting == 0 { String::new() } else { format!(", {}", wait(waiting, "job")) };
        let advice = format!("resume it with `queuectl queue resume {queue}`");
        Self::new("queue_paused", format!("queue {queue} was paused by {by}{reason}{jobs}; {advice}"))
    }

    /// Its queue starts only jobs with a higher priority.
    pub(super) fn starved(job: &str, queue: &dyn Display, waited: Duration) -> Self {
        let (waited, advice) =
            (format_seconds(waited), format!("`queuectl edit {job} --priority N` raises its own"));
        Self::new(
            "starved",
            format!(
                "job {job} has been waiting for {waited} while queue {queue} starts jobs with a higher priority; {advice}"
            ),
        )
    }

    pub(super) fn job_paused(job: &str, since: &str) -> Self {
        let advice = format!("resume it with `queuectl resume {job}`");
        Self::new(
            "job_paused",
            format!("job {job} has been paused since {since} and keeps its slot; {advice}"),
        )
    }

    /// More paused jobs than are named one by one.
    pub(super) fn jobs_paused(count: u64, is_all: bool) -> Self {
        let (jobs, more) = (counted(count, "job"), if is_all { "" } else { " or more" });
        let advice =
            "`queuectl list --state paused` shows them, `queuectl resume --state paused` resumes them";
        Self::new("job_paused", format!("{jobs}{more} are paused and keep their slots; {advice}"))
    }

    pub(super) fn no_worker(waiting: u64) -> Self {
        let jobs = wait(waiting, "job");
        Self::new(Self::NO_WORKER, format!("{jobs}, but no worker is running; {HOW_TO_START_A_WORKER}"))
    }

    /// Workers are running, but none of them serves this queue.
    pub(super) fn queue_unserved(queue: &dyn Display, waiting: u64) -> Self {
        let jobs = wait(waiting, "job");
        let advice = format!("start one with `queuectl worker start --queue {queue}`");
        Self::new("queue_unserved", format!("{jobs} in queue {queue}, which no worker serves; {advice}"))
    }

    /// Workers finish their running jobs and start no more. `by` ordered it, unless a signal did; `named` are the ids of
    /// some of the running jobs.
    pub(super) fn draining(
        workers: u64,
        by: Option<&str>,
        running: u64,
        named: &[String],
        waiting: u64,
    ) -> Self {
        let by = by.map_or_else(String::new, |by| format!(", ordered by {by}"));
        let (are, they) = if workers == 1 {
            ("is", "it starts no more jobs and exits")
        } else {
            ("are", "they start no more jobs and exit")
        };
        let more = running.saturating_sub(named.len() as u64);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let (workers, named, jobs) = (counted(workers, "worker"), named.join(", "), wait(waiting, "job"));
        let advice = "start another with `queuectl worker start`";
        Self::new(
            "draining",
            format!("{workers} {are} draining{by}: {they} after {named}{more}; {jobs}; {advice}"),
        )
    }

    /// A process is stopped in the middle of a write and blocks all other writers.
    pub(super) fn stopped_writer(pid: u32, name: &str) -> Self {
        let message = format!(
            "process {pid} ({name}) is stopped in the middle of a write and blocks all other writers; \
             resume it with `kill -CONT {pid}` or kill it with `kill -KILL {pid}`"
        );
        Self::new("stopped_writer", message)
    }

    pub(super) fn silent_worker(worker: &dyn Display, silent_for: Duration) -> Self {
        let message = format!(
            "worker {worker} has sent no heartbeat for {}; it may hang or be unable to reach the store; see worker.log",
            format_seconds(silent_for)
        );
        Self::new("silent_worker", message)
    }

    /// A worker that is not on this machine sends no heartbeats.
    pub(super) fn unheard_worker(worker: &dyn Display, host: &str, silent_for: Duration) -> Self {
        let silent_for = format_seconds(silent_for);
        let message = format!(
            "worker {worker} on host {host} has not been heard of for {silent_for}; after a whole lease the other workers \
             run its jobs"
        );
        Self::new("silent_worker", message)
    }

    /// The worker is alive and reports a problem.
    pub(super) fn hindered_worker(worker: &dyn Display, why: &str) -> Self {
        let message =
            format!("worker {worker} is blocked ({why}); it resumes by itself when the cause is gone");
        Self::new("hindered_worker", message)
    }

    /// A migration of the schema has shut it out.
    pub(super) fn outdated_worker(worker: &dyn Display, host: &str) -> Self {
        let message = format!(
            "worker {worker} on {host} runs a queuectl that is older than the schema of the queue, so it claims no more jobs and \
             ends; jobs that it cannot finish run again elsewhere. Install the new version there, and start workers with it"
        );
        Self::new("outdated_worker", message)
    }

    /// These workers run a program whose file is a newer one now.
    pub(super) fn replaced_program(workers: u64, program: &dyn Display) -> Self {
        let (run, them) = if workers == 1 { ("runs", "it") } else { ("run", "them") };
        let workers = counted(workers, "worker");
        let message = format!(
            "{workers} still {run} the old program, because {program} was replaced; restart {them} with \
             `queuectl service restart`, or with `queuectl worker stop` and `queuectl worker start`"
        );
        Self::new("replaced_program", message)
    }

    /// Workers whose processes cannot be seen from here share this home.
    pub(super) fn shared_home(workers: &[&str], hosts: &[&str]) -> Self {
        let message = format!(
            "another container or machine shares this home ({} on {}); its processes cannot be seen from here, so a \
             dead worker is only noticed by its missing heartbeats",
            workers.join(", "),
            hosts.join(", ")
        );
        Self::new("shared_home", message)
    }

    /// A process of an attempt survived SIGKILL.
    pub(super) fn unkillable(job: &dyn Display, pid: u32, why: &str) -> Self {
        let message = format!(
            "process {pid} of job {job} cannot be killed ({why}); the job ends when this process ends, \
             try `sudo kill -9 {pid}`"
        );
        Self::new("unkillable", message)
    }

    /// `count` jobs died in the last hour; at least that many unless `is_all`.
    pub(super) fn dlq_growing(count: u64, is_all: bool) -> Self {
        let (jobs, more) = (counted(count, "job"), if is_all { "" } else { " or more" });
        let advice = "`queuectl dlq list --group` shows the causes";
        Self::new("dlq_growing", format!("{jobs}{more} died in the last hour; {advice}"))
    }

    pub(super) fn schedule_paused(schedule: &str, by: &str, reason: Option<&str>) -> Self {
        let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
        let advice = format!("resume it with `queuectl schedule resume {schedule}`");
        Self::new("schedule_paused", format!("schedule {schedule} was paused by {by}{reason}; {advice}"))
    }

    pub(super) fn schedule_no_worker(active: u64) -> Self {
        let are = if active == 1 { "is" } else { "are" };
        let schedules = counted(active, "schedule");
        let message = format!("{schedules} {are} active and no worker is running; {HOW_TO_START_A_WORKER}");
        Self::new("schedule_no_worker", message)
    }

    pub(super) fn schedule_missed(schedule: &str, at: &str) -> Self {
        let message = format!(
            "schedule {schedule} missed its run at {at} because no worker was running; \
             see `queuectl schedule show {schedule}`"
        );
        Self::new("schedule_missed", message)
    }

    /// Too many of its runs are unfinished.
    pub(super) fn schedule_full(schedule: &str, at: &str) -> Self {
        let message = format!(
            "schedule {schedule} skipped its run at {at} because {MAX_UNFINISHED_RUNS} earlier runs are unfinished; \
             see `queuectl schedule show {schedule}`"
        );
        Self::new("schedule_full", message)
    }

    pub(super) fn hook_failing(hook: &dyn Display, failing_for: Duration, error: &str, pending: u64) -> Self {
        let (span, events) = (format_seconds(failing_for), wait(pending, "event"));
        let message = format!(
            "hook {hook} has been failing for {span} ({error}), {events}; try it with `queuectl hook test {hook}`"
        );
        Self::new("hook_failing", message)
    }

    pub(super) fn hook_gave_up(hook: &dyn Display, count: u64, error: &str) -> Self {
        let message = format!(
            "delivery of {} to hook {hook} was given up ({error}); try it with `queuectl hook test {hook}`",
            counted(count, "event")
        );
        Self::new("hook_gave_up", message)
    }

    /// Events are waiting for delivery, but no worker is running.
    pub(super) fn hook_waiting(hook: &dyn Display, pending: u64) -> Self {
        let events = wait(pending, "event");
        let message = format!("{events} for hook {hook}, but no worker is running; {HOW_TO_START_A_WORKER}");
        Self::new("hook_waiting", message)
    }

    pub(super) fn read_only() -> Self {
        let message = "the queue is on a read-only filesystem: it can be inspected, but nothing can be enqueued, run or \
                       changed until the filesystem is mounted for writing";
        Self::new(Self::READ_ONLY, message)
    }

    pub fn durability_lowered() -> Self {
        let message = "durability is normal: a power failure can lose the most recent changes; \
                       restore full durability with `queuectl config unset durability`";
        Self::new("durability_lowered", message)
    }

    pub(super) fn lagging_standby(standbys: u64) -> Self {
        let message = format!(
            "the server has {} that no commit waits for: a failover can lose acknowledged jobs; \
             set `synchronous_standby_names` at the server",
            counted(standbys, "standby")
        );
        Self::new("lagging_standby", message)
    }

    pub(super) fn low_space(free_bytes: u64) -> Self {
        let free = free_bytes >> 20;
        let message = format!("the disk is nearly full ({free} MiB free); delete or move files on it");
        Self::new(Self::LOW_SPACE, message)
    }
}

/// `1 job waits`, `2 jobs wait`
fn wait(count: u64, what: &str) -> String {
    format!("{} {}", counted(count, what), if count == 1 { "waits" } else { "wait" })
}

fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each problem is one line that says what to do.
    fn assert_lines(problems: &[(Problem, &str, &str)]) {
        for (problem, code, line) in problems {
            assert_eq!((problem.code, problem.message.as_str()), (*code, *line));
            assert!(Problem::CODES.contains(code), "{code} is not in the list of all codes");
        }
    }

    #[test]
    fn workers_with_an_old_program_say_how_to_restart_them() {
        let how =
            "with `queuectl service restart`, or with `queuectl worker stop` and `queuectl worker start`";
        for (workers, line) in [
            (1, "1 worker still runs the old program, because /usr/bin/queuectl was replaced; restart it"),
            (2, "2 workers still run the old program, because /usr/bin/queuectl was replaced; restart them"),
        ] {
            let problem = Problem::replaced_program(workers, &"/usr/bin/queuectl");
            assert_lines(&[(problem, "replaced_program", &format!("{line} {how}"))]);
        }
    }

    #[test]
    fn problems_of_queues_and_workers_say_what_to_do() {
        assert_lines(&[
            (
                Problem::queue_paused(&"mail", "ada", None, 1),
                "queue_paused",
                "queue mail was paused by ada, 1 job waits; resume it with `queuectl queue resume mail`",
            ),
            (
                Problem::queue_paused(&"mail", "ada", Some("no server"), 0),
                "queue_paused",
                "queue mail was paused by ada (no server); resume it with `queuectl queue resume mail`",
            ),
            (
                Problem::job_paused("42", "15:24:09"),
                "job_paused",
                "job 42 has been paused since 15:24:09 and keeps its slot; resume it with `queuectl resume 42`",
            ),
            (
                Problem::starved("42", &"slow", Duration::from_secs(1_500)),
                "starved",
                "job 42 has been waiting for 25m while queue slow starts jobs with a higher priority; \
                 `queuectl edit 42 --priority N` raises its own",
            ),
            (
                Problem::jobs_paused(4, true),
                "job_paused",
                "4 jobs are paused and keep their slots; `queuectl list --state paused` shows them, \
                 `queuectl resume --state paused` resumes them",
            ),
            (
                Problem::no_worker(2),
                "no_worker",
                "2 jobs wait, but no worker is running; start one with `queuectl worker start`",
            ),
            (
                Problem::queue_unserved(&"mail", 1),
                "queue_unserved",
                "1 job waits in queue mail, which no worker serves; start one with `queuectl worker start --queue mail`",
            ),
            (
                Problem::draining(1, Some("ada in job a"), 3, &["a".to_owned(), "b".to_owned()], 2),
                "draining",
                "1 worker is draining, ordered by ada in job a: it starts no more jobs and exits after \
                 a, b and 1 more; 2 jobs wait; start another with `queuectl worker start`",
            ),
            (
                Problem::stopped_writer(7, "queuectl"),
                "stopped_writer",
                "process 7 (queuectl) is stopped in the middle of a write and blocks all other writers; \
                 resume it with `kill -CONT 7` or kill it with `kill -KILL 7`",
            ),
            (
                Problem::silent_worker(&"w1", Duration::from_millis(61_500)),
                "silent_worker",
                "worker w1 has sent no heartbeat for 1m1s; it may hang or be unable to reach the store; see worker.log",
            ),
            (
                Problem::unheard_worker(&"w1", "box", Duration::from_secs(40)),
                "silent_worker",
                "worker w1 on host box has not been heard of for 40s; after a whole lease the other workers run its jobs",
            ),
            (
                Problem::hindered_worker(&"w1", "Too many open files"),
                "hindered_worker",
                "worker w1 is blocked (Too many open files); it resumes by itself when the cause is gone",
            ),
            (
                Problem::outdated_worker(&"w1", "box"),
                "outdated_worker",
                "worker w1 on box runs a queuectl that is older than the schema of the queue, so it claims no more jobs \
                 and ends; jobs that it cannot finish run again elsewhere. Install the new version there, and start workers \
                 with it",
            ),
            (
                Problem::shared_home(&["w1"], &["box"]),
                "shared_home",
                "another container or machine shares this home (w1 on box); its processes cannot be seen from here, so a dead \
                 worker is only noticed by its missing heartbeats",
            ),
            (
                Problem::unkillable(&"a", 42, "this user may not"),
                "unkillable",
                "process 42 of job a cannot be killed (this user may not); the job ends when this process ends, \
                 try `sudo kill -9 42`",
            ),
        ]);
    }

    #[test]
    fn other_problems_say_what_to_do() {
        assert_lines(&[
            (
                Problem::dlq_growing(1, true),
                "dlq_growing",
                "1 job died in the last hour; `queuectl dlq list --group` shows the causes",
            ),
            (
                Problem::dlq_growing(200, false),
                "dlq_growing",
                "200 jobs or more died in the last hour; `queuectl dlq list --group` shows the causes",
            ),
            (
                Problem::schedule_paused("nightly", "ada", Some("full")),
                "schedule_paused",
                "schedule nightly was paused by ada (full); resume it with `queuectl schedule resume nightly`",
            ),
            (
                Problem::schedule_no_worker(1),
                "schedule_no_worker",
                "1 schedule is active and no worker is running; start one with `queuectl worker start`",
            ),
            (
                Problem::schedule_missed("nightly", "Mon 03:00"),
                "schedule_missed",
                "schedule nightly missed its run at Mon 03:00 because no worker was running; \
                 see `queuectl schedule show nightly`",
            ),
            (
                Problem::schedule_full("poll", "15:24:09"),
                "schedule_full",
                "schedule poll skipped its run at 15:24:09 because 100 earlier runs are unfinished; \
                 see `queuectl schedule show poll`",
            ),
            (
                Problem::hook_failing(&"site", Duration::from_secs(90), "exit code 1", 3),
                "hook_failing",
                "hook site has been failing for 1m30s (exit code 1), 3 events wait; try it with `queuectl hook test site`",
            ),
            (
                Problem::hook_gave_up(&"site", 1, "exit code 1"),
                "hook_gave_up",
                "delivery of 1 event to hook site was given up (exit code 1); try it with `queuectl hook test site`",
            ),
            (
                Problem::hook_waiting(&"site", 1),
                "hook_waiting",
                "1 event waits for hook site, but no worker is running; start one with `queuectl worker start`",
            ),
            (
                Problem::read_only(),
                "read_only",
                "the queue is on a read-only filesystem: it can be inspected, but nothing can be enqueued, run or \
                 changed until the filesystem is mounted for writing",
            ),
            (
                Problem::durability_lowered(),
                "durability_lowered",
                "durability is normal: a power failure can lose the most recent changes; restore full durability with `queuectl config unset durability`",
            ),
            (
                Problem::lagging_standby(1),
                "lagging_standby",
                "the server has 1 standby that no commit waits for: a failover can lose acknowledged jobs; set `synchronous_standby_names` at the server",
            ),
            (
                Problem::low_space(3 << 20),
                "low_space",
                "the disk is nearly full (3 MiB free); delete or move files on it",
            ),
        ]);
    }
}
