//! The metrics as a monitoring system reads them: names, types and labels of Prometheus.
//!
//! No label is an id, a command, a worker or a host: their number would grow without bound. Of very many queues the
//! smaller ones share a label.

use std::collections::BTreeMap;
use std::time::Duration;

use super::exposition::{Exposition, Kind, Samples, seconds};
use super::{Metrics, ScheduleTimes};
use crate::status::Problem;
use domain::job::life::StateName;
use domain::job::outcome::OutcomeName;
use domain::metrics::activity::Activity;
use domain::metrics::histogram::{RUN_BOUNDS, WAIT_BOUNDS};
use domain::values::timestamp::Timestamp;
use store::QueueMetrics;

/// How many queues have a label of their own.
const MAX_QUEUES: usize = 200;
/// The label of all other queues. No queue has this name, because names begin with a letter or a digit.
const OTHER_QUEUES: &str = "_other";

/// The text for a scrape.
pub fn text(metrics: &Metrics) -> String {
    let mut out = Exposition::default();
    let queues = labelled(&metrics.queues);
    about(&mut out, metrics);
    queue_states(&mut out, &queues, metrics.now);
    workers(&mut out, metrics);
    queue_counters(&mut out, &queues);
    histograms(&mut out, &queues);
    schedules(&mut out, &metrics.schedules);
    hooks(&mut out, metrics);
    problems(&mut out, metrics);
    files(&mut out, metrics);
    out.into_text()
}

/// The numbers behind one value of the label `queue`.
#[derive(Clone, Debug, Default)]
struct Labelled<'a> {
    label: &'a str,
    jobs: BTreeMap<StateName, u64>,
    entered: BTreeMap<StateName, u64>,
    activity: Activity,
    oldest_ready_at: Option<Timestamp>,
    oldest_running_at: Option<Timestamp>,
    /// Not for several queues.
    is_paused: Option<bool>,
    concurrency: Option<u32>,
}

impl<'a> Labelled<'a> {
    fn of(metrics: &'a QueueMetrics) -> Self {
        Self {
            label: metrics.queue.name.as_str(),
            jobs: metrics.queue.counts.clone(),
            entered: metrics.entered.clone(),
            activity: metrics.activity,
            oldest_ready_at: metrics.oldest_ready_at,
            oldest_running_at: metrics.oldest_running_at,
            is_paused: Some(metrics.queue.paused.is_some()),
            concurrency: metrics.queue.concurrency,
        }
    }

    fn add(&mut self, metrics: &QueueMetrics) {
        let add = |sums: &mut BTreeMap<StateName, u64>, more: &BTreeMap<StateName, u64>| {
            for (state, count) in more {
                *sums.entry(*state).or_default() += count;
            }
        };
        add(&mut self.jobs, &metrics.queue.counts);
        add(&mut self.entered, &metrics.entered);
        self.activity.add(&metrics.activity);
        let earlier = |one: Option<Timestamp>, other| one.into_iter().chain(other).min();
        self.oldest_ready_at = earlier(self.oldest_ready_at, metrics.oldest_ready_at);
        self.oldest_running_at = earlier(self.oldest_running_at, metrics.oldest_running_at);
    }

    fn entered(&self, state: StateName) -> u64 {
        self.entered.get(&state).copied().unwrap_or(0)
    }
}

/// The largest queues by name, and the sum of all others.
fn labelled(queues: &[QueueMetrics]) -> Vec<Labelled<'_>> {
    if queues.len() <= MAX_QUEUES {
        return queues.iter().map(Labelled::of).collect();
    }
    let mut by_size: Vec<&QueueMetrics> = queues.iter().collect();
    by_size.sort_by_key(|queue| std::cmp::Reverse(queue.activity.started + queue.enqueued));
    let (largest, rest) = by_size.split_at(MAX_QUEUES);
    let mut all: Vec<Labelled<'_>> = largest.iter().map(|queue| Labelled::of(queue)).collect();
    all.sort_by_key(|queue| queue.label);
    let mut other = Labelled { label: OTHER_QUEUES, ..Labelled::default() };
    for queue in rest {
        other.add(queue);
    }
    all.push(other);
    all
}

fn about(out: &mut Exposition, metrics: &Metrics) {
    out.family(Kind::Gauge, "queuectl_up", "Whether the store could be read.", |samples| samples.add(&[], 1));
    out.family(
        Kind::Gauge,
        "queuectl_build_info",
        "The program, the kind of store and its schema.",
        |samples| {
            let schema = metrics.store.schema.to_string();
            let version = env!("CARGO_PKG_VERSION");
            samples.add(&[("version", version), ("store", metrics.store.name), ("schema", &schema)], 1);
        },
    );
}

