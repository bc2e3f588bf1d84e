//! One frame of `status --watch`: lines that fit into the given columns and rows.

use std::time::Duration;

use anstyle::Style;

use super::progress::rate;
use super::table::{Cell, Table, truncate};
use super::text::{grouped, printable};
use crate::context::Size;
use crate::verbs::inspect::status::{has_sum, hour_lines, problem_lines, queue_lines, worker_lines};
use domain::values::clock::{Clock, TimeFormat};
use ops::status::throughput::AttemptRate;
use ops::status::watch::Snapshot;

/// A section keeps at least a heading, one row, and the count of missing rows.
const MIN_SECTION_LINES: usize = 3;

/// Lines that belong together.
struct Section {
    lines: Vec<String>,
    /// This many lines at the end are kept when others are left out.
    foot: usize,
}

/// Problems come first; sections that do not fit are left out from the end.
pub(crate) fn compose(view: &Snapshot, title: &str, size: Size, format: &TimeFormat) -> Vec<String> {
    let clock = &Clock::new(view.at, format.clone());
    let (status, width) = (&view.status, size.columns);
    let sections = [
        (vec![head(title, clock)], 0),
        (problem_lines(&status.problems, width), 0),
        (queue_lines(status, width), usize::from(has_sum(status))),
        (throughput_lines(view, width), 0),
        (worker_lines(status, clock, width), 0),
        (running_lines(view, clock, width), 0),
        (retry_lines(view, clock, width), 0),
        (hour_lines(&view.hour, width), 0),
    ];
    let sections = sections.into_iter().filter(|(lines, _)| !lines.is_empty());
    let sections: Vec<Section> = sections.map(|(lines, foot)| Section { lines, foot }).collect();
    let mut lines = Vec::new();
    for (section, height) in sections.iter().zip(heights(&sections, size.rows)) {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(section.within(height));
    }
    lines.iter().map(|line| truncate(line, width)).collect()
}

/// How many lines each section gets: the last sections are dropped until every minimum fits, then the longest ones are
/// shortened.
fn heights(sections: &[Section], rows: usize) -> Vec<usize> {
    let with_gaps = |heights: &[usize]| heights.iter().sum::<usize>() + heights.len().saturating_sub(1);
    let mut fewest: Vec<usize> = sections.iter().map(Section::fewest).collect();
    while with_gaps(&fewest) > rows {
        fewest.pop();
    }
    let mut heights: Vec<usize> =
        sections.iter().zip(&fewest).map(|(section, _)| section.lines.len()).collect();
    while with_gaps(&heights) > rows {
        let can_give = heights.iter_mut().zip(&fewest).filter(|(height, fewest)| **height > **fewest);
        let Some((longest, _)) = can_give.max_by_key(|(height, _)| **height) else {
            break;
        };
        *longest -= 1;
    }
    heights
}

impl Section {
    fn fewest(&self) -> usize {
        self.lines.len().min(MIN_SECTION_LINES + self.foot)
    }

    /// At most `height` lines, including a count of the missing ones.
    fn within(&self, height: usize) -> Vec<String> {
        if self.lines.len() <= height {
            return self.lines.clone();
        }
        let (body, foot) = self.lines.split_at(self.lines.len() - self.foot);
        let kept = height.saturating_sub(self.foot + 1);
        let dim = Style::new().dimmed();
        let missing = format!("{dim}… {} more{dim:#}", body.len() - kept);
        body[..kept].iter().chain([&missing]).chain(foot).cloned().collect()
    }
}

/// The heading: the store's time and the title.
fn head(title: &str, clock: &Clock) -> String {
    let bold = Style::new().bold();
    format!("{bold}queuectl status{bold:#}  {}  {}", clock.time(clock.now), printable(title))
}

fn throughput_lines(view: &Snapshot, width: usize) -> Vec<String> {
    let mut table = Table::new(&["THROUGHPUT", "NOW", "LAST MINUTE"]).with_numbers(&["NOW", "LAST MINUTE"]);
    let cell = |rate: Option<AttemptRate>, count: fn(&AttemptRate) -> u64| {
        rate.map_or_else(|| "–".to_owned(), |rate| frequency(count(&rate), rate.over))
    };
    for (name, count) in
        [("completed", (|rate| rate.completed) as fn(&AttemptRate) -> u64), ("failed", |rate| rate.failed)]
    {
        table.row(vec![name.into(), cell(view.latest, count).into(), cell(view.minute, count).into()]);
    }
    table.lines(width)
}

