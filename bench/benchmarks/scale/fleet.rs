//! Many workers of one queue: the cost of their operations, and a simulation of whole fleets against the real server, which
//! shows what grows first.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::getpid;
use store::Store;
use store::postgres::Address;

use super::costs;
use super::logical::{Log, LogicalWorker, Phase};
use crate::Bench;
use crate::output::figure::{count, grouped};
use crate::output::report::{Bar, Report, Unit};
use crate::output::table::Table;
use crate::rig::cluster::{Cluster, psql, rows};
use crate::rig::filled::{Shape, fill};
use crate::rig::sample::Sample;
use crate::rig::usage::{available_megabytes, cpu};
use crate::rig::workspace::Home;

/// Two sessions for each worker of the largest fleet, and some for others.
const SETTINGS: [&str; 1] = ["max_connections=2200"];
const SLOTS: u32 = 1;
/// How long a command of the busy phase would run.
const JOB_SPAN: Duration = Duration::from_secs(5);
/// How many threads open sessions: a fleet does not start at one moment.
const OPENERS: usize = 4;
const STACK_BYTES: usize = 256 << 10;
const ENQUEUE_INTERVAL: Duration = Duration::from_millis(100);
const NOTIFICATIONS: u32 = 100;
const NOTIFICATION_INTERVAL: Duration = Duration::from_millis(20);
/// Of the memory that is free, at most this share is given to the server.
const MAX_MEMORY_SHARE: f64 = 0.7;
const TAIL_QUANTILE: f64 = 0.99;
/// A heartbeat that is later than this eats a tenth of the lease.
const MAX_DELAY_MILLISECONDS: f64 = 6_000.0;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let cluster = Cluster::start_with(&SETTINGS)?;
    costs::run(bench, report, &cluster).context("failed to measure single operations")?;
    drop(cluster);
    simulate(bench, report).context("failed to simulate fleets")
}

fn simulate(bench: &Bench, report: &mut Report) -> Result<()> {
    let sizes: &[u32] = if bench.quick { &[10, 30] } else { &[100, 300, 1_000] };
    let (mut reached, mut per_worker): (Vec<Outcome>, f64) = (Vec::new(), 0.0);
    for workers in sizes {
        if f64::from(*workers) * per_worker > available_megabytes()? * MAX_MEMORY_SHARE {
            report
                .note(&format!("{} workers would need more memory than this machine has.", count(*workers)));
            break;
        }
        let outcome = simulate_one(bench, *workers)?;
        per_worker = outcome.megabytes / f64::from(*workers);
        reached.push(outcome);
    }
    report.section(&format!("Fleets of logical workers with {SLOTS} slot each, two sessions per worker"));
    for outcome in &reached {
        outcome.report(report);
    }
    report.table(&table(&reached));
    Ok(())
}

/// What a fleet did, phase by phase.
struct Outcome {
    workers: u32,
    /// Of all processes of the server, when every statement has been prepared.
    megabytes: f64,
    sessions: String,
    opening: Duration,
    /// Without jobs.
    idle: Measured,
    /// With a job now and then.
    woken: Measured,
    /// CPU time of the server for a notification that every worker hears, without that of the idle fleet.
    heard_milliseconds: f64,
    /// The same on a channel to which no worker listens.
    unheard_milliseconds: f64,
    busy: Measured,
    flood: Measured,
}

/// A phase.
struct Measured {
    log: Log,
    seconds: f64,
    server_cores: f64,
    client_cores: f64,
}

impl Measured {
    fn rate(&self) -> f64 {
        f64::from(self.log.claimed) / self.seconds
    }
}

