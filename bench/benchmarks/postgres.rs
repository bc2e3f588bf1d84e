//! A queue in PostgreSQL, with the server beside it: drains compared with a bare loop and with other queues of that
//! server, turns without commands, bulk, single starts, large stores, and an idle worker.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::Bench;
use crate::benchmarks::start_latency;
use crate::output::figure::count;
use crate::output::report::{Bar, Report, Unit};
use crate::output::table::Table;
use crate::rig::bare::{self, Command};
use crate::rig::cluster::{Cluster, Snapshot, psql};
use crate::rig::filled::{Shape, Worker, fill};
use crate::rig::pool::Pool;
use crate::rig::sample::Sample;
use crate::rig::server_peer::{SERVER_PEERS, ServerPeer};
use crate::rig::tiny_jobs;
use crate::rig::usage::{cpu, resident_megabytes};
use crate::rig::workspace::Home;

const SLOTS: u32 = 4;
const MIN_DRAIN_RATIO: f64 = 0.60;
const MIN_PEER_RATIO: f64 = 2.0;
/// Jobs per turn, and the least jobs per second.
const TURNS: [(u32, f64); 2] = [(16, 4_500.0), (64, 9_000.0)];
const MIN_BULK_RATE: f64 = 50_000.0;
const MAX_START_MILLISECONDS: f64 = 8.0;
const MAX_START_TAIL_MILLISECONDS: f64 = 25.0;
const TAIL_QUANTILE: f64 = 0.99;
const SMALL_STORE_JOBS: u32 = 10_000;
const MAX_GROWTH: f64 = 1.3;
const DEAD_ROWS: u32 = 200_000;
const MAX_GROWTH_WITH_DEAD_ROWS: f64 = 2.0;
const MAX_IDLE_PERCENT: f64 = 0.1;
const MAX_IDLE_MEGABYTES: f64 = 10.0;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let cluster = Cluster::start()?;
    drains(bench, report, &cluster).context("failed to measure drains")?;
    turns(bench, report, &cluster).context("failed to measure turns")?;
    bulk(bench, report, &cluster).context("failed to measure a bulk")?;
    starts(bench, report, &cluster).context("failed to measure starts")?;
    growth(bench, report, &cluster).context("failed to measure large stores")?;
    drop(cluster);
    idle(bench, report).context("failed to measure an idle worker")
}

fn home(bench: &Bench, cluster: &Cluster) -> Result<Home> {
    bench.workspace.home_with_server("postgres", cluster.database()?)
}

/// A peer, and the rate of each round.
struct PeerRates {
    peer: ServerPeer,
    drains: Sample,
    empty: Sample,
}

fn drains(bench: &Bench, report: &mut Report, cluster: &Cluster) -> Result<()> {
    let (jobs, rounds) = if bench.quick { (1_000, 2) } else { (4_000, 5) };
    let installed = SERVER_PEERS.into_iter().filter(|peer| peer.is_installed());
    let mut peers: Vec<PeerRates> = installed
        .map(|peer| PeerRates { peer, drains: Sample::default(), empty: Sample::default() })
        .collect();
    let (mut limits, mut drains, mut failures) = (Sample::default(), Sample::default(), Sample::default());
    for round in 1..=rounds {
        bench.progress(&format!("{jobs} jobs `true`, round {round} of {rounds}"));
        limits.push(f64::from(jobs) / bare::plain(Command::TRUE, jobs, SLOTS)?);
        let home = home(bench, cluster)?;
        tiny_jobs::enqueue(&home, "true", jobs)?;
        tiny_jobs::drain_by_slots(&home, SLOTS)?;
        let drained = tiny_jobs::drain_result(home.open()?.as_ref(), jobs)?;
        drains.push(f64::from(jobs) / drained.seconds);
        failures.push(drained.failures);
        for PeerRates { peer, drains, empty } in &mut peers {
            let rate = |command| {
                Ok::<_, anyhow::Error>(
                    f64::from(jobs) / peer.drain(&cluster.database()?, jobs, SLOTS, command)?,
                )
            };
            drains.push(rate(Some("true"))?);
            empty.push(rate(None)?);
        }
    }
    report.section(&format!("{} jobs `true`, {SLOTS} slots, in PostgreSQL", count(jobs)));
    let least = Bar::AtLeast(MIN_DRAIN_RATIO);
    report.line("drain rate, relative to the loop of `/bin/true`", &drains.over(&limits), Unit::Ratio, least);
    for PeerRates { peer, drains: theirs, .. } in &peers {
        let least = Bar::AtLeast(MIN_PEER_RATIO);
        report.line(
            &format!("drain rate, relative to {}", peer.name),
            &drains.over(theirs),
            Unit::Ratio,
            least,
        );
    }
    report.line("jobs drained", &drains, Unit::PerSecond, Bar::None);
    report.line("failed attempts in a drain", &failures, Unit::Count, Bar::AtMost(0.0));
    report.table(&peer_table(&peers)?);
    Ok(())
}

