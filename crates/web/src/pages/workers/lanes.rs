//! A worker with a lane for each of its slots.

use std::collections::BTreeMap;
use std::time::Duration;

use maud::{Markup, html};

use crate::pages::visit::Visit;
use crate::parts::button::Act;
use crate::parts::job_row::cut;
use crate::parts::{bar, cli, state, time};
use crate::problem::Problem;
use crate::request::query::encode;
use domain::job::Job;
use domain::job::life::StateName;
use domain::text::hostile::printable;
use domain::values::name::{QueueName, WorkerId};
use ops::metrics::recent::recent;
use ops::worker::live::{is_alive, replaced_program};
use store::{JobFilter, Page, Phase, ServedJobs, Worker, WorkerState};

/// More running jobs are on the page of jobs.
const MAX_RUNNING: usize = 1_000;
/// A job that runs so many times longer than others of its queue is compared with them in words alone.
const MAX_TIMES_TYPICAL: u32 = 10;
/// More free slots of a worker are only counted.
const MAX_FREE_LANES: u64 = 4;

/// What runs, and how long attempts take.
pub(super) struct Lanes {
    running: BTreeMap<WorkerId, Vec<Job>>,
    /// The median of the last hour.
    typical: BTreeMap<QueueName, Duration>,
}

impl Lanes {
    pub(super) fn read(visit: &Visit<'_>) -> Result<Self, Problem> {
        let filter = JobFilter::in_phase(Phase::State(StateName::Processing));
        let mut running: BTreeMap<WorkerId, Vec<Job>> = BTreeMap::new();
        for job in visit.store.list(&filter, &Page { limit: MAX_RUNNING, after: None })? {
            if let Some(worker) = job.life.state.lease().map(|lease| lease.worker.clone()) {
                running.entry(worker).or_default().push(job);
            }
        }
        let recent = recent(visit.store, None)?;
        let typical = recent.queues.iter().filter_map(|metrics| {
            let typical = recent.of(metrics).ran(0.5)?;
            Some((metrics.queue.name.clone(), typical))
        });
        Ok(Self { running, typical: typical.collect() })
    }

    pub(super) fn jobs(&self, worker: &Worker) -> &[Job] {
        self.running.get(&worker.id).map_or(&[], Vec::as_slice)
    }

    pub(super) fn worker(&self, visit: &Visit<'_>, worker: &Worker) -> Markup {
        let id = worker.id.as_str();
        html! {
            article .worker id={ "w-" (encode(id)) } {
                div .bar {
                    h2 { a .id href=(visit.url(&format!("/workers/{}", encode(id)))) { (printable(id)) } }
                    (condition(visit, worker))
                    span .facts { (facts(visit, worker)) }
                    @if visit.may_operate() {
                        @if !is_live(visit, worker) { (forget(visit, worker).markup()) }
                        @else if worker.state == WorkerState::Running { (drain(visit, worker).markup()) }
                    }
                }
                (self.lanes(visit, worker))
            }
        }
    }

    pub(super) fn lanes(&self, visit: &Visit<'_>, worker: &Worker) -> Markup {
        let jobs = self.jobs(worker);
        let free = u64::from(worker.concurrency).saturating_sub(jobs.len() as u64);
        html! {
            ol .lanes {
                @for job in jobs { (self.lane(visit, job)) }
                @if is_live(visit, worker) && worker.state == WorkerState::Running {
                    @for _ in 0..free.min(MAX_FREE_LANES) { li .free { span .zero { "free" } } }
                    @if free > MAX_FREE_LANES { li .free { span .zero { "and " (free - MAX_FREE_LANES) " more free slots" } } }
                }
            }
        }
    }

    fn lane(&self, visit: &Visit<'_>, job: &Job) -> Markup {
        let started = job.life.state.lease().map_or(visit.now, |lease| lease.started_at);
        let passed = visit.now.since(started);
        let typical = self.typical.get(&job.queue).copied();
        // A bar of what is usual says nothing about a job that is not.
        let is_usual = typical.is_none_or(|typical| passed <= typical * MAX_TIMES_TYPICAL);
        html! {
            li id={ "l" (job.number) } {
                (state::of_job(job, visit.now))
                a .id href=(visit.job_url(&job.id)) { (printable(&job.handle())) }
                a .plain href=(visit.url(&format!("/queues/{}", encode(job.queue.as_str())))) { (printable(job.queue.as_str())) }
                code .command { (printable(&cut(job.label()))) }
                span .passed {
                    (time::span(passed))
                    @match typical {
                        Some(typical) if is_usual => { " of " (time::span(typical)) },
                        Some(typical) => { " (usually " (time::span(typical)) ")" },
                        None => " so far",
                    }
                }
                @if is_usual { (bar::elapsed(passed.as_millis(), typical.unwrap_or(passed).as_millis())) } @else { (bar::neutral()) }
            }
        }
    }
}