fn simulate_one(bench: &Bench, workers: u32) -> Result<Outcome> {
    let span = |seconds: u64| Duration::from_secs(if bench.quick { seconds.div_ceil(5) } else { seconds });
    let cluster = Cluster::start_with(&SETTINGS)?;
    let server = cluster.database()?;
    let home = bench.workspace.home_with_server("fleet", server.clone())?;
    let store = home.open()?;
    bench.progress(&format!("opening {} sessions", count(2 * workers)));
    let began = Instant::now();
    let mut fleet = open_fleet(&home, workers)?;
    let opening = began.elapsed();
    let mut run = |what: &str, seconds: u64, job: Duration, beside: &mut dyn FnMut(&Phase) -> Result<()>| {
        bench.progress(&format!("{} workers: {what}", count(workers)));
        work(&cluster, &mut fleet, span(seconds), job, beside)
    };

    // Every worker has looked for jobs once, and the server has prepared its statements.
    run("waiting for jobs", 12, Duration::ZERO, &mut |_| Ok(()))?;
    let idle = run("idle", 20, Duration::ZERO, &mut |_| Ok(()))?;
    let mut of_notification = |channel: &str| {
        let notified = run("notified", 3, Duration::ZERO, &mut |_| notify(&server, channel))?;
        let more = notified.server_cores - idle.server_cores;
        Ok::<_, anyhow::Error>(1000.0 * more * notified.seconds / f64::from(NOTIFICATIONS))
    };
    let heard_milliseconds = of_notification("queuectl")?;
    let unheard_milliseconds = of_notification("other")?;
    let woken = run("one job at a time", 20, Duration::ZERO, &mut |phase| {
        enqueue_one_by_one(bench, store.as_ref(), phase)
    })?;
    fill(bench, store.as_ref(), 400_000.min(workers * 2_000), Shape::Plain)?;
    psql(&server.to_string(), "vacuum analyze")?;
    run("taking their first jobs", 6, JOB_SPAN, &mut |_| Ok(()))?;
    let busy = run("busy", 30, JOB_SPAN, &mut |_| Ok(()))?;
    let megabytes = cluster.memory_megabytes()?;
    let sessions = rows(&server, "select count(*) from pg_stat_activity where datname = current_database()")?;
    let sessions = sessions.into_iter().flatten().next().unwrap_or_default();
    run("finishing their jobs", 6, Duration::ZERO, &mut |_| Ok(()))?;
    let flood = run("as fast as they can", 15, Duration::ZERO, &mut |_| Ok(()))?;
    Ok(Outcome {
        workers,
        megabytes,
        sessions,
        opening,
        idle,
        woken,
        heard_milliseconds,
        unheard_milliseconds,
        busy,
        flood,
    })
}