/// `1,234/s`, `0.5/s`, `0.2/min`
fn frequency(count: u64, over: Duration) -> String {
    let tenths = |unit: u64| rate(count.saturating_mul(unit * 10), over);
    match (tenths(1), tenths(60)) {
        (100.., _) => format!("{}/s", grouped(rate(count, over))),
        (tenths @ 1.., _) => format!("{}.{}/s", tenths / 10, tenths % 10),
        (0, tenths @ 1..) => format!("{}.{}/min", tenths / 10, tenths % 10),
        (0, 0) => if count == 0 { "0/s" } else { "<0.1/min" }.to_owned(),
    }
}

fn running_lines(view: &Snapshot, clock: &Clock, width: usize) -> Vec<String> {
    if view.running.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(&["RUNNING", "WORKER", "FOR", "COMMAND"]).with_numbers(&["FOR"]);
    for (job, lease) in view.running.iter().filter_map(|job| Some((job, job.life.state.lease()?))) {
        table.row(vec![
            job.handle().into(),
            lease.worker.as_str().into(),
            match lease.paused_at {
                Some(_) => format!("{} (paused)", clock.elapsed(lease.started_at)),
                None => clock.elapsed(lease.started_at),
            }
            .into(),
            Cell::command(job.label()),
        ]);
    }
    table.lines(width)
}

fn retry_lines(view: &Snapshot, clock: &Clock, width: usize) -> Vec<String> {
    if view.retries.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(&["NEXT RETRY", "IN", "TRIES", "ERROR"]).with_numbers(&["IN", "TRIES"]);
    for job in &view.retries {
        let life = &job.life;
        table.row(vec![
            job.handle().into(),
            if life.due_at > view.at { clock.left(life.due_at) } else { "due".to_owned() }.into(),
            format!("{}/{}", life.tries(), u64::from(life.max_retries) + 1).into(),
            job.latest.error.as_deref().unwrap_or_default().into(),
        ]);
    }
    table.lines(width)
}

#[cfg(test)]
mod tests {

    use super::*;
    use domain::job::life::{Lease, Life, Losses, State, StateName};
    use domain::job::options::JobOptions;
    use domain::job::outcome::OutcomeName;
    use domain::job::{Job, LatestAttempt};
    use domain::metrics::activity::{Activity, EndedAttempt};
    use domain::values::timestamp::Timestamp;
    use ops::metrics::recent::Recent;
    use ops::status::{Problem, Status};
    use store::{Queue, QueueMetrics, ServedJobs, Worker, WorkerState};
    use sys::host::Origin;

    const NOW: Timestamp = Timestamp::from_millis(1_769_851_800_999);

    fn ago(seconds: i64) -> Timestamp {
        Timestamp::from_millis(NOW.as_millis() - seconds * 1_000)
    }

    fn job(id: &str, command: &str, state: State) -> Job {
        Job {
            id: id.parse().expect("an id"),
            number: 1,
            queue: "default".parse().expect("a name"),
            command: command.to_owned(),
            priority: 0,
            life: Life {
                state,
                run_at: None,
                due_at: ago(-90),
                attempts: 2,
                max_retries: 3,
                failures: 1,
                losses: Losses::default(),
            },
            created_at: ago(60),
            updated_at: ago(60),
            timeout: None,
            cwd: None,
            tags: Vec::new(),
            depends_on: Vec::new(),
            unique_key: None,
            options: JobOptions::default(),
            batch: None,
            latest: LatestAttempt {
                error: Some("exit code 2: no luck".to_owned()),
                ..LatestAttempt::default()
            },
        }
    }

    fn running(id: &str, seconds: i64, command: &str) -> Job {
        let worker = "w1".parse().expect("an id");
        let lease = Lease::new(worker, ago(seconds), ago(-30));
        job(id, command, State::Processing(lease))
    }

    fn queue(name: &str) -> Queue {
        let counts = [(StateName::Pending, 1_200), (StateName::Completed, 7)].into();
        Queue::new(name.parse().expect("a name"), counts)
    }

    fn worker() -> Worker {
        Worker {
            id: "w1".parse().expect("an id"),
            host: "here".to_owned(),
            origin: Origin::default(),
            pid: 4242,
            supervisor_pid: None,
            served: ServedJobs::All,
            concurrency: 4,
            folder: "/home/ada/.queuectl/workers".into(),
            held: 2,
            running: 2,
            state: WorkerState::Running,
            started_at: ago(200),
            last_heartbeat: ago(2),
            beat: 40,
            health: None,
            lease_until: None,
            overdue: false,
        }
    }