fn queue_states(out: &mut Exposition, queues: &[Labelled<'_>], now: Timestamp) {
    out.family(Kind::Gauge, "queuectl_jobs", "Jobs by state.", |samples| {
        for queue in queues {
            for state in StateName::ALL {
                let count = queue.jobs.get(&state).copied().unwrap_or(0);
                samples.add(&[("queue", queue.label), ("state", state.name())], count);
            }
        }
    });
    let mut age = |name, help, since: fn(&Labelled<'_>) -> Option<Timestamp>| {
        out.family(Kind::Gauge, name, help, |samples| {
            for queue in queues {
                let age = since(queue).map_or(Duration::ZERO, |since| now.since(since));
                samples.add(&[("queue", queue.label)], seconds(age));
            }
        });
    };
    age(
        "queuectl_queue_oldest_ready_seconds",
        "How long the oldest job that could run has been waiting; 0 without one.",
        |queue| queue.oldest_ready_at,
    );
    age(
        "queuectl_oldest_running_seconds",
        "How long the oldest running attempt has been running; 0 without one.",
        |queue| queue.oldest_running_at,
    );
    out.family(Kind::Gauge, "queuectl_queue_paused", "Whether the queue is paused.", |samples| {
        for queue in queues {
            if let Some(is_paused) = queue.is_paused {
                samples.add(&[("queue", queue.label)], u8::from(is_paused));
            }
        }
    });
    out.family(
        Kind::Gauge,
        "queuectl_queue_concurrency_limit",
        "How many jobs of the queue may run at once, where that is limited.",
        |samples| {
            for queue in queues {
                if let Some(limit) = queue.concurrency {
                    samples.add(&[("queue", queue.label)], limit);
                }
            }
        },
    );
}

fn workers(out: &mut Exposition, metrics: &Metrics) {
    let workers = metrics.workers;
    let by_state = |samples: &mut Samples<'_>, counts: &[(&str, u64)]| {
        for (state, count) in counts {
            samples.add(&[("state", state)], count);
        }
    };
    out.family(Kind::Gauge, "queuectl_workers", "Live workers by state.", |samples| {
        let counts =
            [("running", workers.running), ("draining", workers.draining), ("silent", workers.silent)];
        by_state(samples, &counts);
    });
    out.family(Kind::Gauge, "queuectl_worker_slots", "Slots of live workers.", |samples| {
        by_state(samples, &[("busy", workers.busy_slots), ("free", workers.free_slots)]);
    });
}