fn peer_table(peers: &[PeerRates]) -> Result<Table> {
    let rate = |sample: &Sample| Unit::PerSecond.show(sample.median());
    let mut rows = Vec::new();
    for PeerRates { peer, drains, empty } in peers {
        rows.push(vec![peer.name.to_owned(), peer.version()?, rate(drains), rate(empty)]);
    }
    for missing in SERVER_PEERS.iter().filter(|peer| !peer.is_installed()) {
        rows.push(vec![
            missing.name.to_owned(),
            "not installed: run bench/peers".to_owned(),
            String::new(),
            String::new(),
        ]);
    }
    let title =
        "Other queues in the same server, with tasks that start `true` and with tasks that do nothing"
            .to_owned();
    Ok(Table { title, columns: ["peer", "version", "drain", "nothing"].map(str::to_owned).to_vec(), rows })
}

/// A worker that settles and claims, but starts no commands.
fn turns(bench: &Bench, report: &mut Report, cluster: &Cluster) -> Result<()> {
    let (jobs, rounds) = if bench.quick { (4_000, 2) } else { (20_000, 5) };
    let mut rates = TURNS.map(|_| Sample::default());
    for round in 1..=rounds {
        bench.progress(&format!("turns without commands, round {round} of {rounds}"));
        for ((slots, _), rate) in TURNS.iter().zip(&mut rates) {
            let home = home(bench, cluster)?;
            let store = home.open()?;
            fill(bench, store.as_ref(), jobs + 2 * slots, Shape::Plain)?;
            let mut worker = Worker::register(store.as_ref(), *slots)?;
            let began = Instant::now();
            (0..jobs / slots).try_for_each(|_| worker.exchange())?;
            rate.push(f64::from(jobs / slots * slots) / began.elapsed().as_secs_f64());
        }
    }
    report.section("Jobs that are claimed and settled without a command, in PostgreSQL");
    for ((slots, least), rate) in TURNS.iter().zip(&rates) {
        report.line(&format!("{slots} per turn"), rate, Unit::PerSecond, Bar::AtLeast(*least));
    }
    Ok(())
}

fn bulk(bench: &Bench, report: &mut Report, cluster: &Cluster) -> Result<()> {
    let (jobs, rounds) = if bench.quick { (50_000, 2) } else { (200_000, 5) };
    let mut rates = Sample::default();
    for round in 1..=rounds {
        bench.progress(&format!("{jobs} lines, round {round} of {rounds}"));
        let home = home(bench, cluster)?;
        // The tables exist before the measurement.
        drop(home.open()?);
        let began = Instant::now();
        tiny_jobs::enqueue(&home, "true", jobs)?;
        rates.push(f64::from(jobs) / began.elapsed().as_secs_f64());
    }
    report.section(&format!("enqueue --file with {} lines, in PostgreSQL", count(jobs)));
    report.line("jobs stored", &rates, Unit::PerSecond, Bar::AtLeast(MIN_BULK_RATE));
    Ok(())
}

fn starts(bench: &Bench, report: &mut Report, cluster: &Cluster) -> Result<()> {
    let times = if bench.quick { 30 } else { 200 };
    bench.progress(&format!("{times} starts on an idle worker"));
    let pool = Pool::start(home(bench, cluster)?, 1, SLOTS)?;
    let starts = start_latency::on_idle_worker(&pool, times)?;
    pool.stop()?;
    report.section(&format!("Starting a job {times} times on an idle worker, in PostgreSQL"));
    let (unit, median) = (Unit::Milliseconds, Bar::AtMost(MAX_START_MILLISECONDS));
    report.line("after `enqueue` returned", &starts, unit, median);
    let (tail, most) = (starts.at(TAIL_QUANTILE), Bar::AtMost(MAX_START_TAIL_MILLISECONDS));
    report.line("after `enqueue` returned, 99th percentile", &tail, unit, most);
    Ok(())
}