    /// Three attempts that waited 4 ms each, of which one ended within 40 ms.
    fn hour() -> Recent {
        let mut activity = Activity::default();
        for _ in 0..3 {
            activity.record_start(Duration::from_millis(4));
        }
        activity.record_end(&EndedAttempt {
            outcome: OutcomeName::Success,
            duration: Duration::from_millis(40),
            cpu: None,
            died: false,
        });
        let queue = QueueMetrics {
            queue: queue("default"),
            entered: [].into(),
            activity,
            enqueued: 3,
            oldest_ready_at: None,
            oldest_running_at: None,
        };
        Recent { since: ago(3_600), now: NOW, queues: vec![queue] }
    }

    fn view(queues: Vec<Queue>) -> Snapshot {
        let jobs = [(StateName::Pending, 2_400), (StateName::Completed, 14)].into();
        let problems = vec![Problem::durability_lowered()];
        Snapshot {
            at: NOW,
            status: Status { jobs, queues, workers: vec![worker()], problems },
            latest: Some(AttemptRate { completed: 25, failed: 1, over: Duration::from_secs(2) }),
            recent: None,
            minute: Some(AttemptRate { completed: 30, failed: 1, over: Duration::from_secs(60) }),
            hour: hour(),
            running: vec![running("a", 75, "make test"), running("b", 3, "echo \x1b[31m漢字")],
            retries: vec![job("c", "false", State::Failed)],
        }
    }

    fn seen(view: &Snapshot, columns: usize, rows: usize) -> Vec<String> {
        let lines = compose(view, "/home/ada/.queuectl, every 1s", Size { columns, rows }, &TimeFormat::Full);
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    #[test]
    fn a_frame_contains_every_section() {
        let seen = seen(&view(vec![queue("default"), queue("mail")]), 80, 40);
        assert_eq!(
            seen.join("\n"),
            "\
queuectl status  2026-01-31T09:30:00.999Z  /home/ada/.queuectl, every 1s

! durability is normal: a power failure can lose the most recent changes;
  restore full durability with `queuectl config unset durability`

QUEUE       PENDING  PROCESSING  COMPLETED  FAILED  DEAD  CANCELLED
default       1,200           0          7       0     0          0
mail          1,200           0          7       0     0          0
all queues    2,400           0         14       0     0          0

THROUGHPUT    NOW  LAST MINUTE
completed    12/s        0.5/s
failed      0.5/s      1.0/min

WORKER  STATE    RUNNING   PID  STARTED    HEARTBEAT  QUEUES
w1      running      2/4  4242  3m20s ago  2s ago     all

RUNNING  WORKER    FOR  COMMAND
a        w1      1m15s  make test
b        w1         3s  echo \\u{1b}[31m漢字

NEXT RETRY     IN  TRIES  ERROR
c           1m30s    1/4  exit code 2: no luck

Last hour: 1 job finished (0.02/min); waited p50 4ms, p95 5ms; ran p50 40ms, p95
40ms"
        );
    }

    #[test]
    fn a_frame_fits_into_any_size() {
        let queues = (0..50).map(|number| queue(&format!("queue{number}"))).collect();
        let mut view = view(queues);
        view.running = (0..70).map(|number| running(&format!("j{number}"), number, "sleep 漢 100")).collect();
        for columns in [0, 1, 2, 10, 40, 79, 200] {
            for rows in [0, 1, 2, 5, 10, 24, 60, 200] {
                let seen = seen(&view, columns, rows);
                assert!(seen.len() <= rows, "{} lines in {rows}", seen.len());
                for line in &seen {
                    let width = unicode_width::UnicodeWidthStr::width(line.as_str());
                    assert!(width <= columns.max(1), "{width} columns in {columns}: {line}");
                }
            }
        }
    }

    #[test]
    fn the_longest_sections_are_shortened_and_count_the_missing_rows() {
        let queues = (0..50).map(|number| queue(&format!("queue{number}"))).collect();
        let seen = seen(&view(queues), 80, 24);
        assert_eq!(seen.len(), 24);
        let more = seen.iter().position(|line| line == "… 48 more").expect("a count of the missing rows");
        assert!(seen[more + 1].starts_with("all queues"), "the total is kept: {seen:?}");
        for head in ["! durability", "THROUGHPUT", "WORKER", "RUNNING", "NEXT RETRY"] {
            assert!(seen.iter().any(|line| line.starts_with(head)), "{head}: {seen:?}");
        }
    }

    #[test]
    fn a_frequency_has_a_readable_unit() {
        let over = Duration::from_secs(10);
        for (count, expected) in
            [(0, "0/s"), (12_345, "1,234/s"), (100, "10/s"), (99, "9.9/s"), (5, "0.5/s"), (1, "0.1/s")]
        {
            assert_eq!(frequency(count, over), expected);
        }
        assert_eq!(frequency(1, Duration::from_secs(60)), "1.0/min");
        assert_eq!(frequency(1, Duration::from_secs(3_600)), "<0.1/min");
    }
}