fn queue_counters(out: &mut Exposition, queues: &[Labelled<'_>]) {
    let mut count = |name, help, value: fn(&Labelled<'_>) -> u64| {
        out.family(Kind::Counter, name, help, |samples| {
            for queue in queues {
                samples.add(&[("queue", queue.label)], value(queue));
            }
        });
    };
    count("queuectl_jobs_enqueued_total", "Jobs that were enqueued.", |queue| {
        queue.entered(StateName::Pending)
    });
    count("queuectl_attempts_started_total", "Attempts that were claimed.", |queue| queue.activity.started);
    count(
        "queuectl_retries_scheduled_total",
        "Failed attempts after which a job waits for another.",
        |queue| queue.entered(StateName::Failed),
    );
    out.family(
        Kind::Counter,
        "queuectl_attempt_cpu_seconds_total",
        "Processor time of ended attempts.",
        |samples| {
            for queue in queues {
                let cpu = Duration::from_millis(queue.activity.cpu_ms);
                samples.add(&[("queue", queue.label)], seconds(cpu));
            }
        },
    );
    out.family(Kind::Counter, "queuectl_jobs_finished_total", "Jobs that finished, by state.", |samples| {
        for queue in queues {
            for state in StateName::ALL.into_iter().filter(|state| state.is_finished()) {
                samples.add(&[("queue", queue.label), ("state", state.name())], queue.entered(state));
            }
        }
    });
    out.family(Kind::Counter, "queuectl_attempts_total", "Attempts that ended, by outcome.", |samples| {
        for queue in queues {
            for outcome in OutcomeName::ALL {
                let count = queue.activity.ended(outcome);
                samples.add(&[("queue", queue.label), ("outcome", outcome.name())], count);
            }
        }
    });
}

fn histograms(out: &mut Exposition, queues: &[Labelled<'_>]) {
    out.family(
        Kind::Histogram,
        "queuectl_attempt_duration_seconds",
        "How long attempts ran, without lost, cancelled and released ones.",
        |samples| {
            for queue in queues {
                samples.histogram(("queue", queue.label), &queue.activity.runs, &RUN_BOUNDS);
            }
        },
    );
    out.family(
        Kind::Histogram,
        "queuectl_queue_latency_seconds",
        "How long jobs waited from when they became due to their claim.",
        |samples| {
            for queue in queues {
                samples.histogram(("queue", queue.label), &queue.activity.waits, &WAIT_BOUNDS);
            }
        },
    );
}

fn schedules(out: &mut Exposition, schedules: &[ScheduleTimes]) {
    let mut times = |name, help, at: fn(&ScheduleTimes) -> Option<Timestamp>| {
        out.family(Kind::Gauge, name, help, |samples| {
            for times in schedules {
                if let Some(at) = at(times) {
                    let since_epoch = seconds(at.since(Timestamp::EPOCH));
                    samples.add(&[("schedule", times.schedule.name.as_str())], since_epoch);
                }
            }
        });
    };
    times(
        "queuectl_schedule_next_timestamp_seconds",
        "When the schedule enqueues its job next; absent while it is paused.",
        |times| times.schedule.next_at.filter(|_| times.schedule.paused.is_none()),
    );
    times(
        "queuectl_schedule_last_start_timestamp_seconds",
        "When the schedule last enqueued its job.",
        |times| times.last_run_at,
    );
    times(
        "queuectl_schedule_last_success_timestamp_seconds",
        "When a run of the schedule last completed, among its latest runs.",
        |times| times.last_success_at,
    );
}

fn hooks(out: &mut Exposition, metrics: &Metrics) {
    out.family(
        Kind::Gauge,
        "queuectl_hook_deliveries_pending",
        "Events that wait for delivery.",
        |samples| {
            metrics.hooks.iter().for_each(|hook| samples.add(&[("hook", hook.name.as_str())], hook.pending));
        },
    );
    out.family(Kind::Gauge, "queuectl_hook_failing", "Whether the last delivery failed.", |samples| {
        for hook in &metrics.hooks {
            samples.add(&[("hook", hook.name.as_str())], u8::from(hook.failing_since.is_some()));
        }
    });
}

fn problems(out: &mut Exposition, metrics: &Metrics) {
    out.family(
        Kind::Gauge,
        "queuectl_problem",
        "Whether `queuectl status` reports the problem.",
        |samples| {
            for code in Problem::CODES {
                samples.add(&[("problem", code)], u8::from(metrics.problems.contains(code)));
            }
        },
    );
}

fn files(out: &mut Exposition, metrics: &Metrics) {
    let files = metrics.files;
    out.family(Kind::Gauge, "queuectl_store_bytes", "Size of the files of the queue.", |samples| {
        for (file, bytes) in [("db", files.database), ("wal", files.write_ahead_log), ("logs", files.logs)] {
            if let Some(bytes) = bytes {
                samples.add(&[("file", file)], bytes);
            }
        }
    });
    out.family(Kind::Gauge, "queuectl_disk_free_bytes", "Free space on the disk of the home.", |samples| {
        if let Some(free) = files.free {
            samples.add(&[], free);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::Queue;

    fn queue(name: &str, started: u64) -> QueueMetrics {
        let counts = BTreeMap::from([(StateName::Pending, 2)]);
        QueueMetrics {
            queue: Queue::new(name.parse().expect("a name"), counts),
            entered: BTreeMap::from([(StateName::Pending, 3)]),
            activity: Activity { started, ..Activity::default() },
            enqueued: 3,
            oldest_ready_at: Some(Timestamp::from_millis(i64::try_from(started).expect("a small number"))),
            oldest_running_at: None,
        }
    }

    #[test]
    fn the_smaller_of_very_many_queues_share_a_label() {
        let queues: Vec<QueueMetrics> = (0..300).map(|at| queue(&format!("q{at:03}"), 1_000 - at)).collect();
        let labelled = labelled(&queues);
        assert_eq!(labelled.len(), MAX_QUEUES + 1);
        assert_eq!((labelled[0].label, labelled[199].label), ("q000", "q199"));
        let other = &labelled[200];
        assert_eq!(
            (other.label, other.jobs[&StateName::Pending], other.entered(StateName::Pending)),
            ("_other", 200, 300)
        );
        assert_eq!(other.activity.started, (200..300).map(|at| 1_000 - at).sum::<u64>());
        assert_eq!(other.oldest_ready_at, Some(Timestamp::from_millis(701)));
        assert_eq!((other.is_paused, labelled[0].is_paused), (None, Some(false)));
    }
}