/// Turns on a large store, and on one whose old rows the server may not remove, relative to turns on a small store.
fn growth(bench: &Bench, report: &mut Report, cluster: &Cluster) -> Result<()> {
    let (jobs, dead) = if bench.quick { (100_000, DEAD_ROWS / 10) } else { (1_000_000, DEAD_ROWS) };
    let small = milliseconds_per_turn(bench, cluster, SMALL_STORE_JOBS, None)?;
    let large = milliseconds_per_turn(bench, cluster, jobs, None)?;
    let held = milliseconds_per_turn(bench, cluster, SMALL_STORE_JOBS, Some(dead))?;
    report.section(&format!(
        "Turns of {} jobs, relative to those with {} jobs in PostgreSQL",
        TURNS[0].0,
        count(SMALL_STORE_JOBS)
    ));
    let ratio = |sample: &Sample| Sample::of(sample.median() / small.median());
    report.line(&format!("with {} jobs", count(jobs)), &ratio(&large), Unit::Ratio, Bar::AtMost(MAX_GROWTH));
    report.line(
        &format!("after {} jobs, with a snapshot that keeps their rows", count(dead)),
        &ratio(&held),
        Unit::Ratio,
        Bar::AtMost(MAX_GROWTH_WITH_DEAD_ROWS),
    );
    report.line(
        &format!("a turn with {} jobs", count(SMALL_STORE_JOBS)),
        &small,
        Unit::Milliseconds,
        Bar::None,
    );
    Ok(())
}

/// With `dead`, this number of jobs has been claimed and settled before, within one snapshot of another program.
fn milliseconds_per_turn(bench: &Bench, cluster: &Cluster, jobs: u32, dead: Option<u32>) -> Result<Sample> {
    const BATCH: u32 = 500;
    let turns = if bench.quick { 50 } else { 200 };
    let server = cluster.database()?;
    let home = bench.workspace.home_with_server("postgres", server.clone())?;
    let store = home.open()?;
    bench.progress(&format!("filling a store with {} jobs", count(jobs + dead.unwrap_or(0))));
    fill(bench, store.as_ref(), jobs + dead.unwrap_or(0), Shape::Plain)?;
    psql(&server.to_string(), "vacuum analyze")?;
    let _snapshot = dead.map(|_| Snapshot::hold(&server)).transpose()?;
    if let Some(dead) = dead {
        let mut worker = Worker::register(store.as_ref(), BATCH)?;
        (0..dead / BATCH).try_for_each(|_| worker.exchange())?;
    }
    let mut worker = Worker::register(store.as_ref(), TURNS[0].0)?;
    let mut turn = || {
        let began = Instant::now();
        worker.exchange()?;
        Ok::<_, anyhow::Error>(began.elapsed().as_secs_f64() * 1000.0)
    };
    (0..10).try_for_each(|_| turn().map(drop))?;
    (0..turns).map(|_| turn()).collect()
}

/// On a server that has nothing else to do: one that tidies up after the other measurements is busy with that.
fn idle(bench: &Bench, report: &mut Report) -> Result<()> {
    const WARM_UP_JOBS: u32 = 40;
    /// A worker that was woken polls for a while, and the server writes what it has collected.
    const SETTLE_TIME: Duration = Duration::from_secs(5);
    let span = Duration::from_secs(if bench.quick { 10 } else { 30 });
    let cluster = Cluster::start()?;
    let pool = Pool::start(home(bench, &cluster)?, 1, SLOTS)?;
    tiny_jobs::enqueue(&pool.home, "true", WARM_UP_JOBS)?;
    pool.wait_for_completed(WARM_UP_JOBS)?;
    thread::sleep(SETTLE_TIME);
    bench.progress("watching an idle worker");
    let worker = pool.worker()?;
    let (began, before) = (Instant::now(), (cpu(worker)?, cluster.cpu()?));
    thread::sleep(span);
    let (passed, after) = (began.elapsed(), (cpu(worker)?, cluster.cpu()?));
    let percent = |before: Duration, after: Duration| {
        Sample::of(100.0 * after.saturating_sub(before).as_secs_f64() / passed.as_secs_f64())
    };
    let memory = Sample::of(resident_megabytes(worker)?);
    pool.stop()?;
    report.section(&format!("A worker with {SLOTS} slots, idle for {} s, in PostgreSQL", span.as_secs()));
    let most = Bar::AtMost(MAX_IDLE_PERCENT);
    report.line("worker: share of one core", &percent(before.0, after.0), Unit::Percent, most);
    report.line("server: share of one core", &percent(before.1, after.1), Unit::Percent, most);
    report.line("worker: resident memory", &memory, Unit::Megabytes, Bar::AtMost(MAX_IDLE_MEGABYTES));
    Ok(())
}