/// Opens all sessions, a few at a time.
fn open_fleet(home: &Home, workers: u32) -> Result<Vec<LogicalWorker>> {
    let numbers: Vec<u32> = (0..workers).collect();
    let chunk = numbers.len().div_ceil(OPENERS);
    thread::scope(|scope| {
        let openers: Vec<_> = numbers
            .chunks(chunk)
            .map(|numbers| {
                scope.spawn(move || {
                    let open = |number: &u32| LogicalWorker::open(home, *number, SLOTS);
                    numbers.iter().map(open).collect::<Result<Vec<_>>>()
                })
            })
            .collect();
        let opened = openers.into_iter().map(|opener| opener.join().expect("the thread does not panic"));
        Ok(opened.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    })
}

/// Lets every worker work in a thread of its own, and measures what the server does meanwhile.
fn work(
    cluster: &Cluster,
    fleet: &mut [LogicalWorker],
    span: Duration,
    job: Duration,
    beside: &mut dyn FnMut(&Phase) -> Result<()>,
) -> Result<Measured> {
    let began = Instant::now();
    let before = (cluster.cpu()?, cpu(getpid())?);
    let phase = Phase { until: began + span, span: job, enqueued: Mutex::default() };
    let mut log = Log::default();
    thread::scope(|scope| {
        let phase = &phase;
        let mut threads = Vec::new();
        for worker in fleet.iter_mut() {
            let builder = thread::Builder::new().stack_size(STACK_BYTES);
            threads.push(builder.spawn_scoped(scope, move || worker.work(phase))?);
        }
        let done = beside(phase);
        for thread in threads {
            log.append(thread.join().expect("the thread does not panic"));
        }
        done
    })?;
    let seconds = began.elapsed().as_secs_f64();
    let cores = |before: Duration, after: Duration| after.saturating_sub(before).as_secs_f64() / seconds;
    let (server_cores, client_cores) = (cores(before.0, cluster.cpu()?), cores(before.1, cpu(getpid())?));
    Ok(Measured { log, seconds, server_cores, client_cores })
}

/// The next job follows when a worker has claimed the last one.
fn enqueue_one_by_one(bench: &Bench, store: &dyn Store, phase: &Phase) -> Result<()> {
    while Instant::now() + ENQUEUE_INTERVAL < phase.until {
        let is_claimed = {
            let mut enqueued = phase.enqueued.lock().unwrap_or_else(PoisonError::into_inner);
            let is_claimed = enqueued.is_none();
            enqueued.get_or_insert_with(Instant::now);
            is_claimed
        };
        if is_claimed {
            fill(bench, store, 1, Shape::Plain)?;
        }
        thread::sleep(ENQUEUE_INTERVAL);
    }
    Ok(())
}

/// Notifications that name none of the workers, so that only their delivery costs.
fn notify(server: &Address, channel: &str) -> Result<()> {
    let pause = NOTIFICATION_INTERVAL.as_secs_f64();
    psql(
        &server.to_string(),
        &format!(
            "do $$ begin for i in 1..{NOTIFICATIONS} loop
               perform pg_notify('{channel}', 'w:1:none'); commit; perform pg_sleep({pause});
             end loop; end $$"
        ),
    )
}

impl Outcome {
    fn report(&self, report: &mut Report) {
        let workers = count(self.workers);
        let phases = [&self.idle, &self.woken, &self.busy, &self.flood];
        let failures: u32 = phases.iter().map(|phase| phase.log.failures).sum();
        let failed = Sample::of(f64::from(failures));
        report.line(&format!("{workers} workers: failed calls"), &failed, Unit::Count, Bar::AtMost(0.0));
        let late = self.busy.log.delays.at(1.0);
        let most = Bar::AtMost(MAX_DELAY_MILLISECONDS);
        report.line(&format!("{workers} busy workers: latest heartbeat"), &late, Unit::Milliseconds, most);
        for failure in phases.iter().filter_map(|phase| phase.log.last_failure.as_ref()) {
            report.note(&format!("{workers} workers: {failure}"));
        }
    }

    fn cells(&self) -> Vec<String> {
        let Self { idle, woken, busy, flood, .. } = self;
        let number = |value: f64| grouped(value, 2);
        let pair = |sample: &Sample| {
            format!("{} / {}", number(sample.median()), number(sample.quantile(TAIL_QUANTILE)))
        };
        vec![
            self.sessions.clone(),
            grouped(self.opening.as_secs_f64(), 1),
            grouped(self.megabytes, 0),
            number(idle.server_cores),
            number(self.heard_milliseconds),
            number(self.unheard_milliseconds),
            number(woken.server_cores),
            pair(&woken.log.starts),
            grouped(busy.rate(), 0),
            number(busy.server_cores),
            pair(&busy.log.turns),
            pair(&busy.log.ticks),
            pair(&busy.log.heartbeats),
            grouped(flood.rate(), 0),
            pair(&flood.log.turns),
            number(flood.server_cores),
            number(flood.client_cores),
        ]
    }
}

const FIGURES: [&str; 17] = [
    "sessions on the server",
    "opening them, s",
    "memory of the server, MB",
    "idle: cores of the server",
    "a notification that all hear: CPU of the server, ms",
    "a notification that none hears: CPU of the server, ms",
    "ten jobs a second: cores of the server",
    "ten jobs a second: from `enqueue` to the claim, ms (median / 99 %)",
    "busy (jobs of 5 s): jobs/s",
    "busy: cores of the server",
    "busy: a turn, ms",
    "busy: orders and a look at other workers, ms",
    "busy: a heartbeat, ms",
    "as fast as they can: jobs/s",
    "as fast as they can: a turn, ms",
    "as fast as they can: cores of the server",
    "as fast as they can: cores of the simulation",
];

fn table(reached: &[Outcome]) -> Table {
    let columns: Vec<Vec<String>> = reached.iter().map(Outcome::cells).collect();
    let heads = reached.iter().map(|outcome| format!("{} workers", count(outcome.workers)));
    let row = |(at, name): (usize, &&str)| {
        let cells = columns.iter().map(|column| column[at].clone());
        std::iter::once((*name).to_owned()).chain(cells).collect()
    };
    Table {
        title: "Fleets on this machine, server and simulation together".to_owned(),
        columns: std::iter::once("figure".to_owned()).chain(heads).collect(),
        rows: FIGURES.iter().enumerate().map(row).collect(),
    }
}