pub(super) fn is_live(visit: &Visit<'_>, worker: &Worker) -> bool {
    // The status has the workers that are alive.
    visit.status().map_or_else(
        |_| is_alive(worker, || visit.now),
        |status| status.workers.iter().any(|live| live.id == worker.id),
    )
}

pub(super) fn condition(visit: &Visit<'_>, worker: &Worker) -> Markup {
    let (class, word) = match (is_live(visit, worker), worker.state) {
        (false, _) => ("s-dead", "silent"),
        (true, WorkerState::Running) => ("s-completed", "running"),
        (true, WorkerState::Draining) => ("s-failed", "draining"),
        (true, WorkerState::Stopped) => ("s-cancelled", "stopped"),
    };
    html! {
        span .state { span class={ "icon " (class) } aria-hidden="true" { "●" } " " (word) }
        @if let Some(health) = &worker.health { span .problem-word { (printable(health)) } }
        @if replaced_program(worker).is_some() {
            span .problem-word { "runs the old program: its file was replaced" }
        }
    }
}

/// Where it runs, and what it serves.
fn facts(visit: &Visit<'_>, worker: &Worker) -> Markup {
    html! {
        span { "on " (printable(&worker.host)) ", process " (worker.pid) }
        @match worker.supervisor_pid {
            Some(pid) => span { "supervisor " (pid) },
            None => span { "no supervisor" },
        }
        span { (served(&worker.served)) }
        span { "since " (time::ago(visit.now, worker.started_at)) }
        span { "heartbeat " (time::ago(visit.now, worker.last_heartbeat)) }
    }
}

pub(super) fn served(served: &ServedJobs) -> String {
    match served {
        ServedJobs::All => "all queues".to_owned(),
        ServedJobs::InOrder(queues) => {
            let names: Vec<String> =
                queues.iter().map(|queue| printable(queue.as_str()).into_owned()).collect();
            format!("queues {}, in this order", names.join(", "))
        }
        ServedJobs::Batch(batch) => format!("batch {} only", printable(batch.as_str())),
        ServedJobs::Job(job) => format!("job {} only", printable(job.as_str())),
    }
}

/// Lets this worker alone finish what it runs.
pub(super) fn drain<'a>(visit: &Visit<'_>, worker: &Worker) -> Act<'a> {
    let id = worker.id.as_str();
    Act {
        label: "drain this worker",
        method: "POST",
        path: visit.url(&format!("/api/v1/workers/{}/stop", encode(id))),
        ask: format!("Drain worker {id}? It finishes what it runs, starts nothing more, and exits."),
        cli: cli::line(&["worker", "stop", id]),
        ..Act::default()
    }
}

/// Kills what this worker runs.
pub(super) fn stop_now<'a>(visit: &Visit<'_>, worker: &Worker) -> Act<'a> {
    let id = worker.id.as_str();
    Act {
        label: "stop it now",
        body: r#"{"now":true}"#.to_owned(),
        ask: format!("Stop worker {id} now? Its running jobs are killed and run again later."),
        cli: cli::line(&["worker", "stop", id, "--now"]),
        is_final: true,
        ..drain(visit, worker)
    }
}

pub(super) fn forget<'a>(visit: &Visit<'_>, worker: &Worker) -> Act<'a> {
    let id = worker.id.as_str();
    Act {
        label: "forget",
        method: "POST",
        path: visit.url(&format!("/api/v1/workers/{}/forget", encode(id))),
        ask: format!(
            "Forget worker {id}? Its jobs run again. Only do this if its machine is gone for good: a job that still runs \
             there would run twice."
        ),
        cli: cli::line(&["worker", "forget", id]),
        then: visit.url("/workers"),
        is_final: true,
        ..Act::default()
    }
}
